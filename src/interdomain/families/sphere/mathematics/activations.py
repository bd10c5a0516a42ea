"""Activation functions of neural networks as zonal functions on the sphere.

A hidden unit with the direction z is ``sigma(z^T x)`` on the sphere, a function of the angle
between z and x. Its Funk-Hecke coefficients (:func:`funk_hecke_coefficients`) are defined by
``sigma(t) = sum_l coefficient_l N(d, l) P_l(t)``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import tensorflow as tf

from ...._arguments import Array, number
from .funk_hecke import extended_coefficients, funk_hecke_rule, power_coefficient


class Activation(abc.ABC):
    """An activation as a function of the cosine t of an angle, with its coefficients on spheres."""

    @abc.abstractmethod
    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        """The values of the activation at t in [-1, 1], of any shape."""

    @abc.abstractmethod
    def _computed(self, dimension: int, max_degree: int) -> Array:
        """The coefficients of all degrees, ``[max_degree + 1]``."""

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        """The degrees up to ``max_degree`` with nonzero coefficients. By default, 1 and all even
        degrees, for the sum of ``t / 2`` and an even function."""
        return tuple(degree for degree in range(max_degree + 1) if degree == 1 or degree % 2 == 0)

    def coefficients(self, dimension: int, degrees: Sequence[int]) -> Array:
        """The Funk-Hecke coefficients of ``degrees`` on S^{dimension - 1}, ``[len(degrees)]``."""
        return np.asarray(_coefficients(self, dimension, max(degrees, default=0))[list(degrees)])


@lru_cache(maxsize=64)
def _coefficients(activation: Activation, dimension: int, max_degree: int) -> Array:
    """The cached coefficients of an activation up to a degree."""
    return activation._computed(dimension, max_degree)


@dataclass(frozen=True)
class ReLU(Activation):
    """The activation ``max(t, 0)``, with the degrees 0, 1 and all even degrees."""

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(t)

    def _computed(self, dimension: int, max_degree: int) -> Array:
        degrees = range(max_degree + 1)
        return np.array([power_coefficient(1, dimension, degree) for degree in degrees])


@dataclass(frozen=True)
class SmoothActivation(Activation):
    """A smooth function of ``sharpness t``. Its coefficients decay fast with the degree, so they
    are computed in extended precision.

    :raises ValueError: If the sharpness is not finite and positive.
    """

    sharpness: float = 1.0

    def __post_init__(self) -> None:
        number("sharpness", self.sharpness, above=0)

    @abc.abstractmethod
    def extended(self, mp: Any, theta: Any) -> Any:
        """The value at ``t = cos(theta)``, computed with the numbers of an mpmath context."""

    def _computed(self, dimension: int, max_degree: int) -> Array:
        values, degrees = np.zeros(max_degree + 1), self.nonzero_degrees(dimension, max_degree)
        values[list(degrees)] = extended_coefficients(self.extended, dimension, degrees)
        return values


@dataclass(frozen=True)
class Softplus(SmoothActivation):
    """The activation ``log(1 + exp(sharpness t)) / sharpness``, which approaches ReLU for a large,
    positive sharpness. Its coefficients are nonzero for degree 1 and all even degrees."""

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        return tf.nn.softplus(self.sharpness * t) / self.sharpness

    def extended(self, mp: Any, theta: Any) -> Any:
        sharpness = mp.mpf(self.sharpness)
        return mp.log1p(mp.exp(sharpness * mp.cos(theta))) / sharpness


@dataclass(frozen=True)
class Erf(SmoothActivation):
    """The activation ``erf(sharpness t)``, an odd function, with the odd degrees."""

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        return tf.math.erf(self.sharpness * t)

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        return tuple(range(1, max_degree + 1, 2))

    def extended(self, mp: Any, theta: Any) -> Any:
        return mp.erf(mp.mpf(self.sharpness) * mp.cos(theta))


@dataclass(frozen=True)
class FunctionActivation(Activation):
    """Any function, with coefficients by a quadrature in float64 that is split at zero.

    The coefficients are exact if the function has no other kinks. Coefficients below about 1e-15
    times the function's largest value may be rounding errors, and are set to zero.
    """

    function: Callable[[tf.Tensor], tf.Tensor]

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", "the activation")

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        return self.function(t)

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(_coefficients(self, dimension, max_degree)).tolist())

    def _computed(self, dimension: int, max_degree: int) -> Array:
        t, matrix = funk_hecke_rule(dimension, max_degree, (0.0,))
        with tf.init_scope():  # values, even while a function is compiled
            values = np.asarray(self.function(tf.constant(t)), dtype=float)
        if values.shape != t.shape or not np.all(np.isfinite(values)):
            raise ValueError(
                "activation must turn a tensor of values in [-1, 1] into finite values of the same "
                f"shape, found {values.shape} for {t.shape}, "
                f"{np.count_nonzero(~np.isfinite(values))} of them not finite."
            )
        coefficients: Array = matrix @ values
        # A bound on the rounding errors of the sum and of the recurrence.
        noise = (10 + max_degree) * np.finfo(float).eps * np.max(np.abs(values))
        return np.where(np.abs(coefficients) <= noise, 0.0, coefficients)


NAMED_ACTIVATIONS: dict[str, Activation] = {"relu": ReLU(), "softplus": Softplus(), "erf": Erf()}
"""The activations with a name, with a sharpness of one."""


def resolve_activation(
    activation: str | Activation | Callable[[tf.Tensor], tf.Tensor],
) -> Activation:
    """The :class:`Activation` for a name, an :class:`Activation` or any function of a tensor.

    :raises ValueError: If the name is unknown, or the argument is not a function.
    """
    if isinstance(activation, Activation):
        return activation
    if isinstance(activation, str) and activation in NAMED_ACTIVATIONS:
        return NAMED_ACTIVATIONS[activation]
    if callable(activation) and not isinstance(activation, type):
        return FunctionActivation(activation)
    raise ValueError(
        f"activation must be one of {', '.join(map(repr, NAMED_ACTIVATIONS))}, an activation or a "
        f"function of a tensor, found {activation!r}; pass for example 'relu', or "
        "interdomain.sphere.Softplus(sharpness=3.0)."
    )
