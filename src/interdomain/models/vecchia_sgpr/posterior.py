"""Predictions from features and from the nearest rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from gpflow.conditionals.util import expand_independent_outputs
from gpflow.posteriors import PrecomputeCacheType

from ..._arguments import Array, IntArray
from ..._tracing import numpy_function
from ...posteriors.weights import TensorsPosterior
from ...sums.whitened import combine
from ..noise import noise_variance_of
from .merging import MergedRows
from .whitening import WhitenedFeatures

Weights = tuple[tf.Tensor, tf.Tensor]


class NeighbourPosterior(TensorsPosterior):
    """The posterior of the features' weights and of a local GP, given the nearest rows.

    With the weights a of the neighbours n of a new row, its features become ``psi = phi - Phi_n
    a``. The mean is ``psi^T w + a^T y_n`` and the variance ``k - c^T a + psi^T cov(w) psi``.

    :param features: The features, which whiten rows.
    :param nearest: A function that returns the nearest rows ``[n, m]`` to coordinates ``[n, d]``.
    :param rows: The merged rows that are searched.
    :param weights: A function that returns mean ``[M, P]`` and root ``[M, M]`` of the weights.
    """

    def __init__(
        self,
        features: WhitenedFeatures,
        nearest: Callable[[Array], IntArray],
        rows: MergedRows,
        weights: Callable[[], Weights],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> None:
        mean_function = features.mean_function
        super().__init__(features.kernel, rows.X, mean_function=mean_function)
        self._features, self._nearest, self._rows = features, nearest, rows
        self._weights = weights
        self.fill_cache(precompute_cache)

    def check_rows(self, X: Array) -> None:
        """Check new rows before predictions: see :meth:`.LocalKernel.check_new`."""
        self._features.local.check_new(X, self._rows.X.shape[1])

    def inputs(self, Xnew: TensorType) -> tf.Tensor:
        """The new rows ``[n, D]``, checked as far as their values are known."""
        Xnew = super().inputs(Xnew)
        if tf.is_tensor(Xnew) and not hasattr(Xnew, "numpy"):  # in a graph
            shape = Xnew.shape
            if shape.rank is not None and shape[-1] is not None:
                self.check_rows(np.zeros([0] * (shape.rank - 1) + [shape[-1]]))
            return tf.ensure_shape(Xnew, [None, self._rows.X.shape[1]])
        self.check_rows(Xnew.numpy())
        return Xnew

    def tensors(self) -> Weights:
        return self._weights()

    def conditional(
        self,
        tensors: tuple[tf.Tensor, ...],
        Xnew: tf.Tensor,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        features, dtype = self._features, gpflow.default_float()
        X, Y, places, noise_weights = self._with_neighbours(Xnew)
        weights, log_variances, places = features.weights(X, places, noise_weights)
        weights *= tf.exp(log_variances / 2)[:, None]  # (-a, 1)
        left = tf.cast(Y - features.mean_function(X), tf.float64)
        beside = tf.concat([weights[:, :-1], tf.zeros_like(weights[:, :1])], axis=1)
        psi = features.sums.combined(X, weights, places)
        mean_of_weights, root = tensors
        mean = tf.matmul(psi, mean_of_weights) - combine(beside, places, left)
        spread = tf.matmul(psi, root)
        noise = noise_variance_of(features.likelihood)
        if full_cov:
            rows = tf.eye(tf.shape(X)[0], dtype=tf.float64)
            errors = combine(weights, places, rows)
            is_noisy = tf.range(tf.shape(X)[0]) < tf.shape(X)[0] - tf.shape(Xnew)[0]
            covariance = features.local.covariance(features.local.coordinates(X))
            noises = noise / noise_weights * tf.cast(is_noisy, tf.float64)
            diagonal = tf.linalg.diag_part(covariance) + noises
            covariance = tf.linalg.set_diag(covariance, diagonal)
            local = tf.matmul(errors, tf.matmul(covariance, errors, transpose_b=True))
            total = local + tf.matmul(spread, spread, transpose_b=True)
            total = tf.tile(total[None], [self._rows.Y.shape[1], 1, 1])
        else:
            local = tf.maximum(tf.exp(log_variances) - noise, 0.0)
            total = local + tf.reduce_sum(tf.square(spread), axis=1)
            total = tf.tile(total[:, None], [1, self._rows.Y.shape[1]])
        total = expand_independent_outputs(total, full_cov, full_output_cov)
        return tf.cast(mean, dtype), tf.cast(total, dtype)

    def _with_neighbours(self, Xnew: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The n new rows with their U neighbours: X ``[U + n, D]``, new rows last; Y
        ``[U + n, P]``, zero for new rows; the places in X of the neighbours of each new row and,
        last, of the row, ``[n, m + 1]``; and the noise weights ``[U + n]``, one for new rows."""
        dtype, size = gpflow.default_float(), self._rows.Y.shape[1]

        def look_up(points: Array) -> tuple[Any, ...]:
            rows = self._nearest(points)
            needed, within = np.unique(rows, return_inverse=True)
            X: Array = self._rows.X[needed].astype(dtype, copy=False)
            Y: Array = self._rows.Y[needed].astype(dtype, copy=False)
            own = len(needed) + np.arange(len(points))
            places = np.concatenate([within.reshape(rows.shape), own[:, None]], axis=1)
            weights = np.concatenate([self._rows.weights[needed], np.ones(len(points))])
            return X, Y, places, weights

        points = tf.cast(self._features.local.coordinates(Xnew), tf.float64)
        types = [dtype, dtype, tf.int64, tf.float64]
        X, Y, places, noise_weights = numpy_function(look_up, [points], types)
        X = tf.concat([tf.ensure_shape(X, [None, Xnew.shape[-1]]), Xnew], axis=0)
        Y = tf.concat([Y, tf.zeros([tf.shape(Xnew)[0], size], dtype)], axis=0)
        places, noise_weights = (
            tf.ensure_shape(places, [None, None]),
            tf.ensure_shape(noise_weights, [None]),
        )
        return X, tf.ensure_shape(Y, [None, size]), places, noise_weights
