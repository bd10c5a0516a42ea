"""What each row adds to the sums of sites: Gaussian factors that stand for a likelihood at a q.

With the moments mu and v of f at row n under q, and E the expected log-likelihood, the site of the
row is ``exp(lambda f - beta f^2 / 2)`` with

    alpha = dE / d mu,    beta = -2 dE / d v,    lambda = alpha + beta mu,

tangent to E at q (Khan and Lin 2017, eq. 11; Adam, Chang, Khan and Solin 2021, eq. 18). A
natural-gradient step of size one leads to the q that is made of the prior and all sites. For
likelihoods that are not log-concave beta may be negative; negative parts are summed separately, so
that a model can leave them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood

from .._tracing import Traced
from ..covariances import Kuu_operator
from ..linalg import square_root
from ..regression.features import Features
from ..sphere._typing import Array
from .expectations import expectations

_ROUNDING = 1e-9
"""Of the largest precision in a batch: negative ones that are smaller are those of quadrature."""

_BLOCK = 128
"""Columns of a triangle that are multiplied at a time, without the zeros above them."""


class NotFiniteError(ArithmeticError):
    """A site of some row is not finite: q is far off, and the caller looks for another one."""


class WhitenedQ(NamedTuple):
    """q of whitened inducing variables.

    :ivar mean: ``[M, L]``.
    :ivar root: Lower triangles, ``[L, M, M]``.
    """

    mean: tf.Tensor
    root: tf.Tensor


class RowSites(NamedTuple):
    """The sites of a batch of n rows.

    :ivar stacked: Features and columns of the mean function, ``[K, n]``.
    :ivar precisions: beta, or zero where it is negative, ``[L, n]``.
    :ivar negative: beta where it is negative, ``[L, n]``.
    :ivar shifts: lambda, with zero for a negative beta, ``[L, n]``.
    :ivar sums: What TensorFlow has summed over the rows, in float64: "shifts" ``[K, L]`` and
        "variances" ``[T, L]``, with negative precisions taken for zero, and what these change as
        "negative_shifts" and "negative_variances"; "expectations", their "slopes" ``[P]`` and
        "curvatures" ``[P, P]``, by the P trainable numbers of the likelihood.
    """

    stacked: Array
    precisions: Array
    negative: Array
    shifts: Array
    sums: Mapping[str, Array]


class RowFeatures(NamedTuple):
    """What a pass computes for n rows before the variances under q.

    :ivar stacked: Features and columns of the mean function, ``[K, n]``.
    :ivar terms: Of the prior variance, ``[T, n]``.
    :ivar whitened: Covariances with whitened inducing variables, ``[M, n]``.
    :ivar left: The prior variance that these do not explain, ``[n]``.
    :ivar mean: The mean of f under q, ``[n, L]``.
    :ivar offset: The part of it that is not covered by sites: the value of a mean function whose
        columns are not known.
    """

    stacked: tf.Tensor
    terms: tf.Tensor
    whitened: tf.Tensor
    left: tf.Tensor
    mean: tf.Tensor
    offset: tf.Tensor


def variances_of_q(root: Array, whitened: Array) -> Array:
    """The squared norms of the columns of ``root^T whitened``, ``[n, L]``.

    This takes most of the time of a pass. In blocks, nearly half of the products are left out.

    :param root: Lower triangles, ``[L, M, M]``.
    :param whitened: ``[M, n]``.
    """
    total = np.zeros([len(root), whitened.shape[1]], whitened.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # of a q that is far off
        for triangle, sums in zip(root, total, strict=True):
            for start in range(0, len(triangle), _BLOCK):
                part = triangle[start:, start : start + _BLOCK].T @ whitened[start:]
                sums += np.einsum("ij,ij->j", part, part)
    return total.T


class SiteContributions:
    """The sites of rows at a q, compiled once for all values of q and of the parameters.

    :param features: The features of the rows; its "outputs" are the L latent GPs.
    :param num_targets: The number of columns of Y.
    :param targets_type: What Y is converted to.
    :ivar num_parameters: The number P of trainable numbers of the likelihood.
    """

    def __init__(
        self,
        features: Features,
        likelihood: Likelihood,
        num_targets: int,
        targets_type: tf.DType,
    ) -> None:
        self.features, self.likelihood = features, likelihood
        self._targets_type = targets_type
        self._parameters = likelihood.trainable_parameters
        self._variables = [parameter.unconstrained_variable for parameter in self._parameters]
        self.num_parameters = sum(int(tf.size(variable)) for variable in self._variables)
        num_latents = features.num_outputs
        size, dtype = features.num_inducing, gpflow.default_float()
        X_spec = tf.TensorSpec([None, features.num_columns], dtype)
        of_rows = tf.TensorSpec([None, num_latents], dtype)
        self._features_of_rows = Traced(
            lambda features_of: lambda X, mean: features_of(X, mean),
            self._features_of,
            input_signature=[X_spec, tf.TensorSpec([size, num_latents], dtype)],
        )
        self._sites = Traced(
            lambda sites: lambda X, Y, found, variance: sites(X, Y, RowFeatures(*found), variance),
            self._sites_of,
            input_signature=[
                X_spec,
                tf.TensorSpec([None, num_targets], targets_type),
                RowFeatures(
                    stacked=tf.TensorSpec([features.num_stacked - num_latents, None], dtype),
                    terms=tf.TensorSpec([features.num_terms, None], dtype),
                    whitened=tf.TensorSpec([size, None], dtype),
                    left=tf.TensorSpec([None], dtype),
                    mean=of_rows,
                    offset=of_rows,
                ),
                of_rows,
            ],
        )
        # Now: passes run with tapes paused (tf.init_scope), where no gradient could be traced.
        for traced in (self._features_of_rows, self._sites):
            traced.concrete_function()

    def is_current(self, features: Features, likelihood: Likelihood) -> bool:
        """Whether this was made of these, with the parameters that are trainable now."""
        return (
            self.features is features
            and self.likelihood is likelihood
            and [id(p) for p in self._parameters]
            == [id(p) for p in likelihood.trainable_parameters]
        )

    def evaluate(self, X: Array, Y: Array, q: WhitenedQ) -> RowSites:
        """The sites of the rows at q, and their sums."""
        X, Y = tf.constant(X, gpflow.default_float()), tf.cast(Y, self._targets_type)
        found = RowFeatures(*self._features_of_rows(X, q.mean))
        variance = np.maximum(np.asarray(found.left), 0.0)[:, None] + variances_of_q(
            np.asarray(q.root), np.asarray(found.whitened)
        )
        *of_rows, sums = self._sites(X, Y, found, tf.constant(variance))
        precisions, negative, shifts = (np.asarray(part) for part in of_rows)
        sums = {name: part.numpy() for name, part in sums.items()}
        return RowSites(np.asarray(found.stacked), precisions, negative, shifts, sums)

    def sums(self, X: Array, Y: Array, q: WhitenedQ) -> dict[str, Array]:
        """The sums over a batch of rows: those of :class:`RowSites`, "precisions" ``[L, K, K]``,
        and "negative_precisions" if any are negative.

        :raises NotFiniteError: If a site is not finite.
        """
        sites = self.evaluate(X, Y, q)
        with np.errstate(over="ignore", invalid="ignore"):  # of a q that is far off
            sums = {**sites.sums, "precisions": _weighted_products(sites.stacked, sites.precisions)}
            if np.any(sites.negative):
                negative = _weighted_products(sites.stacked, -sites.negative)
                sums["negative_precisions"] = -negative
        if not all(np.all(np.isfinite(part)) for part in sums.values()):
            raise NotFiniteError
        return sums

    def _features_of(self, X: tf.Tensor, q_mean: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """:class:`RowFeatures` of rows, at the mean of q."""
        features = self.features
        zeros = tf.zeros([tf.shape(X)[0], features.num_outputs], X.dtype)
        stacked, terms = features.stack(X, zeros)
        size = features.num_inducing
        Kuf, offsets, columns = tf.split(
            stacked, [size, features.num_outputs, stacked.shape[0] - size - features.num_outputs]
        )
        kuu = Kuu_operator(
            features.inducing_variable, features.kernel, jitter=gpflow.config.default_jitter()
        )
        whitened = square_root(kuu).solve(Kuf)
        factors = features.diagonal_factors()
        explained = tf.where(features.charged[:, None], tf.square(whitened), 0.0)
        left = tf.linalg.matvec(terms, factors, transpose_a=True) - tf.reduce_sum(explained, axis=0)
        offset = -tf.linalg.matrix_transpose(offsets)
        mean = tf.matmul(whitened, q_mean, transpose_a=True) + offset
        mean += tf.matmul(columns, features.mean.weights(), transpose_a=True)
        return RowFeatures(tf.concat([Kuf, columns], axis=0), terms, whitened, left, mean, offset)

    def _sites_of(
        self, X: tf.Tensor, Y: tf.Tensor, found: RowFeatures, variance: tf.Tensor
    ) -> tuple[Any, ...]:
        """What follows ``stacked`` in :class:`RowSites`."""
        stacked, terms, mean, offset = found.stacked, found.terms, found.mean, found.offset
        variables, zero = self._variables, tf.UnconnectedGradients.ZERO
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([mean, variance, *variables])
                total = tf.reduce_sum(expectations(self.likelihood, X, mean, variance, Y))
            to_mean, to_variance, *to_parameters = tape.gradient(
                total, [mean, variance, *variables], unconnected_gradients=zero
            )
            slopes = [tf.reshape(tf.convert_to_tensor(g), [-1]) for g in to_parameters]
            numbers = [number for slope in slopes for number in tf.unstack(slope)]
        curvatures = [
            tf.reshape(tf.convert_to_tensor(row), [-1])
            for number in numbers
            for row in outer.gradient(number, variables, unconnected_gradients=zero)
        ]
        del outer
        beta = -2 * to_variance
        is_negative = beta < -_ROUNDING * tf.reduce_max(tf.abs(beta))
        precisions, negative = tf.maximum(beta, 0.0), tf.where(is_negative, beta, 0.0)
        shifts = to_mean + precisions * (mean - offset)
        parts = {
            "shifts": tf.matmul(stacked, shifts),
            "variances": tf.matmul(terms, precisions),
            "negative_shifts": tf.matmul(stacked, negative * (mean - offset)),
            "negative_variances": tf.matmul(terms, negative),
            "expectations": total,
            "slopes": tf.concat(slopes, axis=0) if slopes else tf.zeros([0], mean.dtype),
            "curvatures": tf.reshape(
                tf.concat(curvatures, axis=0) if curvatures else tf.zeros([0], mean.dtype),
                [self.num_parameters, self.num_parameters],
            ),
        }
        of_rows = [tf.linalg.matrix_transpose(part) for part in (precisions, negative, shifts)]
        return *of_rows, {name: tf.cast(part, tf.float64) for name, part in parts.items()}


def _weighted_products(stacked: Array, weights: Array) -> Array:
    """``S diag(w) S^T`` for weights ``[L, n]`` that are not negative, in float64, ``[L, K, K]``."""
    stacked = stacked.astype(np.float64, copy=False)
    products = np.zeros([len(weights), len(stacked), len(stacked)])
    for product, of_latent in zip(products, weights.astype(np.float64), strict=True):
        rows = np.flatnonzero(of_latent)  # few, of those that were negative
        some = stacked if len(rows) == len(of_latent) else stacked[:, rows]
        scaled = some * np.sqrt(of_latent[rows])
        # NumPy knows that the product is symmetric, and computes half of it.
        np.matmul(scaled, scaled.T, out=product)
    return products
