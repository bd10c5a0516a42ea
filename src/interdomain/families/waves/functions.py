"""The orthonormal sines and cosines of a box, and products of them over its columns.

A function of one column has a number: 0 is the constant, ``2 j - 1`` the cosine and ``2 j`` the
sine of j periods. A feature is a vector of such numbers, one for each column.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import reduce

import numpy as np
import tensorflow as tf

from ..._arguments import Array, IntArray
from ...linalg.periodic import table


def functions_of(frequencies: IntArray) -> IntArray:
    """The features of frequencies ``[J, D]``, ``[M, D]``: for each all products of sine and cosine
    in the columns where it is not zero. Ordered as :func:`products` computes them."""
    rows: list[tuple[int, ...]] = []
    for frequency in frequencies.tolist():
        rows += itertools.product(*[(0,) if j == 0 else (2 * j - 1, 2 * j) for j in frequency])
    return np.array(sorted(rows), np.int64).reshape(len(rows), frequencies.shape[1])


def num_functions(frequencies: IntArray) -> IntArray:
    """How many features each frequency has, ``[J]``."""
    return np.asarray(2 ** np.count_nonzero(frequencies, axis=1))


def frequencies_of(functions: IntArray) -> IntArray:
    """The frequency of each feature, ``[M, D]``."""
    return (functions + 1) // 2


def products(turns: tf.Tensor, functions: IntArray, factor: float = 1.0) -> tf.Tensor:
    """The features ``[M, N]``, times the root of the box's volume, for turns ``[N, D]`` and
    functions ``[M, D]``; a factor for all of them costs nothing here."""
    rows = []
    for column, numbers in enumerate(functions.T):
        orders = np.unique(frequencies_of(numbers[numbers > 0]))  # however high they are
        places = np.searchsorted(orders, frequencies_of(numbers))
        places = np.where(numbers > 0, 2 * places + 1 + (numbers % 2 == 0), 0)
        waves = table(turns[:, column], orders)
        rows.append(tf.gather(waves if column else factor * waves, places))
    return reduce(operator.mul, rows)


_DIGITS = 12
"""Densities that agree to so many digits are equal: the order does not depend on rounding."""

_FIRST_SIZE = 8
_FIRST_CANDIDATES = 2**18
_MAX_ENTRIES = 2**26
"""Of all candidates' frequencies together."""


def largest_frequencies(
    density: Callable[[IntArray], Array], num_columns: int, num_features: int
) -> IntArray:
    """In decreasing order of density; of equal ones, the lower frequencies first.

    :param density: Of frequencies ``[J, D]``, the share of the variance that each of their features
        carries, ``[J]``; it does not grow along any column.
    :param num_columns: D.
    :param num_features: How many features the frequencies may have together.
    :raises ValueError: If so many are needed that it would be too large.
    """
    first = max(2, min(_FIRST_SIZE, int(_FIRST_CANDIDATES ** (1 / num_columns))))
    sizes = np.full(num_columns, first)
    while True:
        total = float(np.prod(sizes.astype(float)))
        if total * num_columns > max(_MAX_ENTRIES, 64 * num_columns * num_features):
            raise ValueError(
                f"num_features, or num_inducing: {num_features} features would be chosen from "
                f"those with up to {sizes.tolist()} periods in the columns, too many to compare; "
                "leave out columns, those with very long lengthscales first, or pass fewer "
                "features."
            )
        grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1)
        candidates, densities = in_order(grid.reshape(-1, num_columns), density)
        within = np.cumsum(num_functions(candidates)) <= num_features
        count = None if np.all(within) else int(np.argmin(within))
        # What is beyond a face of the grid has less than what is on it.
        on_face = candidates == sizes - 1
        if count is not None and not np.any(on_face[:count]):
            return candidates[:count]
        reached = np.any(on_face[:count], axis=0)
        if count is None:
            best = np.array([np.max(densities[face]) for face in on_face.T])
            reached = best >= 1e-3 * np.max(best)
        sizes = np.where(reached, 2 * sizes, sizes)


def in_order(frequencies: IntArray, density: Callable[[IntArray], Array]) -> tuple[IntArray, Array]:
    """Frequencies and their densities, in decreasing order."""
    densities = np.asarray(density(frequencies), float)
    logarithms = np.round(np.log(np.maximum(densities, np.finfo(float).tiny)), _DIGITS)
    order = np.lexsort([*frequencies.T[::-1], np.sum(frequencies, axis=1), -logarithms])
    return frequencies[order], densities[order]
