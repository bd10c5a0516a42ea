"""Activation functions of neural networks as zonal functions on the sphere.

A hidden unit with the direction z is ``sigma(z^T x)`` on the sphere, a function of the angle
between z and x. Its Funk-Hecke coefficients are those of :func:`funk_hecke_coefficients`:
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

from ...._arguments import Array, finite_array, instance
from .funk_hecke import extended_coefficients, funk_hecke_rule, power_coefficient


class Activation(abc.ABC):
    """An activation as a function of the cosine t of an angle, with its coefficients on spheres of
    any dimension."""

    @abc.abstractmethod
    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        """The function at t in [-1, 1]; any shape."""

    @abc.abstractmethod
    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        """The degrees up to ``max_degree`` whose coefficients are not zero."""

    @abc.abstractmethod
    def coefficients(self, dimension: int, degrees: Sequence[int]) -> Array:
        """The coefficients of ``degrees``, ``[len(degrees)]``; zero for degrees that it lacks."""


@dataclass(frozen=True)
class ReLU(Activation):
    """``max(t, 0)``. It has the degrees 0, 1 and all even ones."""

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(t)

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        return _even_and_linear(max_degree)

    def coefficients(self, dimension: int, degrees: Sequence[int]) -> Array:
        return np.array([power_coefficient(1, dimension, degree) for degree in degrees])


@dataclass(frozen=True)
class SmoothActivation(Activation):
    """A smooth function of ``sharpness t``. Its coefficients decay fast with the degree, and are
    computed in extended precision.

    :param sharpness: Finite and positive.
    :raises ValueError: If it is not.
    """

    sharpness: float = 1.0

    def __post_init__(self) -> None:
        rule = "finite and positive"
        sharpness = finite_array("sharpness", self.sharpness, (0,), rule)
        if not sharpness > 0:
            raise ValueError(f"sharpness must be {rule}, found {self.sharpness!r}; pass 1.0.")

    @abc.abstractmethod
    def extended(self, mp: Any, theta: Any) -> Any:
        """The function at ``t = cos(theta)``, with the numbers of an mpmath context."""

    def coefficients(self, dimension: int, degrees: Sequence[int]) -> Array:
        found = _smooth_coefficients(self, dimension, max(degrees))
        return np.array([found.get(degree, 0.0) for degree in degrees])


@lru_cache(maxsize=64)
def _smooth_coefficients(
    activation: SmoothActivation, dimension: int, max_degree: int
) -> dict[int, float]:
    degrees = activation.nonzero_degrees(dimension, max_degree)
    values = extended_coefficients(activation.extended, dimension, degrees)
    return dict(zip(degrees, values, strict=True))


@dataclass(frozen=True)
class Softplus(SmoothActivation):
    """``log(1 + exp(sharpness t)) / sharpness``, which approaches ReLU for large sharpness.

    It is the sum of ``t / 2`` and an even function, and has the degrees 0, 1 and all even ones.
    """

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        return tf.nn.softplus(self.sharpness * t) / self.sharpness

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        return _even_and_linear(max_degree)

    def extended(self, mp: Any, theta: Any) -> Any:
        sharpness = mp.mpf(self.sharpness)
        return mp.log1p(mp.exp(sharpness * mp.cos(theta))) / sharpness


@dataclass(frozen=True)
class GELU(SmoothActivation):
    """``t Phi(sharpness t)``, where Phi is the standard normal distribution function.

    It is the sum of ``t / 2`` and an even function, and has the degrees 0, 1 and all even ones.
    """

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        # tf.nn.gelu rounds sqrt(2) to single precision.
        return t * tf.math.erfc(-self.sharpness / np.sqrt(2) * t) / 2

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        return _even_and_linear(max_degree)

    def extended(self, mp: Any, theta: Any) -> Any:
        t = mp.cos(theta)
        return t * mp.erfc(-mp.mpf(self.sharpness) * t / mp.sqrt(2)) / 2


@dataclass(frozen=True)
class Erf(SmoothActivation):
    """``erf(sharpness t)``, an odd function. It has the odd degrees."""

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        return tf.math.erf(self.sharpness * t)

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        return tuple(range(1, max_degree + 1, 2))

    def extended(self, mp: Any, theta: Any) -> Any:
        return mp.erf(mp.mpf(self.sharpness) * mp.cos(theta))


@dataclass(frozen=True)
class CustomActivation(Activation):
    """Any function, with coefficients by a quadrature in float64 that is split at its kinks.

    Coefficients below about 1e-15 times the function's largest value cannot be told from rounding
    errors; degrees with such coefficients are left out.

    :param function: A function from a tensor of values of t to a tensor of the same shape.
    :param kinks: Where, inside (-1, 1), the function is not smooth. The quadrature is split at zero
        in any case.
    """

    function: Callable[[tf.Tensor], tf.Tensor]
    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        instance("function", self.function, Callable, "a function of a tensor")
        kinks = tuple(finite_array("kinks", self.kinks, (1,), "numbers").tolist())
        if any(not -1 < kink < 1 for kink in kinks):
            raise ValueError(f"kinks must lie inside (-1, 1), found {kinks}; pass those alone.")
        object.__setattr__(self, "kinks", kinks)

    def __call__(self, t: tf.Tensor) -> tf.Tensor:
        return self.function(t)

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        values = _custom_coefficients(self, dimension, max_degree)
        return tuple(int(degree) for degree in np.flatnonzero(values))

    def coefficients(self, dimension: int, degrees: Sequence[int]) -> Array:
        values: Array = _custom_coefficients(self, dimension, max(degrees))[list(degrees)]
        return values


@lru_cache(maxsize=64)
def _custom_coefficients(activation: CustomActivation, dimension: int, max_degree: int) -> Array:
    breaks = tuple(sorted({0.0, *activation.kinks}))
    t, matrix = funk_hecke_rule(dimension, max_degree, breaks)
    with tf.init_scope():  # values, even while a function is compiled
        values = np.asarray(activation(tf.constant(t)), dtype=float)
    if values.shape != t.shape or not np.all(np.isfinite(values)):
        raise ValueError(
            "activation must turn a tensor of values in [-1, 1] into finite values of the same "
            f"shape, found {values.shape} for {t.shape}, "
            f"{np.count_nonzero(~np.isfinite(values))} of them not finite."
        )
    coefficients: Array = matrix @ values
    # What rounding leaves of a coefficient that is zero: that of the sum and of the recurrence.
    noise = (10 + max_degree) * np.finfo(float).eps * np.max(np.abs(values))
    coefficients[np.abs(coefficients) <= noise] = 0.0
    coefficients.setflags(write=False)
    return coefficients


NAMED_ACTIVATIONS: dict[str, Activation] = {
    "relu": ReLU(),
    "softplus": Softplus(),
    "gelu": GELU(),
    "erf": Erf(),
}
"""The activations that have a name, with a sharpness of one."""


def resolve_activation(
    activation: str | Activation | Callable[[tf.Tensor], tf.Tensor],
) -> Activation:
    """The :class:`Activation` for a name, an :class:`Activation` or any function of a tensor.

    :raises ValueError: For an unknown name, or something that is not a function.
    """
    if isinstance(activation, Activation):
        return activation
    if isinstance(activation, str):
        if activation in NAMED_ACTIVATIONS:
            return NAMED_ACTIVATIONS[activation]
        raise ValueError(
            f"activation must be one of {', '.join(map(repr, NAMED_ACTIVATIONS))}, found "
            f"{activation!r}; pass one of these, an interdomain.sphere activation such as "
            "Softplus(sharpness=3.0), or a function of a tensor."
        )
    if callable(activation) and not isinstance(activation, type):
        return CustomActivation(activation)
    raise ValueError(
        "activation must be a name, an activation or a function of a tensor, found "
        f"{activation!r}; pass for example 'relu', or interdomain.sphere.Softplus(sharpness=3.0)."
    )


def _even_and_linear(max_degree: int) -> tuple[int, ...]:
    return tuple(degree for degree in range(max_degree + 1) if degree == 1 or degree % 2 == 0)
