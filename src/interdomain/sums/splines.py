"""Sums of splines on a grid, few of which are nonzero in a row, alone or with dense features.

M splines need no matrix of size M^2. The weights w of ``f = phi^T w`` have the prior precision Kuu
and the posterior precision ``P = Kuu + G / s``, ``G = Kuf Kfu``. Both are sparse, with a border of
dense features of other blocks (:mod:`interdomain.linalg.arrow`). The terms of the bound are those
of dense sums, with ``det B = det P / det Kuu`` and ``|c|^2 = |P^{-1/2} Kuf (Y - m) / s|^2``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import ge
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array, BoolArray, IntArray, check_size, refusal, warn
from ..core.decomposed import flat_blocks
from ..core.family import Block
from ..core.functional_rows import FunctionalRows
from ..core.pairs import Kuu_operator, as_family, features_of_blocks
from ..core.structures import FeatureStructure
from ..linalg import StructuredOperator
from ..linalg.arrow import Arrow
from ..linalg.banded import KroneckerBanded
from ..linalg.block_diagonal import block_diagonal
from ..linalg.full import Full
from ..linalg.spline_grid import SplineGrid
from .dense import MOST_DENSE
from .spline_sums import SplineSums

_MUCH, _LITTLE = 0.1, 1e-4
"""Unexplained shares of the prior variance above and below which splines give a warning."""

_FEW = 0.01
"""The unexplained share of the prior variance of the splines that a warning recommends."""

_ENTRIES = 2**23
"""The count of numbers that are gathered at a time."""

_COPIES = 8
"""Numbers in memory for each entry of the precision: of its factors, inverse and indices."""

_ROUNDING = 1e-6
"""The relative error of predictions above which a model warns."""


class Splines(FeatureStructure):
    """The splines of a model, and the dense features of its other blocks.

    If several blocks are splines, only one is treated as sparse. Rows may be functionals: then each
    functional has a window of splines that may be nonzero at its rows.

    :param blocks: The blocks of features.
    :param number: The number of the block of sparse splines.
    :param rows: The functionals of rows; None for values.
    :param grids: The splines under each functional, with stencils of one width.
    :ivar grid: The splines.
    :ivar order: The numbers of all features in another order: the splines first, ``[M + B]``.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        number: int,
        rows: FunctionalRows | None = None,
        grids: Sequence[SplineGrid] = (),
    ) -> None:
        self._splines: tuple[Any, Any] = blocks[number]
        self._number, self._rows = number, rows
        self._others = [*blocks[:number], *blocks[number + 1 :]]
        splines, kernel = self._family()
        self.grids: Sequence[SplineGrid] = grids or [splines.grid(kernel)]
        self.grid = self.grids[0]
        start = sum(int(block.num_inducing) for block, _ in blocks[:number])
        end = sum(int(block.num_inducing) for block, _ in blocks)
        within = start + np.arange(self.grid.size)
        self.order = np.concatenate([within, np.delete(np.arange(end), within)])
        self.size = len(self.order)

    def _family(self) -> tuple[Any, Kernel]:
        """The splines, and the kernel of f."""
        splines, kernel = self._splines
        return as_family(splines, kernel.prior if self._rows else kernel)

    @property
    def _stencil_entries(self) -> int:
        return self.grid.size * int((2 * self.grid.reach + 1) ** len(self.grid.shape))

    @property
    def entries(self) -> int:
        """The count of numbers in a sum of products."""
        border = len(self.order) - self.grid.size
        return self._stencil_entries + len(self.order) * border

    def acted(self, inducing_variable: InducingVariables, kernel: Any) -> Splines | None:
        """The structure of the splines under functionals; None for dense sums of few features.

        :raises ValueError: If the features are many, and a functional has no window of splines that
            is known before rows are, or too large a window.
        """
        few, (splines, prior) = self.size <= MOST_DENSE, self._family()
        grids = [splines.acted_grid(prior, part) for part in kernel.functionals]
        for part, grid in zip(kernel.functionals, grids, strict=True):
            if grid is None:
                if few:
                    return None
                what = "width_columns" if part.width_columns else type(part).__name__
                rule, found = (
                    f"be sparse in over {MOST_DENSE:,} splines",
                    f"{what} with {self.size:,}",
                )
                remedy = "pass a list of Means of fixed widths, or make fewer splines"
                raise refusal("functionals", rule, found, remedy)
        wider = max(grid.reach for grid in grids)
        grids = [replace(grid, wider=wider) for grid in grids]
        blocks = flat_blocks(inducing_variable, kernel)
        acted = Splines(blocks, self._number, kernel.rows, grids)
        if few and acted._stencil_entries > self.grid.size**2:
            return None
        what = f"the precision of {self.grid.size:,} splines, {wider + 1} of each column in a row,"
        check_size("widths or variances of functionals", what, _COPIES * acted._stencil_entries)
        return acted

    def explained_diagonal(self, X: tf.Tensor) -> tf.Tensor | None:
        """The diagonal from the entries of Kuu's inverse within its stencil."""
        if self._others:
            return None
        inverse = self.Kuu()[0].inverse()[None]
        return self.by_kind(X, lambda grid, at: grid.quadratic(inverse, *grid(at)))[:, 0]

    def by_kind(
        self, X: tf.Tensor, function: Callable[[SplineGrid, tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        """The values of a function of splines at rows, after a check that they are in the box.

        :param function: Maps the splines of a functional, and the inputs of its rows, to values
            ``[m, ...]``.
        """
        grids, rows = self.grids, self._rows
        if rows is None:
            return function(self.grid, self.grid.in_box(X))
        return rows.by_kind(X, lambda k, at: function(grids[k], grids[k].in_box(at.inputs)))

    def sums(self, features: Any) -> SplineSums:
        return SplineSums(features, self)

    def in_sum(self, blocks: Sequence[Block], number: int) -> FeatureStructure:
        from .chain.blocks import space_time  # it imports this module

        return space_time(blocks) or Splines(blocks, number)

    def in_all_products(self, pairs: Sequence[Block]) -> FeatureStructure | None:
        """Splines of one column, time, times all features of the other factors."""
        from .chain.blocks import of_product  # it imports this module

        return of_product(pairs) if len(self.grid.shape) == 1 else None

    @property
    def rows_at_once(self) -> int:
        """The number of rows whose variances are computed at a time, from entries of stencils."""
        return max(_ENTRIES // self._cell_entries**2, 1)

    @property
    def rows_of_a_batch(self) -> int:
        """The least number of rows that are summed at a time: a stencil has a cost of its own."""
        return max(1, min(2**17, 4 * _ENTRIES // max(grid.row_entries for grid in self.grids)))

    @property
    def _cell_entries(self) -> int:
        """The largest number of splines that may be nonzero at a row."""
        return max(int(np.prod(grid.window)) for grid in self.grids)

    def needed(self) -> tuple[int, ...]:
        """The number of splines in each column that the kernel needs."""
        splines, kernel = self._family()
        numbers: tuple[int, ...] = splines.enough(kernel)
        return numbers

    def warn_of_spacing(self, incomplete: BoolArray, least: Sequence[int] = ()) -> None:
        """Warn if splines do not explain much of the prior, or are so narrow that rounding matters.

        :param incomplete: Whether each feature's block leaves out a part of its kernel.
        :param least: The numbers of splines that other kernels need.
        """
        splines, kernel = self._family()
        left, is_incomplete = splines.unexplained_share(kernel), bool(incomplete[self.order[0]])
        has_rounding = splines.rounding(kernel) > _ROUNDING
        if left > _MUCH and not has_rounding:
            share = _MUCH / 2
            warn(
                f"inducing_variable: the splines are too wide for the kernel's lengthscales, and "
                f"leave {left:.0%} of the prior variance; make them and the model again with about "
                f"num={_numbers(splines.enough(kernel, share))}, which leave {share:.0%}, or with "
                "more if the noise is small."
            )
        elif has_rounding or (left < _LITTLE and is_incomplete):
            enough, remedies = splines.enough(kernel, _FEW), []
            if enough != splines.num and all(map(ge, enough, least)):
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
        number = len(self.order) - self.grid.size
        return features_of_blocks(self._others, X, number, in_domain=in_domain)

    def dense(self, X: tf.Tensor) -> tf.Tensor:
        """All features of few rows, splines first, ``[M + B, n]``."""
        splines = self.by_kind(X, lambda grid, inputs: tf.transpose(grid.dense(inputs)))
        return tf.transpose(tf.concat([splines, self.others(X)], axis=1))

    def values(self, weights: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        """The features of rows, splines first, times weights ``[S, M + B, L]``: ``[S, n, L]``."""
        size = self.grid.size

        def of_splines(grid: SplineGrid, inputs: tf.Tensor) -> tf.Tensor:
            numbers, values = grid(inputs)
            return tf.einsum("nq,snql->nsl", values, tf.gather(weights[:, :size], numbers, axis=1))

        sums = tf.transpose(self.by_kind(X, of_splines), [1, 0, 2])
        return sums + tf.einsum("nb,sbl->snl", self.others(X), weights[:, size:])

    def entries_per_row(self, weights: tf.Tensor) -> int:
        """The count of numbers that :meth:`values` has in memory for each row."""
        samples, _, latents = map(int, weights.shape)
        return samples * latents * (self._cell_entries + len(self.order) - self.grid.size)

    def _sparse(self, X: tf.Tensor) -> list[tuple[SplineGrid, Any, IntArray, Array]]:
        """The splines of each functional; its rows by their places in X; and the numbers and values
        of the splines that may be nonzero at the rows."""
        if self._rows is None:
            return [(self.grid, slice(None), *(part.numpy() for part in self.grid(X)))]
        places, _ = self._rows.split(X)
        found = []
        for grid, rows in zip(self.grids, self._rows.kinds(X.numpy()), strict=True):
            numbers, values = (part.numpy() for part in grid(tf.gather(places.inputs, rows)))
            found.append((grid, rows, numbers, values))
        return found

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
        border = np.concatenate([self.others(X, in_domain=True), columns], axis=1)
        kinds = self._sparse(X)
        if self._rows is not None:  # the rows of a functional together
            order = np.concatenate([rows for _, rows, *_ in kinds])
            border, weights, targets = (part[order] for part in (border, weights, targets))
        stencils, start, parts = (
            np.zeros([weights.shape[1], *self.grid.dissection.stencil_shape]),
            0,
            [],
        )
        for grid, _, numbers, values in kinds:
            ends = values.shape[1] * np.arange(len(values) + 1)
            shape = len(values), grid.size
            parts.append(scipy.sparse.csr_matrix((values.ravel(), numbers.ravel(), ends), shape))
            grid.add_gram(
                stencils, numbers, values, weights[start : (start := start + len(values))]
            )
        splines = parts[0] if len(parts) == 1 else scipy.sparse.vstack(parts, "csr")
        packed = []
        for stencil, w in zip(stencils, weights.T, strict=True):
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
        splines = Kuu_operator(*self._splines).widened(self.grid.reach)
        others = [Kuu_operator(*block, jitter=jitter) for block in self._others]
        if not others:
            return splines, Full(tf.zeros([0, 0], tf.float64))
        return splines, block_diagonal([part.cast(tf.float64) for part in others])


def _numbers(num: tuple[int, ...]) -> str:
    """The numbers of splines as text, in the form of the argument ``num``."""
    return str(num[0] if len(num) == 1 else list(num))
