"""Predictions and functions of models whose features are splines on a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

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
from .._tracing import numpy_function
from ..core.decomposed import DecomposedInducingVariables
from ..core.finite_rank import is_complete
from ..linalg.arrow import Arrow, factorised
from ..posteriors.blockwise import PosteriorOfAnyInputs
from .compact import CompactCollapsed
from .features import Features


class CompactQ:
    """The posterior of the weights of all latent GPs, splines first.

    :param latents: What the weights are made of and the noise variance, for all outputs or of each.
    :param incomplete: Which features have a kernel that does not end with them, in the model's
        order.
    :ivar factors: The factor of the precision P, for all outputs or of each.
    :ivar means: The mean of the weights, ``[M + B, P]``.
    """

    def __init__(
        self, latents: Sequence[tuple[CompactCollapsed, tf.Tensor]], incomplete: BoolArray
    ) -> None:
        (self._collapsed, _), *_ = latents
        self.incomplete = incomplete[self._collapsed.features.order]
        pairs = [collapsed.factor(noise) for collapsed, noise in latents]
        self.factors = [factor for factor, _ in pairs]
        self.means = np.concatenate([mean for _, mean in pairs], axis=1)

    @cached_property
    def _inverses(self) -> list[Arrow]:
        return [factor.inverse() for factor in self.factors]

    def tensors(self) -> tuple[tf.Tensor, ...]:
        """The means, and stencils, borders and corners of ``P^{-1} - Kuu^{-1}``, Kuu being that of
        incomplete features."""
        inverses = self._inverses
        if np.any(self.incomplete):
            prior = self._inverse_of_prior()
            inverses = [inverse.plus(prior, -1.0) for inverse in inverses]
        parts = (np.stack(part) for part in zip(*inverses, strict=True))
        return tuple(tf.constant(part) for part in (self.means, *parts))

    def _inverse_of_prior(self) -> Arrow:
        size = self._collapsed.features.grid.size
        inverse = self._collapsed.splines.inverse()
        corner = np.linalg.inv(self._collapsed.others.to_dense().numpy())
        corner *= self.incomplete[size:] * self.incomplete[size:, None]
        return Arrow.without_border(inverse.numpy() * self.incomplete[0], corner)

    def covariances(self, features: Array) -> Array:
        """``phi^T (P^{-1} - Kuu^{-1}) phi`` between few rows ``[M + B, n]``, ``[L, n, n]``."""
        prior = factorised(self._collapsed.features.grid.dissection, self._collapsed.prior())
        of_prior = prior.half_solve(features * self.incomplete[:, None])
        halves = [factor.half_solve(features) for factor in self.factors]
        covariances: Array = np.stack([half.T @ half for half in halves])
        return covariances - of_prior.T @ of_prior

    def kl(self) -> float:
        """The KL divergence from the prior, of all latent GPs."""
        order, prior = self._collapsed.features.grid.dissection, self._collapsed.prior()
        of_prior, total = factorised(order, prior).log_determinant(), 0.0
        for factor, mean, inverse in zip(self.factors, self.means.T, self._inverses, strict=True):
            splines, others = np.split(mean[:, None], [order.size])
            moments = inverse.stencil + order.products(splines, splines)  # E[w w^T]
            total += np.sum(moments * prior.stencil)
            total += np.sum((inverse.corner + others @ others.T) * prior.corner)
            total += factor.log_determinant() - of_prior - len(mean)
        return float(total / 2)

    def draw(self, rng: np.random.Generator, num_samples: int) -> Array:
        """Draw weights, ``[S, M + B, P]``: of one solve each."""
        size, count = self.means.shape
        noise = rng.standard_normal([count, size, num_samples])
        factors = self.factors * (count // len(self.factors))
        pairs = zip(factors, noise, strict=True)
        drawn: Array = np.stack([factor.half_solve_adjoint(part) for factor, part in pairs])
        drawn += self.means.T[..., None]
        return drawn.transpose(2, 1, 0)


class CompactPosterior(PosteriorOfAnyInputs):
    """The posterior of a few features that are not zero in a row.

    With the weights w, the mean is ``phi^T E[w]`` and the variance ``k + phi^T (P^{-1} - Kuu^{-1})
    phi``, for which entries of the inverses are enough that P has, too. Features whose prior ends
    with them have no k and no Kuu.

    :param features: The features of the rows.
    :ivar q: Function that returns the posterior of the weights.
    """

    def __init__(
        self,
        features: Features,
        q: Callable[[], CompactQ],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> None:
        super().__init__(
            features.kernel, features.inducing_variable, mean_function=features.mean_function
        )
        assert features.compact is not None
        self._features, self._compact = features, features.compact
        self.q = q
        self.update_cache(_validate_precompute_cache_type(precompute_cache))

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        return tuple(
            PrecomputedValue(part, (False,) * part.shape.rank) for part in self.q().tensors()
        )

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return self._conditional_with_precompute(
            self.q().tensors(), Xnew, full_cov, full_output_cov
        )

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
        """That of the kernels that do not end with their features, ``[n]``."""
        factors, terms = self._features.diagonal_factors(), self._features.terms_of(X)
        return tf.cast(tf.linalg.matvec(terms, factors, transpose_a=True), tf.float64)

    def _covariances(self, X: tf.Tensor) -> tf.Tensor:
        """The covariances of few rows, ``[L, n, n]``; without gradients."""

        def compute(features: Array) -> Array:
            return self.q().covariances(features)

        covariances = numpy_function(compute, [self._compact.dense(X)], tf.float64)
        parts = _left_out(self._features.inducing_variable, self._features.kernel)
        prior = [tf.cast(part(X), tf.float64) for part in parts]
        covariances += tf.add_n([tf.zeros_like(covariances[0]), *prior])
        return tf.ensure_shape(covariances, [None, X.shape[0], X.shape[0]])


def _left_out(inducing_variable: InducingVariables | None, kernel: Kernel) -> list[Kernel]:
    """The summands of a kernel that do not end with their features."""
    if type(kernel) is Sum and isinstance(inducing_variable, DecomposedInducingVariables):
        pairs = zip(inducing_variable.inducing_variables, kernel.kernels, strict=True)
        return [part for pair in pairs for part in _left_out(*pair)]
    return [] if is_complete(inducing_variable, kernel) else [kernel]
