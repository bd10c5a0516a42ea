"""Squared distances between points as one product of matrices, and their gradients."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf


def squared_distances(
    A: tf.Tensor, B: tf.Tensor, squared_scale: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """``|a - b|^2`` for a of A ``[..., m, D]`` and b of B ``[..., n, D]``: ``[..., m, n]``, and
    their :func:`rounding_error`.

    :param squared_scale: What they are multiplied by.
    """
    left, right = distance_factors(A, B, squared_scale)
    return tf.matmul(left, right, transpose_b=True), rounding_error(left, right)


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


def rounding_error(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The probable error of all squared distances, a scalar: they are differences of squares.

    Each is a sum of K products, none above the largest ``|a|^2 + |b|^2``: K roundings of that size,
    which add up like a random walk. Where a squared distance is below it, none of its digits count.

    :param left: The first of the factors of :func:`distance_factors`.
    :param right: The second.
    """
    squares = tf.reduce_max(tf.abs(left[..., -2])) + tf.reduce_max(
        tf.abs(left[..., -1])
    ) * tf.reduce_max(right[..., -1])
    return math.sqrt(left.shape[-1]) * np.finfo(left.dtype.as_numpy_dtype).eps * squares


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
