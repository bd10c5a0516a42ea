"""Features of which few are not zero in a row: splines on a grid, alone or beside dense features.

Nothing of size M^2 is made of M splines. In weights w, ``f = phi^T w``, the prior has the precision
Kuu and the posterior ``P = Kuu + G / s``, ``G = Kuf Kfu``: sparse matrices, which dense features of
other blocks border (:mod:`interdomain.linalg.arrow`). The collapsed bound is that of
:mod:`interdomain.sums.bound`, with ``det B = det P / det Kuu`` and ``c`` such that ``|c|^2 =
|P^{-1/2} Kuf (Y - m) / s|^2``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array, BoolArray, warn
from .._tracing import numpy_function
from ..core.decomposed import flat_blocks
from ..core.family import Block
from ..core.pairs import Kuf_in_domain, Kuu_operator, as_family, spline_grid
from ..linalg import StructuredOperator
from ..linalg.arrow import Arrow, arrow_terms
from ..linalg.banded import KroneckerBanded
from ..linalg.block_diagonal import block_diagonal
from ..linalg.full import Full

MOST_DENSE = 4_096
"""Splines of which a dense q is made."""

_MUCH, _LITTLE = 0.1, 1e-4
"""Shares of the prior variance that splines leave."""

_FEW = 0.01
"""The share that splines leave which are recommended in place of narrower ones."""

_ENTRIES = 2**23
"""Numbers that are gathered at a time."""

_ROUNDING = 1e-6
"""Relative errors of predictions."""


class CompactFeatures:
    """The splines of a model, and the dense features of its other blocks.

    Sums over rows of products of features are an :class:`.Arrow` in one vector, so that they add
    up, are saved, and serve as the sites of a model as dense sums do.

    :ivar grid: The splines.
    :ivar order: The places of the splines among all features, and those of the others, ``[M + B]``.
    """

    def __init__(self, blocks: Sequence[Block], number: int) -> None:
        self._splines = blocks[number]
        self._others = [*blocks[:number], *blocks[number + 1 :]]
        grid = spline_grid(*self._splines)
        assert grid is not None
        self.grid = grid
        start = sum(int(block.num_inducing) for block, _ in blocks[:number])
        end = sum(int(block.num_inducing) for block, _ in blocks)
        within = start + np.arange(grid.size)
        self.order = np.concatenate([within, np.delete(np.arange(end), within)])

    @property
    def rows_at_once(self) -> int:
        """Rows of which variances are computed: entries of the splines of a cell are gathered."""
        of_row = int((self.grid.degree + 1) ** (2 * len(self.grid.shape)))
        return max(_ENTRIES // of_row, 1)

    def require_fixed(self, trainable: Mapping[str, Any]) -> None:
        """:raises ValueError: If features depend on something that is trainable."""
        if trainable:
            raise ValueError(
                f"inducing_variable: found splines beside features that depend on "
                f"{', '.join(trainable)}, trainable, and sums of splines have no gradients; freeze "
                "these with gpflow.set_trainable(parameter, False)."
            )

    def warn_of_spacing(self, incomplete: BoolArray) -> None:
        """Warn if the splines leave much of the prior, or so little that it cannot be charged.

        :param incomplete: Which features have a kernel that does not end with them.
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

    def sums(
        self, X: tf.Tensor, weights: Array, columns: Array, targets: Array
    ) -> tuple[Array, Array]:
        """Sums over rows in the domains, of features and further columns.

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
        of_features, of_columns = np.split(border.T @ targets, [len(self.order) - self.grid.size])
        products = np.empty([len(self.order), targets.shape[1]])
        products[self.order] = np.concatenate([splines.T @ targets, of_features])
        return np.stack(packed), np.concatenate([products, of_columns])

    def collapsed(
        self, gram: tf.Tensor, columns: tf.Tensor, num_columns: int = 0
    ) -> CompactCollapsed:
        """What bound and q are made of.

        :param gram: A vector of :meth:`sums`.
        :param columns: ``Kuf (Y - m)``, in the order of the features.
        :param num_columns: The number of columns in the border that are no features.
        """
        arrow, size = self.unpacked(gram, num_columns), len(self.order) - self.grid.size
        arrow = Arrow(arrow.stencil, arrow.border[:, :size], arrow.corner[:size, :size])
        return CompactCollapsed(self, *self.Kuu(), arrow, tf.gather(columns, self.order))

    def last_columns(self, gram: tf.Tensor, num_columns: int) -> tuple[tf.Tensor, tf.Tensor]:
        """The products of the last columns of the border with the features, in their order, ``[M +
        B, H]``, and with each other, ``[H, H]``."""
        arrow, size = self.unpacked(gram, num_columns), len(self.order) - self.grid.size
        with_features = tf.concat([arrow.border[:, size:], arrow.corner[:size, size:]], axis=0)
        return tf.gather(with_features, np.argsort(self.order)), arrow.corner[size:, size:]

    def size_of_sums(self, num_columns: int) -> int:
        """The length of the vectors of :meth:`sums`, for a border of so many columns more."""
        border = len(self.order) - self.grid.size + num_columns
        stencil = int(np.prod(self.grid.dissection.stencil_shape))
        return stencil + self.grid.size * border + border**2

    def unpacked(self, sums: tf.Tensor, num_columns: int = 0) -> Arrow:
        """The arrow in a vector of :meth:`sums`."""
        border, size = len(self.order) - self.grid.size + num_columns, self.grid.size
        shapes = self.grid.dissection.stencil_shape, (size, border), (border, border)
        parts = tf.split(sums, [int(np.prod(shape)) for shape in shapes])
        return Arrow(*(tf.reshape(part, shape) for part, shape in zip(parts, shapes, strict=True)))

    def packed_Kuu(self, num_columns: int) -> Array:
        """Kuu as a vector of :meth:`sums`, with zeros for columns that are no features."""
        splines, others = self.Kuu()
        corner = np.pad(others.to_dense(), (0, num_columns))
        return Arrow.without_border(splines.stencil().numpy(), corner).packed()

    def Kuu(self) -> tuple[KroneckerBanded, StructuredOperator]:
        """That of the splines and that of the others, in float64."""
        jitter = gpflow.config.default_jitter()
        splines = Kuu_operator(*self._splines)
        others = [Kuu_operator(*block, jitter=jitter) for block in self._others]
        if not others:
            return splines, Full(tf.zeros([0, 0], tf.float64))
        return splines, block_diagonal([part.cast(tf.float64) for part in others])


def _numbers(num: tuple[int, ...]) -> str:
    """Numbers of splines, as users pass them."""
    return str(num[0] if len(num) == 1 else list(num))


def compact_features(
    inducing_variable: InducingVariables, kernel: Kernel
) -> CompactFeatures | None:
    """The splines of a model beside its other features; of several blocks of splines the largest
    is sparse. None if there are no splines."""
    blocks = flat_blocks(inducing_variable, kernel)
    grids = [spline_grid(*block) for block in blocks]
    sizes = [0 if grid is None else grid.size for grid in grids]
    return CompactFeatures(blocks, int(np.argmax(sizes))) if max(sizes) else None


class CompactCollapsed(NamedTuple):
    """What bound and q are made of, as :class:`interdomain.sums.bound.Collapsed`.

    :ivar features: The features.
    :ivar splines: Kuu of the splines.
    :ivar others: Kuu of the others.
    :ivar gram: G.
    :ivar columns: ``Kuf (Y - m)``, splines first, ``[M + B, P]``.
    """

    features: CompactFeatures
    splines: KroneckerBanded
    others: StructuredOperator
    gram: Arrow
    columns: tf.Tensor

    def terms(
        self, noise_variance: tf.Tensor, *, refuse: bool = True
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """``log det B`` and ``|c|^2``; see :func:`.arrow_terms`."""
        order = self.features.grid.dissection
        prior = [self.splines.stencil(), self.others.to_dense()]
        parts = prior, self.gram, self.columns, noise_variance
        log, fit = arrow_terms(order, *parts, refuse=refuse)
        of_splines = self.splines.log_determinant()
        if len(self.features.order) > order.size:
            of_splines += 2 * self.others.root().log_determinant()
        return log - of_splines, fit

    def explained_variance(self, incomplete: BoolArray) -> tf.Tensor:
        """``tr Kuu^{-1} G`` of the features whose kernel has something beyond them."""
        total, size = tf.zeros([], tf.float64), self.features.grid.size
        is_splines, of_others = np.split(incomplete[self.features.order], [size])
        if np.any(is_splines):
            total += tf.reduce_sum(self.splines.inverse() * self.gram.stencil)
        if np.any(of_others):
            root = self.others.root()
            half = tf.linalg.matrix_transpose(root.solve(self.gram.corner))
            variances = tf.linalg.diag_part(root.solve(half))
            total += tf.reduce_sum(tf.where(of_others, variances, 0.0))
        return total

    def dense(self) -> tuple[tf.Tensor, tf.Tensor]:
        """G and the columns as matrices, in the order of all features.

        :raises ValueError: If they are too many.
        """
        features, count = self.features, len(self.features.order)
        if count > MOST_DENSE:
            raise ValueError(
                f"inducing_variable: a dense q of {count:,} features is asked for, which has at "
                f"most {MOST_DENSE:,}; use predict_f, or make fewer splines."
            )

        def assembled(stencil: Array, border: Array, corner: Array) -> Array:
            of_splines = features.grid.dissection.dense(stencil)
            gram = np.empty([count, count])
            gram[np.ix_(features.order, features.order)] = np.block(
                [[of_splines, border], [border.T, corner]]
            )
            return gram

        gram = numpy_function(assembled, list(self.gram), tf.float64, stateful=False)
        columns = tf.gather(self.columns, np.argsort(features.order))
        return tf.ensure_shape(gram, [count, count]), columns
