"""Natural-gradient steps for the variational distributions q of a model, and their sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf

from .._arguments import Array, number, short
from ..linalg.natural_gradients import diagonal_step, full_step

Pair: TypeAlias = tuple[gpflow.Parameter, gpflow.Parameter]

Size: TypeAlias = float | Callable[[int], Any] | None
"""The size of a step: a constant, a function of the number of steps before, or None (default)."""


class NaturalGradients:
    """Steps for pairs (q_mu ``[M, L]``, q_sqrt ``[L, M, M]``, or ``[M, L]`` for a diagonal q). All
    latent GPs may share one covariance, ``[1, M, M]`` or ``[M, 1]``.

    :param size: the size of all steps.
    :ivar variables: the unconstrained variables of q_mu and q_sqrt in turn.
    :ivar coupled: for each of ``variables``, whether it is the mean of a diagonal q.
    :raises ValueError: if the first size is not in (0, 1].
    """

    def __init__(self, pairs: Sequence[Pair], size: Size) -> None:
        self._pairs, self._size = tuple(pairs), size
        self.variables = [p.unconstrained_variable for pair in self._pairs for p in pair]
        self._diagonal = [len(q_sqrt.shape) == 2 for _, q_sqrt in self._pairs]
        self._shared = [
            q_sqrt.shape[1 if diagonal else 0] != q_mu.shape[1]
            for (q_mu, q_sqrt), diagonal in zip(self._pairs, self._diagonal, strict=True)
        ]
        self.coupled = [flag for diagonal in self._diagonal for flag in (diagonal, False)]
        self.sizes(0)

    def sizes(self, step: int) -> Array:
        """The sizes of the steps after ``step`` steps, ``[number of pairs]``.

        By default the size for a full q rises by equal factors to 0.1 in 20 steps, as in Salimbeni,
        Eleftheriadis and Hensman (2018): the first q and the first hyperparameters soon change. For
        a diagonal q the size falls. The data couple its coordinates, which all move at once, so the
        noise of a minibatch adds up. A constant size cannot reduce the loss below a floor.
        All n pairs move at once, each as if the other pairs were fixed. Sizes above about ``1 / n``
        overshoot if the pairs explain the same data. Default sizes are at most ``1 / n``.

        :raises ValueError: if a size is not in (0, 1].
        """
        if self._size is None:
            most = min(0.1, 1 / max(len(self._pairs), 1))
            rising = most * 0.01 ** (1 - min(step / 20, 1.0))
            falling = most / (1 + step / 300)
            return np.array([falling if diagonal else rising for diagonal in self._diagonal])
        size: Any = self._size(step) if callable(self._size) else self._size
        if not 0 < number("optimizer: the size of a NaturalGradient", size) <= 1:
            raise ValueError(
                f"optimizer: the size of a NaturalGradient must be in (0, 1], found {short(size)} "
                f"at step {step}; pass such a number, or a function of the number of steps."
            )
        return np.full(len(self._pairs), float(size))

    def describe(self) -> str | None:
        """The settings that must be equal for a resumed fit: the first sizes."""
        return str([self.sizes(step).tolist() for step in (0, 1)]) if self._pairs else None

    def moved(self, gradients: Sequence[tf.Tensor], sizes: tf.Tensor) -> list[tf.Tensor]:
        """The values of ``variables`` after a step; nothing is assigned.

        :param gradients: the gradients of the loss with respect to ``variables``.
        :param sizes: the step sizes, ``[number of pairs]``.
        """
        values = []
        for i, (q_mu, q_sqrt) in enumerate(self._pairs):
            mean, mean_gradient = _constrained(q_mu, gradients[2 * i])
            root, root_gradient = _constrained(q_sqrt, gradients[2 * i + 1])
            size = tf.cast(sizes[i], root.dtype)
            if self._shared[i]:
                # Each latent GP gets its part of the gradient, so all obtain the same covariance.
                copies, axis = mean.shape[1], int(self._diagonal[i])
                root = tf.repeat(root, copies, axis)
                root_gradient = tf.repeat(root_gradient / copies, copies, axis)
            if self._diagonal[i]:
                mean, root = diagonal_step(mean, root, mean_gradient, root_gradient, size)
            else:
                transposed = tf.transpose(mean), root, tf.transpose(mean_gradient), root_gradient
                mean, root = full_step(*transposed, size)
                mean = tf.transpose(mean)
            if self._shared[i]:
                root = root[:, :1] if self._diagonal[i] else root[:1]
            values += [_unconstrained(q_mu, mean), _unconstrained(q_sqrt, root)]
        return values


def pairs_of(model: Any) -> list[Pair]:
    """The pairs (q_mu, q_sqrt) of a model; an empty list if the model has no q."""
    if hasattr(model, "variational_parameters"):
        return [(q_mu, q_sqrt) for q_mu, q_sqrt in model.variational_parameters]
    return [(model.q_mu, model.q_sqrt)] if hasattr(model, "q_mu") else []


def _constrained(parameter: gpflow.Parameter, gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The value of a parameter, and the gradient with respect to this value. The chain rule gives
    it from ``gradient``, the gradient with respect to the unconstrained variable."""
    # For its own output, a bijector returns a cached unconstrained value, without a gradient.
    value = tf.identity(tf.convert_to_tensor(parameter))
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(value)
        unconstrained = _unconstrained(parameter, value)
    return value, tape.gradient(unconstrained, value, output_gradients=gradient)


def _unconstrained(parameter: gpflow.Parameter, value: tf.Tensor) -> tf.Tensor:
    transform: Any = parameter.transform
    return transform.inverse(value)
