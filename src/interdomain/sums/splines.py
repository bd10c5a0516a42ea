"""Sums of splines on a grid, few of which are nonzero in a row, alone or with dense features.

M splines need no matrix of size M^2. The weights w of ``f = phi^T w`` have the prior precision Kuu
and the posterior precision ``P = Kuu + G / s``, ``G = Kuf Kfu``. Both are sparse, with a border of
dense features of other blocks (:mod:`interdomain.linalg.arrow`). The terms of the bound are those
of dense sums, with ``det B = det P / det Kuu`` and ``|c|^2 = |P^{-1/2} Kuf (Y - m) / s|^2``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from .._arguments import Array, BoolArray, warn
from ..core.family import Block
from ..core.pairs import Kuf_in_domain, Kuu_operator, as_family
from ..core.structures import FeatureStructure
from ..linalg import StructuredOperator
from ..linalg.arrow import Arrow
from ..linalg.banded import KroneckerBanded
from ..linalg.block_diagonal import block_diagonal
from ..linalg.full import Full
from ..linalg.spline_grid import SplineGrid
from .protocol import Latents, Sums, Tensors
from .spline_posterior import SplinePosterior
from .spline_q import SplineCollapsed, SplineQ

_MUCH, _LITTLE = 0.1, 1e-4
"""Unexplained shares of the prior variance above and below which splines give a warning."""

_FEW = 0.01
"""The unexplained share of the prior variance of the splines that a warning recommends."""

_ENTRIES = 2**23
"""The count of numbers that are gathered at a time."""

_ROUNDING = 1e-6
"""The relative error of predictions above which a model warns."""


class Splines(FeatureStructure):
    """The splines of a model, and the dense features of its other blocks.

    If several blocks are splines, only one is treated as sparse.

    :param blocks: The blocks of features.
    :param number: The number of the block of sparse splines.
    :ivar grid: The splines.
    :ivar order: The numbers of all features in another order: the splines first, ``[M + B]``.
    """

    def __init__(self, blocks: Sequence[Block], number: int) -> None:
        self._splines = blocks[number]
        self._others = [*blocks[:number], *blocks[number + 1 :]]
        splines: Any
        splines, kernel = as_family(*self._splines)
        self.grid: SplineGrid = splines.grid(kernel)
        start = sum(int(block.num_inducing) for block, _ in blocks[:number])
        end = sum(int(block.num_inducing) for block, _ in blocks)
        within = start + np.arange(self.grid.size)
        self.order = np.concatenate([within, np.delete(np.arange(end), within)])
        self.size = len(self.order)

    @property
    def entries(self) -> int:
        """The count of numbers in a sum of products."""
        border = len(self.order) - self.grid.size
        stencil_entries: int = self.grid.size * (2 * self.grid.degree + 1) ** len(self.grid.shape)
        return stencil_entries + len(self.order) * border

    def sums(self, features: Any) -> SplineSums:
        return SplineSums(features, self)

    def in_sum(self, blocks: Sequence[Block], number: int) -> Splines:
        return Splines(blocks, number)

    @property
    def rows_at_once(self) -> int:
        """The number of rows whose variances are computed at a time, from entries of stencils."""
        row_entries = int((self.grid.degree + 1) ** (2 * len(self.grid.shape)))
        return max(_ENTRIES // row_entries, 1)

    def warn_of_spacing(self, incomplete: BoolArray) -> None:
        """Warn if splines do not explain much of the prior, or are so narrow that rounding matters.

        :param incomplete: Whether each feature's block leaves out a part of its kernel.
        """
        splines: Any
        splines, kernel = as_family(*self._splines)
        left, is_incomplete = splines.unexplained_share(kernel), bool(incomplete[self.order[0]])
        has_rounding = splines.rounding(kernel) > _ROUNDING
        if left > _MUCH and not has_rounding:
            share = _MUCH / 2
            warn(
                f"inducing_variable: the splines leave {left:.0%} of the prior variance under the "
                "kernel's lengthscales, which they blur; about "
                f"num={_numbers(splines.enough(kernel, share))} leave {share:.0%}."
            )
        elif has_rounding or (left < _LITTLE and is_incomplete):
            enough, remedies = splines.enough(kernel, _FEW), []
            if enough != splines.num:
                remedies.append(
                    f"about num={_numbers(enough)} leave at most {_FEW:.0%} of the prior"
                )
            if is_incomplete:
                remedies.append("make the kernel as FiniteRank(kernel, splines)")
            charged = ", and so is what the bound is charged for them" * is_incomplete
            warn(
                f"inducing_variable: splines of num={_numbers(splines.num)} are so narrow beside "
                f"the kernel's lengthscales that predictions are subject to rounding{charged}; "
                f"{', or '.join(remedies or ['pass a lower degree'])}."
            )

    def others(self, X: tf.Tensor, *, in_domain: bool = False) -> tf.Tensor:
        """The dense features of rows, ``[n, B]``, in float64.

        :param in_domain: Whether the rows are known to be in the features' domains.
        """
        covariances = Kuf_in_domain if in_domain else Kuf
        features = [tf.cast(covariances(*block, X), tf.float64) for block in self._others]
        none = tf.zeros([0, tf.shape(X)[0]], tf.float64)
        return tf.linalg.matrix_transpose(tf.concat([none, *features], axis=0))

    def dense(self, X: tf.Tensor) -> tf.Tensor:
        """All features of few rows, splines first, ``[M + B, n]``."""
        others = tf.linalg.matrix_transpose(self.others(X))
        return tf.concat([self.grid.dense(X), others], axis=0)

    def values(self, weights: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        """The features of rows, splines first, times weights ``[S, M + B, L]``: ``[S, n, L]``."""
        X, size = self.grid.in_box(X), self.grid.size
        numbers, values = self.grid(X)
        row_weights = tf.gather(weights[:, :size], numbers, axis=1)
        sums = tf.einsum("nq,snql->snl", values, row_weights)
        return sums + tf.einsum("nb,sbl->snl", self.others(X), weights[:, size:])

    def entries_per_row(self, weights: tf.Tensor) -> int:
        """The count of numbers that :meth:`values` has in memory for each row."""
        samples, _, latents = map(int, weights.shape)
        cell_entries = int((self.grid.degree + 1) ** len(self.grid.shape))
        return samples * latents * (cell_entries + len(self.order) - self.grid.size)

    def products(
        self, X: tf.Tensor, weights: Array, columns: Array, targets: Array
    ) -> tuple[Array, Array]:
        """Weighted sums over rows in the domains, of products of features and further columns s.

        :param weights: ``[n, L]``.
        :param columns: ``[n, H]``.
        :param targets: ``[n, T]``.
        :return: For each column of weights ``sum_n w_n s_n s_n^T`` as the vector of an arrow, which
            the columns border, too; and ``sum_n s_n t_n^T``, ``[M + B + H, T]``, the features in
            their order.
        """
        numbers, values = (part.numpy() for part in self.grid(X))
        ends = values.shape[1] * np.arange(len(values) + 1)
        shape = len(values), self.grid.size
        splines = scipy.sparse.csr_matrix((values.ravel(), numbers.ravel(), ends), shape)
        border = np.concatenate([self.others(X, in_domain=True), columns], axis=1)
        packed = []
        for stencil, w in zip(self.grid.gram(numbers, values, weights), weights.T, strict=True):
            weighted = border * w[:, None]
            packed.append(Arrow(stencil, splines.T @ weighted, weighted.T @ border).packed())
        feature_products, column_products = np.split(
            border.T @ targets, [len(self.order) - self.grid.size]
        )
        products = np.empty([len(self.order), targets.shape[1]])
        products[self.order] = np.concatenate([splines.T @ targets, feature_products])
        return np.stack(packed), np.concatenate([products, column_products])

    def Kuu(self) -> tuple[KroneckerBanded, StructuredOperator]:
        """Kuu of the splines, and Kuu of the other features, in float64."""
        jitter = gpflow.config.default_jitter()
        splines = Kuu_operator(*self._splines)
        others = [Kuu_operator(*block, jitter=jitter) for block in self._others]
        if not others:
            return splines, Full(tf.zeros([0, 0], tf.float64))
        return splines, block_diagonal([part.cast(tf.float64) for part in others])


def _numbers(num: tuple[int, ...]) -> str:
    """The numbers of splines as text, in the form of the argument ``num``."""
    return str(num[0] if len(num) == 1 else list(num))


class SplineSums(Sums):
    """Sums of products as the vector of an :class:`.Arrow`. Like dense sums, they can be added,
    saved and used for the sites of a model.

    :ivar splines: The features.
    """

    rows_at_once = 2**17
    """A stencil has a large cost for any number of rows: fewer rows at once take longer."""

    def __init__(self, features: Any, splines: Splines) -> None:
        super().__init__(features)
        self.splines, self.rows_of_a_prediction = splines, splines.rows_at_once

    def require_fixed(self, trainable: Mapping[str, Any]) -> None:
        if trainable:
            raise ValueError(
                f"inducing_variable: found splines beside features that depend on "
                f"{', '.join(trainable)}, trainable, and sums of splines have no gradients; freeze "
                "these with gpflow.set_trainable(parameter, False)."
            )

    def check_spacing(self) -> None:
        self.splines.warn_of_spacing(self.features.incomplete)

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        rows = tf.constant(X, gpflow.default_float())
        targets, sums = self.features.target_sums(rows, Y, *more)
        weights = more[0] if more else np.ones([len(X), 1])
        parts = weights, np.zeros([len(X), 0]), targets.numpy()
        (gram,), products = self.splines.products(rows, *parts)
        return {"gram": gram, "products": products, **sums}

    def site_sums(self, X: tf.Tensor, precisions: Any, shifts: Any) -> tuple[Array, Array]:
        """The sums have no gradients."""
        columns = tf.cast(self.features.mean.columns(X), tf.float64).numpy()
        weights, shifts = (np.transpose(part) for part in (precisions, shifts))
        return self.splines.products(X, weights, columns, shifts)

    def gram_shape(self, num_columns: int) -> tuple[int, ...]:
        return (sum(int(np.prod(part.shape)) for part in self._empty(num_columns)),)

    def _empty(self, num_columns: int) -> Arrow:
        """The sum over no rows."""
        others = len(self.splines.order) - self.splines.grid.size
        return Arrow.zeros(self.splines.grid.dissection.stencil_shape, others + num_columns)

    def border(self, gram: tf.Tensor, num_columns: int) -> Tensors:
        splines, arrow = self.splines, self._empty(num_columns).unpacked(gram)
        size = len(splines.order) - splines.grid.size
        with_features = tf.concat([arrow.border[:, size:], arrow.corner[:size, size:]], axis=0)
        return tf.gather(with_features, np.argsort(splines.order)), arrow.corner[size:, size:]

    def prior_gram(self, num_columns: int) -> Array:
        splines, others = self.prior()
        corner = np.pad(others.to_dense(), (0, num_columns))
        return Arrow.without_border(splines.stencil().numpy(), corner).packed()

    def prior(self) -> tuple[KroneckerBanded, StructuredOperator]:
        """Kuu of the splines, and Kuu of the other features."""
        return self.splines.Kuu()

    def finish(
        self,
        prior: tuple[KroneckerBanded, StructuredOperator],
        gram: tf.Tensor,
        columns: tf.Tensor,
        *,
        num_columns: int = 0,
        gram_gradient: bool = False,
    ) -> SplineCollapsed:
        splines, arrow = self.splines, self._empty(num_columns).unpacked(gram)
        size = len(splines.order) - splines.grid.size
        arrow = Arrow(arrow.stencil, arrow.border[:, :size], arrow.corner[:size, :size])
        return SplineCollapsed(self, *prior, arrow, tf.gather(columns, splines.order))

    def q(self, latents: Latents) -> SplineQ:
        return SplineQ(self, latents)

    def posterior(
        self,
        latents: Callable[[], Latents],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> AbstractPosterior:
        return SplinePosterior(self, latents, precompute_cache)
