"""Mean and variance of f at many rows, of waves of a box: sums of waves from tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from .._arguments import Array
from ..core.pairs import Kuu_operator
from .bound import root_of
from .features import Features


class WavePosterior:
    """What predicts f at rows, of waves of a box, in O(M^2) once and O(log M) a row.

    :param features: Those of the rows, which have tables.
    :param mean: The mean of their weights, ``[M, P]``.
    :param roots: Roots of covariances of the weights, ``[M, M]`` each.
    """

    def __init__(self, features: Features, mean: Array, roots: Iterable[Array]) -> None:
        assert features.tables is not None
        self._features, self._tables = features, features.tables
        products = [root @ root.T for root in roots]
        if np.any(features.incomplete):
            of_Kuu = root_of(Kuu_operator(features.inducing_variable, features.kernel))
            inverse = of_Kuu.solve(tf.eye(len(mean), dtype=tf.float64)).numpy()
            explained = (inverse.T * features.incomplete) @ inverse
            products = [product - explained for product in products]
        variances = map(self._tables.of_products, products)
        self._both = np.stack([*map(self._tables.of_weights, mean.T), *variances])
        self._num_means = mean.shape[1]

    def __call__(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The mean, ``[n, P]``, and a variance for each of the roots, ``[n, L]``, without
        gradients."""
        features, rows = self._features, self._tables
        found = tf.numpy_function(lambda X: rows.at(X, self._both).T, [X], tf.float64)
        found = tf.cast(tf.ensure_shape(found, [None, len(self._both)]), X.dtype)
        mean, variance = found[:, : self._num_means], found[:, self._num_means :]
        terms = tf.linalg.matvec(
            features.terms_of(X), features.diagonal_factors(), transpose_a=True
        )
        return mean + features.mean_function(X), variance + terms[:, None]
