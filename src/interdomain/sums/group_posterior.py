"""Predictions and posterior functions of models that have intercepts of groups, and their q.

A row has the intercept g and the other features psi. R is the root of the covariance of the other
features' weights. Given these weights, intercepts have the slopes T and the variances v, as in
:mod:`.group_collapsed`. The covariance of f at two rows is

    v_g [g = g'] + (psi - T_g)^T R R^T (psi' - T_g').
"""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import MeanAndVariance
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.posteriors import PrecomputeCacheType

from .._arguments import Array
from ..core.columns import as_in_training
from ..core.decomposed import summed_pairs
from ..core.finite_rank import is_complete
from ..core.latents import LatentGPs
from ..core.pairs import structure_of
from ..posteriors.marginals import outputs_of
from ..posteriors.rows import Rows
from ..posteriors.weights import WeightsPosterior
from .protocol import Latents, Q


class GroupPosterior(WeightsPosterior):
    """The posterior of intercepts of groups and of other features.

    The cache has the results of :meth:`.GroupCollapsed.posterior`, for each latent GP or for all.
    Two more entries are for features that leave out a part of their kernel: the prior variance that
    intercepts explain, ``[L]``, and the matrix ``[B, B]`` that whitens the other features.
    """

    def tensors(self) -> tuple[tf.Tensor, ...]:
        latents: Any = self._latents()
        means, *parts = zip(*(part.posterior(noise) for part, noise in latents), strict=True)
        first, others = self._sums.groups.Kuu()
        incomplete = self._features.incomplete[self._sums.groups.order]
        first_mask, others_mask = np.split(incomplete, [self._sums.groups.num_first])
        explained = tf.where(np.any(first_mask), 1 / first, 0.0)
        whitening = tf.zeros([0, len(others_mask)], tf.float64)
        if np.any(others_mask):
            inverse = others.root().solve(tf.eye(len(others_mask), dtype=tf.float64))
            whitening = tf.boolean_mask(inverse, others_mask)
        return tf.concat(means, axis=1), *map(tf.stack, parts), explained, whitening

    def conditional(
        self,
        tensors: tuple[tf.Tensor, ...],
        Xnew: tf.Tensor,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        means, roots, slopes, variances, explained, whitening = tensors
        Xnew = as_in_training(Xnew, self._features.num_columns)
        rows = Rows(Xnew, [LatentGPs(self.kernel, (self.X_data,))])
        first, size = self._sums.groups.first(rows.flat), self._sums.groups.num_first
        others = self._sums.groups.rest(rows.flat, in_domain=False)
        mean = tf.gather(means[:size], first) + tf.matmul(others, means[size:])
        halves = [
            tf.matmul(others - tf.gather(slope, first), root)
            for slope, root in zip(tf.unstack(slopes), tf.unstack(roots), strict=True)
        ]
        first_variances = tf.gather(variances - explained, first, axis=1)
        whitened = tf.matmul(others, whitening, transpose_b=True)
        dtype = gpflow.default_float()
        if full_cov:
            sets = tf.stack([rows.num_sets, -1])

            def within(values: tf.Tensor) -> tf.Tensor:
                """The products of the rows of each set, ``[sets, N, N]``."""
                parts = tf.reshape(values, tf.concat([sets, [values.shape[1]]], axis=0))
                return tf.matmul(parts, parts, transpose_b=True)

            places, left = tf.reshape(first, sets), within(whitened)
            same = tf.cast(places[:, :, None] == places[:, None], tf.float64)
            changes = [
                within(half) - left + same * tf.reshape(variance, sets)[:, None]
                for half, variance in zip(halves, tf.unstack(first_variances), strict=True)
            ]
            changes = tf.cast(tf.stack(changes, axis=1), dtype)
            total = rows.covariances(self._prior_covariance(rows.sets), changes)
        else:
            squares = [tf.reduce_sum(tf.square(half), axis=1) for half in halves]
            left = self._prior_variance(rows.flat) - tf.reduce_sum(tf.square(whitened), axis=1)
            total = tf.maximum(tf.stack(squares) + first_variances + left, 0.0)
            total = rows.columns(tf.cast(tf.linalg.matrix_transpose(total), dtype))
        mean = rows.columns(tf.cast(mean, dtype))
        total = rows.broadcast(total, mean, full_cov)
        return outputs_of(self.kernel, mean, total, full_cov, full_output_cov)

    def _prior_variance(self, X: tf.Tensor) -> tf.Tensor:
        """The prior variance of kernels whose features leave out a part of them, ``[n]``."""
        factors, terms = self._features.diagonal_factors(), self._features.terms_of(X)
        return tf.cast(tf.linalg.matvec(terms, factors, transpose_a=True), tf.float64)

    def _prior_covariance(self, sets: tf.Tensor) -> tf.Tensor:
        """The prior covariance of kernels whose features leave out a part of them, within sets of
        rows ``[..., N, D]``, ``[..., N, N]``."""
        pairs = summed_pairs(self._features.inducing_variable, self._features.kernel)
        prior = [part(sets) for u, part in pairs if not is_complete(u, part)]
        zeros = tf.zeros(
            tf.concat([tf.shape(sets)[:-1], tf.shape(sets)[-2:-1]], axis=0), sets.dtype
        )
        return tf.add_n([zeros, *prior])

    def draw_weights(self, rng: np.random.Generator, num_samples: int) -> Array:
        if np.any(self._features.incomplete):
            raise ValueError(
                "model: no function is drawn of a prior that does not end with its features, of "
                "which some are intercepts of groups; make the kernel a sum of FiniteRank(kernel, "
                "features)."
            )
        means, roots, slopes, variances, *_ = (np.asarray(part) for part in self.tensors())
        size, (count, latents) = self._sums.groups.num_first, means.shape
        drawn = np.empty([num_samples, count, latents])
        for latent in range(latents):
            root, slope, variance = (
                part[latent % len(part)] for part in (roots, slopes, variances)
            )
            first, others = np.split(rng.standard_normal([count, num_samples]), [size])
            others = root @ others
            first = np.sqrt(variance)[:, None] * first - slope @ others
            parts = means[:, [latent]] + np.concatenate([first, others])
            drawn[:, self._sums.groups.order, latent] = parts.T
        return drawn

    def weighted_features(self, inducing_variable: InducingVariables, kernel: Kernel) -> Any:
        return structure_of(inducing_variable, kernel)


class GroupQ(Q):
    """The posterior of the weights of all latent GPs, without a dense covariance of intercepts."""

    def __init__(self, sums: Any, latents: Latents) -> None:
        self.sums, self.latents, self._groups = sums, latents, sums.groups
        self.posterior = GroupPosterior(sums, lambda: latents, PrecomputeCacheType.TENSOR)

    def kl(self) -> float:
        """The KL divergence from the prior, of all latent GPs."""
        (prior, others), size = self._groups.Kuu(), self._groups.num_first
        assert self.posterior.cache is not None
        means, roots, slopes, variances, *_ = self.posterior.cache
        first, rest = means[:size], means[size:]
        total = tf.reduce_sum(prior[:, None] * tf.square(first))
        total += tf.reduce_sum(rest * others.matmul(rest))
        copies = means.shape[1] // len(self.latents)
        parts = zip(self.latents, *map(tf.unstack, (roots, slopes, variances)), strict=True)
        for (collapsed, noise), root, slope, variance in parts:
            diagonal = variance + tf.reduce_sum(tf.square(tf.matmul(slope, root)), axis=1)
            trace = tf.reduce_sum(prior * diagonal) + tf.reduce_sum(root * others.matmul(root))
            log_determinant, _ = collapsed.terms(noise)
            total += copies * (trace + log_determinant - means.shape[0])
        return float(total / 2)

    def is_finite(self) -> bool:
        """Whether all numbers of q are finite."""
        assert self.posterior.cache is not None
        return all(bool(np.all(np.isfinite(part))) for part in self.posterior.cache)
