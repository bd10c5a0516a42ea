"""Sums over rows that are whitened by their neighbours: dense sums of weighted rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf

from .dense import DenseSums

Weights: TypeAlias = tuple[tf.Tensor, tf.Tensor, tf.Tensor]


class WhitenedSums(DenseSums):
    """Sums over rows that neighbours make independent of each other, of variance one.

    With weights w of the neighbours and the row itself, a row has the features ``psi = sum_j w_j
    phi_j`` and the targets ``sum_j w_j t_j``. The sums have one more entry, "log_variances": the
    sum of ``log 2 pi d`` for the variances d of the rows before they were scaled.

    :param weights: Function of rows X ``[U, D]`` and of the places of neighbours and row among
        these, ``[B, m + 1]``: weights ``[B, m + 1]``, ``log d`` ``[B]``, and the places, valid ones
        where there is no neighbour.
    """

    def __init__(self, features: Any, weights: Callable[..., Weights]) -> None:
        self._weights = weights
        super().__init__(features)

    def in_graph(self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor) -> dict[str, tf.Tensor]:
        features, size = self.features, self.features.num_inducing
        weights, log_variances, places = self._weights(X, *more)
        Kuf, *_ = features.of_rows(X)
        targets = tf.concat([Y - features.mean.rest(X), features.mean.columns(X)], axis=1)
        rows = [tf.cast(part, tf.float64) for part in (tf.linalg.matrix_transpose(Kuf), targets)]
        whitened = combine(weights, places, tf.concat(rows, axis=1))
        psi, targets = whitened[:, :size], whitened[:, size:]
        return {
            "gram": tf.matmul(psi, psi, transpose_a=True),
            "products": tf.matmul(psi, targets, transpose_a=True),
            "targets": tf.matmul(targets, targets, transpose_a=True),
            "diagonal": tf.zeros([0], tf.float64),
            "log_variances": tf.reduce_sum(np.log(2 * np.pi) + log_variances),
        }

    def combined(self, X: tf.Tensor, weights: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """The features ``psi`` of whitened rows, ``[B, M]`` in float64, which may be anywhere.

        :param X: Neighbours and rows, ``[U, D]``.
        :param weights: ``[B, m + 1]``.
        :param places: Where neighbours and row are among X, ``[B, m + 1]``.
        """
        features = Kuf(self.features.inducing_variable, self.features.kernel, X)
        features = tf.ensure_shape(features, [self.features.num_inducing, None])
        rows = tf.cast(tf.linalg.matrix_transpose(features), tf.float64)
        return combine(weights, places, rows)


def combine(weights: tf.Tensor, places: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Sums of some rows with weights, ``[B, K]``: a sparse matrix times these rows.

    :param weights: ``[B, n]``.
    :param places: Which rows, ``[B, n]``.
    :param rows: ``[U, K]``.
    """
    size = tf.shape(places, out_type=tf.int64)
    first = tf.repeat(tf.range(size[0]), size[1])
    indices = tf.stack([first, tf.reshape(tf.cast(places, tf.int64), [-1])], axis=1)
    shape = tf.stack([size[0], tf.shape(rows, out_type=tf.int64)[0]])
    matrix = tf.SparseTensor(indices, tf.reshape(weights, [-1]), shape)
    return tf.sparse.sparse_dense_matmul(matrix, rows)
