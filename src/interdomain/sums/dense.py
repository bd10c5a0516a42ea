"""Sums as dense matrices: features of any family.

With a root R of Kuu, ``Phi = Kuf Kfu``, ``Psi = Kuf (Y - m)`` and the noise variance s, in whitened
variables ``v = R^{-1} u``:

    B = I + R^{-1} Phi R^{-T} / s = L L^T,    c = L^{-1} R^{-1} Psi / s,
    q(v) = N(L^{-T} c, B^{-1}).

LAPACK factorises B (TensorFlow, if B is small and features are trained), and the gradient of B is
in closed form: see :mod:`interdomain.linalg.precision`. With a diagonal root and LAPACK, Phi is not
copied: a step takes one factorisation and the inverse of the factor. Any other root whitens Phi
first.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from scipy.linalg import get_blas_funcs

from .._arguments import Array, BoolArray
from .._tracing import compiled
from ..core.pairs import Kuu_operator
from ..linalg import Root, StructuredOperator
from ..linalg.precision import precision_mean, precision_root, precision_terms
from .protocol import Q, Sums, Tensors

MOST_DENSE = 4_096
"""The largest number of features of a dense q, in models that predict without a dense q."""


def check_dense(count: int, noun: str) -> None:
    """Raise a ValueError for a dense q of many features, in a model that predicts without one.

    :param noun: The kind of the features, for the message.
    """
    if count > MOST_DENSE:
        raise ValueError(
            f"inducing_variable: a dense q of {count:,} features is asked for, which has at most "
            f"{MOST_DENSE:,}; use predict_f, or make fewer {noun}."
        )


class Collapsed(NamedTuple):
    """The terms of the bound and q, from ``B = I + D G D / s`` with a diagonal D.

    :ivar root: R.
    :ivar scale: The diagonal of D, ``[M]``: the diagonal of R^{-1} if R is diagonal, else ones.
    :ivar gram: A matrix whose leading block is G, ``[M, M]``: Phi, or ``R^{-1} Phi R^{-T}``.
    :ivar gram_gradient: Whether G has a gradient.
    :ivar columns: ``[M, P]``; D times the columns is ``R^{-1} Psi``.
    """

    root: Root
    scale: tf.Tensor
    gram: tf.Tensor
    gram_gradient: bool
    columns: tf.Tensor

    def terms(self, noise_variance: tf.Tensor, *, refuse: bool = True) -> Tensors:
        """The terms ``log det B`` and ``|c|^2``; see :func:`.precision_terms`."""
        parts = self.scale, self.gram, self.columns, noise_variance
        return precision_terms(*parts, gram_gradient=self.gram_gradient, refuse=refuse)

    def explained_variance(self, incomplete: BoolArray) -> tf.Tensor:
        """The trace ``tr D G D`` over features that leave out a part of their kernel."""
        if not np.any(incomplete):
            return tf.zeros([], tf.float64)
        variances = tf.linalg.diag_part(self.gram)[: len(incomplete)] * tf.square(self.scale)
        return tf.reduce_sum(tf.where(incomplete, variances, 0.0))

    def whitened_q(self, noise_variance: tf.Tensor) -> Tensors:
        """The mean ``[M, P]`` and root ``[M, M]``, lower triangular, of the optimal q(v)."""
        return optimal_q(self, noise_variance)

    def weights(self, noise_variance: tf.Tensor) -> Tensors:
        """The mean ``[M, P]`` and a root ``[M, M]`` of the covariance of ``Kuu^{-1} u``."""
        mean, root = optimal_q(self, noise_variance)
        return self.root.solve(mean, adjoint=True), self.root.solve(root, adjoint=True)

    def mean_of_weights(self, noise_variance: tf.Tensor) -> Array:
        """The mean of ``Kuu^{-1} u``, ``[M, P]``."""
        mean = precision_mean(self.scale, self.gram, self.columns, noise_variance)
        return np.asarray(self.root.solve(tf.constant(mean), adjoint=True))


def root_of(kuu: StructuredOperator) -> Root:
    """The root R of Kuu, in float64."""
    return (kuu if kuu.dtype == tf.float64 else kuu.cast(tf.float64)).root()


def whiten(root: Root, gram: tf.Tensor, columns: tf.Tensor, *, gram_gradient: bool) -> Collapsed:
    """The collapsed posterior; a root that is not diagonal whitens G first.

    :param gram: ``[K, K]``, whose leading block ``[M, M]`` is for the inducing variables.
    :param columns: ``[M, P]``.
    :param gram_gradient: Whether ``gram`` depends on a trained parameter.
    """
    if root.diagonal is not None:
        return Collapsed(root, 1 / root.diagonal, gram, gram_gradient, columns)
    num_inducing = columns.shape[0]
    half = root.solve(gram[:num_inducing, :num_inducing])
    whitened = root.solve(tf.linalg.matrix_transpose(half))
    ones = tf.ones([num_inducing], tf.float64)
    return Collapsed(root, ones, whitened, True, root.solve(columns))


def optimal_q(collapsed: Collapsed, noise_variance: tf.Tensor) -> Tensors:
    """The mean ``[M, P]`` and root ``[M, M]``, lower triangular, of the optimal whitened q(v)."""
    return precision_root(collapsed.scale, collapsed.gram, collapsed.columns, noise_variance)


class DenseSums(Sums):
    """Sums as matrices ``[M, M]``, of features of any family."""

    def gram_shape(self, num_columns: int) -> tuple[int, ...]:
        size = self.features.num_inducing + num_columns
        return size, size

    def border(self, gram: tf.Tensor, num_columns: int) -> Tensors:
        size = self.features.num_inducing
        return gram[:size, size:], gram[size:, size:]

    def prior_gram(self, num_columns: int) -> Array:
        kuu = Kuu_operator(self.features.inducing_variable, self.features.kernel).to_dense()
        return np.pad(np.asarray(kuu, np.float64), (0, num_columns))

    def prior(self) -> Root:
        """The root R of Kuu."""
        features, jitter = self.features, gpflow.config.default_jitter()
        return root_of(Kuu_operator(features.inducing_variable, features.kernel, jitter=jitter))

    def finish(
        self,
        prior: Root,
        gram: tf.Tensor,
        columns: tf.Tensor,
        *,
        num_columns: int = 0,
        gram_gradient: bool = False,
    ) -> Collapsed:
        return whiten(prior, gram, columns, gram_gradient=gram_gradient)

    def site_sums(self, X: tf.Tensor, precisions: tf.Tensor, shifts: tf.Tensor) -> Tensors:
        Kuf, columns, _ = self.features.row_features(X)
        stacked = tf.cast(tf.concat([Kuf, columns], axis=0), tf.float64)
        weighted = stacked * tf.convert_to_tensor(precisions)[:, None]
        return (
            tf.matmul(weighted, stacked, transpose_b=True),
            tf.matmul(stacked, shifts, transpose_b=True),
        )

    def rows(self, X: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """Features and columns of the mean function, ``[K, n]``; terms of the prior, ``[T, n]``."""
        features = self.features
        nothing = tf.zeros([features.num_inducing, features.num_outputs], X.dtype)
        stacked, terms, *_ = self._moments(X, nothing)
        return stacked, terms

    def site_batch(self, rows: Any, precisions: Array, shifts: Array) -> tuple[Array, Array]:
        stacked = np.asarray(rows, np.float64)
        sign = -1.0 if np.any(precisions < 0) else 1.0
        return sign * _weighted_products(stacked, sign * precisions), stacked @ shifts.T

    def moments(self, q: Q, X: tf.Tensor) -> tuple[Any, tf.Tensor, tf.Tensor, tf.Tensor]:
        q_mean, q_root = (tf.cast(part, gpflow.default_float()) for part in q.whitened)
        stacked, terms, whitened, left, mean = self._moments(X, q_mean)
        explained = variances_of_q(np.asarray(q_root), np.asarray(whitened))
        variance = tf.constant(np.maximum(np.asarray(left), 0.0)[:, None] + explained)
        return stacked, terms, mean, variance

    @cached_property
    def _moments(self) -> Any:
        features, dtype = self.features, gpflow.default_float()
        X = tf.TensorSpec([None, features.num_columns], dtype)
        q_mean = tf.TensorSpec([features.num_inducing, features.num_outputs], dtype)
        return compiled(self._moments_of, input_signature=[X, q_mean])

    def _moments_of(self, X: tf.Tensor, q_mean: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The features and columns of the mean function, ``[K, n]``; the terms of the prior
        variance, ``[T, n]``; the covariances of f with whitened inducing variables, ``[M, n]``; the
        prior variance that the inducing variables do not explain, ``[n]``; and the mean of f under
        q, ``[n, L]``."""
        features, jitter = self.features, gpflow.config.default_jitter()
        Kuf, columns, terms = features.row_features(X)
        kuu = Kuu_operator(features.inducing_variable, features.kernel, jitter=jitter)
        whitened = kuu.root().solve(Kuf)
        factors = features.diagonal_factors()
        explained = tf.where(features.incomplete[:, None], tf.square(whitened), 0.0)
        left = tf.linalg.matvec(terms, factors, transpose_a=True) - tf.reduce_sum(explained, axis=0)
        mean = tf.matmul(whitened, q_mean, transpose_a=True) + features.mean.rest(X)
        mean += tf.matmul(columns, features.mean.weights(), transpose_a=True)
        return tf.concat([Kuf, columns], axis=0), terms, whitened, left, mean


def _weighted_products(stacked: Array, weights: Array) -> Array:
    """``S diag(w) S^T`` for weights ``[L, n]`` that are not negative, in float64, ``[L, K, K]``."""
    products = np.zeros([len(weights), len(stacked), len(stacked)])
    for product, latent_weights in zip(products, weights.astype(np.float64), strict=True):
        rows = np.flatnonzero(latent_weights)  # few, of those that were negative
        some = stacked if len(rows) == len(latent_weights) else stacked[:, rows]
        scaled = some * np.sqrt(latent_weights[rows])
        # NumPy detects the symmetric product, and computes half of it.
        np.matmul(scaled, scaled.T, out=product)
    return products


def variances_of_q(root: Array, whitened: Array) -> Array:
    """The squared norms of the columns of ``root^T whitened``, ``[n, L]``. They take most of the
    time of a pass, which BLAS halves for triangular roots.

    :param root: Lower triangles, ``[L, M, M]``.
    :param whitened: ``[M, n]``.
    """
    multiply = get_blas_funcs("trmm", (root, whitened))
    with np.errstate(over="ignore", invalid="ignore"):  # if q is far off
        parts = [multiply(1.0, part.T, whitened.T, side=1, trans_a=1).T for part in root]
        return np.stack([np.einsum("ij,ij->j", part, part) for part in parts], axis=1)
