"""Sums over rows that stay in memory, as part of the graph that uses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import tensorflow as tf

from ..sphere._typing import Array
from .contributions import Contributions

MOST_NUMBERS = 2**27
"""Of the columns that a gradient keeps: 1 GiB in float64."""


def sums_in_memory(
    parts: Sequence[tuple[Array, Array, int]],
    contributions: Contributions,
    check: Callable[[], None],
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The matrix ``[K, K]``, the diagonal's terms ``[T]`` and the number of rows, all in float64,
    with gradients. They are not finite if a feature is not.

    An evaluation and its gradient are one graph without loops, and the features are kept from one
    to the other.

    :param parts: Finite rows X ``[n, D]`` and Y ``[n, P]`` inside the box of the features, with 1
        if they are added or -1 if they are taken away. The arrays must not be changed elsewhere.
    :param check: called, without arguments, whenever the graph is run.
    """
    dtype = gpflow.default_float()
    gram, diagonal, num_rows = 0.0, 0.0, 0
    for X, Y, sign in parts:

        def rows(X: Array = X, Y: Array = Y) -> tuple[Array, Array]:
            check()
            return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)

        inputs, targets = tf.numpy_function(rows, [], [dtype, dtype])
        stacked, terms = contributions.stack(
            tf.ensure_shape(inputs, X.shape), tf.ensure_shape(targets, Y.shape)
        )
        gram += sign * _products(tf.cast(stacked, tf.float64))
        diagonal += sign * tf.reduce_sum(tf.cast(terms, tf.float64), axis=1)
        num_rows += sign * len(X)
    return gram, diagonal, tf.constant(float(num_rows), tf.float64)


@tf.custom_gradient
def _products(stacked: tf.Tensor) -> Any:
    """``S S^T`` of ``[K, n]``, with one product for its gradient, where TensorFlow has two."""

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return tf.matmul(upstream + tf.linalg.matrix_transpose(upstream), stacked)

    return tf.matmul(stacked, stacked, transpose_b=True), gradient
