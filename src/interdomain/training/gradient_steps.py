"""Steps of a gradient optimizer, and of natural gradients for q, on one batch each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from .batches import Batches
from .checkpoints import CheckpointStore
from .guard import LastGood, NumericalBreakdown, tensorflow_errors_as_breakdowns
from .progress import Recorder
from .replicas import Replicas
from .settings import VariationalParameters

Loss = Callable[..., tf.Tensor]


def run_gradient_steps(
    loss: Loss,
    batches: Batches,
    *,
    replicas: Replicas,
    optimizer: Any,
    variables: Sequence[tf.Variable],
    variational_parameters: VariationalParameters,
    natural_gradient: float | None,
    first_step: int,
    steps: int,
    checkpoint_every: int | None,
    store: CheckpointStore,
    recorder: Recorder,
    jit_compile: bool,
) -> None:
    """
    Steps ``first_step + 1, ..., steps``, with a checkpoint at multiples of ``checkpoint_every`` and
    at the last.

    A checkpoint is written only once the loss at its parameters, on the batch just seen, is finite.

    :param loss: maps the tensors of a batch to the scalar loss.
    :param replicas: those that share each batch.
    :param optimizer: built on ``variables``, which it updates.
    :param variational_parameters: those that natural gradients of size ``natural_gradient`` update.
    :raises NonFiniteError: see there.
    """
    # What a strategy distributes carries its own types.
    signature = batches.signature() if replicas.strategy is None else None
    updated = _updated_variables(variables, variational_parameters)
    take_step = tf.function(
        _step_function(
            loss, replicas, optimizer, variables, variational_parameters, natural_gradient
        ),
        input_signature=signature,
        jit_compile=jit_compile or None,
    )
    evaluate = tf.function(
        lambda *batch: replicas.run(lambda *rows: replicas.loss(loss, rows), batch),
        input_signature=signature,
        jit_compile=jit_compile or None,
    )
    good = LastGood(updated, first_step, store.latest)
    for step in range(first_step + 1, steps + 1):
        batch = replicas.batch(batches, step - 1)
        last = step == steps
        commit = last or (checkpoint_every is not None and step % checkpoint_every == 0)
        before = good.present_values()
        with (
            replicas.losses_named(step, store),
            good.restored_on_breakdown(step),
            tensorflow_errors_as_breakdowns(),
        ):
            value, finite = take_step(*batch)
            _require_finite(float(value), "the loss is")
            good.keep(before, step - 1)
            if not finite:
                raise NumericalBreakdown("a gradient or an updated parameter is not finite")
            if commit:
                _require_finite(float(evaluate(*batch)), "after the update the loss is")
                good.keep(good.present_values(), step)
        recorder.step(-float(value))
        if commit:
            store.save(step)
            good.checkpoint = store.latest
        recorder.evaluate(step, last=last)
    replicas.meet(steps, store)


def _step_function(
    loss: Loss,
    replicas: Replicas,
    optimizer: Any,
    variables: Sequence[tf.Variable],
    variational_parameters: VariationalParameters,
    natural_gradient: float | None,
) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """
    One update from one batch. Returns the loss before it, and whether all numbers were finite.

    Nothing here is conditional: optimizers cannot merge the gradients of several replicas inside a
    ``tf.cond``. A bad update does go through, and the caller takes it back.
    """
    natural = (
        None
        if natural_gradient is None
        else gpflow.optimizers.NaturalGradient(gamma=natural_gradient)
    )
    in_q = _updated_variables((), variational_parameters)

    def step(*batch: Any) -> tuple[tf.Tensor, tf.Tensor]:
        losses: list[tf.Tensor] = []
        gradients: list[tf.Tensor] = []
        if natural is not None:
            value, of_q = replicas.run(lambda *rows: summed_gradients(in_q, rows), batch)
            losses.append(value)
            # GPflow's optimizer takes gradients itself: of a function that has these.
            natural.minimize(
                lambda: tf.add_n([tf.reduce_sum(g * v) for g, v in zip(of_q, in_q, strict=True)]),
                variational_parameters,
            )
        if variables:
            value, gradients = replicas.run(update, batch)
            losses.append(value)
        updated = _updated_variables(variables, variational_parameters)
        return losses[0], _all_finite([*losses, *gradients, *updated])

    def update(*rows: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        value, gradients = summed_gradients(variables, rows)
        if replicas.strategy is None:
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        else:  # they are of the whole batch already
            pairs = zip(gradients, variables, strict=True)
            optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)
        return value, gradients

    def summed_gradients(
        variables: Sequence[tf.Variable], rows: Sequence[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        value, gradients = replicas.loss_and_gradients(loss, variables, rows)
        return value, _connected(gradients, variables)

    return step


def _connected(
    gradients: Sequence[tf.Tensor | None], variables: Sequence[tf.Variable]
) -> list[tf.Tensor]:
    unused = [v for v, gradient in zip(variables, gradients, strict=True) if gradient is None]
    if unused:
        shown = ", ".join(f"{v.name} of shape {tuple(v.shape)}" for v in unused)
        raise ValueError(
            f"model: the loss does not depend on the trainable variables {shown}; exclude their "
            "parameters with gpflow.set_trainable(parameter, False)."
        )
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


def _updated_variables(
    variables: Sequence[tf.Variable], variational_parameters: VariationalParameters
) -> list[tf.Variable]:
    q = [parameter.unconstrained_variable for pair in variational_parameters for parameter in pair]
    return [*variables, *q]


def _all_finite(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(tensor)) for tensor in tensors])


def _require_finite(value: float, what: str) -> None:
    if not np.isfinite(value):
        raise NumericalBreakdown(f"{what} {value}")
