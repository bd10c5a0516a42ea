"""The weights of splines given sums over rows: the terms of the bound, and their posterior."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from .._arguments import Array, BoolArray
from .._tracing import numpy_function
from ..core.pairs import Kuu_operator
from ..linalg import StructuredOperator
from ..linalg.arrow import NOT_FACTORISED, Arrow, arrow_terms
from ..linalg.banded import KroneckerBanded
from .dense import check_dense, optimal_q, root_of, whiten
from .protocol import Latents, Tensors
from .sparse_q import SparseQ, SparseWeights


class SplineCollapsed(NamedTuple):
    """The terms of the bound and q for splines: see :class:`interdomain.sums.protocol.Collapsed`.

    :ivar sums: The :class:`.SplineSums` of the features.
    :ivar splines: Kuu of the splines.
    :ivar others: Kuu of the other features.
    :ivar gram: G.
    :ivar columns: ``Kuf (Y - m)``, splines first, ``[M + B, P]``.
    :ivar gram_gradient: Whether the terms have gradients with respect to G.
    """

    sums: Any
    splines: KroneckerBanded
    others: StructuredOperator
    gram: Arrow
    columns: tf.Tensor
    gram_gradient: bool = False

    def terms(self, noise_variance: tf.Tensor, *, refuse: bool = True) -> Tensors:
        """The terms ``log det B`` and ``|c|^2``; see :func:`.arrow_terms`."""
        order = self.sums.splines.grid.dissection
        prior = [self.splines.stencil(), self.others.to_dense()]
        parts = prior, self.gram, self.columns, noise_variance
        log, fit = arrow_terms(order, *parts, gram_gradient=self.gram_gradient, refuse=refuse)
        prior_log = self.splines.log_determinant()
        if len(self.sums.splines.order) > order.size:
            prior_log += 2 * self.others.root().log_determinant()
        return log - prior_log, fit

    def prior_tensors(self, incomplete: BoolArray) -> list[tf.Tensor]:
        """The stencil of Kuu of the splines and Kuu of the other features; if a feature is
        incomplete, also the stencil of the inverse of the splines' Kuu."""
        inverses = [self.splines.root().inverse_band()] if np.any(incomplete) else []
        return [self.splines.stencil(), self.others.to_dense(), *inverses]

    def explained_variance(self, incomplete: BoolArray) -> tf.Tensor:
        """The trace ``tr Kuu^{-1} G`` over features that leave out a part of their kernel."""
        total, splines = tf.zeros([], tf.float64), self.sums.splines
        is_splines, is_others = np.split(incomplete[splines.order], [splines.grid.size])
        if np.any(is_splines):
            total += tf.reduce_sum(self.splines.root().inverse_band() * self.gram.stencil)
        if np.any(is_others):
            root = self.others.root()
            half = tf.linalg.matrix_transpose(root.solve(self.gram.corner))
            variances = tf.linalg.diag_part(root.solve(half))
            total += tf.reduce_sum(tf.where(is_others, variances, 0.0))
        return total

    def whitened_q(self, noise_variance: tf.Tensor) -> Tensors:
        """The mean and root of the whitened q of few splines as dense matrices, without gradients.

        :raises ValueError: If the splines are too many.
        """
        gram, columns = self._dense()  # raises for many splines, before the root is made
        features = self.sums.features
        root = root_of(Kuu_operator(features.inducing_variable, features.kernel))
        return optimal_q(whiten(root, gram, columns, gram_gradient=False), noise_variance)

    def weights(self, noise_variance: tf.Tensor) -> Tensors:
        """:raises ValueError: Always: the covariance would be dense."""
        raise ValueError(
            "inducing_variable: found splines, of whose weights no dense covariance is made; "
            "choose features for a model without them."
        )

    def mean_of_weights(self, noise_variance: tf.Tensor) -> Array:
        """The mean of the weights, in the order of the features, ``[M + B, P]``."""
        means: Array = SplineQ(self.sums, [(self, noise_variance)]).means
        return means[np.argsort(self.sums.splines.order)]

    def _dense(self) -> Tensors:
        """G and the columns as matrices, in the order of all features.

        :raises ValueError: If the features are too many.
        """
        splines, count = self.sums.splines, len(self.sums.splines.order)
        check_dense(count, "splines")

        def assembled(*parts: Array) -> Array:
            gram = np.empty([count, count])
            gram[np.ix_(splines.order, splines.order)] = Arrow(*parts).to_dense()
            return gram

        gram = numpy_function(assembled, list(self.gram), tf.float64, stateful=False)
        columns = tf.gather(self.columns, np.argsort(splines.order))
        return tf.ensure_shape(gram, [count, count]), columns


class WeightsQ(SparseWeights):
    """The posterior of the weights of all latent GPs, splines first, as arrays.

    :param features: The features.
    :param incomplete: Whether each feature's block leaves out a part of its kernel, splines first.
    :param prior: Kuu.
    :param inverse: The stencil of the inverse of the splines' Kuu; None if no feature is
        incomplete.
    :param latents: G, ``Kuf (Y - m)`` and the noise variance, for all outputs or for each.
    :raises tf.errors.InvalidArgumentError: If a precision cannot be factorised.
    :ivar factors: The factor of the precision P, for all outputs or for each.
    :ivar means: The mean of the weights, ``[M + B, P]``.
    """

    def __init__(
        self,
        features: Any,
        incomplete: BoolArray,
        prior: Arrow,
        inverse: Array | None,
        latents: Sequence[tuple[Arrow, Array, Array]],
    ) -> None:
        self._order, self._incomplete = features.grid.dissection, incomplete
        self._prior, self._inverse = prior, inverse
        self.factors = [(prior + gram * (1 / noise)).root() for gram, _, noise in latents]
        pairs = zip(self.factors, latents, strict=True)
        halves = ((factor, factor.solve(part / noise)) for factor, (_, part, noise) in pairs)
        means = [factor.solve(half, adjoint=True) for factor, half in halves]
        self.means = np.concatenate(means, axis=1)

    @cached_property
    def _inverses(self) -> list[Arrow]:
        return [factor.inverse_band() for factor in self.factors]

    def arrays(self) -> list[Array]:
        """The means, and the stencils, borders and corners of ``P^{-1} - Kuu^{-1}``, where Kuu is
        for the incomplete features alone."""
        inverses = self._inverses
        if self._inverse is not None:
            prior = self._inverse_of_prior(self._inverse)
            inverses = [inverse + prior * -1.0 for inverse in inverses]
        return [self.means, *(np.stack(part) for part in zip(*inverses, strict=True))]

    def _inverse_of_prior(self, spline_inverse: Array) -> Arrow:
        is_spline, is_other = np.split(self._incomplete, [self._order.size])
        corner: Array = np.linalg.inv(self._prior.corner)
        corner *= is_other * is_other[:, None]
        return Arrow.without_border(spline_inverse * float(is_spline[0]), corner)

    def covariances(self, features: Array) -> Array:
        """``phi^T (P^{-1} - Kuu^{-1}) phi`` between few rows ``[M + B, n]``, ``[L, n, n]``."""
        prior_half = self._prior.root().solve(features * self._incomplete[:, None])
        halves = [factor.solve(features) for factor in self.factors]
        covariances: Array = np.stack([half.T @ half for half in halves])
        return covariances - prior_half.T @ prior_half

    def kl(self) -> float:
        """The KL divergence from the prior, of all latent GPs."""
        order, prior = self._order, self._prior
        prior_log, total = prior.root().log_determinant(), 0.0
        for factor, mean, inverse in zip(self.factors, self.means.T, self._inverses, strict=True):
            splines, others = np.split(mean[:, None], [order.size])
            moments = inverse.stencil + order.products(splines, splines)  # E[w w^T]
            total += np.sum(moments * prior.stencil)
            total += np.sum((inverse.corner + others @ others.T) * prior.corner)
            total += 2 * (factor.log_determinant() - prior_log) - len(mean)
        return float(total / 2)


class SplineQ(SparseQ):
    """The posterior of the weights of splines: see :class:`.SparseQ`."""

    failure = NOT_FACTORISED

    def __init__(self, sums: Any, latents: Latents) -> None:
        super().__init__(sums, latents, sums.splines)

    def _posterior_of(
        self, prior: Sequence[Array], latents: Sequence[tuple[list[Array], Array, Array]]
    ) -> WeightsQ:
        stencil, corner, *inverses = prior
        whole = Arrow.without_border(stencil, corner)
        inverse = inverses[0] if inverses else None
        parts = [(Arrow(*gram), columns, noise) for gram, columns, noise in latents]
        return WeightsQ(self._structure, self.incomplete, whole, inverse, parts)

    def _shapes(self) -> list[tuple[int, ...]]:
        grid, latents = self._structure.grid, self._num_latents
        border = len(self._structure.order) - grid.size
        return [
            (grid.size + border, self._num_outputs),
            (latents, *grid.dissection.stencil_shape),
            (latents, grid.size, border),
            (latents, border, border),
        ]
