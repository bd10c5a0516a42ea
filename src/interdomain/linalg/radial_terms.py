"""Functions of a squared distance, with their derivatives in closed form.

TensorFlow's gradient of a kernel matrix stores and reads every intermediate matrix. The derivative
by the squared distance has a closed form. Up to a factor it is part of the value: the gradient
costs one more pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

ValueAndSlope = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
"""A function of scaled squared distances, of any shape, and of their probable rounding error: rho
and the derivative of rho at the distances."""


@dataclass(frozen=True)
class RadialTerm:
    """A summand ``variance * rho(squared_scale * |a - b|^2)`` of a kernel, a and b being inputs.

    :param variance: The factor.
    :param value_and_slope: rho and its derivative.
    :param inputs: Function from the kernel's inputs ``[..., D]`` to a, in the active columns.
    :param squared_scale: The factor of the squared distance, which may be negative. ``inputs``
        applies the scales of single columns; a scale of all columns has a cheaper gradient here.
    """

    variance: tf.Tensor
    value_and_slope: ValueAndSlope
    inputs: Callable[[tf.Tensor], tf.Tensor]
    squared_scale: tf.Tensor

    @property
    def sign(self) -> tf.Tensor:
        """The sign of ``squared_scale``."""
        return tf.sign(self.squared_scale)

    def scaled(self, X: tf.Tensor) -> tf.Tensor:
        """The inputs, scaled so that rho takes their squared distance times :attr:`sign`."""
        return tf.sqrt(tf.abs(self.squared_scale)) * self.inputs(X)


def exponential(minus_r2: tf.Tensor, error: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The squared exponential ``exp(minus_r2)``, and its derivative with respect to ``minus_r2``.
    With this sign, no pass negates the distances."""
    value = tf.exp(minus_r2)
    return value, value


def matern12(r2: tf.Tensor, error: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """``exp(-r)`` and its derivative with respect to r2."""
    distance = _root(r2)
    value = tf.exp(-distance)
    # As in GPflow, the slope at distance zero, where the kernel has a kink, is zero. Rounding may
    # make a zero squared distance as large as the error; its slope must not become huge.
    return value, tf.where(r2 > error, -0.5 * value / distance, 0)


def matern32(r2: tf.Tensor, error: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """``(1 + r) exp(-r)`` and its derivative with respect to r2."""
    distance = _root(r2)
    decay = tf.exp(-distance)
    return (1 + distance) * decay, -0.5 * decay


def matern52(r2: tf.Tensor, error: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """``(1 + r + r^2 / 3) exp(-r)`` and its derivative with respect to r2."""
    distance = _root(r2)
    decay = tf.exp(-distance)
    linear = 1 + distance
    return (linear + r2 * (1 / 3)) * decay, linear * decay * (-1 / 6)


def _root(r2: tf.Tensor) -> tf.Tensor:
    """The distance; rounding may leave the square of a zero distance slightly negative."""
    return tf.sqrt(tf.maximum(r2, 1e-36))


# Squared distances between points as one product of matrices, and their gradients.


def squared_distances(
    A: tf.Tensor, B: tf.Tensor, squared_scale: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """The squared distances ``|a - b|^2`` of a in A ``[..., m, D]`` and b in B ``[..., n, D]``,
    ``[..., m, n]``, and their :func:`rounding_error`.

    :param squared_scale: The factor of the squared distances, one by default.
    """
    left, right = distance_factors(A, B, squared_scale)
    return tf.matmul(left, right, transpose_b=True), rounding_error(left, right)


def distance_factors(
    A: tf.Tensor, B: tf.Tensor, squared_scale: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """The factors (-2 a, |a|^2, 1) and (b, 1, |b|^2), whose products are the squared distances.

    One product of matrices includes the additions and the scale, without further passes.
    """
    norms = tf.reduce_sum(tf.square(A), axis=-1, keepdims=True)
    norms2 = tf.reduce_sum(tf.square(B), axis=-1, keepdims=True)
    left = tf.concat([-2 * A, norms, tf.ones_like(norms)], axis=-1)
    if squared_scale is not None:
        left = squared_scale * left
    return left, tf.concat([B, tf.ones_like(norms2), norms2], axis=-1)


def rounding_error(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The probable rounding error of the squared distances, a scalar.

    Each squared distance is a sum of K products, none above the largest ``|a|^2 + |b|^2``: it has K
    errors of that size, which add up like a random walk. Smaller squared distances have no digits.

    :param left: The first of the factors of :func:`distance_factors`.
    :param right: The second factor.
    """
    squares = tf.reduce_max(tf.abs(left[..., -2])) + tf.reduce_max(
        tf.abs(left[..., -1])
    ) * tf.reduce_max(right[..., -1])
    return math.sqrt(left.shape[-1]) * np.finfo(left.dtype.as_numpy_dtype).eps * squares


def with_one(A: tf.Tensor) -> tf.Tensor:
    """The rows (a, 1), for the rows a of A."""
    return tf.concat([A, tf.ones_like(A[..., :1])], axis=-1)


def differences(A: tf.Tensor, sums: tf.Tensor) -> tf.Tensor:
    """The sums ``sum_b c_ab (a - b)``, from the sums ``sum_b c_ab (b, 1)``."""
    return A * sums[..., -1:] - sums[..., :-1]


def distance_gradients(
    d_squares: tf.Tensor, A: tf.Tensor, B: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradients with respect to A and B, from the gradient for squared distances."""
    # d |a - b|^2 = 2 (a - b) (da - db).
    over_b = tf.matmul(d_squares, with_one(B))
    over_a = tf.matmul(d_squares, with_one(A), transpose_a=True)
    return 2 * differences(A, over_b), 2 * differences(B, over_a)
