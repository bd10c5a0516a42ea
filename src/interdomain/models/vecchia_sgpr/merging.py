"""Merging of rows that share a place: they become their mean, with the noise of a mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..._arguments import Array, IntArray, number, refusal

MERGE = ("off", "exact", "auto")
"""Rules for merging: no rows, rows at one place, and nearby rows as well."""

SHARE = 0.1
"""The largest variance of f within a merged row, as a share of the variance of its noise."""

_LEVELS = 12
"""The number of cell sizes that are tried to group nearby rows; each is half of the previous."""

DISTANCES = 10.0 ** np.linspace(-8, 1, 200)
"""Distances in lengthscales at which the variation of f is computed."""


def checked_merge(merge: Any) -> str | float:
    """:raises ValueError: If ``merge`` is neither in :data:`MERGE` nor a radius."""
    if isinstance(merge, str):
        if merge not in MERGE:
            rule = "be 'off', 'exact', 'auto' or a radius in lengthscales"
            raise refusal("merge", rule, repr(merge), "pass one of these, such as 'exact'")
        return merge
    return number("merge", merge, at_least=0)


class Within(NamedTuple):
    """The part of the evidence that merged rows lack: the density of the rows given their means.

    A group of n rows at one place has noise variances ``s / w_i``. Its density is that of its mean,
    with noise ``s / W``, ``W = sum w_i``, times that of the rows given the mean. This factor
    depends on s alone: its log is ``-1/2 [P ((n - 1) log 2 pi s + log W - sum log w_i) + SS / s]``.

    :ivar rows: The number of rows minus the number of merged rows.
    :ivar log_weights: The sum of ``log W - sum log w_i``.
    :ivar squares: The weighted sum of squares of Y around the means, over all columns.
    """

    rows: float = 0.0
    log_weights: float = 0.0
    squares: float = 0.0

    def log_density(self, noise_variance: tf.Tensor, num_outputs: int) -> tf.Tensor:
        """The log density of the rows given the merged rows, ``[]``."""
        log_normaliser = self.rows * tf.math.log(2 * np.pi * noise_variance) + self.log_weights
        return -(num_outputs * log_normaliser + self.squares / noise_variance) / 2


@dataclass(frozen=True)
class MergedRows:
    """Rows in their order, with each group merged.

    :ivar X: The places ``[G, D]``: the common place of rows at one place, the mean of nearby rows.
    :ivar Y: The weighted means ``[G, P]``.
    :ivar weights: The sums of noise weights, ``[G]``, in float64.
    :ivar groups: The number of the merged row that each row belongs to, ``[N]``.
    :ivar within: The density of the rows given the merged rows.
    """

    X: Array
    Y: Array
    weights: Array
    groups: IntArray
    within: Within


def merged(X: Array, Y: Array, weights: Array | None, groups: IntArray | None) -> MergedRows:
    """Merge the rows of each group.

    :param X: The places ``[N, D]``. Places of one group are close to each other, and its merged row
        is at their weighted mean. Degrees of longitude are at most 180 apart.
    :param weights: Noise weights ``[N]``; None for ones.
    :param groups: See :attr:`MergedRows.groups`, numbered in the order of first rows; None if each
        row is a group.
    """
    one_each: Array = np.ones(len(X)) if weights is None else weights
    if groups is None or groups.max() + 1 == len(X):
        return MergedRows(X, Y, one_each, np.arange(len(X)), Within())
    size, first = int(groups.max()) + 1, np.unique(groups, return_index=True)[1]
    sums: Array = np.asarray(np.bincount(groups, one_each, size), np.float64)

    def mean(differences: Array) -> Array:
        columns = [np.bincount(groups, one_each * c, size) / sums for c in differences.T]
        return np.stack(columns, axis=1)

    # Differences from the first row: rows at one place keep this place to the last bit.
    places = X[first] + mean(np.asarray(X - X[first][groups], np.float64))
    Y_first = np.asarray(Y[first], np.float64)
    differences = Y - Y_first[groups]
    means = mean(differences)
    squares = np.sum(one_each[:, None] * np.square(differences - means[groups]))
    log_weights = np.sum(np.log(sums)) - np.sum(np.log(one_each))
    within = Within(float(len(X) - size), float(log_weights), float(squares))
    targets = (Y_first + means).astype(Y.dtype)
    return MergedRows(places.astype(X.dtype), targets, sums, groups, within)


def at_one_place(X: Array) -> IntArray | None:
    """The number of the place of each row, ``[N]``, in the order of their first rows; None if no
    place has two rows."""
    return _numbered(_keys(np.ascontiguousarray(X)))


def nearby(
    points: Array,
    others: IntArray,
    weights: Array,
    noise_variance: float,
    variations: Array,
) -> IntArray | None:
    """Group nearby rows if f varies by less than a tenth of the noise of the merged row.

    Cells of a grid become smaller, by a factor of two each time. The rows of a cell become a group
    as soon as the variance of ``f(x) - f(mean)`` is small enough for all of its rows.

    :param points: Coordinates in lengthscales ``[N, d]``.
    :param others: A number for each set of values of the columns that the local kernel does not
        use, ``[N]``. All rows of a group have the same number.
    :param weights: Noise weights ``[N]``.
    :param variations: The variance of ``f(x) - f(x')`` at the :data:`DISTANCES`.
    :return: The number of the group of each row, as in :func:`at_one_place`.
    """
    groups, number, remaining = np.arange(len(points)), len(points), np.arange(len(points))
    most = SHARE * noise_variance
    reach = DISTANCES[variations <= most / (2 * np.min(weights))]
    size = 2 * reach[-1] if len(reach) else 0.0
    for _ in range(_LEVELS if size else 0):
        cells = np.floor(points[remaining] / size + 0.5).astype(np.int64)
        cell = _numbered(_keys(np.concatenate([cells, others[remaining, None]], axis=1)))
        if cell is None:
            break
        count, sums = np.bincount(cell), np.bincount(cell, weights[remaining])
        means = [np.bincount(cell, column) / count for column in points[remaining].T]
        radius = np.zeros(len(count))
        differences = points[remaining] - np.stack(means, axis=1)[cell]
        np.maximum.at(radius, cell, np.linalg.norm(differences, axis=1))
        fits = np.interp(radius, DISTANCES, variations) * sums <= most
        chosen = (fits & (count > 1))[cell]
        groups[remaining[chosen]] = number + cell[chosen]
        number += len(count)
        shared = ~chosen & (count[cell] > 1)  # a row alone in a cell stays alone in smaller cells
        remaining, size = remaining[shared], size / 2
        if not len(remaining):
            break
    return _numbered(groups)


def _keys(rows: Array) -> IntArray:
    """A number for each row, equal for equal rows only. Columns are added one after the other."""
    keys = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values, numbers = np.unique(column, return_inverse=True)
        pairs = keys * len(values) + np.reshape(numbers, -1)
        distinct, keys = np.unique(pairs, return_inverse=True)
        keys = np.reshape(keys, -1)
        if len(distinct) == len(rows):
            break
    return keys


def _numbered(keys: IntArray) -> IntArray | None:
    """The numbers of equal keys, in the order of first appearance; None if all keys differ."""
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(unique) == len(keys):
        return None
    rank = np.empty(len(unique), int)
    rank[np.argsort(first)] = np.arange(len(unique))
    groups: IntArray = rank[np.reshape(inverse, -1)]
    return groups
