"""Gaussian sites, which stand for the likelihoods of rows at a given q, and their sums.

Let mu and v be the moments of f at row n under q, and E the expected log-likelihood. The site of
the row is ``exp(lambda f - beta f^2 / 2)`` with

    alpha = dE / d mu,    beta = -2 dE / d v,    lambda = alpha + beta mu,

tangent to E at q (Khan and Lin 2017, eq. 11; Adam, Chang, Khan and Solin 2021, eq. 18). A
natural-gradient step of size one leads to the q of the prior and all sites. For likelihoods that
are not log-concave, beta may be negative. Sums over sites of negative beta are separate, so that a
model can leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood

from ..._arguments import Array
from ..._targets import check_targets, targets_type
from ..._tracing import compiled
from ...sums.features import Features
from ...sums.passes import joined, total_over
from ...sums.protocol import Q
from ...sums.row_batches import Rows
from .expectations import derivatives, expectations
from .sites import Sites
from .start import Moments, level_of, moments_of_rows

# A share of the largest precision in a batch: smaller negative precisions are quadrature errors.
_ROUNDING = 1e-9

_ROWS_OF_LIKELIHOOD = 8_192
"""The number of rows whose expectations are computed at once: quadrature needs much memory."""

_FAR = 25.0
"""The square of a level, in prior variances, above which the prior has to become wider."""


class PassResult(NamedTuple):
    """The result of a pass over the rows at the present q.

    :ivar elbo: The evidence lower bound. It is minus infinity if the expected log-likelihood of a
        row is not finite; all other attributes are then invalid.
    :ivar sites: The sites that are tangent to the expected log-likelihood at q, including sites of
        negative precision.
    :ivar clipped: The same sites with zero in place of negative precisions; the same object if no
        precision is negative.
    :ivar slopes: The gradient of the bound, at fixed q, with respect to the P trainable numbers of
        the likelihood, ``[P]``; ``curvatures`` are the second derivatives, ``[P, P]``.
    """

    elbo: float
    sites: Sites
    clipped: Sites
    slopes: Array
    curvatures: Array


class RowSites(NamedTuple):
    """The sites of n rows.

    :ivar rows: The rows in the form of ``Sums.site_batch``.
    :ivar terms: The terms of the prior variance, ``[T, n]``.
    :ivar precisions: beta, ``[L, n]``, with zero in place of negative values.
    :ivar shifts: lambda for these precisions, ``[L, n]``.
    :ivar negative: The negative values of beta, ``[L, n]``; zero elsewhere.
    :ivar negative_shifts: The changes of the shifts by the negative values of beta, ``[L, n]``.
    :ivar sums: The sum of the "expectations", its "slopes" ``[P]`` and "curvatures" ``[P, P]``, by
        the P trainable numbers of the likelihood.
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

    :param features: The features of the rows; their "outputs" are the L latent GPs.
    :param num_targets: The number of columns of Y.
    """

    def __init__(self, features: Features, likelihood: Likelihood, num_targets: int) -> None:
        self.features, self.likelihood = features, likelihood
        self._targets_type = targets_type(likelihood)
        self._variables = _trained(likelihood)
        latents, dtype = features.num_outputs, gpflow.default_float()
        X = tf.TensorSpec([None, features.num_columns], dtype)
        row_specs = [tf.TensorSpec([None, latents], dtype)] * 3
        Y = tf.TensorSpec([None, num_targets], self._targets_type)
        self._sites = compiled(self._sites_of, input_signature=[X, Y, *row_specs])
        self._slopes = compiled(self._slopes_of, input_signature=[X, Y, *row_specs[:2]])
        # Trace now: passes run in tf.init_scope, where tapes pause and trace no gradient.
        self._sites.get_concrete_function()

    def is_current(self, features: Features, likelihood: Likelihood) -> bool:
        """Whether this object was built from these parts, with the present trainable parameters."""
        known, now = self._variables, _trained(likelihood)
        same = self.features is features and self.likelihood is likelihood
        return same and [id(v) for v in known] == [id(v) for v in now]

    def evaluate(self, X: Array, Y: Array, q: Q) -> RowSites:
        """The sites of n rows at a q."""
        X, Y = tf.constant(X, gpflow.default_float()), tf.cast(Y, self._targets_type)
        return self._row_sites(X, Y, *self.features.sums.moments(q, X))

    def _row_sites(
        self,
        X: tf.Tensor,
        Y: tf.Tensor,
        rows: Any,
        terms: tf.Tensor,
        mean: tf.Tensor,
        variance: tf.Tensor,
    ) -> RowSites:
        offset = tf.broadcast_to(self.features.mean.rest(X), tf.shape(mean))
        moments, parts = (X, Y, mean, offset, variance), []
        for start in range(0, int(X.shape[0]), _ROWS_OF_LIKELIHOOD):
            few = slice(start, start + _ROWS_OF_LIKELIHOOD)
            parts.append(self._sites(*(part[few] for part in moments)))
        *site_parts, sums = zip(*parts, strict=True)
        sites = (np.concatenate(part, axis=1) for part in site_parts)
        total = total_over(zip(sums, strict=True), dict)
        return RowSites._make([rows, np.asarray(terms), *sites, total])

    def pass_over(self, rows: Rows, q: Q, present: Sites) -> PassResult:
        """The bound at q, and the sites that are tangent at q, in a pass over the rows.

        :param present: The sites of q.
        """
        kl = q.kl()
        # Gradient tapes of the caller would keep every batch. A poor q may overflow.
        with tf.init_scope(), np.errstate(over="ignore", invalid="ignore"):
            batches = joined(rows.batches(), self.features.sums.rows_at_once)
            sums = self._over(batches, lambda X, Y: self._summed(self.evaluate(X, Y, q)))
        if not all(np.all(np.isfinite(part)) for part in sums.values()):
            return PassResult(-np.inf, present, present, np.zeros(0), np.zeros([0, 0]))
        sites = clipped = Sites(*(sums[name] for name in Sites._fields))
        if "negative_precisions" in sums:
            sites = Sites(*(sums[name] + sums[f"negative_{name}"] for name in Sites._fields))
        elbo = float(sums["expectations"]) - kl
        return PassResult(elbo, sites, clipped, sums["slopes"], sums["curvatures"])

    def first_sites(self, rows: Rows, level: Array) -> Sites:
        """The sums over sites that are tangent at a separate q for each row: see ``start.py``.

        :param level: The level of each latent GP, ``[L]``.
        """
        with np.errstate(all="ignore"):  # for steps that are not taken
            sums = self._over(rows.batches(), lambda X, Y: self._first_sums(X, Y, level))
        return Sites(*(sums[name] for name in Sites._fields))

    def _over(
        self, batches: Iterable[Any], function: Callable[[Array, Array], dict[str, Array]]
    ) -> dict[str, Array]:
        """The sums of a function's results over all batches of rows."""
        features = self.features

        def batch_sums(X: Array, Y: Array) -> dict[str, Array]:
            features.check(X)
            check_targets(self.likelihood, Y)
            return function(X, Y)

        added = total_over(batches, batch_sums)
        sums = dict(added)
        for prefix in ("", "negative_"):
            if f"{prefix}precisions" in sums:
                totals = features.sums.site_total(added, prefix)
                sums[f"{prefix}precisions"], sums[f"{prefix}shifts"] = totals
        return sums

    def _first_sums(self, X: Array, Y: Array, level: Array) -> dict[str, Array]:
        """Sums over the sites of rows, tangent at a separate q for each row: see ``start.py``.

        :param level: The level of each latent GP, ``[L]``.
        """
        rows, targets = tf.constant(X, gpflow.default_float()), tf.cast(Y, self._targets_type)
        mean, variance = self._prior_of(rows)
        moments = moments_of_rows(self._moments_at(rows, targets), mean + level, variance)
        mean, variance = (tf.constant(part, rows.dtype) for part in moments)
        found = self._row_sites(rows, targets, *self.features.sums.rows(rows), mean, variance)
        nothing = np.zeros_like(found.negative)
        return self._summed(found._replace(negative=nothing))

    def level(
        self, X: Array, Y: Array, num_data: int, *, learns: tuple[bool, bool]
    ) -> tuple[Array, float, bool]:
        """The level of each latent GP on a sample of rows, ``[L]``; its largest distance from the
        prior mean, in prior standard deviations; and whether the prior has to become wider to reach
        it: see ``start.py``.

        :param num_data: The number of all rows.
        :param learns: Whether a mean function learns the level, and whether the kernel is trained.
        """
        self.features.check(X)
        check_targets(self.likelihood, Y)
        rows, targets = tf.constant(X, gpflow.default_float()), tf.cast(Y, self._targets_type)
        mean, variances = self._prior_of(rows)
        variance = float(np.mean(variances))
        moments = self._moments_at(rows, targets)
        charged = np.inf if learns[0] else variance
        with np.errstate(all="ignore"):  # for steps that are not taken
            level = level_of(moments, mean, num_data / len(X), charged, learns[1])
        distance = float(np.max(np.abs(level))) / np.sqrt(variance)
        return level, distance, not learns[0] and distance**2 > _FAR

    def _prior_of(self, X: tf.Tensor) -> tuple[Array, Array]:
        """The mean and variance of f at rows under the prior, ``[n, L]``."""
        latents = self.features.num_outputs
        mean = np.asarray(self.features.mean_function(X), np.float64)
        variance = np.asarray(self.features.kernel(X, full_cov=False), np.float64)[:, None]
        return np.tile(mean, latents // mean.shape[1]), np.tile(variance, latents)

    def _moments_at(self, X: tf.Tensor, Y: tf.Tensor) -> Moments:
        def moments(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
            at = (tf.constant(part, X.dtype) for part in (mean, variance))
            values, slopes, curvatures = self._slopes(X, Y, *at)
            latent_slopes = (np.asarray(part, np.float64) for part in (slopes, curvatures))
            return np.asarray(values, np.float64), *latent_slopes  # type: ignore[return-value]

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

    def _summed(self, found: RowSites) -> dict[str, Array]:
        """Sums over the sites of rows, in float64. "precisions", "shifts" and "variances" have zero
        in place of negative precisions. If any precision is negative, "negative_precisions" etc.
        are the changes of these sums. The entries of :attr:`RowSites.sums` are also included."""
        sums = dict(found.sums)
        parts = [("", found.precisions, found.shifts)]
        if np.any(found.negative):
            parts.append(("negative_", found.negative, found.negative_shifts))
        for prefix, precisions, shifts in parts:
            site_sums = self.features.sums.site_batch(found.rows, precisions, shifts)
            sums[f"{prefix}precisions"], sums[f"{prefix}shifts"] = site_sums
            sums[f"{prefix}variances"] = found.terms.astype(np.float64) @ precisions.T
        return sums

    def _sites_of(
        self, X: tf.Tensor, Y: tf.Tensor, mean: tf.Tensor, offset: tf.Tensor, variance: tf.Tensor
    ) -> tuple[Any, ...]:
        """The entries of :class:`RowSites` after ``terms``, in their order."""

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
        site_parts = [tf.cast(tf.linalg.matrix_transpose(part), tf.float64) for part in parts]
        sums = {"expectations": total, "slopes": slopes, "curvatures": curvatures}
        return *site_parts, {name: tf.cast(part, tf.float64) for name, part in sums.items()}


def _trained(likelihood: Likelihood) -> list[tf.Variable]:
    return [parameter.unconstrained_variable for parameter in likelihood.trainable_parameters]
