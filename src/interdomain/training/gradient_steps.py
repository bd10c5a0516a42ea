"""Training by an optimizer such as Adam, with natural gradients for q: one batch for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from .._tracing import Traced, compiled
from ..sphere._typing import Array
from .batches import Batches
from .checkpoints import Checkpoints
from .compiled import CompiledFunctions, Names, connected, names_of_variables, training_loss_of
from .draws import draw_for_step
from .endings import Ending, Endings
from .guard import (
    LastGood,
    NumericalBreakdown,
    is_failed_factorisation,
    tensorflow_errors_as_breakdowns,
)
from .one_step import Gradients, Loss, ValueAndGradients, step_function
from .progress import Recorder
from .replicas import Replicas
from .settings import Updates


def run_gradient_steps(
    model: Any,
    batches: Batches,
    *,
    replicas: Replicas,
    updates: Updates,
    first_step: int,
    checkpoint_every: int | None,
    store: Checkpoints,
    recorder: Recorder,
    endings: Endings,
    jit_compile: bool,
) -> tuple[int, Ending]:
    """
    Run the steps after ``first_step``, with a checkpoint at every multiple of ``checkpoint_every``
    and after the last step.

    A checkpoint is written only if the loss at its parameters, on the latest batch, is finite.

    :param replicas: the replicas among which each batch is divided.
    :returns: the last step, and why it was the last.
    :raises NonFiniteError: if the loss, a gradient or an updated parameter is not finite.
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
            _require_finite(functions.loss(batch), "after the update the loss is")
            good.keep(good.present_values(), step)
        store.save(step)
        good.checkpoint = store.latest

    step, ending = first_step, None
    while ending is None:
        step += 1
        batch = replicas.batch(batches, step - 1)
        draw_for_step(model, step)
        before = good.present_values()
        with guarded(step):
            value, finite = functions.take_step(step, batch)
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
    The compiled functions of a fit; those of an earlier fit of the same model are used again.

    The loss and its gradients take long to compile and do not depend on the optimizer. They are
    therefore compiled separately from the updates; under a strategy, where the replicas trace them,
    together with the updates.
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
        self._user_loss, self._names = training_loss_of(model), names_of_variables(model)
        # What a strategy distributes carries its own types.
        signature = tuple(batches.signature()) if replicas.strategy is None else None
        self._options: dict[str, Any] = {"input_signature": signature}
        self._key = (signature, replicas.strategy)
        self._compile_with_xla = {"jit_compile": True} if jit_compile else {}
        key = ("step", *self._key, *updates.key(), jit_compile)
        self._step = self._functions.get(key, self._compiled_step)

    def take_step(self, step: int, batch: Sequence[Any]) -> tuple[tf.Tensor, tf.Tensor]:
        """Make one update; return the loss before it, and whether all numbers were finite.

        Where TensorFlow raises instead of returning NaN, as before 2.21, a natural-gradient step
        that cannot be factorised ends here, before any variable has changed, and is halved.
        """
        natural = self._updates.natural
        sizes = np.zeros(0) if natural is None else natural.sizes.at(step - 1)
        while True:
            try:
                value, finite = self._step(*self._updating(True, sizes), *batch)
                return value, finite
            except tf.errors.InvalidArgumentError as error:
                if not np.any(sizes) or not is_failed_factorisation(error):
                    raise
                self.loss(batch)  # fails, too, if it is not the step that does
                sizes = sizes / 2

    def loss(self, batch: Sequence[Any]) -> float:
        """The loss of a batch, computed by all replicas together."""
        if self._replicas.strategy is not None:
            return float(self._functions.get(("loss", *self._key), self._compiled_loss)(*batch))
        natural = self._updates.natural
        sizes = np.zeros(0 if natural is None else natural.num_pairs)
        value, _ = self._step(*self._updating(False, sizes), *batch)
        return float(value)

    def _updating(self, update: bool, sizes: Array) -> tuple[tf.Tensor, ...]:
        """The arguments of the compiled step besides the batch: the sizes of natural-gradient
        steps, and whether to update; under a strategy it always does."""
        given = tf.constant(sizes, tf.float64)
        return (given, tf.constant(update)) if self._replicas.strategy is None else (given,)

    def _compiled_step(self) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
        replicas, updates, names = self._replicas, self._updates, self._names
        if replicas.strategy is None:
            take_step = step_function(replicas, updates, self._compiled_gradients)

            def step(sizes: tf.Tensor, update: tf.Tensor, *batch: tf.Tensor) -> Any:
                return take_step(sizes, batch, lambda move, stay: tf.cond(update, move, stay))

            of_update = (tf.TensorSpec([None], tf.float64), tf.TensorSpec([], tf.bool))
            signature = (*of_update, *self._options["input_signature"])
            traced: Callable[..., Any]
            traced = compiled(step, input_signature=signature, **self._compile_with_xla)
            return traced

        def build(loss: Loss) -> Callable[..., Any]:
            take_step = step_function(replicas, updates, _gradients_of(loss, replicas, names))
            # Optimizers cannot merge the gradients of several replicas inside a tf.cond.
            return lambda sizes, *batch: take_step(sizes, batch, lambda move, stay: move())

        return Traced(build, self._user_loss, **self._options, **self._compile_with_xla)

    def _compiled_loss(self) -> Callable[..., tf.Tensor]:
        replicas = self._replicas

        def build(loss: Loss) -> Callable[..., tf.Tensor]:
            return lambda *batch: replicas.run(lambda *rows: replicas.loss(loss, rows), batch)

        return Traced(build, self._user_loss, **self._options)

    def _compiled_gradients(
        self, variables: Sequence[tf.Variable], rows: Sequence[tf.Tensor]
    ) -> ValueAndGradients:
        replicas, user_loss, options = self._replicas, self._user_loss, self._options
        names = self._names

        def build(loss: Loss) -> Callable[..., ValueAndGradients]:
            return lambda *rows: _gradients_of(loss, replicas, names)(variables, rows)

        key = ("gradients", *self._key, tuple(v.ref() for v in variables))
        traced = self._functions.get(key, lambda: Traced(build, user_loss, **options))
        result: ValueAndGradients = traced(*rows)
        return result


def _gradients_of(loss: Loss, replicas: Replicas, names: Names) -> Gradients:
    def gradients(variables: Sequence[tf.Variable], rows: Sequence[tf.Tensor]) -> ValueAndGradients:
        value, gradients = replicas.loss_and_gradients(loss, variables, rows)
        return value, connected(gradients, variables, names)

    return gradients


def _require_finite(value: float, what: str) -> None:
    if not np.isfinite(value):
        raise NumericalBreakdown(f"{what} {value}")
