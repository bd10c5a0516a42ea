"""Steps of a gradient optimizer, and of natural gradients for q, on one batch each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from .._tracing import Traced, compiled
from .batches import Batches
from .checkpoints import CheckpointStore
from .compiled import CompiledFunctions, connected, training_loss_of
from .endings import Ending, Endings
from .guard import LastGood, NumericalBreakdown, tensorflow_errors_as_breakdowns
from .progress import Recorder
from .replicas import Replicas
from .settings import Updates

Loss = Callable[..., tf.Tensor]
ValueAndGradients = tuple[tf.Tensor, list[tf.Tensor]]
Gradients = Callable[[Sequence[tf.Variable], Sequence[tf.Tensor]], ValueAndGradients]
"""From variables and the rows of a batch to the loss and its gradients."""


def run_gradient_steps(
    model: Any,
    batches: Batches,
    *,
    replicas: Replicas,
    updates: Updates,
    first_step: int,
    checkpoint_every: int | None,
    store: CheckpointStore,
    recorder: Recorder,
    endings: Endings,
    jit_compile: bool,
) -> tuple[int, Ending]:
    """
    The steps after ``first_step``, with a checkpoint at multiples of ``checkpoint_every`` and at
    the last.

    A checkpoint is written only once the loss at its parameters, on the batch just seen, is finite.

    :param replicas: those that share each batch.
    :returns: the last step, and why it was the last.
    :raises NonFiniteError: see there.
    """
    functions = _StepFunctions(model, batches, replicas, updates, jit_compile)
    good = LastGood(updates.all_variables(), first_step, store.latest)

    @contextmanager
    def guarded(step: int) -> Iterator[None]:
        with (
            replicas.losses_named(step, store),
            good.restored_on_breakdown(step),
            tensorflow_errors_as_breakdowns(),
        ):
            yield

    def commit(step: int, batch: Sequence[Any]) -> None:
        with guarded(step):
            loss = functions.loss(batch, once=checkpoint_every is None)
            _require_finite(loss, "after the update the loss is")
            good.keep(good.present_values(), step)
        store.save(step)
        good.checkpoint = store.latest

    step, ending = first_step, None
    while ending is None:
        step += 1
        batch = replicas.batch(batches, step - 1)
        before = good.present_values()
        with guarded(step):
            value, finite = functions.take_step(*batch)
            _require_finite(float(value), "the loss is")
            good.keep(before, step - 1)
            if not finite:
                raise NumericalBreakdown("a gradient or an updated parameter is not finite")
        recorder.step(-float(value))
        with replicas.losses_named(step, store):
            ending = endings.after_step(step)
        due = checkpoint_every is not None and step % checkpoint_every == 0
        if ending is not None or due:
            commit(step, batch)
        recorder.evaluate(step, last=ending is not None)
        if ending is None:
            with replicas.losses_named(step, store):
                ending = endings.after_callbacks(step)
            if ending is not None and not due:
                commit(step, batch)
    replicas.meet(step, store)
    return step, ending


class _StepFunctions:
    """
    What a fit compiles, or finds compiled by an earlier fit of the same model.

    The loss and its gradients, which take long to compile, depend on no optimizer and are compiled
    apart from the updates; under a strategy, whose replicas trace them, together.
    """

    def __init__(
        self,
        model: Any,
        batches: Batches,
        replicas: Replicas,
        updates: Updates,
        jit_compile: bool,
    ) -> None:
        self._functions = CompiledFunctions.of(model)
        self._replicas, self._updates = replicas, updates
        self._user_loss = training_loss_of(model)
        # What a strategy distributes carries its own types.
        signature = tuple(batches.signature()) if replicas.strategy is None else None
        self._options: dict[str, Any] = {"input_signature": signature}
        self._key = (signature, replicas.strategy)
        self._compile_with_xla = {"jit_compile": True} if jit_compile else {}
        key = ("step", *self._key, *updates.key(), jit_compile)
        self.take_step = self._functions.get(key, self._compiled_step)

    def loss(self, batch: Sequence[Any], *, once: bool) -> float:
        """
        The loss on a batch, which its replicas share.

        :param once: whether it is asked for once, so that compiling would not pay.
        """
        if self._replicas.strategy is not None:
            return float(self._functions.get(("loss", *self._key), self._compiled_loss)(*batch))
        if once:
            return float(self._user_loss(*batch))
        value, _ = self._compiled_gradients(self._updates.last_updated(), batch)
        return float(value)

    def _compiled_step(self) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
        replicas, updates = self._replicas, self._updates
        options = {**self._options, **self._compile_with_xla}
        if replicas.strategy is None:
            step = _step_function(replicas, updates, self._compiled_gradients)
            take_step: Callable[..., Any] = compiled(step, **options)
            return take_step

        def build(loss: Loss) -> Callable[..., Any]:
            return _step_function(replicas, updates, _gradients_of(loss, replicas))

        return Traced(build, self._user_loss, **options)

    def _compiled_loss(self) -> Callable[..., tf.Tensor]:
        replicas = self._replicas

        def build(loss: Loss) -> Callable[..., tf.Tensor]:
            return lambda *batch: replicas.run(lambda *rows: replicas.loss(loss, rows), batch)

        return Traced(build, self._user_loss, **self._options)

    def _compiled_gradients(
        self, variables: Sequence[tf.Variable], rows: Sequence[tf.Tensor]
    ) -> ValueAndGradients:
        replicas, user_loss, options = self._replicas, self._user_loss, self._options

        def build(loss: Loss) -> Callable[..., ValueAndGradients]:
            return lambda *rows: _gradients_of(loss, replicas)(variables, rows)

        names = tuple(v.ref() for v in variables)
        key = ("gradients", *self._key, names)
        traced = self._functions.get(key, lambda: Traced(build, user_loss, **options))
        result: ValueAndGradients = traced(*rows)
        return result


def _gradients_of(loss: Loss, replicas: Replicas) -> Gradients:
    def gradients(variables: Sequence[tf.Variable], rows: Sequence[tf.Tensor]) -> ValueAndGradients:
        value, gradients = replicas.loss_and_gradients(loss, variables, rows)
        return value, connected(gradients, variables)

    return gradients


def _step_function(
    replicas: Replicas, updates: Updates, gradients_of: Gradients
) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """
    One update from one batch. Returns the loss before it, and whether all numbers were finite.

    Nothing here is conditional: optimizers cannot merge the gradients of several replicas inside a
    ``tf.cond``. A bad update does go through, and the caller takes it back.
    """
    optimizer, variables = updates.optimizer, updates.variables
    natural = (
        None
        if updates.natural_gradient is None
        else gpflow.optimizers.NaturalGradient(gamma=updates.natural_gradient)
    )
    in_q = updates.q_variables()

    def step(*batch: Any) -> tuple[tf.Tensor, tf.Tensor]:
        losses: list[tf.Tensor] = []
        gradients: list[tf.Tensor] = []
        if natural is not None:
            value, of_q = replicas.run(lambda *rows: gradients_of(in_q, rows), batch)
            losses.append(value)
            # GPflow's optimizer takes gradients itself: of a function that has these.
            natural.minimize(
                lambda: tf.add_n([tf.reduce_sum(g * v) for g, v in zip(of_q, in_q, strict=True)]),
                updates.variational_parameters,
            )
        if variables:
            value, gradients = replicas.run(update, batch)
            losses.append(value)
        return losses[0], _all_finite([*losses, *gradients, *variables, *in_q])

    def update(*rows: tf.Tensor) -> ValueAndGradients:
        value, gradients = gradients_of(variables, rows)
        if replicas.strategy is None:
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        else:  # they are of the whole batch already
            pairs = zip(gradients, variables, strict=True)
            optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)
        return value, gradients

    return step


def _all_finite(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(tensor)) for tensor in tensors])


def _require_finite(value: float, what: str) -> None:
    if not np.isfinite(value):
        raise NumericalBreakdown(f"{what} {value}")
