"""Orthonormal sines and cosines of a box, and their products over its columns.

A function of one column has a number: 0 is the constant, ``2 j - 1`` the cosine and ``2 j`` the
sine of j periods. A feature is a vector of these numbers, one for each column.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from ..._arguments import Array, IntArray


def functions_of(frequencies: IntArray) -> IntArray:
    """The features ``[M, D]`` of frequencies ``[J, D]``, sorted. A frequency has one feature for
    each choice of sine or cosine in the columns in which the frequency is nonzero."""
    rows: list[tuple[int, ...]] = []
    for frequency in frequencies.tolist():
        rows += itertools.product(*[(0,) if j == 0 else (2 * j - 1, 2 * j) for j in frequency])
    return np.array(sorted(rows), np.int64).reshape(len(rows), frequencies.shape[1])


def num_functions(frequencies: IntArray) -> IntArray:
    """The number of features of each frequency, ``[J]``."""
    return np.asarray(2 ** np.count_nonzero(frequencies, axis=1))


def frequencies_of(functions: IntArray) -> IntArray:
    """The frequency of each feature, ``[M, D]``."""
    return (functions + 1) // 2


_DIGITS = 12
"""Densities are equal if this many digits agree, so that the order is independent of rounding."""

_FIRST_SIZE = 8
_FIRST_CANDIDATES = 2**18
_MAX_ENTRIES = 2**26
"""The largest number of entries of all candidate frequencies together."""


def largest_frequencies(
    density: Callable[[IntArray], Array], num_columns: int, num_features: int
) -> IntArray:
    """The frequencies of largest density, in decreasing order (low frequencies first if equal).

    :param density: A function of frequencies ``[J, D]`` that returns the share of the variance in
        each of their features, ``[J]``. It must not increase along any column.
    :param num_columns: The number D of columns.
    :param num_features: The largest number of features of all frequencies together.
    :raises ValueError: If too many candidates would have to be compared.
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
        # The density outside the grid is at most the density on its outer faces.
        on_face = candidates == sizes - 1
        if count is not None and not np.any(on_face[:count]):
            return candidates[:count]
        reached = np.any(on_face[:count], axis=0)
        if count is None:
            best = np.array([np.max(densities[face]) for face in on_face.T])
            reached = best >= 1e-3 * np.max(best)
        sizes = np.where(reached, 2 * sizes, sizes)


def in_order(frequencies: IntArray, density: Callable[[IntArray], Array]) -> tuple[IntArray, Array]:
    """The frequencies and their densities, in decreasing order of density."""
    densities = np.asarray(density(frequencies), float)
    logarithms = np.round(np.log(np.maximum(densities, np.finfo(float).tiny)), _DIGITS)
    order = np.lexsort([*frequencies.T[::-1], np.sum(frequencies, axis=1), -logarithms])
    return frequencies[order], densities[order]
