"""Isotropic stationary kernels as functions of the squared distance, with their derivatives.

TensorFlow's gradient of a kernel matrix keeps and passes over every intermediate matrix. The
derivative with respect to the squared distance is known in closed form and, but for a factor, is
part of the value: with it the gradient costs one more pass.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, replace

import gpflow
import tensorflow as tf
from gpflow.kernels import Kernel

ValueAndSlope = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


@dataclass(frozen=True)
class RadialProfile:
    """``k = variance * rho(squared_scale * r2)``, r2 being the squared scaled distance.

    :param squared_scale: What r2 is multiplied by, to be folded into the inputs.
    :param value_and_slope: rho and its derivative, at a tensor of any shape.
    """

    squared_scale: float
    value_and_slope: ValueAndSlope


def _root(r2: tf.Tensor) -> tf.Tensor:
    """The distance; rounding may leave the square of a zero distance slightly negative."""
    return tf.sqrt(tf.maximum(r2, 1e-36))


def _squared_exponential(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    value = tf.exp(-r2)
    return value, -value


def _exponential(minus_r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The same of minus r2, the derivative with respect to that: no passes for signs."""
    value = tf.exp(minus_r2)
    return value, value


def _matern12(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    distance = _root(r2)
    value = tf.exp(-distance)
    # As in GPflow, a distance of zero passes no gradient on: there the kernel has a kink. Rounding
    # may make its square 1e-14, and must not give a slope of 1e7.
    return value, tf.where(r2 > 1e-12, -0.5 * value / distance, 0)


def _matern32(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    distance = _root(r2)
    decay = tf.exp(-distance)
    return (1 + distance) * decay, -0.5 * decay


def _matern52(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    distance = _root(r2)
    decay = tf.exp(-distance)
    linear = 1 + distance
    return (linear + r2 * (1 / 3)) * decay, linear * decay * (-1 / 6)


# By exact type: a subclass may compute something else.
_PROFILES: dict[type[Kernel], RadialProfile] = {
    gpflow.kernels.SquaredExponential: RadialProfile(0.5, _squared_exponential),
    gpflow.kernels.Matern12: RadialProfile(1.0, _matern12),
    gpflow.kernels.Matern32: RadialProfile(3.0, _matern32),
    gpflow.kernels.Matern52: RadialProfile(5.0, _matern52),
}


def radial_profile(kernel: Kernel) -> RadialProfile | None:
    """The closed form of a kernel; None if it has none here."""
    return _PROFILES.get(type(kernel))


@dataclass(frozen=True)
class RadialTerm:
    """A summand ``variance * rho(squared_scale * |a - b|^2)`` of a kernel, a and b being inputs.

    :param variance: The factor.
    :param value_and_slope: rho and its derivative.
    :param inputs: From the kernel's inputs ``[..., D]`` to a, in the columns that count.
    :param squared_scale: Of the distance; may be negative. Columns that have scales of their own
        are scaled by ``inputs``; the gradient of one that they share is cheaper here.
    """

    variance: tf.Tensor
    value_and_slope: ValueAndSlope
    inputs: Callable[[tf.Tensor], tf.Tensor]
    squared_scale: tf.Tensor

    def scaled(self, X: tf.Tensor) -> tf.Tensor:
        """The inputs whose squared distance, but for its sign, rho takes as it is."""
        return tf.sqrt(tf.abs(self.squared_scale)) * self.inputs(X)


def radial_terms(kernel: Kernel) -> list[RadialTerm] | None:
    """A kernel as a sum of radial terms; None if it is none that is known here."""
    if isinstance(kernel, HasRadialTerms):
        own: list[RadialTerm] | None = kernel.radial_terms()
        return own
    if type(kernel) is gpflow.kernels.Sum:
        return sum_of_terms([(part, lambda X: X) for part in kernel.kernels], kernel)
    profile = radial_profile(kernel)
    if profile is None:
        return None
    value_and_slope, scale = profile.value_and_slope, profile.squared_scale
    if value_and_slope is _squared_exponential:
        value_and_slope, scale = _exponential, -scale

    def inputs(X: tf.Tensor) -> tf.Tensor:
        columns = kernel.slice(X, None)[0]
        return kernel.scale(columns) if kernel.ard else columns

    variance, lengthscales = tf.convert_to_tensor(kernel.variance), kernel.lengthscales
    shared = tf.ones_like(variance) if kernel.ard else tf.convert_to_tensor(lengthscales)
    return [RadialTerm(variance, value_and_slope, inputs, scale / tf.square(shared))]


def product_of_terms(
    first: RadialTerm, second: RadialTerm, split: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
) -> RadialTerm | None:
    """The product of two terms of different columns; None if it is no such term.

    :param split: From the inputs of the product to those of either.
    """
    if not first.value_and_slope is second.value_and_slope is _exponential:
        return None

    def inputs(X: tf.Tensor) -> tf.Tensor:
        left, right = split(X)
        return tf.concat([first.scaled(left), second.scaled(right)], axis=-1)

    variance = first.variance * second.variance
    return RadialTerm(variance, _exponential, inputs, -tf.ones_like(variance))


class HasRadialTerms(abc.ABC):
    """A kernel that knows its radial terms by itself."""

    @abc.abstractmethod
    def radial_terms(self) -> list[RadialTerm] | None:
        """As :func:`radial_terms`, of this kernel."""


def sum_of_terms(
    parts: list[tuple[Kernel, Callable[[tf.Tensor], tf.Tensor]]], whole: Kernel
) -> list[RadialTerm] | None:
    """The terms of all parts of a kernel; None if one has none.

    :param parts: Each with the function that takes its inputs out of those of the whole.
    :param whole: The kernel, which may itself have ``active_dims``.
    """
    terms = []
    for part, inputs in parts:
        inner = radial_terms(part)
        if inner is None:
            return None
        for term in inner:
            terms.append(replace(term, inputs=_inside(whole, inputs, term)))
    return terms


def _inside(
    whole: Kernel, inputs: Callable[[tf.Tensor], tf.Tensor], term: RadialTerm
) -> Callable[[tf.Tensor], tf.Tensor]:
    return lambda X: term.inputs(inputs(whole.slice(X, None)[0]))


def squared_distances(
    A: tf.Tensor, B: tf.Tensor, squared_scale: tf.Tensor | None = None
) -> tf.Tensor:
    """``|a - b|^2`` for a of A ``[..., m, D]`` and b of B ``[..., n, D]``: ``[..., m, n]``.

    :param squared_scale: What they are multiplied by.
    """
    left, right = distance_factors(A, B, squared_scale)
    return tf.matmul(left, right, transpose_b=True)


def distance_factors(
    A: tf.Tensor, B: tf.Tensor, squared_scale: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """(-2 a, |a|^2, 1) and (b, 1, |b|^2), whose products are the squared distances.

    One product of matrices: no passes for the additions, nor for a scale.
    """
    norms = tf.reduce_sum(tf.square(A), axis=-1, keepdims=True)
    norms2 = tf.reduce_sum(tf.square(B), axis=-1, keepdims=True)
    left = tf.concat([-2 * A, norms, tf.ones_like(norms)], axis=-1)
    if squared_scale is not None:
        left = squared_scale * left
    return left, tf.concat([B, tf.ones_like(norms2), norms2], axis=-1)


def with_one(A: tf.Tensor) -> tf.Tensor:
    """(a, 1) for a of A."""
    return tf.concat([A, tf.ones_like(A[..., :1])], axis=-1)


def differences(A: tf.Tensor, sums: tf.Tensor) -> tf.Tensor:
    """``sum_b c_ab (a - b)``, of the sums ``sum_b c_ab (b, 1)``."""
    return A * sums[..., -1:] - sums[..., :-1]


def distance_gradients(
    d_squares: tf.Tensor, A: tf.Tensor, B: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Gradients to A and B from one to their squared distances."""
    # d |a - b|^2 = 2 (a - b) (da - db).
    over_b = tf.matmul(d_squares, with_one(B))
    over_a = tf.matmul(d_squares, with_one(A), transpose_a=True)
    return 2 * differences(A, over_b), 2 * differences(B, over_a)
