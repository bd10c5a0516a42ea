"""Predictions and functions of models whose features are splines on a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.conditionals.util import expand_independent_outputs
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum
from gpflow.posteriors import PrecomputeCacheType, PrecomputedValue

from .._arguments import Array, BoolArray
from .._tracing import numpy_function
from ..core.decomposed import DecomposedInducingVariables
from ..core.finite_rank import is_complete
from ..core.pairs import structure_of
from ..linalg.arrow import NOT_FACTORISED, Arrow, factorised
from ..linalg.precision import checked
from ..posteriors.weights import WeightsPosterior
from .protocol import Latents, Q

if TYPE_CHECKING:
    from .splines import SplineCollapsed, Splines, SplineSums


class WeightsQ:
    """The posterior of the weights of all latent GPs, splines first, as arrays.

    :param features: The features.
    :param incomplete: Which features have a kernel that does not end with them, splines first.
    :param prior: Kuu.
    :param inverse: The stencil of the inverse of the splines' Kuu; None if no feature is
        incomplete.
    :param latents: G, ``Kuf (Y - m)`` and the noise variance, for all outputs or of each.
    :raises tf.errors.InvalidArgumentError: If a precision cannot be factorised.
    :ivar factors: The factor of the precision P, for all outputs or of each.
    :ivar means: The mean of the weights, ``[M + B, P]``.
    """

    def __init__(
        self,
        features: Splines,
        incomplete: BoolArray,
        prior: Arrow,
        inverse: Array | None,
        latents: Sequence[tuple[Arrow, Array, Array]],
    ) -> None:
        self._order, self._incomplete = features.grid.dissection, incomplete
        self._prior, self._inverse = prior, inverse
        self.factors = [
            factorised(self._order, prior.plus(gram, 1 / noise)) for gram, _, noise in latents
        ]
        pairs = zip(self.factors, latents, strict=True)
        means = [factor.solve(columns / noise) for factor, (_, columns, noise) in pairs]
        self.means = np.concatenate(means, axis=1)

    @cached_property
    def _inverses(self) -> list[Arrow]:
        return [factor.inverse() for factor in self.factors]

    def arrays(self) -> list[Array]:
        """The means, and stencils, borders and corners of ``P^{-1} - Kuu^{-1}``, Kuu being that of
        incomplete features."""
        inverses = self._inverses
        if self._inverse is not None:
            prior = self._inverse_of_prior(self._inverse)
            inverses = [inverse.plus(prior, -1.0) for inverse in inverses]
        return [self.means, *(np.stack(part) for part in zip(*inverses, strict=True))]

    def _inverse_of_prior(self, of_splines: Array) -> Arrow:
        is_spline, is_other = np.split(self._incomplete, [self._order.size])
        corner: Array = np.linalg.inv(self._prior.corner)
        corner *= is_other * is_other[:, None]
        return Arrow.without_border(of_splines * float(is_spline[0]), corner)

    def covariances(self, features: Array) -> Array:
        """``phi^T (P^{-1} - Kuu^{-1}) phi`` between few rows ``[M + B, n]``, ``[L, n, n]``."""
        prior = factorised(self._order, self._prior)
        of_prior = prior.half_solve(features * self._incomplete[:, None])
        halves = [factor.half_solve(features) for factor in self.factors]
        covariances: Array = np.stack([half.T @ half for half in halves])
        return covariances - of_prior.T @ of_prior

    def kl(self) -> float:
        """The KL divergence from the prior, of all latent GPs."""
        order, prior = self._order, self._prior
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


class SplineQ(Q):
    """The posterior of the weights of all latent GPs, from tensors, which may be those of a graph.

    :ivar incomplete: Which features have a kernel that does not end with them, splines first.
    """

    def __init__(self, sums: SplineSums, latents: Latents) -> None:
        self.sums, self.latents = sums, latents
        self._splines, parts = sums.splines, cast("list[tuple[SplineCollapsed, Any]]", latents)
        first, incomplete = parts[0][0], sums.features.incomplete
        self.incomplete = incomplete[self._splines.order]
        self._inputs = [first.splines.stencil(), first.others.to_dense()]
        if np.any(incomplete):
            self._inputs.append(first.splines.inverse())
        self._start = len(self._inputs)  # of the latent GPs
        for collapsed, noise in parts:
            self._inputs += [*collapsed.gram, collapsed.columns, noise]
        self._num_outputs = sum(int(collapsed.columns.shape[1]) for collapsed, _ in parts)
        self._num_latents = len(parts)

    @cached_property
    def weights(self) -> WeightsQ:
        """The posterior as arrays, outside of graphs."""
        return self._solved(*(np.asarray(part) for part in self._inputs))

    def _solved(self, *arrays: Array) -> WeightsQ:
        (stencil, corner, *inverses), of_latents = arrays[: self._start], arrays[self._start :]
        size = len(of_latents) // self._num_latents
        parts = [of_latents[k : k + size] for k in range(0, len(of_latents), size)]
        latents = [(Arrow(*part[:3]), part[3], part[4]) for part in parts]
        prior = Arrow.without_border(stencil, corner)
        inverse = inverses[0] if inverses else None
        return WeightsQ(self._splines, self.incomplete, prior, inverse, latents)

    @property
    def means(self) -> Array:
        """The mean of the weights, ``[M + B, P]``."""
        return self.weights.means

    def kl(self) -> float:
        """The KL divergence from the prior, of all latent GPs."""
        return self.weights.kl()

    def is_finite(self) -> bool:
        """Whether the mean of all weights is finite."""
        return bool(np.all(np.isfinite(self.means)))

    @cached_property
    def posterior(self) -> SplinePosterior:
        """GPflow's posterior with this q."""
        latents = self.latents
        return SplinePosterior(
            cast("SplineSums", self.sums), lambda: latents, PrecomputeCacheType.TENSOR
        )

    def tensors(self) -> tuple[tf.Tensor, ...]:
        """The arrays of :meth:`WeightsQ.arrays` as tensors."""
        grid, latents = self._splines.grid, self._num_latents
        border = len(self._splines.order) - grid.size
        shapes = [
            (grid.size + border, self._num_outputs),
            (latents, *grid.dissection.stencil_shape),
            (latents, grid.size, border),
            (latents, border, border),
        ]
        return tuple(self._in_python(WeightsQ.arrays, [], shapes))

    def covariances(self, features: tf.Tensor) -> tf.Tensor:
        """The covariances of :meth:`WeightsQ.covariances`, between few rows ``[M + B, n]``."""

        def compute(weights: WeightsQ, features: Array) -> list[Array]:
            return [weights.covariances(features)]

        count = features.shape[1]
        shape = self._num_latents, count, count
        (covariances,) = self._in_python(compute, [features], [shape])
        return covariances

    def _in_python(
        self,
        function: Callable[..., list[Array]],
        arguments: Sequence[tf.Tensor],
        shapes: Sequence[Sequence[Any]],
    ) -> list[tf.Tensor]:
        """What a function of the posterior and of arrays returns, also in a graph.

        :raises tf.errors.InvalidArgumentError: If a precision cannot be factorised.
        """
        if tf.executing_eagerly():
            found = function(self.weights, *(np.asarray(part) for part in arguments))
            return [tf.constant(part) for part in found]

        def compute(*arrays: Array) -> list[Array]:
            inputs, others = arrays[: len(self._inputs)], arrays[len(self._inputs) :]
            try:
                return [np.array(1.0), *function(self._solved(*inputs), *others)]
            except tf.errors.InvalidArgumentError:
                return [np.array(0.0)] * (1 + len(shapes))

        types, inputs = [tf.float64] * (1 + len(shapes)), [*self._inputs, *arguments]
        ok, *values = numpy_function(compute, inputs, types, stateful=False)
        return checked(ok, values, shapes, NOT_FACTORISED)


class SplinePosterior(WeightsPosterior):
    """The posterior of features of which few are nonzero in a row.

    With the weights w, the mean is ``phi^T E[w]`` and the variance ``k + phi^T (P^{-1} - Kuu^{-1})
    phi``, for which entries of the inverses are enough that P has, too. Features whose prior ends
    with them have no k and no Kuu.

    :param sums: The sums of the features.
    :param latents: Function that returns what q is made of.
    """

    def __init__(
        self,
        sums: SplineSums,
        latents: Callable[[], Latents],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> None:
        features = sums.features
        super().__init__(
            features.kernel, features.inducing_variable, mean_function=features.mean_function
        )
        self._features, self._splines = features, sums.splines
        self._sums, self._latents = sums, latents
        self._cached_q: SplineQ | None = None
        self.fill_cache(precompute_cache)

    def _q(self) -> SplineQ:
        """The posterior of the weights, as it is now."""
        return SplineQ(self._sums, self._latents())

    def draw_weights(self, rng: np.random.Generator, num_samples: int) -> Array:
        q = self._q()
        if np.any(q.incomplete):
            raise ValueError(
                "model: no function is drawn of a prior that does not end with its splines; make "
                "the kernel as FiniteRank(kernel, splines)."
            )
        return q.weights.draw(rng, num_samples)

    def weighted_features(self, inducing_variable: InducingVariables, kernel: Kernel) -> Splines:
        return cast("Splines", structure_of(inducing_variable, kernel))

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        self._cached_q = self._q()
        tensors = self._cached_q.tensors()
        return tuple(PrecomputedValue(part, (False,) * part.shape.rank) for part in tensors)

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        q = self._q()
        return self._conditional(q, q.tensors(), Xnew, full_cov, full_output_cov)

    @inherit_check_shapes
    def _conditional_with_precompute(
        self,
        cache: tuple[tf.Tensor, ...],
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
    ) -> MeanAndVariance:
        q = self._cached_q or self._q()
        return self._conditional(q, cache, Xnew, full_cov, full_output_cov)

    def _conditional(
        self,
        q: SplineQ,
        cache: tuple[tf.Tensor, ...],
        Xnew: TensorType,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        X = self._splines.grid.in_box(tf.convert_to_tensor(Xnew))
        numbers, values = self._splines.grid(X)
        others = self._splines.others(X)
        size, dtype = self._splines.grid.size, gpflow.default_float()
        means, stencils, borders, corners = cache
        mean = tf.einsum("nq,nqp->np", values, tf.gather(means[:size], numbers))
        mean += tf.matmul(others, means[size:])
        if full_cov:
            variance = self._covariances(q, X)
        else:
            variance = self._splines.grid.quadratic(stencils, X)
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

    def _covariances(self, q: SplineQ, X: tf.Tensor) -> tf.Tensor:
        """The covariances of few rows, ``[L, n, n]``; without gradients."""
        features = tf.ensure_shape(self._splines.dense(X), [None, X.shape[0]])
        covariances = q.covariances(features)
        parts = _left_out(self._features.inducing_variable, self._features.kernel)
        prior = [tf.cast(part(X), tf.float64) for part in parts]
        covariances += tf.add_n([tf.zeros_like(covariances[0]), *prior])
        return covariances


def _left_out(inducing_variable: InducingVariables | None, kernel: Kernel) -> list[Kernel]:
    """The summands of a kernel that do not end with their features."""
    if type(kernel) is Sum and isinstance(inducing_variable, DecomposedInducingVariables):
        pairs = zip(inducing_variable.inducing_variables, kernel.kernels, strict=True)
        return [part for pair in pairs for part in _left_out(*pair)]
    return [] if is_complete(inducing_variable, kernel) else [kernel]
