"""Sparse matrices on a grid, factorised by nested dissection with dense blocks.

The entry of two nodes of the grid is zero if they are more than p steps apart in a column. The
matrix is a *stencil* ``[M_1, ..., M_D, 2p + 1, ..., 2p + 1]``: the entries of each node with the
nodes around it, and zeros for nodes outside of the grid. A separator, p nodes thick, divides a box
of the grid into two boxes without common entries, which are divided in turn. The smallest boxes are
eliminated first. An eliminated box leaves a dense matrix of the nodes next to it (George 1973; Duff
and Reid 1983). For M nodes in two columns this takes O(M^{3/2}) operations of LAPACK on dense
blocks; a banded factor takes O(M^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse
from scipy.linalg.blas import dgemm, dtrsm
from scipy.linalg.lapack import dpotrf, dpotri

from .._arguments import Array, IntArray
from .stencil_factors import BandedFactor, NotFactorised, StencilFactor

_LEAF = 96
"""The most nodes of a box that is not divided further, because its matrix is small."""


class _Front(NamedTuple):
    """One step of the elimination: a box of the grid whose inner boxes are eliminated already.

    :ivar pivots: The nodes to eliminate: the separator, or all nodes of an undivided box, ``[P]``.
    :ivar border: The nodes outside of the box that have entries with nodes in the box, ``[R]``.
    :ivar places: The places of the pivots' entries in the stencil, ``[E]``.
    :ivar entries: The places of these entries in the dense matrix of pivots and border, ``[E]``.
    :ivar within: For each of the two inner boxes, the places of its border among pivots and border.
    """

    pivots: IntArray
    border: IntArray
    places: IntArray
    entries: IntArray
    within: tuple[IntArray, ...]


def strides_of(shape: Sequence[int]) -> IntArray:
    """The distance between neighbours of each column in the flat order of a grid, ``[D]``."""
    return np.cumprod((1, *shape[:0:-1]))[::-1]


class Dissection:
    """The order in which the nodes of a grid are eliminated.

    :param shape: The numbers of nodes, ``(M_1, ..., M_D)``.
    :param reach: The half-width p of stencils.
    """

    def __init__(self, shape: tuple[int, ...], reach: int) -> None:
        self.shape, self.reach = shape, reach
        self.size = int(np.prod(shape))
        self.stencil_shape = (*shape, *[2 * reach + 1] * len(shape))
        self.fronts: list[_Front] = []
        self._place = np.zeros(self.size, np.int64)  # of nodes in the present dense matrix
        self._divide(np.zeros(len(shape), np.int64), np.array(shape))

    def __reduce__(self) -> Any:
        return dissection, (self.shape, self.reach)

    def _divide(self, start: IntArray, stop: IntArray) -> IntArray:
        """Add the fronts of a box, the inner ones first, and return its border."""
        lengths = stop - start
        axis, borders = int(np.argmax(lengths)), []
        pivots = self._nodes(start, stop)
        if len(pivots) > _LEAF and lengths[axis] > 2 * self.reach:
            middle = start[axis] + (lengths[axis] - self.reach) // 2
            ends, starts = stop.copy(), start.copy()
            ends[axis], starts[axis] = middle, middle + self.reach
            borders = [self._divide(start, ends), self._divide(starts, stop)]
            starts[axis], ends[axis] = middle, middle + self.reach
            pivots = self._nodes(starts, ends)
        around = self._nodes(
            np.maximum(start - self.reach, 0), np.minimum(stop + self.reach, self.shape)
        )
        border = np.setdiff1d(around, self._nodes(start, stop), assume_unique=True)
        everything = np.concatenate([pivots, border])
        self._place[around] = -1
        self._place[everything] = np.arange(len(everything))
        places, entries = self._entries(pivots, len(everything))
        within = tuple(self._place[nodes] for nodes in borders)
        self.fronts.append(_Front(pivots, border, places, entries, within))
        return border

    def _nodes(self, start: IntArray, stop: IntArray) -> IntArray:
        """The numbers of the nodes of a box."""
        axes = np.ix_(*(np.arange(a, b) for a, b in zip(start, stop, strict=True)))
        return np.asarray(np.ravel_multi_index(np.broadcast_arrays(*axes), self.shape)).ravel()

    def _entries(self, pivots: IntArray, size: int) -> tuple[IntArray, IntArray]:
        """The places of the pivots' entries in the stencil, and in a dense matrix of that
        ``size``."""
        others = np.stack(np.unravel_index(pivots, self.shape), axis=1)[:, None] + self.steps
        row, step = np.nonzero(np.all((others >= 0) & (others < self.shape), axis=2))
        place = self._place[np.ravel_multi_index(tuple(others[row, step].T), self.shape)]
        once = place >= row  # without eliminated nodes and repeated entries
        row, step, place = row[once], step[once], place[once]
        return pivots[row] * len(self.steps) + step, row * size + place

    @cached_property
    def steps(self) -> IntArray:
        """The steps from a node to its neighbours, in the order of the stencil, ``[W, D]``."""
        width = [2 * self.reach + 1] * len(self.shape)
        return np.indices(width).reshape(len(width), -1).T - self.reach

    @cached_property
    def places(self) -> IntArray:
        """The places of a stencil's entries that may be nonzero, one for each pair of nodes."""
        return np.concatenate([front.places for front in self.fronts])

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The two nodes of each entry in :attr:`places`."""
        node, step = np.divmod(self.places, len(self.steps))
        return node, node + (self.steps @ strides_of(self.shape))[step]

    @cached_property
    def mirrored(self) -> IntArray:
        """The places of the same entries with the two nodes exchanged."""
        step = self.places % len(self.steps)
        return self.pairs[1] * len(self.steps) + len(self.steps) - 1 - step

    def stencil(self, values: Array) -> Array:
        """The symmetric stencil of the values at :attr:`places`."""
        stencil = np.zeros(self.size * len(self.steps))
        stencil[self.places] = values
        stencil[self.mirrored] = values
        return stencil.reshape(self.stencil_shape)

    def sparse(self, stencil: Array) -> scipy.sparse.csr_matrix:
        """The sparse matrix ``[M, M]`` of a stencil."""
        width = len(self.steps)
        others = np.arange(self.size)[:, None] + self.steps @ strides_of(self.shape)
        others = np.clip(others, 0, self.size - 1)  # for zeros outside of the grid
        ends = width * np.arange(self.size + 1)
        numbers = np.ravel(stencil), others.ravel(), ends
        return scipy.sparse.csr_matrix(numbers, [self.size] * 2)

    def dense(self, stencil: Array) -> Array:
        """The dense matrix ``[M, M]`` of a stencil."""
        matrix: Array = self.sparse(stencil).toarray()
        return matrix

    def products(self, some: Array, others: Array) -> Array:
        """The stencil of ``(A B^T + B A^T) / 2`` for A and B ``[M, K]``."""
        rows, columns = self.pairs
        values = np.zeros(len(rows))
        for a, b in zip(some.T, others.T, strict=True):
            values += (a[rows] * b[columns] + b[rows] * a[columns]) / 2
        return self.stencil(values)

    def factorise(self, stencil: Array) -> StencilFactor:
        """The factor of a matrix. In one column it is LAPACK's banded factor, which is faster.

        :raises NotFactorised: If the matrix is not positive definite.
        """
        if len(self.shape) == 1:
            return BandedFactor(stencil)
        values, start, waiting = stencil.ravel()[self.places], 0, list[Array]()
        blocks = list[tuple[Array, Array]]()
        for front in self.fronts:
            count, size = len(front.pivots), len(front.pivots) + len(front.border)
            # The border of an undivided box has no entries yet.
            matrix = np.zeros([size if front.within else count, size])
            matrix.ravel()[front.entries] = values[start : (start := start + len(front.entries))]
            for places in reversed(front.within):
                left = waiting.pop()
                columns = np.zeros([len(left), size])  # one axis at a time is faster
                columns[:, places] = left
                matrix[places] += columns
            lower, failed = dpotrf(matrix[:count, :count].T, lower=1, clean=1)
            if failed:
                raise NotFactorised
            side = dtrsm(1.0, lower, matrix[:count, count:], lower=1)
            update = dgemm(-1.0, side, side, trans_a=1)
            waiting.append(matrix[count:, count:] + update if front.within else update)
            blocks.append((lower, side))
        return DissectedFactor(self, blocks)


_ORDERS: WeakValueDictionary[tuple[tuple[int, ...], int], Dissection] = WeakValueDictionary()


def dissection(shape: tuple[int, ...], reach: int) -> Dissection:
    """The order of elimination for a grid; an order that is in use elsewhere is shared."""
    order = _ORDERS.get((shape, reach))
    if order is None:
        order = _ORDERS[shape, reach] = Dissection(shape, reach)
    return order


class DissectedFactor(StencilFactor):
    """The factor of a matrix on a grid, with the nodes in the order of elimination.

    :param order: The order of elimination.
    :param blocks: For each front, the triangle of its pivots, and the triangle's inverse times the
        entries of pivots and border.
    """

    def __init__(self, order: Dissection, blocks: list[tuple[Array, Array]]) -> None:
        self._order, self._blocks, self.size = order, blocks, order.size

    def log_determinant(self) -> float:
        return sum(float(np.sum(np.log(np.diagonal(lower)))) for lower, _ in self._blocks)

    def solve(self, columns: Array, *, adjoint: bool = False) -> Array:
        """``L^{-1} columns``, or ``L^{-T} columns``, for columns ``[M, K]`` in the order of the
        grid. ``L^{-T}`` times white noise is a draw from a Gaussian with this precision matrix."""
        solved = np.array(columns, order="C")
        pairs = list(zip(self._order.fronts, self._blocks, strict=True))
        if adjoint:
            for front, (lower, side) in reversed(pairs):
                rest = solved[front.pivots] - side @ solved[front.border]
                solved[front.pivots] = dtrsm(1.0, lower, rest, lower=1, trans_a=1)
            return solved
        for front, (lower, side) in pairs:
            part = dtrsm(1.0, lower, solved[front.pivots], lower=1)
            solved[front.pivots] = part
            solved[front.border] -= side.T @ part
        return solved

    def inverse_band(self) -> Array:
        """The entries of the inverse, as a stencil, by Takahashi, Fagan and Chen 1973."""
        order, values = self._order, np.empty(len(self._order.places))
        end, waiting = len(values), [np.zeros([0, 0])]
        for front, (lower, side) in reversed(list(zip(order.fronts, self._blocks, strict=True))):
            corner = waiting.pop()
            solved = dtrsm(1.0, lower, side, lower=1, trans_a=1)
            across = dgemm(-1.0, solved, corner.T)
            own = np.tril(dpotri(lower, lower=1)[0])
            own += np.tril(own, -1).T - dgemm(1.0, across, solved, trans_b=1)
            matrix = np.concatenate([own, across], axis=1)
            start = end - len(front.entries)
            values[start:end], end = matrix.ravel()[front.entries], start
            if front.within:
                matrix = np.concatenate([matrix, np.concatenate([across.T, corner], axis=1)])
            waiting += [matrix[places][:, places] for places in front.within]
        return order.stencil(values)
