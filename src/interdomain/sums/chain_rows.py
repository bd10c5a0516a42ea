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

from .._arguments import Array, IntArray
from ..linalg.chain import Chain

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
    :ivar group: The group of each row, ``[n]``; None for a single copy.
    """

    first: IntArray
    parts: list[tuple[Array, Array]]
    place: IntArray
    group: IntArray | None = None


def distinct(columns: Array) -> tuple[IntArray, IntArray] | None:
    """The first row of each distinct row of a matrix ``[n, D]``, ``[S]``, and for each row the
    number of the distinct row that is equal, ``[n]``; None if distinct rows are many."""
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
    splines, features = rows.parts[0]
    window, is_one = splines.shape[1], len(rows.parts) == 1
    if window * chain.width <= _FEW and is_one:
        _add_entries(chain, grams, rows, weights)
    elif is_one and chain.copies == 1 and _is_table(chain, len(features), splines):
        _add_by_place(chain, grams, rows, weights)
    else:
        _add_by_window(chain, grams, rows, weights)


def _is_table(chain: Chain, num_places: int, splines: Array) -> bool:
    """Whether a table of places takes less time than products of each row's features."""
    return num_places * chain.nodes * (chain.reach + 1) <= splines.size * splines.shape[1]


def _pairs(window: int) -> Iterator[tuple[int, int]]:
    """The pairs of a window's splines, each with one that is not after it."""
    return ((a, b) for a in range(window) for b in range(a + 1))


def _add_by_place(chain: Chain, grams: Sequence[Array], rows: RowFeatures, weights: Array) -> None:
    ((splines, features),) = rows.parts
    nodes, places, width = chain.nodes, len(features), chain.width
    keys = rows.first * places + rows.place
    products = (features[:, :, None] * features[:, None]).reshape(places, width**2)
    for gram, w in zip(grams, weights.T, strict=True):
        table = np.zeros([chain.reach + 1, nodes, places])
        for a, b in _pairs(splines.shape[1]):
            values = splines[:, a] * splines[:, b] * w
            sums = np.bincount(keys, values, nodes * places).reshape(nodes, places)
            table[a - b, a:] += sums[: nodes - a]
        for d, part in enumerate(table):
            gram[:, d, 0] += (part @ products).reshape(nodes, width, width)


def _add_entries(chain: Chain, grams: Sequence[Array], rows: RowFeatures, weights: Array) -> None:
    ((splines, by_place),) = rows.parts
    nodes, copies = chain.nodes, chain.copies
    keys = rows.first * copies + (0 if rows.group is None else rows.group)
    features = by_place[rows.place].T
    for gram, w in zip(grams, weights.T, strict=True):
        for a, b in _pairs(splines.shape[1]):
            weighted = splines[:, a] * splines[:, b] * w
            for j, k in np.ndindex(chain.width, chain.width):
                values = weighted * features[j] * features[k]
                sums = np.bincount(keys, values, nodes * copies).reshape(nodes, copies)
                gram[a:, a - b, :, j, k] += sums[: nodes - a]


def _add_by_window(chain: Chain, grams: Sequence[Array], rows: RowFeatures, weights: Array) -> None:
    window, width = rows.parts[0][0].shape[1], chain.width
    group = np.zeros_like(rows.first) if rows.group is None else rows.group
    order = np.lexsort((group, rows.first))
    most = max(_CHUNK // (window * width), 1)
    for start in range(0, len(order), most):
        chosen = order[start : start + most]
        features = np.zeros([len(chosen), window, width])
        for splines, by_place in rows.parts:
            features += splines[chosen][:, :, None] * by_place[rows.place[chosen]][:, None]
        flat, heads = features.reshape(len(chosen), -1), (rows.first[chosen], group[chosen])
        changes = np.any([np.diff(part) != 0 for part in heads], axis=0)
        ends = [0, *(np.flatnonzero(changes) + 1), len(chosen)]
        for one, end in zip(ends[:-1], ends[1:], strict=True):
            first, number = int(heads[0][one]), int(heads[1][one])
            some = flat[one:end]
            for gram, w in zip(grams, weights.T, strict=True):
                product = (some * w[chosen[one:end], None]).T @ some
                entries = product.reshape(window, width, window, width)
                for a, b in _pairs(window):
                    gram[first + a, a - b, number] += entries[a, :, b]


def products_with(chain: Chain, rows: RowFeatures, columns: Array) -> Array:
    """The sums ``sum_n phi_n c_n^T`` for columns ``[n, C]``, ``[N g m, C]``."""
    nodes, copies = chain.nodes, chain.copies
    group: Any = 0 if rows.group is None else rows.group
    sums = np.zeros([nodes * copies, chain.width, columns.shape[1]])
    for splines, features in rows.parts:
        numbers = (rows.first[:, None] + np.arange(splines.shape[1])) * copies
        numbers += group if np.ndim(group) == 0 else group[:, None]
        places = np.repeat(rows.place, splines.shape[1])
        shape = nodes * copies, len(features)
        for number, column in enumerate(columns.T):
            values = (splines * column[:, None]).ravel()
            table = scipy.sparse.coo_matrix((values, (numbers.ravel(), places)), shape).tocsr()
            sums[:, :, number] += table @ features
    return sums.reshape(chain.num_weights, -1)
