"""Predictions and functions of models whose features are splines on a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.conditionals.util import expand_independent_outputs
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum
from gpflow.posteriors import (
    PrecomputeCacheType,
    PrecomputedValue,
    _validate_precompute_cache_type,
)

from .._arguments import Array, BoolArray
from ..core.decomposed import DecomposedInducingVariables
from ..core.finite_rank import is_complete
from ..linalg.arrow import Arrow, ArrowFactor
from ..posteriors.blockwise import PosteriorOfAnyInputs
from .compact import CompactCollapsed
from .features import Features

CompactLatents: TypeAlias = Sequence[tuple[CompactCollapsed, tf.Tensor]]
"""What the weights are made of and the noise variance, for all outputs or for each."""


class CompactPosterior(PosteriorOfAnyInputs):
    """The posterior of a few features that are not zero in a row.

    With the weights w, the mean is ``phi^T E[w]`` and the variance ``k + phi^T (P^{-1} - Kuu^{-1})
    phi``, for which entries of the inverses are enough that P has, too. Features whose prior ends
    with them have no k and no Kuu.

    :param features: The features of the rows.
    :param latents: Function that returns what the weights are made of.
    """

    def __init__(
        self,
        features: Features,
        latents: Callable[[], CompactLatents],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> None:
        super().__init__(
            features.kernel, features.inducing_variable, mean_function=features.mean_function
        )
        assert features.compact is not None
        self._features, self._compact = features, features.compact
        self._latents = latents
        self._incomplete: BoolArray = features.incomplete[self._compact.order]
        self.update_cache(_validate_precompute_cache_type(precompute_cache))

    def _weights(self) -> list[tuple[ArrowFactor, Array]]:
        """The factor of the precision of the weights, and their means ``[M + B, P]``."""
        return [collapsed.factor(noise) for collapsed, noise in self._latents()]

    def _tensors(self) -> tuple[tf.Tensor, ...]:
        """Means ``[M + B, P]``, and stencils, borders and corners of ``P^{-1} - Kuu^{-1}``."""
        weights = self._weights()
        inverses = [factor.inverse() for factor, _ in weights]
        if np.any(self._incomplete):
            inverses = [inverse.plus(self._inverse_of_prior(), -1.0) for inverse in inverses]
        parts = (np.stack(part) for part in zip(*inverses, strict=True))
        means = np.concatenate([mean for _, mean in weights], axis=1)
        return tuple(tf.constant(part) for part in (means, *parts))

    def _inverse_of_prior(self) -> Arrow:
        """Kuu^{-1} of the features whose kernel has something beyond them."""
        (collapsed, _), *_ = self._latents()
        size = self._compact.grid.size
        inverse, _ = collapsed.splines.inverse_and_log_determinant()
        corner = np.linalg.inv(collapsed.others.to_dense().numpy())
        corner *= self._incomplete[size:] * self._incomplete[size:, None]
        border = np.zeros([size, len(corner)])
        return Arrow(inverse.numpy() * self._incomplete[0], border, corner)

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        return tuple(PrecomputedValue(part, (False,) * part.shape.rank) for part in self._tensors())

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return self._conditional_with_precompute(self._tensors(), Xnew, full_cov, full_output_cov)

    @inherit_check_shapes
    def _conditional_with_precompute(
        self,
        cache: tuple[tf.Tensor, ...],
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
    ) -> MeanAndVariance:
        X = self._compact.grid.in_box(tf.convert_to_tensor(Xnew))
        numbers, values = self._compact.grid(X)
        others = self._compact.others(X)
        size, dtype = self._compact.grid.size, gpflow.default_float()
        means, stencils, borders, corners = cache
        mean = tf.einsum("nq,nqp->np", values, tf.gather(means[:size], numbers))
        mean += tf.matmul(others, means[size:])
        if full_cov:
            variance = self._covariances(X)
        else:
            variance = self._compact.grid.quadratic(stencils, X)
            if others.shape[1]:
                of_rows = tf.einsum("nq,lnqb->lnb", values, tf.gather(borders, numbers, axis=1))
                of_rows = 2 * of_rows + tf.matmul(others, corners)
                variance += tf.einsum("lnb,nb->nl", of_rows, others)
            variance = tf.maximum(variance + self._prior_variance(X)[:, None], 0.0)
        number = int(means.shape[1])
        copies = number // int(stencils.shape[0])
        variance = tf.tile(variance, [copies, 1, 1] if full_cov else [1, copies])
        variance = expand_independent_outputs(variance, full_cov, full_output_cov)
        return tf.cast(mean, dtype), tf.cast(variance, dtype)

    def _prior_variance(self, X: tf.Tensor) -> tf.Tensor:
        """That of what ends beyond the features, ``[n]``."""
        factors, (_, _, terms) = self._features.diagonal_factors(), self._features.of_rows(X)
        return tf.cast(tf.linalg.matvec(terms, factors, transpose_a=True), tf.float64)

    def _covariances(self, X: tf.Tensor) -> tf.Tensor:
        """The covariances of few rows, ``[L, n, n]``; without gradients."""

        def compute(features: Array) -> Array:
            (collapsed, _), *_ = self._latents()
            prior = ArrowFactor(self._compact.grid.dissection, collapsed.prior())
            of_prior = prior.half_solve(features * self._incomplete[:, None])
            halves = [factor.half_solve(features) for factor, _ in self._weights()]
            return np.stack([half.T @ half - of_prior.T @ of_prior for half in halves])

        covariances = tf.numpy_function(compute, [self._compact.dense(X)], tf.float64)
        parts = _left_out(self._features.inducing_variable, self._features.kernel)
        prior = [tf.cast(part(X), tf.float64) for part in parts]
        covariances += tf.add_n([tf.zeros_like(covariances[0]), *prior])
        return tf.ensure_shape(covariances, [None, X.shape[0], X.shape[0]])

    def draw(self, rng: np.random.Generator, num_samples: int) -> Array:
        """Draw weights, splines first, ``[S, M + B, P]``: of one solve each.

        :raises ValueError: If the prior does not end with the features.
        """
        if np.any(self._incomplete):
            raise ValueError(
                "model: a function of a prior that does not end with its splines cannot be drawn; "
                "make the kernel as FiniteRank(kernel, splines)."
            )
        drawn = []
        for factor, mean in self._weights():
            noise = rng.standard_normal([len(mean), num_samples * mean.shape[1]])
            of_factor = factor.half_solve_adjoint(noise).reshape(len(mean), num_samples, -1)
            drawn.append(mean[:, None] + of_factor)
        return np.concatenate(drawn, axis=2).transpose(1, 0, 2)


def _left_out(inducing_variable: InducingVariables | None, kernel: Kernel) -> list[Kernel]:
    """The summands of a kernel that do not end with their features."""
    if type(kernel) is Sum and isinstance(inducing_variable, DecomposedInducingVariables):
        pairs = zip(inducing_variable.inducing_variables, kernel.kernels, strict=True)
        return [part for pair in pairs for part in _left_out(*pair)]
    return [] if is_complete(inducing_variable, kernel) else [kernel]
