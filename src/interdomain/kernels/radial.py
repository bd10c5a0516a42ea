"""Isotropic stationary kernels as functions of the squared distance, with their derivatives.

TensorFlow's gradient of a kernel matrix keeps and passes over every intermediate matrix. The
derivative with respect to the squared distance is known in closed form and, but for a factor, is
part of the value: with it the gradient costs one more pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    linear = (1 + distance) * decay
    return linear + r2 / 3 * decay, -linear / 6


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
    """A summand ``variance * rho(|a - b|^2)`` of a kernel, a and b being its scaled inputs.

    :param variance: The factor.
    :param value_and_slope: rho and its derivative.
    :param scaled: From the kernel's inputs ``[..., D]`` to a, in the columns that count.
    """

    variance: tf.Tensor
    value_and_slope: ValueAndSlope
    scaled: Callable[[tf.Tensor], tf.Tensor]


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
    scale = profile.squared_scale**0.5

    def scaled(X: tf.Tensor) -> tf.Tensor:
        return scale * kernel.scale(kernel.slice(X, None)[0])

    return [RadialTerm(tf.convert_to_tensor(kernel.variance), profile.value_and_slope, scaled)]


def is_squared_exponential(term: RadialTerm) -> bool:
    """Whether products of such terms are again such a term."""
    return term.value_and_slope is _squared_exponential


class HasRadialTerms:
    """A kernel that knows its radial terms by itself."""

    def radial_terms(self) -> list[RadialTerm] | None:
        """As :func:`radial_terms`, of this kernel."""
        raise NotImplementedError


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
            terms.append(
                RadialTerm(term.variance, term.value_and_slope, _inside(whole, inputs, term))
            )
    return terms


def _inside(
    whole: Kernel, inputs: Callable[[tf.Tensor], tf.Tensor], term: RadialTerm
) -> Callable[[tf.Tensor], tf.Tensor]:
    return lambda X: term.scaled(inputs(whole.slice(X, None)[0]))


def squared_distances(A: tf.Tensor, B: tf.Tensor) -> tf.Tensor:
    """``|a - b|^2`` for a of A ``[..., m, D]`` and b of B ``[..., n, D]``: ``[..., m, n]``.

    As one product of (-2 a, |a|^2, 1) and (b, 1, |b|^2): no passes for the additions.
    """
    norms = tf.reduce_sum(tf.square(A), axis=-1, keepdims=True)
    norms2 = tf.reduce_sum(tf.square(B), axis=-1, keepdims=True)
    left = tf.concat([-2 * A, norms, tf.ones_like(norms)], axis=-1)
    right = tf.concat([B, tf.ones_like(norms2), norms2], axis=-1)
    return tf.matmul(left, right, transpose_b=True)


def distance_gradients(
    d_squares: tf.Tensor, A: tf.Tensor, B: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Gradients to A and B from one to their squared distances."""
    # d |a - b|^2 = 2 (a - b) (da - db): sums over b of d (b, 1) and over a of d (a, 1) are needed.
    over_b = tf.matmul(d_squares, tf.concat([B, tf.ones_like(B[..., :1])], axis=-1))
    over_a = tf.matmul(
        d_squares, tf.concat([A, tf.ones_like(A[..., :1])], axis=-1), transpose_a=True
    )
    d_A = 2 * (A * over_b[..., -1:] - over_b[..., :-1])
    d_B = 2 * (B * over_a[..., -1:] - over_a[..., :-1])
    return d_A, d_B


def radial_values(value_and_slope: ValueAndSlope, A: tf.Tensor, B: tf.Tensor) -> tf.Tensor:
    """rho of all squared distances between A ``[m, D]`` and B ``[n, D]``."""

    @tf.custom_gradient
    def values(A: tf.Tensor, B: tf.Tensor) -> tuple[tf.Tensor, Any]:
        rho, slopes = value_and_slope(squared_distances(A, B))

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return distance_gradients(slopes * upstream, A, B)

        return rho, gradient

    return values(A, B)
