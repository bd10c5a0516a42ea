"""Sums over rows that are whitened by their neighbours: dense sums of weighted rows.

A pass uses SciPy's BLAS, where the symmetric product of the whitened features takes a fraction of
TensorFlow's time. Graphs, which have gradients, use TensorFlow alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.covariances import Kuf
from scipy.linalg.blas import dgemm, dsyrk

from .._arguments import Array, IntArray
from .._tracing import compiled
from .dense import DenseSums

Weights: TypeAlias = tuple[tf.Tensor, tf.Tensor, tf.Tensor]


class WhitenedSums(DenseSums):
    """Sums over rows whitened by their neighbours: the rows are independent, with noise variance 1.

    With weights w of the neighbours and the row itself, a row has the features
    ``psi = sum_j w_j phi_j`` and the targets ``sum_j w_j t_j``. The sums have one more entry,
    "log_variances": the sum of ``log 2 pi d`` for the variances d of the rows before they were
    scaled.

    :param weights: Function of rows X ``[U, D]`` and of the places of neighbours and row in X,
        ``[B, m + 1]``. It returns weights ``[B, m + 1]``, ``log d`` ``[B]``, and places, all valid.
    """

    def __init__(self, features: Any, weights: Callable[..., Weights]) -> None:
        self._weights = weights
        super().__init__(features)
        signature = features.signature()
        self._target_terms = compiled(self._target_terms_in_graph, input_signature=signature)
        self._features_of = compiled(self._features_in_graph, input_signature=signature[:1])

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        """The sums over one batch of rows; only the lower triangle of "gram" is used."""
        dtype = gpflow.default_float()
        parts = self._target_terms(tf.constant(X, dtype), tf.constant(Y, dtype), *more)
        weights, log_variances, places, targets = (part.numpy() for part in parts)
        rows, to_features = self.basis(X)
        psi, targets = (combined(weights, places, some) for some in (rows, targets))
        gram, products = dsyrk(1.0, psi.T).T if psi.size else psi.T @ psi, psi.T @ targets
        if to_features is not None:
            half = dgemm(1.0, to_features.T, _symmetric(gram))
            gram, products = dgemm(1.0, half, to_features), to_features.T @ products
        return {
            "gram": gram,
            "products": products,
            "targets": targets.T @ targets,
            "diagonal": np.zeros([0]),
            "log_variances": np.sum(np.log(2 * np.pi) + log_variances),
        }

    def basis(self, X: Array) -> tuple[Array, Array | None]:
        """K functions at rows X ``[U, D]``, ``[U, K]``, and the matrix ``[K, M]`` that maps them to
        the features; None if the functions are the features."""
        rows: Array = self._features_of(tf.constant(X, gpflow.default_float())).numpy()
        return rows, None

    def total(self, added: Mapping[str, Array]) -> dict[str, Array]:
        return {**added, "gram": _symmetric(added["gram"])}

    def in_graph(self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor) -> dict[str, tf.Tensor]:
        weights, log_variances, places, targets = self._target_terms_in_graph(X, Y, *more)
        size, rows = self.features.num_inducing, [self._features_in_graph(X), targets]
        whitened = combine(weights, places, tf.concat(rows, axis=1))
        psi, targets = whitened[:, :size], whitened[:, size:]
        return {
            "gram": tf.matmul(psi, psi, transpose_a=True),
            "products": tf.matmul(psi, targets, transpose_a=True),
            "targets": tf.matmul(targets, targets, transpose_a=True),
            "diagonal": tf.zeros([0], tf.float64),
            "log_variances": tf.reduce_sum(np.log(2 * np.pi) + log_variances),
        }

    def _target_terms_in_graph(
        self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """The three results of the argument ``weights``, and the targets of rows before whitening,
        ``[U, P + H]`` in float64."""
        mean = self.features.mean
        targets = tf.concat([Y - mean.rest(X), mean.columns(X)], axis=1)
        return *self._weights(X, *more), tf.cast(targets, tf.float64)

    def _features_in_graph(self, X: tf.Tensor) -> tf.Tensor:
        """The features of the rows before they are whitened, ``[U, M]`` in float64."""
        Kuf, *_ = self.features.row_features(X)
        return tf.cast(tf.linalg.matrix_transpose(Kuf), tf.float64)

    def combined(self, X: tf.Tensor, weights: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """The features ``psi`` of whitened rows, ``[B, M]`` in float64, also outside of domains.

        :param X: Neighbours and rows, ``[U, D]``.
        :param weights: ``[B, m + 1]``.
        :param places: The places of neighbours and row in X, ``[B, m + 1]``.
        """
        features = Kuf(self.features.inducing_variable, self.features.kernel, X)
        features = tf.ensure_shape(features, [self.features.num_inducing, None])
        rows = tf.cast(tf.linalg.matrix_transpose(features), tf.float64)
        return combine(weights, places, rows)


def _symmetric(lower: Array) -> Array:
    """The symmetric matrix of a lower triangle."""
    lower = np.tril(lower)
    return lower + np.tril(lower, -1).T


def combine(weights: tf.Tensor, places: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Weighted sums of rows, ``[B, K]``: a sparse matrix times the rows.

    :param weights: ``[B, n]``.
    :param places: The places of the rows, ``[B, n]``.
    :param rows: ``[U, K]``.
    """
    size = tf.shape(places, out_type=tf.int64)
    first = tf.repeat(tf.range(size[0]), size[1])
    indices = tf.stack([first, tf.reshape(tf.cast(places, tf.int64), [-1])], axis=1)
    shape = tf.stack([size[0], tf.shape(rows, out_type=tf.int64)[0]])
    matrix = tf.SparseTensor(indices, tf.reshape(weights, [-1]), shape)
    return tf.sparse.sparse_dense_matmul(matrix, rows)


def combined(weights: Array, places: IntArray, rows: Array) -> Array:
    """The sums of :func:`combine` as an array, by SciPy in a tenth of TensorFlow's time."""
    count, number = places.shape
    starts = np.arange(0, count * number + 1, number)
    parts = weights.ravel(), places.ravel(), starts
    sums: Array = scipy.sparse.csr_matrix(parts, shape=(count, len(rows))) @ rows
    return sums
