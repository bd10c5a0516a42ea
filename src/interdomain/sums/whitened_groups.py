"""Sparse sums of intercepts of groups, over rows that are whitened by their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf

from .._arguments import Array, IntArray
from .._tracing import compiled
from .whitened import Weights, WhitenedSums, combine


class WhitenedGroupSums(WhitenedSums):
    """Sums of intercepts over whitened rows. In a row with m neighbours, at most m + 1 intercepts
    of each block are nonzero.

    Sums with gradients use dense features: see :meth:`in_graph`.

    :param groups: The :class:`interdomain.sums.groups.Groups` of the features.
    """

    def __init__(self, features: Any, weights: Callable[..., Weights], groups: Any) -> None:
        super().__init__(features, weights)
        self._groups = groups

    def _whitened(self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The weights of rows ``[b, m + 1]``; the numbers of the intercepts of neighbours and the
        row, ``[b, J (m + 1)]``, and the weight of each; the whitened dense features and targets;
        and the sum of ``log 2 pi d``."""
        features, groups = self.features, self._groups
        weights, log_variances, places = self._weights(X, *more)
        parts = [groups.others(X), Y - features.mean.rest(X), features.mean.columns(X)]
        rows = tf.concat([tf.cast(part, tf.float64) for part in parts], axis=1)
        indices, values = groups_of_neighbours(groups.indices(X), weights, places)
        total = tf.reduce_sum(np.log(2 * np.pi) + log_variances)
        return indices, values, combine(weights, places, rows), total

    @cached_property
    def _compiled(self) -> Any:
        return compiled(self._whitened, input_signature=self.features.signature())

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        dtype = gpflow.default_float()
        rows = tf.constant(X, dtype), tf.constant(Y, dtype)
        indices, values, dense, log_variances = (p.numpy() for p in self._compiled(*rows, *more))
        others, targets = np.split(dense, [len(self._groups.dense)], axis=1)
        gram, products = self._products(indices, values, others, targets)
        return {
            "gram": gram,
            "products": products,
            "targets": targets.T @ targets,
            "diagonal": np.zeros(0),
            "log_variances": log_variances,
        }

    def _products(
        self, indices: IntArray, values: Array, others: Array, targets: Array
    ) -> tuple[Array, Array]:
        """The sums over rows of products of features, ``[M, M]``, and with targets, ``[M, T]``.

        :param indices: The numbers of the intercepts that are nonzero in a row, ``[n, k]``.
        :param values: Their values, ``[n, k]``; values of the same intercept are added.
        :param others: The dense features, ``[n, K]``.
        :param targets: ``[n, T]``.
        """
        ends = indices.shape[1] * np.arange(len(indices) + 1)
        shape, dense = (len(indices), self._groups.size), self._groups.dense
        groups = scipy.sparse.csr_matrix((values.ravel(), indices.ravel(), ends), shape)
        groups.sum_duplicates()
        transposed = groups.T.tocsr()
        gram = (transposed @ groups).toarray()
        border = transposed @ others
        gram[:, dense] = border
        gram[dense] = border.T
        gram[np.ix_(dense, dense)] = others.T @ others
        products = transposed @ targets
        products[dense] = others.T @ targets
        return gram, products

    def weighted(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return self._groups.weighted(X, weights)

    def combined(self, X: tf.Tensor, weights: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        groups = self._groups
        indices, values = groups_of_neighbours(groups.indices(X), weights, places)
        size = tf.shape(indices, out_type=tf.int64)
        rows = tf.broadcast_to(tf.range(size[0])[:, None], size)
        shape = tf.stack([size[0], tf.constant(groups.size, tf.int64)])
        group_features = tf.scatter_nd(tf.stack([rows, indices], axis=2), values, shape)
        if not len(groups.dense):
            return group_features
        others = combine(weights, places, groups.others(X, in_domain=False))
        # A product with few ones puts them into the columns of all features.
        selection = np.zeros([len(groups.dense), groups.size])
        selection[np.arange(len(groups.dense)), groups.dense] = 1.0
        return group_features + tf.matmul(others, selection)


def groups_of_neighbours(
    indices: tf.Tensor, weights: tf.Tensor, places: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The numbers of the intercepts of rows and neighbours, and their weights, ``[b, (m + 1) J]``.

    :param indices: The intercepts of single rows, ``[U, J]``.
    :param weights: ``[b, m + 1]``.
    :param places: The places of the rows, ``[b, m + 1]``.
    """
    number = indices.shape[1]
    gathered, repeated = tf.gather(indices, places), tf.repeat(weights, number, axis=1)
    return tf.reshape(gathered, tf.shape(repeated)), repeated
