"""Predictions and posterior functions of models of many weights, few of which matter at a row."""

from __future__ import annotations

import abc
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import MeanAndVariance
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.posteriors import PrecomputedValue

from .._arguments import Array
from ..core.columns import as_in_training
from ..core.decomposed import summed_pairs
from ..core.finite_rank import is_complete
from ..core.latents import LatentGPs
from ..core.pairs import structure_of
from ..posteriors.marginals import outputs_of
from ..posteriors.rows import Rows
from ..posteriors.weights import WeightsPosterior


class SparsePosterior(WeightsPosterior):
    """The posterior of sparse features, few of which are nonzero in a row, and of other features.

    With the weights w and their precision P, the mean is ``phi^T E[w]`` and the variance is
    ``k + phi^T (P^{-1} - Kuu^{-1}) phi``. Only entries of the inverses where P is nonzero are
    needed. For features that represent their whole kernel, the terms k and Kuu cancel.
    """

    _last: tuple[Any, Any] = None, None
    """The first tensor of the last call of :meth:`tensors`, and the q that it describes."""

    _cached: tuple[Any, Any] = None, None
    """The first tensor of the cache, and the q that it describes."""

    @abc.abstractmethod
    def _of_sparse(
        self, tensors: tuple[tf.Tensor, ...], X: tf.Tensor, *, with_variance: bool
    ) -> tf.Tensor:
        """Sums over the sparse features at rows, side by side: the mean ``[n, P]``; if
        ``with_variance``, also the quadratic form of ``P^{-1} - Kuu^{-1}`` for each latent GP,
        ``[n, L]``, and products with the border, ``[n, L E]`` for E other features."""

    def _q(self) -> Any:
        """The current posterior of the weights."""
        return self._sums.q(self._latents())

    def draw_weights(self, rng: np.random.Generator, num_samples: int) -> Array:
        q = self._q()
        if np.any(q.incomplete):
            raise ValueError(
                "model: no function is drawn of a prior that does not end with its splines; make "
                "the kernel as FiniteRank(kernel, splines)."
            )
        weights: Array = q.weights.draw(rng, num_samples)
        return weights

    def weighted_features(self, inducing_variable: InducingVariables, kernel: Kernel) -> Any:
        return structure_of(inducing_variable, kernel)

    def tensors(self) -> tuple[tf.Tensor, ...]:
        q = self._q()
        tensors: tuple[tf.Tensor, ...] = q.tensors()
        self._last = tensors[0], q
        return tensors

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        values = super()._precompute()
        self._cached = self._last
        return values

    def _q_of(self, tensors: tuple[tf.Tensor, ...]) -> Any:
        """The q that tensors describe; the current q for a cache of variables, which may change."""
        known = [q for first, q in (self._last, self._cached) if first is tensors[0]]
        return known[0] if known else self._q()

    def conditional(
        self,
        tensors: tuple[tf.Tensor, ...],
        Xnew: tf.Tensor,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        Xnew = as_in_training(Xnew, self._features.num_columns)
        rows, dtype = Rows(Xnew, [LatentGPs(self.kernel, (self.X_data,))]), gpflow.default_float()
        X, others = rows.flat, self._sums.structure.others(rows.flat)
        means, _, _, corners = tensors
        latents, count, width = (int(part) for part in (*corners.shape[:2], means.shape[1]))
        found = self._of_sparse(tensors, X, with_variance=not full_cov)
        mean = found[:, :width] + tf.matmul(others, means[int(means.shape[0]) - count :])
        if full_cov:
            variance = self._covariances(self._q_of(tensors), rows)
        else:
            variance = found[:, width : width + latents]
            if count:
                products = 2 * tf.reshape(found[:, width + latents :], [-1, latents, count])
                products += tf.einsum("nb,lbc->nlc", others, corners)
                variance += tf.einsum("nlb,nb->nl", products, others)
            variance = rows.columns(tf.maximum(variance + self._prior_variance(X)[:, None], 0.0))
        mean = rows.columns(tf.cast(mean, dtype))
        variance = rows.broadcast(tf.cast(variance, dtype), mean, full_cov)
        return outputs_of(self.kernel, mean, variance, full_cov, full_output_cov)

    def _prior_variance(self, X: tf.Tensor) -> tf.Tensor:
        """The prior variance of kernels whose features leave out a part of them, ``[n]``."""
        return tf.cast(self._features.prior_of_incomplete(X), tf.float64)

    def _covariances(self, q: Any, rows: Rows) -> tf.Tensor:
        """The covariances of few rows within each set, ``[batch..., L, N, N]``; no gradients."""
        X = rows.flat
        features = tf.ensure_shape(self._sums.structure.dense(X), [None, X.shape[0]])
        found, sets = q.covariances(features), tf.stack([rows.num_sets, tf.shape(rows.sets)[-2]])
        shape = tf.concat([tf.shape(found)[:1], sets, sets], axis=0)
        changes = tf.einsum("lbibj->blij", tf.reshape(found, shape))
        pairs = summed_pairs(self._features.inducing_variable, self._features.kernel)
        parts = [part(rows.sets) for u, part in pairs if not is_complete(u, part)]
        prior = sum((tf.cast(part, tf.float64) for part in parts), tf.zeros([1, 1], tf.float64))
        return rows.covariances(prior, changes)
