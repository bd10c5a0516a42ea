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
from gpflow.likelihoods import ScalarLikelihood

from .._arguments import number
from .._tracing import compiled
from ..core.kept import build_once
from . import losses
from .batches import Batches
from .natural_gradients import NaturalGradients, pairs_of
from .replicas import Replicas
from .results import Ending
from .run import Run

_LEARNING_RATE = 0.01

Optimizer: TypeAlias = Any
"""The argument of ``fit``: None, a learning rate, an optimizer, a NaturalGradient, or a pair."""

Step = Callable[..., tuple[tf.Tensor, tf.Tensor]]
"""A function of the sizes of the natural-gradient steps and of a batch. It makes one update, and
returns the loss before it, and whether all numbers were finite."""


class GradientSteps:
    """Steps on minibatches: natural gradients for q, an optimizer for all other variables.

    :param optimizer: the argument of :func:`interdomain.fit`.
    :raises ValueError: if the optimizer or the model does not support such steps.
    """

    converges = False

    def __init__(
        self, model: Any, batches: Batches, replicas: Replicas, optimizer: Optimizer
    ) -> None:
        self._model, self._batches, self._replicas = model, batches, replicas
        self.exact = batches.exact
        self._natural, optimizer = _parts(model, optimizer)
        rate = _checked_rate(optimizer)
        if rate is None:
            replicas.check_optimizer(optimizer)
        in_q = self._natural.variables
        moved = {id(variable) for variable in in_q}
        self._others = tuple(v for v in model.trainable_variables if id(v) not in moved)
        self.variables = (*self._others, *in_q)
        # Batches that a strategy distributes have their own types.
        self._signature = batches.specs if replicas.strategy is None else None
        self._optimizer, self._step = self._compiled(optimizer if rate is None else None)
        if rate is not None and self._optimizer is not None:
            for variable in self._optimizer.variables:
                variable.assign(tf.zeros_like(variable))
            self._optimizer.learning_rate = rate
        used = {} if self._optimizer is None else {"optimizer": self._optimizer}
        self.stored = {"model": model, **used}
        settings = {} if rate else dict(optimizer.get_config())
        settings.pop("name", None)  # Keras 3 numbers its instances
        self.described: dict[str, Any] = {
            "method": "minibatches",
            **batches.described,
            "optimizer": rate or (type(optimizer).__name__, settings),
            "natural gradients": self._natural.describe(),
        }

    def _compiled(self, optimizer: Any) -> tuple[Any, Step]:
        """The optimizer (None without variables for it), and the compiled step. All fits of a model
        use the same Adam, so that its steps are compiled once."""
        replicas, natural, others = self._replicas, self._natural, self._others
        model, signature = self._model, self._signature

        def build() -> tuple[Any, Step]:
            used = None
            if others:
                # Create its variables: tf.function must not, and a checkpoint restores them.
                with replicas.strategy.scope() if replicas.strategy else nullcontext():
                    used = tf_keras.optimizers.Adam() if optimizer is None else optimizer
                    used.build(list(others))
            loss = losses.training_loss_of(model)
            gradients = functools.partial(replicas.loss_and_gradients, loss)
            specs = None if signature is None else (tf.TensorSpec([None], tf.float64), *signature)
            step = _step_function(replicas, gradients, others, natural, used)
            return used, compiled(step, input_signature=specs)

        refs = tuple(variable.ref() for variable in self.variables)
        key = (optimizer, len(natural.variables), refs, signature, replicas.strategy)
        built: tuple[Any, Step] = build_once(self._model, "step", key, build)
        return built

    def train(self, run: Run) -> Ending:
        """Run the remaining steps.

        :raises NumericalBreakdown: if the loss, a gradient or an updated parameter is not finite.
        """
        ending = None
        while ending is None:
            batch = self._replicas.batch(self._batches, run.step)
            losses.draw_for_step(self._model, run.step + 1)
            before = None if run.step % run.plan.every else run.values()
            with losses.tensorflow_errors_as_breakdowns():
                value, finite = self._take_step(run.step, batch)
                losses.require(np.isfinite(value), f"the loss is {float(value)}")
                if before is not None:
                    run.keep(run.step, before)
                losses.require(finite, "a gradient or an updated parameter is not finite")
            ending = run.after_step(-float(value), functools.partial(self._check_loss, batch))
        return ending

    def _take_step(self, step: int, batch: Sequence[Any]) -> tuple[tf.Tensor, tf.Tensor]:
        """Take one step. TensorFlow before 2.21 raises an error instead of returning NaN. If a
        natural-gradient step cannot be factorised, it changes no variable, and is halved."""
        sizes = self._natural.sizes(step)
        while True:
            try:
                return self._step(tf.constant(sizes, tf.float64), *batch)
            except tf.errors.InvalidArgumentError as error:
                if not np.any(sizes) or losses.FAILED_FACTORISATION not in str(error):
                    raise
                self._check_loss(batch)  # raises if the loss itself fails
                sizes = sizes / 2

    def _check_loss(self, batch: Sequence[Any]) -> None:
        """Raise a NumericalBreakdown if the loss of a batch is not finite at the parameters."""
        with losses.tensorflow_errors_as_breakdowns():
            value = self._loss_of(batch)
        losses.require(np.isfinite(value), f"the loss is {value}")

    def _loss_of(self, batch: Sequence[Any]) -> float:
        """The loss of a batch at the present parameters, computed by all replicas together."""
        replicas, loss = self._replicas, losses.training_loss_of(self._model)
        return float(replicas.run(lambda *x: replicas.loss_and_gradients(loss, [], x)[0], batch))

    def objective(self, step: int) -> float:
        """The objective at the present parameters, estimated from the batch of a step."""
        losses.draw_for_step(self._model, step + 1)
        return -self._loss_of(self._replicas.batch(self._batches, step))


def _step_function(
    replicas: Replicas,
    gradients_of: Callable[..., tuple[tf.Tensor, list[tf.Tensor]]],
    others: Sequence[tf.Variable],
    natural: NaturalGradients,
    optimizer: Any,
) -> Step:
    """The function for one step. Both updates use one evaluation of the loss and its gradients.
    q is assigned outside of the replicas, because its variables do not define how values of several
    replicas are combined.

    All means of a diagonal q move at once, each as if the others were fixed, but the data couple
    them. If many coordinates explain the same data, steps of a fixed size overshoot more and more.
    So the loss of the same batch is evaluated at the new means. A parabola through both losses,
    with the slope at the first, approximates the loss along the step. If its minimum comes before
    the end of the step, the means move only to the minimum.
    """
    in_q = natural.variables
    means = [place for place, coupled in enumerate(natural.coupled) if coupled]

    def step(sizes: tf.Tensor, *batch: Any) -> tuple[tf.Tensor, tf.Tensor]:
        value, gradients = replicas.run(lambda *rows: gradients_of([*others, *in_q], rows), batch)
        other_gradients, q_gradients = gradients[: len(others)], gradients[len(others) :]
        new = natural.moved(q_gradients, sizes)
        finite = [_all_finite([value, *gradients, *new])]
        if means:
            new = shortened(value, q_gradients, new, batch)
        with tf.control_dependencies(new):  # an error there leaves all variables unchanged
            for variable, after in zip(in_q, new, strict=True):
                variable.assign(after)
            if others:
                replicas.run(lambda: apply(other_gradients))
                finite.append(_all_finite(others))
        return value, tf.reduce_all(finite)

    def shortened(
        value: tf.Tensor, slopes: Sequence[tf.Tensor], new: list[tf.Tensor], batch: Sequence[Any]
    ) -> list[tf.Tensor]:
        old = {i: in_q[i].read_value() for i in means}
        slope = tf.add_n([tf.reduce_sum(slopes[i] * (new[i] - old[i])) for i in means])
        for i in means:
            in_q[i].assign(new[i])
        then = replicas.run(lambda *rows: gradients_of([], rows)[0], batch)
        curvature = 2 * (then - value - slope)
        share = tf.where(curvature > -slope, -slope / curvature, tf.ones_like(slope))
        share = tf.where(tf.math.is_finite(then), share, tf.zeros_like(slope))
        for i, before in old.items():
            new[i] = before + tf.cast(share, before.dtype) * (new[i] - before)
        return new

    def apply(gradients: Sequence[tf.Tensor]) -> tf.Tensor:
        # With replicas, gradients are of the whole batch already.
        options = {} if replicas.strategy is None else {"skip_gradients_aggregation": True}
        optimizer.apply_gradients(list(zip(gradients, others, strict=True)), **options)
        return tf.constant(True)

    return step


def _parts(model: Any, optimizer: Optimizer) -> tuple[NaturalGradients, Any]:
    """The natural gradients of a fit (of no pair if unused), and the optimizer of other variables.

    :raises ValueError: if natural gradients are required and the model has no q.
    """
    kind, pairs = gpflow.optimizers.NaturalGradient, pairs_of(model)
    natural, other = None, optimizer
    if isinstance(optimizer, kind):
        natural, other = optimizer, None
    elif optimizer is None or isinstance(optimizer, (int, float, np.number)):
        # With several latent GPs for a column of Y (classes), steps of the default sizes may
        # diverge on minibatches of a hundred rows (`benchmarks/image_patches`).
        scalar = isinstance(getattr(model, "likelihood", None), ScalarLikelihood)
        if scalar and pairs and all(p.trainable for pair in pairs for p in pair):
            return NaturalGradients(pairs, None), optimizer
    elif isinstance(optimizer, (tuple, list)) and len(optimizer) == 2:
        natural, other = optimizer
    if natural is None:
        return NaturalGradients((), None), other
    if not (isinstance(natural, kind) and pairs):
        raise ValueError(
            "optimizer: the first of a pair must be a gpflow.optimizers.NaturalGradient, for a "
            f"model with a q, found {natural!r} for a {type(model).__name__}; pass None."
        )
    return NaturalGradients(pairs, natural.gamma), other


def _checked_rate(optimizer: Any) -> float | None:
    """The learning rate of Adam, or None for an optimizer.

    :raises ValueError: if the argument is neither.
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
