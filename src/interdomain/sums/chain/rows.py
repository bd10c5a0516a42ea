"""Sums over rows of products of splines of time and features of space.

A row has the features ``B_i(t) psi_j(x)``, of which p + 1 splines are nonzero. Rows that repeat
places, such as the rows of stations, are first summed by place: the sums of ``B_i B_k`` at each
place are a small table, and ``psi psi^T`` is computed once for each place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ..._arguments import Array, IntArray
from ...linalg.chain import Chain

_FEW = 16
"""The largest number of features of a row that are summed entry by entry."""

_CHUNK = 2**23
"""The count of numbers of features that are computed at a time."""


class RowFeatures(NamedTuple):
    """The features of n rows, at S places.

    :ivar first: The number of the first spline that may be nonzero at each row, ``[n]``.
    :ivar parts: The rows' features as a sum of products: splines ``[n, q]``, and features of space
        by place ``[S, m]``.
    :ivar place: The place of each row, ``[n]``.
    :ivar group: The group of each row, ``[n]``; zeros for a single copy.
    """

    first: IntArray
    parts: list[tuple[Array, Array]]
    place: IntArray
    group: IntArray

    def as_arrays(self) -> RowFeatures:
        """The features as arrays, from tensors."""
        some: Any = self
        parts = [(splines.numpy(), space.numpy()) for splines, space in some.parts]
        return RowFeatures(some.first.numpy(), parts, some.place.numpy(), some.group.numpy())


def distinct(columns: Array) -> tuple[IntArray, IntArray] | None:
    """The first of equal rows of a matrix ``[n, D]``, ``[S]``, and the number of each row's first,
    ``[n]``; None if distinct rows are many."""
    if not columns.shape[1]:
        return np.zeros(min(len(columns), 1), np.int64), np.zeros(len(columns), np.int64)
    bits = np.ascontiguousarray(columns + 0.0, np.float64).view(np.uint64)  # -0.0 as 0.0
    odd = np.random.default_rng(0).integers(2**62, size=bits.shape[1], dtype=np.uint64) * 2 + 1
    mixed = (bits ^ (bits >> np.uint64(29))) * odd
    keys = np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(32)), axis=1)
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    is_few = 2 * len(first) <= len(columns)
    if not is_few or not np.array_equal(columns[first][number], columns):
        return None
    return first, number


def add_products(chain: Chain, grams: Sequence[Array], rows: RowFeatures, weights: Array) -> None:
    """Add the sums ``sum_n w_n phi_n phi_n^T`` to blocks ``[N, p + 1, g, m, m]``, which are one
    array for each column of weights ``[n, L]``."""
    if not len(rows.first):
        return
    add = {"entries": _add_entries, "places": _add_by_place, "windows": _add_by_window}
    add[method_of(chain, rows)](chain, grams, rows, weights)


def method_of(chain: Chain, rows: RowFeatures) -> str:
    """The quickest method of sums: by "entries", by "places" or by "windows" of splines."""
    splines, features = rows.parts[0]
    if len(rows.parts) > 1:
        return "windows"
    if splines.shape[1] * chain.width <= _FEW:
        return "entries"
    # A table of places may take less time than products of each row's features.
    entries = len(features) * chain.nodes * (chain.reach + 1)
    is_table = entries <= splines.size * splines.shape[1]
    return "places" if chain.copies == 1 and is_table else "windows"


def pairs_of(window: int) -> Iterator[tuple[int, int]]:
    """The pairs of a window's splines, each with one that is not after it."""
    return ((a, b) for a in range(window) for b in range(a + 1))


def place_table(chain: Chain, rows: RowFeatures, weights: Array) -> Array:
    """The sums ``sum_n w_n B_i B_(i - d)`` over the rows of each place, ``[p + 1, N, S]``."""
    splines, features = rows.parts[0]
    nodes, places = chain.nodes, len(features)
    keys = rows.first * places + rows.place
    table = np.zeros([chain.reach + 1, nodes, places])
    for a, b in pairs_of(splines.shape[1]):
        values = splines[:, a] * splines[:, b] * weights
        sums = np.bincount(keys, values, nodes * places).reshape(nodes, places)
        table[a - b, a:] += sums[: nodes - a]
    return table


def _add_by_place(chain: Chain, grams: Sequence[Array], rows: RowFeatures, weights: Array) -> None:
    features, width = rows.parts[0][1], chain.width
    products = (features[:, :, None] * features[:, None]).reshape(-1, width**2)
    for gram, w in zip(grams, weights.T, strict=True):
        for d, part in enumerate(place_table(chain, rows, w)):
            gram[:, d, 0] += (part @ products).reshape(-1, width, width)


def _add_entries(chain: Chain, grams: Sequence[Array], rows: RowFeatures, weights: Array) -> None:
    ((splines, by_place),) = rows.parts
    nodes, copies = chain.nodes, chain.copies
    keys = rows.first * copies + rows.group
    features = by_place[rows.place].T
    for gram, w in zip(grams, weights.T, strict=True):
        for a, b in pairs_of(splines.shape[1]):
            weighted = splines[:, a] * splines[:, b] * w
            for j, k in np.ndindex(chain.width, chain.width):
                values = weighted * features[j] * features[k]
                sums = np.bincount(keys, values, nodes * copies).reshape(nodes, copies)
                gram[a:, a - b, :, j, k] += sums[: nodes - a]


def windows_of(chain: Chain, rows: RowFeatures) -> Iterator[tuple[int, int, IntArray, Array]]:
    """The rows of one group with one window of splines, together: the first spline, the group, the
    numbers of the rows, ``[k]``, and their features, ``[k, q m]``."""
    window, width = rows.parts[0][0].shape[1], chain.width
    order = np.lexsort((rows.group, rows.first))
    most = max(_CHUNK // (window * width), 1)
    for start in range(0, len(order), most):
        chosen = order[start : start + most]
        features = np.zeros([len(chosen), window, width])
        for splines, by_place in rows.parts:
            features += splines[chosen][:, :, None] * by_place[rows.place[chosen]][:, None]
        flat, heads = features.reshape(len(chosen), -1), (rows.first[chosen], rows.group[chosen])
        changes = np.any([np.diff(part) != 0 for part in heads], axis=0)
        ends = [0, *(np.flatnonzero(changes) + 1), len(chosen)]
        for one, end in zip(ends[:-1], ends[1:], strict=True):
            yield int(heads[0][one]), int(heads[1][one]), chosen[one:end], flat[one:end]


def _add_by_window(chain: Chain, grams: Sequence[Array], rows: RowFeatures, weights: Array) -> None:
    window, width = rows.parts[0][0].shape[1], chain.width
    for first, group, some, features in windows_of(chain, rows):
        for gram, w in zip(grams, weights.T, strict=True):
            product = (features * w[some, None]).T @ features
            entries = product.reshape(window, width, window, width)
            for a, b in pairs_of(window):
                gram[first + a, a - b, group] += entries[a, :, b]


def products_with(chain: Chain, rows: RowFeatures, columns: Array) -> Array:
    """The sums ``sum_n phi_n c_n^T`` for columns ``[n, C]``, ``[N g m, C]``."""
    sums = np.zeros([chain.nodes * chain.copies, chain.width, columns.shape[1]])
    for splines, features in rows.parts:
        for number, column in enumerate(columns.T):
            sums[:, :, number] += spline_table(chain, rows, splines, column) @ features
    return sums.reshape(chain.num_weights, -1)


def spline_table(chain: Chain, rows: RowFeatures, splines: Array, column: Array) -> Any:
    """The sums ``sum_n B_i c_n`` over the rows of each place, a sparse matrix ``[N g, S]``."""
    values = (splines * column[:, None]).ravel()
    places = np.repeat(rows.place, splines.shape[1])
    shape = chain.nodes * chain.copies, len(rows.parts[0][1])
    numbers = node_numbers(chain, rows, splines.shape[1]).ravel()
    return scipy.sparse.coo_matrix((values, (numbers, places)), shape).tocsr()


def node_numbers(chain: Chain, rows: RowFeatures, window: int) -> IntArray:
    """The number of each spline of the rows' windows, times g and plus the group, ``[n, q]``."""
    first = rows.first[:, None] + np.arange(window)
    numbers: IntArray = first * chain.copies + rows.group[:, None]
    return numbers
