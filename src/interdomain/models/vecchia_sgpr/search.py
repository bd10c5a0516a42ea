"""The search of neighbours, on which a nearest-neighbour GP conditions each row."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import gpflow
import numpy as np
from scipy.spatial import cKDTree

from ..._arguments import Array, IntArray

_GROWTH = 1.5
"""The largest ratio of the rows in a tree to the rows before a row that is looked up."""

_ROWS_LOOKED_AT = 1_000

_SLACK = 8
"""The number of rows that are looked up in excess of the expected number."""


class Neighbours:
    """Rows in the order in which they are conditioned on each other, and their distances.

    Row i is conditioned on the nearest of the rows before it (Vecchia 1988), and a new row on the
    nearest of all rows. Distances are Euclidean distances of coordinates in lengthscales. The
    neighbours are exact: SciPy's tree finds them.

    :param coordinates: The coordinates of the rows, ``[N, d]``, in the order of conditioning. In a
        random order, the early rows, whose neighbours are far, are spread over all of space.
    :param lengthscales: The lengthscales, ``[]`` or ``[d]``.
    :raises ValueError: For coordinates whose distances are not finite.
    """

    def __init__(self, coordinates: Array, lengthscales: Any) -> None:
        self.lengthscales = lengthscales
        self.points = in_lengthscales(coordinates, self.lengthscales)
        self._neighbours: tuple[int, IntArray] | None = None

    @cached_property
    def _tree(self) -> cKDTree:
        return _tree_of(self.points)

    @property
    def nearby(self) -> IntArray:
        """The numbers of the rows ``[N]`` in an order in which near rows follow each other: a batch
        of consecutive rows then has few distinct neighbours."""
        order: IntArray = self._tree.indices
        return order

    def nearest(self, coordinates: Array, number: int) -> IntArray:
        """The rows that are nearest to points ``[n, d]``, nearest first, ``[n, number]``; all rows,
        if they are fewer."""
        number = min(number, len(self.points))
        points = in_lengthscales(coordinates, self.lengthscales)
        rows = self._tree.query(points, k=number, workers=-1)[1]
        nearest: IntArray = np.reshape(rows, [len(coordinates), number])
        return nearest

    def share_at_own_place(self, number: int) -> float:
        """The share of the nearest rows of a row that are at its own place, on a sample of rows."""
        some = self.points[:: -(-len(self.points) // _ROWS_LOOKED_AT)]
        nearest = self._tree.query(some, k=range(2, number + 2), workers=-1)[0]
        return float(np.mean(nearest == 0))

    def before_all(self, number: int) -> IntArray:
        """The result of :meth:`before` for all rows, computed once, in an order of near rows."""
        if self._neighbours is None or self._neighbours[0] != number:
            order = self.nearby
            dtype: Any = np.int32 if len(order) < 2**31 else np.int64  # a million rows: 80 MB
            nearest = np.empty([len(order), number], dtype)
            nearest[order] = self.before(order, number)
            self._neighbours = number, nearest
        return self._neighbours[1]

    def extended(self, coordinates: Array) -> Neighbours:
        """The search with further rows after the present rows. Neighbours of present rows stay."""
        added_points = in_lengthscales(coordinates, self.lengthscales)
        whole = Neighbours(np.concatenate([self.points, added_points]), 1.0)
        whole.lengthscales = self.lengthscales
        if self._neighbours is not None:
            number, neighbours = self._neighbours
            added = np.arange(len(self.points), len(whole.points))
            whole._neighbours = number, np.concatenate([neighbours, whole.before(added, number)])
        return whole

    def before(self, rows: IntArray, number: int) -> IntArray:
        """The nearest previous rows of each of the rows ``[n]``, unsorted, ``[n, number]``; -1
        stands for missing rows.

        Rows at similar positions in the order are looked up in one tree, which has all rows up to
        the last of them. Rows from the tree that come later than the row are skipped.
        """
        nearest = np.full([len(rows), number], -1)
        early = rows <= number
        columns = np.arange(number)
        nearest[early] = np.where(columns < rows[early, None], columns, -1)
        start = number + 1
        while number and start < len(self.points):
            stop = min(int(_GROWTH * start) + 1, len(self.points))
            within = np.flatnonzero((start <= rows) & (rows < stop))
            if len(within):
                # At least the share start / stop of the tree is before the row.
                count = int(number * stop / start) + _SLACK
                tree = self._tree if stop == len(self.points) else _tree_of(self.points[:stop])
                nearest[within] = self._before(tree, rows[within], number, count)
            start = stop
        return nearest

    def among_first(self, count: int, rows: IntArray, number: int) -> IntArray:
        """The nearest of the first ``count`` rows to each of the later ``rows`` ``[n]``,
        ``[n, number]``; -1 stands for missing rows."""
        nearest = np.full([len(rows), number], -1)
        number = min(number, count)
        found = _tree_of(self.points[:count]).query(self.points[rows], k=number, workers=-1)[1]
        nearest[:, :number] = np.reshape(found, [len(rows), number])
        return nearest

    def beyond_own(self, rows: IntArray, number: int) -> IntArray:
        """The nearest of all other rows to each of the rows ``[n]``, ``[n, number]``."""
        number = min(number, len(self.points) - 1)
        nearest = self._tree.query(self.points[rows], k=number + 1, workers=-1)[1]
        nearest = np.reshape(nearest, [len(rows), number + 1])
        others = nearest != rows[:, None]
        others[np.all(others, axis=1), -1] = False  # more rows at one place than are looked up
        kept: IntArray = nearest[others].reshape(len(rows), number)
        return kept

    def beyond(self, distances: Array, rows: IntArray, number: int) -> IntArray:
        """The nearest rows that are at least a given distance away from each of the rows ``[n]``,
        ``[n, number]``; -1 stands for missing rows.

        :param distances: The distances ``[n]``, in lengthscales.
        """
        nearest, size = np.full([len(rows), number], -1), min(number, len(self.points) - 1)
        for place, (row, least) in enumerate(zip(rows, distances, strict=True)):
            squares = np.sum(np.square(self.points - self.points[row]), axis=1)
            squares[squares < least**2] = np.inf
            squares[row] = np.inf
            some = np.argpartition(squares, size - 1)[:size]
            some = some[np.isfinite(squares[some])]
            nearest[place, : len(some)] = some
        return nearest

    def _before(self, tree: cKDTree, rows: IntArray, number: int, count: int) -> IntArray:
        nearest = np.empty([len(rows), number], int)
        left = np.arange(len(rows))
        while len(left):
            count = min(count, tree.n)
            candidates = tree.query(self.points[rows[left]], k=count, workers=-1)[1]
            is_before = candidates < rows[left, None]
            enough = np.sum(is_before, axis=1) >= number
            first = np.argsort(~is_before[enough], axis=1, kind="stable")[:, :number]
            nearest[left[enough]] = np.take_along_axis(candidates[enough], first, axis=1)
            left, count = left[~enough], 2 * count
        return nearest


def in_lengthscales(coordinates: Array, lengthscales: Any) -> Array:
    """The coordinates in units of lengthscales.

    :raises ValueError: If distances between them are not finite.
    """
    points: Array = np.ascontiguousarray(coordinates / lengthscales)
    most = np.sqrt(np.finfo(gpflow.default_float()).max) / 1e4
    if not np.all(np.abs(points) < most):  # true for NaN, too
        raise ValueError(
            f"X must be finite and below {most:.0e} lengthscales, so that distances are finite, "
            f"found {np.max(np.abs(points)):.3g} lengthscales; pass (X - X.mean(axis=0)) / "
            "X.std(axis=0), or a local_kernel with lengthscales to match."
        )
    return points


def _tree_of(points: Array) -> cKDTree:
    return cKDTree(points, balanced_tree=False, compact_nodes=False)
