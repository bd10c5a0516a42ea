"""Mean and variance of f at many rows, of waves of a box: sums of waves from tables."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType

from .._tracing import numpy_function
from ..core.pairs import Kuu_operator
from .bound import root_of
from .features import Features

_LEAST_VARIANCE = 1e-12
"""Of the largest of some rows: a smaller one is rounding."""


class WavePosterior:
    """What predicts f at rows, of waves of a box, in O(M^2) once and O(log M) a row.

    :param features: Those of the rows, which have tables.
    :param mean: That of the whitened q, ``[M, P]``.
    :param roots: Those of its covariances, ``[P, M, M]``, or of one for all, ``[1, M, M]``.
    """

    def __init__(self, features: Features, mean: tf.Tensor, roots: tf.Tensor) -> None:
        assert features.tables is not None
        self._features, self._tables = features, features.tables
        of_Kuu = root_of(Kuu_operator(features.inducing_variable, features.kernel))
        mean, *roots = (of_Kuu.solve(part, adjoint=True).numpy() for part in (mean, *roots))
        products = [root @ root.T for root in roots]
        if np.any(features.incomplete):
            inverse = of_Kuu.solve(tf.eye(len(mean), dtype=tf.float64)).numpy()
            explained = (inverse.T * features.incomplete) @ inverse
            products = [product - explained for product in products]
        variances = map(self._tables.of_products, products)
        self._both = np.stack([*map(self._tables.of_weights, mean.T), *variances])
        self._num_means = mean.shape[1]

    def __call__(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The mean and the variance, ``[n, P]``, without gradients."""
        features, rows = self._features, self._tables
        found = numpy_function(lambda X: rows.at(X, self._both).T, [X], tf.float64)
        found = tf.cast(tf.ensure_shape(found, [None, len(self._both)]), X.dtype)
        mean, variance = found[:, : self._num_means], found[:, self._num_means :]
        terms = tf.linalg.matvec(
            features.terms_of(X), features.diagonal_factors(), transpose_a=True
        )
        variance = tf.broadcast_to(variance + terms[:, None], tf.shape(mean))
        variance = tf.maximum(variance, _LEAST_VARIANCE * tf.reduce_max(variance))
        return mean + features.mean_function(X), variance

    def predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """As of a posterior, but for covariances."""
        assert not (full_cov or full_output_cov)
        return self(tf.convert_to_tensor(Xnew, gpflow.default_float()))
