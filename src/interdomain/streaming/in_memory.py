"""Sums over rows that stay in memory, as part of the graph that uses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpflow
import tensorflow as tf

from ..sphere._typing import Array
from .contributions import Contributions

_MOST_NUMBERS = 2**24
"""Of the columns that a gradient keeps: 128 MB in float64. More are streamed."""


@dataclass(frozen=True)
class RowsInMemory:
    """A small number of rows that stay in memory, finite and inside the box of the features.

    The arrays must not be changed elsewhere. A pass in batches reads the rows again for each
    gradient, compares them with those of the first pass, and computes their features a second time.
    Here an evaluation and its gradient are one graph without loops, and the features are kept from
    one to the other.

    :ivar X: ``[N, D]``.
    :ivar Y: ``[N, P]``.
    """

    X: Array
    Y: Array

    def fit(self, contributions: Contributions) -> bool:
        """Whether the features of the rows are few enough to be kept."""
        return len(self.X) * contributions.num_stacked <= _MOST_NUMBERS

    def sums(
        self, contributions: Contributions, check: Callable[[], None]
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The matrix ``[K, K]``, the diagonal's terms ``[T]`` and the number of rows, all in
        float64, with gradients.

        They are not finite if a feature is not.

        :param check: called, without arguments, whenever the graph is run.
        """
        dtype = gpflow.default_float()

        def checked() -> tuple[Array, Array]:
            check()
            return self.X.astype(dtype, copy=False), self.Y.astype(dtype, copy=False)

        X, Y = tf.numpy_function(checked, [], [dtype, dtype])
        stacked, terms = contributions.stack(
            tf.ensure_shape(X, self.X.shape), tf.ensure_shape(Y, self.Y.shape)
        )
        return (
            _products(tf.cast(stacked, tf.float64)),
            tf.reduce_sum(tf.cast(terms, tf.float64), axis=1),
            tf.constant(float(len(self.X)), tf.float64),
        )


@tf.custom_gradient
def _products(stacked: tf.Tensor) -> Any:
    """``S S^T`` of ``[K, n]``, with one product for its gradient, where TensorFlow has two."""

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return tf.matmul(upstream + tf.linalg.matrix_transpose(upstream), stacked)

    return tf.matmul(stacked, stacked, transpose_b=True), gradient
