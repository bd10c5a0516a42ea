"""Training by minibatches: Adam, or another optimizer, with natural gradients for q."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from .._arguments import number
from .._tracing import compiled
from ..core.kept import kept
from .batches import Batches
from .losses import (
    FAILED_FACTORISATION,
    draw_for_step,
    require,
    tensorflow_errors_as_breakdowns,
    training_loss_of,
)
from .natural_gradients import NaturalGradients, are_safe, pairs_of
from .replicas import Replicas
from .results import Ending
from .run import Run

_LEARNING_RATE = 0.01

Optimizer: TypeAlias = Any
"""What ``fit`` takes: None, a learning rate, an optimizer, a NaturalGradient, or two of these."""

Step = Callable[..., tuple[tf.Tensor, tf.Tensor]]
"""A function of the sizes of the natural-gradient steps and of a batch: makes one update; returns
the loss before it, and whether all numbers were finite."""


class GradientSteps:
    """Steps from one batch each: natural gradients for q, an optimizer for everything else.

    :param optimizer: as :func:`interdomain.fit` takes it.
    :raises ValueError: if the optimizer, or the model, cannot be trained in this way.
    """

    def __init__(
        self, model: Any, batches: Batches, replicas: Replicas, optimizer: Optimizer
    ) -> None:
        self._model, self._batches, self._replicas = model, batches, replicas
        self.exact = batches.exact
        self._natural, optimizer = _parts(model, optimizer)
        rate = _checked_rate(optimizer)
        if rate is None:
            replicas.check_optimizer(optimizer)
        in_q = [] if self._natural is None else self._natural.variables
        moved = {id(variable) for variable in in_q}
        self._others = tuple(v for v in model.trainable_variables if id(v) not in moved)
        self.variables = (*self._others, *in_q)
        # What a strategy distributes carries its own types.
        self._signature = batches.specs if replicas.strategy is None else None
        self._optimizer, self._step = self._compiled(optimizer if rate is None else None)
        if rate is not None and self._optimizer is not None:
            for variable in self._optimizer.variables:
                variable.assign(tf.zeros_like(variable))
            self._optimizer.learning_rate = rate
        self.stored = {"model": model}
        if self._optimizer is not None:
            self.stored["optimizer"] = self._optimizer
        settings = {} if rate is not None else dict(self._optimizer.get_config())
        settings.pop("name", None)  # Keras 3 numbers its instances
        self.described: dict[str, Any] = {
            "method": "minibatches",
            **batches.described,
            "optimizer": rate or (type(self._optimizer).__name__, settings),
            "natural gradients": None if self._natural is None else self._natural.describe(),
        }

    def _compiled(self, optimizer: Any) -> tuple[Any, Step]:
        """The optimizer, None if there is nothing for it to update, and the compiled step. All fits
        of a model use the same Adam, so that its steps are compiled once."""
        replicas, natural, others = self._replicas, self._natural, self._others
        model, signature = self._model, self._signature

        def build() -> tuple[Any, Step]:
            loss, used = training_loss_of(model), optimizer
            if others:
                # Creates its variables: tf.function must not, and a checkpoint restores them.
                with replicas.strategy.scope() if replicas.strategy else nullcontext():
                    used = tf_keras.optimizers.Adam() if optimizer is None else optimizer
                    used.build(list(others))

            gradients = functools.partial(replicas.loss_and_gradients, loss)
            sizes = tf.TensorSpec([None], tf.float64)
            specs = None if signature is None else (sizes, *signature)
            step = _step_function(replicas, gradients, others, natural, used)
            return used if others else None, compiled(step, input_signature=specs)

        refs = tuple(variable.ref() for variable in self.variables)
        key = (optimizer, natural is None, refs, signature, replicas.strategy)
        built: tuple[Any, Step] = kept(self._model, "step", key, build)
        return built

    def train(self, run: Run) -> Ending:
        """Run the steps that are left.

        :raises NumericalBreakdown: if the loss, a gradient or an updated parameter is not finite.
        """
        ending = None
        while ending is None:
            batch = self._replicas.batch(self._batches, run.step)
            draw_for_step(self._model, run.step + 1)
            before = None if run.step % run.plan.every else run.values()
            with tensorflow_errors_as_breakdowns():
                value, finite = self._take_step(run.step, batch)
                require(np.isfinite(value), f"the loss is {float(value)}")
                if before is not None:
                    run.keep(run.step, before)
                require(finite, "a gradient or an updated parameter is not finite")
            ending = run.after_step(-float(value), functools.partial(self._check_loss, batch))
        return ending

    def _take_step(self, step: int, batch: Sequence[Any]) -> tuple[tf.Tensor, tf.Tensor]:
        """Where TensorFlow raises instead of returning NaN, as before 2.21, a natural-gradient step
        that cannot be factorised ends before any variable has changed, and is halved."""
        sizes = np.zeros(0) if self._natural is None else self._natural.sizes(step)
        while True:
            try:
                return self._step(tf.constant(sizes, tf.float64), *batch)
            except tf.errors.InvalidArgumentError as error:
                if not np.any(sizes) or FAILED_FACTORISATION not in str(error):
                    raise
                self._check_loss(batch)  # fails, too, if it is not the step that does
                sizes = sizes / 2

    def _check_loss(self, batch: Sequence[Any]) -> None:
        """:raises NumericalBreakdown: if the loss of a batch is not finite at the present
        parameters."""
        with tensorflow_errors_as_breakdowns():
            value = self._loss_of(batch)
        require(np.isfinite(value), f"the loss is {value}")

    def _loss_of(self, batch: Sequence[Any]) -> float:
        """The loss of a batch at the present parameters, computed by all replicas together."""
        loss = training_loss_of(self._model)

        def of_rows(*rows: tf.Tensor) -> tf.Tensor:
            return self._replicas.loss_and_gradients(loss, [], rows)[0]

        return float(self._replicas.run(of_rows, batch))

    def objective(self, step: int) -> float:
        """The objective at the present parameters, estimated from the batch of a step."""
        draw_for_step(self._model, step + 1)
        return -self._loss_of(self._replicas.batch(self._batches, step))


def _step_function(
    replicas: Replicas,
    gradients_of: Callable[..., tuple[tf.Tensor, list[tf.Tensor]]],
    others: Sequence[tf.Variable],
    natural: NaturalGradients | None,
    optimizer: Any,
) -> Step:
    """
    The function for one step. One evaluation of the loss and its gradients serves both updates; q
    is assigned outside of the replicas, because its variables do not define how values of several
    replicas are combined.

    All means of a diagonal q move at once, each as if the others were fixed, but the data couple
    them: where many coordinates explain the same data, a step of any fixed size overshoots, further
    every time. So the loss of the same batch is evaluated at the new means. Along the step the loss
    is approximated by the parabola through both losses, with the slope at the first; if its minimum
    comes before the end of the step, the means go there.
    """
    in_q = [] if natural is None else natural.variables
    coupled = [] if natural is None else natural.coupled

    def step(sizes: tf.Tensor, *batch: Any) -> tuple[tf.Tensor, tf.Tensor]:
        value, gradients = replicas.run(lambda *rows: gradients_of([*others, *in_q], rows), batch)
        of_others, of_q = gradients[: len(others)], gradients[len(others) :]
        new = [] if natural is None else natural.moved(of_q, sizes)
        finite = [_all_finite([value, *gradients, *new])]
        if any(coupled):
            new = shortened(value, of_q, new, batch)
        with tf.control_dependencies(new):  # if they cannot be computed, nothing changes
            for variable, after in zip(in_q, new, strict=True):
                variable.assign(after)
            if others:
                replicas.run(lambda: apply(of_others))
                finite.append(_all_finite(others))
        return value, tf.reduce_all(finite)

    def shortened(
        value: tf.Tensor,
        slopes: Sequence[tf.Tensor],
        new: Sequence[tf.Tensor],
        batch: Sequence[Any],
    ) -> list[tf.Tensor]:
        old = [variable.read_value() for variable in in_q]
        slope = tf.add_n(
            tf.reduce_sum(gradient * (after - before))
            for gradient, after, before, is_mean in zip(slopes, new, old, coupled, strict=True)
            if is_mean
        )
        for variable, after, is_mean in zip(in_q, new, coupled, strict=True):
            if is_mean:
                variable.assign(after)
        then = replicas.run(lambda *rows: gradients_of([], rows)[0], batch)
        curvature = 2 * (then - value - slope)
        share = tf.where(curvature > -slope, -slope / curvature, tf.ones_like(slope))
        share = tf.where(tf.math.is_finite(then), share, tf.zeros_like(slope))
        return [
            before + tf.cast(share, after.dtype) * (after - before) if is_mean else after
            for before, after, is_mean in zip(old, new, coupled, strict=True)
        ]

    def apply(gradients: Sequence[tf.Tensor]) -> tf.Tensor:
        pairs = list(zip(gradients, others, strict=True))
        if replicas.strategy is None:
            optimizer.apply_gradients(pairs)
        else:  # they are of the whole batch already
            optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)
        return tf.constant(True)

    return step


def _parts(model: Any, optimizer: Optimizer) -> tuple[NaturalGradients | None, Any]:
    """The natural gradients of a fit, if any, and what updates everything else.

    :raises ValueError: if there are to be others, or the model has no q.
    """
    kind, pairs = gpflow.optimizers.NaturalGradient, pairs_of(model)
    natural, other = None, optimizer
    if isinstance(optimizer, kind):
        natural, other = optimizer, None
    elif optimizer is None or isinstance(optimizer, (int, float, np.number)):
        if are_safe(model, pairs):
            return NaturalGradients(pairs, None), optimizer
    elif isinstance(optimizer, (tuple, list)) and len(optimizer) == 2:
        natural, other = optimizer
    if natural is None:
        return None, other
    if not (isinstance(natural, kind) and pairs):
        raise ValueError(
            "optimizer: the first of a pair must be a gpflow.optimizers.NaturalGradient, for a "
            f"model with a q, found {natural!r} for a {type(model).__name__}; pass None."
        )
    return NaturalGradients(pairs, natural.gamma), other


def _checked_rate(optimizer: Any) -> float | None:
    """The learning rate of Adam, or None for an optimizer.

    :raises ValueError: if it is neither.
    """
    if optimizer is None:
        return _LEARNING_RATE
    if all(hasattr(optimizer, name) for name in ("build", "apply_gradients", "get_config")):
        return None
    if not isinstance(optimizer, (int, float, np.number)):
        raise ValueError(
            f"optimizer: found {optimizer!r}; pass a learning rate of Adam, an instance of a "
            "tf_keras or Keras 3 optimizer, a gpflow.optimizers.NaturalGradient, or a pair of such "
            "a NaturalGradient (None for no natural gradients) and one of the others."
        )
    return number("optimizer", optimizer, above=0)


def _all_finite(tensors: Sequence[tf.Tensor | tf.Variable]) -> tf.Tensor:
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(tensor)) for tensor in tensors])
