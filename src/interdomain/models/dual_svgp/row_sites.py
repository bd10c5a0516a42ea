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

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from scipy.linalg import get_blas_funcs

from ..._arguments import Array
from ..._targets import targets_type
from ..._tracing import compiled
from ...core.pairs import Kuu_operator
from ...sums.spline_posterior import CompactPosterior
from ...sums.features import Features
from .sites import expectations
from .start import Moments, level_of, moments_of_rows

# Of the largest precision in a batch: negative ones that are smaller are those of quadrature.
_ROUNDING = 1e-9

_FAR = 25.0
"""A level whose square is so many prior variances is far."""


def variances_of_q(root: Array, whitened: Array) -> Array:
    """The squared norms of the columns of ``root^T whitened``, ``[n, L]``: most of the time of a
    pass, which BLAS halves for triangles.

    :param root: Lower triangles, ``[L, M, M]``.
    :param whitened: ``[M, n]``.
    """
    multiply = get_blas_funcs("trmm", (root, whitened))
    with np.errstate(over="ignore", invalid="ignore"):  # of a q that is far off
        parts = [multiply(1.0, part.T, whitened.T, side=1, trans_a=1).T for part in root]
        return np.stack([np.einsum("ij,ij->j", part, part) for part in parts], axis=1)


def derivatives(
    function: Callable[[], tf.Tensor], inputs: Sequence[tf.Tensor], variables: Sequence[tf.Variable]
) -> tuple[tf.Tensor, list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """A function's value and its gradients by ``inputs``; and by the P numbers in ``variables`` its
    slopes, ``[P]``, and second derivatives, ``[P, P]``."""
    zero, size = tf.UnconnectedGradients.ZERO, len(inputs)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([*inputs, *variables])
            value = function()
        gradients = tape.gradient(value, [*inputs, *variables], unconnected_gradients=zero)
        slopes = [tf.reshape(tf.convert_to_tensor(slope), [-1]) for slope in gradients[size:]]
        numbers = [number for slope in slopes for number in tf.unstack(slope)]
    curvatures = [
        tf.reshape(tf.convert_to_tensor(part), [-1])
        for number in numbers
        for part in outer.gradient(number, variables, unconnected_gradients=zero)
    ]
    none = tf.zeros([0], value.dtype)  # a likelihood may have no parameters
    square = tf.reshape(tf.concat([none, *curvatures], axis=0), [len(numbers), len(numbers)])
    return value, gradients[:size], tf.concat([none, *slopes], axis=0), square


class RowSites(NamedTuple):
    """The sites of n rows.

    :ivar rows: What sums are made of: features and columns of the mean function, ``[K, n]``; of
        splines the rows X.
    :ivar terms: The terms of the prior variance, ``[T, n]``.
    :ivar precisions: beta, or zero where it is negative, ``[L, n]``.
    :ivar shifts: lambda, with zero for a negative beta.
    :ivar negative: beta where it is negative.
    :ivar negative_shifts: What it adds to the shifts.
    :ivar sums: The sums of the "expectations", their "slopes" ``[P]`` and "curvatures" ``[P, P]``,
        by the P trainable numbers of the likelihood.
    """

    rows: Any
    terms: Array
    precisions: Array
    shifts: Array
    negative: Array
    negative_shifts: Array
    sums: dict[str, Array]


class SiteContributions:
    """The sites of rows at a q, compiled once for all values of q and of the parameters.

    :param features: The features of the rows; its "outputs" are the L latent GPs.
    :param num_targets: The number of columns of Y.
    """

    def __init__(self, features: Features, likelihood: Likelihood, num_targets: int) -> None:
        self.features, self.likelihood = features, likelihood
        self._targets_type = targets_type(likelihood)
        self._variables = _trained(likelihood)
        latents, dtype = features.num_outputs, gpflow.default_float()
        X = tf.TensorSpec([None, features.num_columns], dtype)
        of_rows = [tf.TensorSpec([None, latents], dtype)] * 3
        Y = tf.TensorSpec([None, num_targets], self._targets_type)
        q_mean = tf.TensorSpec([features.num_inducing, latents], dtype)
        self._features_of_rows = compiled(self._features_of, input_signature=[X, q_mean])
        self._sites = compiled(self._sites_of, input_signature=[X, Y, *of_rows])
        self._slopes = compiled(self._slopes_of, input_signature=[X, Y, *of_rows[:2]])
        # Now: passes run with tapes paused (tf.init_scope), where no gradient could be traced.
        self._sites.get_concrete_function()

    def is_current(self, features: Features, likelihood: Likelihood) -> bool:
        """Whether this was made of these, with the parameters that are trainable now."""
        known, now = self._variables, _trained(likelihood)
        same = self.features is features and self.likelihood is likelihood
        return same and [id(v) for v in known] == [id(v) for v in now]

    @property
    def rows_at_once(self) -> int:
        """Rows that batches are joined to, at least."""
        return 1

    def evaluate(self, X: Array, Y: Array, q: Any) -> RowSites:
        """The sites of n rows.

        :param q: The mean ``[M, L]`` and the root ``[L, M, M]``, lower triangles, of q(v); of
            splines what predicts f.
        """
        X, Y = tf.constant(X, gpflow.default_float()), tf.cast(Y, self._targets_type)
        return self._row_sites(X, Y, *self._moments(X, q))

    def _row_sites(
        self,
        X: tf.Tensor,
        Y: tf.Tensor,
        rows: Any,
        terms: tf.Tensor,
        mean: tf.Tensor,
        offset: tf.Tensor,
        variance: tf.Tensor,
    ) -> RowSites:
        *of_rows, sums = self._sites(X, Y, mean, offset, variance)
        precisions, shifts, *negative = (np.asarray(part) for part in of_rows)
        sums = {name: part.numpy() for name, part in sums.items()}
        return RowSites(rows, np.asarray(terms), precisions, shifts, negative[0], negative[1], sums)

    def sums(self, X: Array, Y: Array, q: Any) -> dict[str, Array]:
        """Sums over the sites of rows, in float64: "precisions", "shifts" and "variances", of which
        negative precisions are taken for zero, and what these change, as "negative_precisions" and
        so on, if any are; and the sums of :class:`RowSites`.
        """
        return self._summed(self.evaluate(X, Y, q))

    def first_sums(self, X: Array, Y: Array, level: Array) -> dict[str, Array]:
        """Sums over the sites of rows that are tangent at a q of each row: see ``sites/start.py``.

        :param level: The level of each latent GP, ``[L]``.
        """
        rows, targets = tf.constant(X, gpflow.default_float()), tf.cast(Y, self._targets_type)
        mean, variance = self._prior_of(rows)
        moments = moments_of_rows(self._moments_at(rows, targets), mean + level, variance)
        mean, variance = (tf.constant(part, rows.dtype) for part in moments)
        offset = tf.broadcast_to(self.features.mean.rest(rows), tf.shape(mean))
        found = self._row_sites(rows, targets, *self._rows_of(rows), mean, offset, variance)
        nothing = np.zeros_like(found.negative)
        return self._summed(found._replace(negative=nothing))

    def level(
        self, X: Array, Y: Array, num_data: int, *, learns: tuple[bool, bool]
    ) -> tuple[Array, float, bool]:
        """The level of each latent GP, ``[L]``, as some rows know it; its largest distance from the
        prior mean, in prior deviations; and whether the prior has to become wider to reach it: see
        ``sites/start.py``.

        :param num_data: The number of all rows.
        :param learns: Whether a mean function learns the level, and whether the kernel is trained.
        """
        rows, targets = tf.constant(X, gpflow.default_float()), tf.cast(Y, self._targets_type)
        mean, variances = self._prior_of(rows)
        variance = float(np.mean(variances))
        moments = self._moments_at(rows, targets)
        charged = np.inf if learns[0] else variance
        level = level_of(moments, mean, num_data / len(X), charged, learns[1])
        distance = float(np.max(np.abs(level))) / np.sqrt(variance)
        return level, distance, not learns[0] and distance**2 > _FAR

    def _prior_of(self, X: tf.Tensor) -> tuple[Array, Array]:
        """Mean and variance of f at rows under the prior, ``[n, L]``."""
        latents = self.features.num_outputs
        mean = np.asarray(self.features.mean_function(X), np.float64)
        variance = np.asarray(self.features.kernel(X, full_cov=False), np.float64)[:, None]
        return np.tile(mean, latents // mean.shape[1]), np.tile(variance, latents)

    def _moments_at(self, X: tf.Tensor, Y: tf.Tensor) -> Moments:
        def moments(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
            at = (tf.constant(part, X.dtype) for part in (mean, variance))
            values, slopes, curvatures = self._slopes(X, Y, *at)
            of_latents = (np.asarray(part, np.float64) for part in (slopes, curvatures))
            return np.asarray(values, np.float64), *of_latents  # type: ignore[return-value]

        return moments

    def _slopes_of(
        self, X: tf.Tensor, Y: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The expected log-likelihood of each row ``[n]``, alpha and beta ``[n, L]``."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([mean, variance])
            values = expectations(self.likelihood, X, mean, variance, Y)
        slopes = tape.gradient(values, [mean, variance], unconnected_gradients="zero")
        return values, slopes[0], -2 * slopes[1]

    def _rows_of(self, X: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """What :meth:`sums_of` takes of the rows, and the terms of the prior variance."""
        features = self.features
        nothing = tf.zeros([features.num_inducing, features.num_outputs], X.dtype)
        rows, terms, *_ = self._features_of_rows(X, nothing)
        return rows, terms

    def _summed(self, found: RowSites) -> dict[str, Array]:
        sums = dict(found.sums)
        parts = [("", found.precisions, found.shifts)]
        if np.any(found.negative):
            parts.append(("negative_", found.negative, found.negative_shifts))
        for prefix, precisions, shifts in parts:
            of_sites = self.sums_of(found.rows, precisions, shifts)
            sums[f"{prefix}precisions"], sums[f"{prefix}shifts"] = of_sites
            sums[f"{prefix}variances"] = found.terms.astype(np.float64) @ precisions.T
        return sums

    def looked_up(self, sums: Mapping[str, Array]) -> Mapping[str, Array]:
        """What :meth:`sums` says it returns, of its sum over all batches."""
        return sums

    def sums_of(self, rows: Any, precisions: Array, shifts: Array) -> tuple[Array, Array]:
        """Sums over given sites of rows: of beta and the products of features and columns of the
        mean, ``[L, K, K]``, and of lambda and these, ``[K, L]``.

        :param rows: Those of :class:`RowSites`.
        :param precisions: beta, ``[L, n]``, all of one sign.
        :param shifts: lambda, ``[L, n]``.
        """
        stacked = np.asarray(rows, np.float64)
        sign = -1.0 if np.any(precisions < 0) else 1.0
        return sign * _weighted_products(stacked, sign * precisions), stacked @ shifts.T

    def _moments(self, X: tf.Tensor, q: Any) -> tuple[Any, ...]:
        """What :meth:`sums_of` takes of the rows; the terms of the prior variance, ``[T, n]``; and
        mean, offset and variance of :meth:`_features_of`."""
        q_mean, q_root = q
        stacked, terms, whitened, left, mean, offset = self._features_of_rows(X, q_mean)
        explained = variances_of_q(np.asarray(q_root), np.asarray(whitened))
        variance = tf.constant(np.maximum(np.asarray(left), 0.0)[:, None] + explained)
        return stacked, terms, mean, offset, variance

    def _features_of(self, X: tf.Tensor, q_mean: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """What comes before the variances under q: features and columns of the mean function, ``[K,
        n]``; terms of the prior variance, ``[T, n]``; covariances with whitened inducing variables,
        ``[M, n]``; the prior variance that these do not explain, ``[n]``; the mean of f under q,
        ``[n, L]``; and the part of it that sites do not cover: the value of a mean function whose
        columns are not known."""
        features = self.features
        Kuf, columns, terms = features.of_rows(X)
        kuu = Kuu_operator(
            features.inducing_variable, features.kernel, jitter=gpflow.config.default_jitter()
        )
        whitened = kuu.root().solve(Kuf)
        factors = features.diagonal_factors()
        explained = tf.where(features.incomplete[:, None], tf.square(whitened), 0.0)
        left = tf.linalg.matvec(terms, factors, transpose_a=True) - tf.reduce_sum(explained, axis=0)
        mean = tf.matmul(whitened, q_mean, transpose_a=True)
        offset = tf.broadcast_to(features.mean.rest(X), tf.shape(mean))
        mean += offset + tf.matmul(columns, features.mean.weights(), transpose_a=True)
        return tf.concat([Kuf, columns], axis=0), terms, whitened, left, mean, offset

    def _sites_of(
        self, X: tf.Tensor, Y: tf.Tensor, mean: tf.Tensor, offset: tf.Tensor, variance: tf.Tensor
    ) -> tuple[Any, ...]:
        """What follows the moments in :class:`RowSites`, in its order."""

        def expected() -> tf.Tensor:
            return tf.reduce_sum(expectations(self.likelihood, X, mean, variance, Y))

        total, (to_mean, to_variance), slopes, curvatures = derivatives(
            expected, [mean, variance], self._variables
        )
        beta = -2 * to_variance
        is_negative = beta < -_ROUNDING * tf.reduce_max(tf.abs(beta))
        precisions, negative = tf.maximum(beta, 0.0), tf.where(is_negative, beta, 0.0)
        shifts = to_mean + precisions * (mean - offset)
        parts = precisions, shifts, negative, negative * (mean - offset)
        of_rows = [tf.cast(tf.linalg.matrix_transpose(part), tf.float64) for part in parts]
        sums = {"expectations": total, "slopes": slopes, "curvatures": curvatures}
        return *of_rows, {name: tf.cast(part, tf.float64) for name, part in sums.items()}


def _trained(likelihood: Likelihood) -> list[tf.Variable]:
    return [parameter.unconstrained_variable for parameter in likelihood.trainable_parameters]


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


class SitesOfSplines(SiteContributions):
    """The sites of rows whose features are splines, beside others."""

    @property
    def rows_at_once(self) -> int:
        assert self.features.compact is not None
        return self.features.compact.rows_at_once

    def _moments(self, X: tf.Tensor, q: CompactPosterior) -> tuple[Any, ...]:
        mean, variance = q.predict_f(X)
        offset = tf.broadcast_to(self.features.mean.rest(X), tf.shape(mean))
        return X, self.features.terms_of(X), mean, offset, variance

    def _rows_of(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return X, self.features.terms_of(X)

    def sums_of(self, rows: tf.Tensor, precisions: Array, shifts: Array) -> tuple[Array, Array]:
        compact = self.features.compact
        assert compact is not None
        columns = tf.cast(self.features.mean.columns(rows), tf.float64).numpy()
        return compact.sums(rows, precisions.T, columns, shifts.T)
