"""Predictions and posterior functions of models of many weights, few of which matter at a row."""

from __future__ import annotations

import abc
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import MeanAndVariance
from gpflow.conditionals.util import expand_independent_outputs
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array
from ..core.decomposed import summed_pairs
from ..core.finite_rank import is_complete
from ..core.pairs import structure_of
from ..posteriors.weights import WeightsPosterior


class SparsePosterior(WeightsPosterior):
    """The posterior of sparse features, few of which are nonzero in a row, and of other features.

    With the weights w and their precision P, the mean is ``phi^T E[w]`` and the variance is
    ``k + phi^T (P^{-1} - Kuu^{-1}) phi``. Only entries of the inverses where P is nonzero are
    needed. For features that represent their whole kernel, the terms k and Kuu cancel.
    """

    _last_q: Any | None = None

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
        self._last_q = self._q()
        tensors: tuple[tf.Tensor, ...] = self._last_q.tensors()
        return tensors

    def conditional(
        self,
        tensors: tuple[tf.Tensor, ...],
        Xnew: tf.Tensor,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        X, dtype = tf.convert_to_tensor(Xnew), gpflow.default_float()
        others = self._sums.structure.others(X)
        means, _, _, corners = tensors
        latents, count, width = (int(part) for part in (*corners.shape[:2], means.shape[1]))
        found = self._of_sparse(tensors, X, with_variance=not full_cov)
        mean = found[:, :width] + tf.matmul(others, means[int(means.shape[0]) - count :])
        if full_cov:
            variance = self._covariances(self._last_q or self._q(), X)
        else:
            variance = found[:, width : width + latents]
            if count:
                products = 2 * tf.reshape(found[:, width + latents :], [-1, latents, count])
                products += tf.einsum("nb,lbc->nlc", others, corners)
                variance += tf.einsum("nlb,nb->nl", products, others)
            variance = tf.maximum(variance + self._prior_variance(X)[:, None], 0.0)
        copies = width // latents
        variance = tf.tile(variance, [copies, 1, 1] if full_cov else [1, copies])
        variance = expand_independent_outputs(variance, full_cov, full_output_cov)
        return tf.cast(mean, dtype), tf.cast(variance, dtype)

    def _prior_variance(self, X: tf.Tensor) -> tf.Tensor:
        """The prior variance of kernels whose features leave out a part of them, ``[n]``."""
        return tf.cast(self._features.prior_of_incomplete(X), tf.float64)

    def _covariances(self, q: Any, X: tf.Tensor) -> tf.Tensor:
        """The covariances of few rows, ``[L, n, n]``; without gradients."""
        features = tf.ensure_shape(self._sums.structure.dense(X), [None, X.shape[0]])
        covariances = q.covariances(features)
        pairs = summed_pairs(self._features.inducing_variable, self._features.kernel)
        prior = [tf.cast(part(X), tf.float64) for u, part in pairs if not is_complete(u, part)]
        covariances += tf.add_n([tf.zeros_like(covariances[0]), *prior])
        return covariances
