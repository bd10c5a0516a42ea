"""The frequencies of a box at which a kernel has its greatest spectral density."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._arguments import check_num_inducing
from ...sphere._typing import Array, IntArray
from ._waves import num_functions

_DIGITS = 12
"""Densities that agree to so many digits are equal: the order does not depend on rounding."""

_FIRST_SIZE = 8
_FIRST_CANDIDATES = 2**18
_MAX_ENTRIES = 2**26
"""Of all candidates' frequencies together."""


def largest_frequencies(
    density: Callable[[IntArray], Array],
    num_columns: int,
    num_features: int | None,
    tolerance: float | None,
    *,
    allow_large: bool = False,
) -> IntArray:
    """In decreasing order of density; of equal ones, the lower frequencies first.

    :param density: Of frequencies ``[J, D]``, the share of the variance that each of their features
        carries, ``[J]``; it does not grow along any column.
    :param num_columns: D.
    :param num_features: How many features the frequencies may have together.
    :param tolerance: If that is None: the share of the variance that they may leave out.
    :raises ValueError: If so many are needed that it would be too large.
    """
    first = max(2, min(_FIRST_SIZE, int(_FIRST_CANDIDATES ** (1 / num_columns))))
    sizes = np.full(num_columns, first)
    while True:
        _check_candidates(sizes, num_features, allow_large)
        grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1)
        candidates, densities = in_order(grid.reshape(-1, num_columns), density)
        count = how_many(candidates, densities, num_features, tolerance)
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
    columns = [frequencies[:, column] for column in reversed(range(frequencies.shape[1]))]
    order = np.lexsort([*columns, np.sum(frequencies, axis=1), -logarithms])
    return frequencies[order], densities[order]


def how_many(
    frequencies: IntArray,
    densities: Array,
    num_features: int | None,
    tolerance: float | None,
) -> int | None:
    """How many of them to take, from the first on; None if all are not enough."""
    features = num_functions(frequencies)
    if num_features is not None:
        within = np.cumsum(features) <= num_features
        return None if np.all(within) else int(np.argmin(within))
    assert tolerance is not None
    enough = np.cumsum(features * densities) >= 1 - tolerance
    return int(np.argmax(enough)) + 1 if np.any(enough) else None


def _check_candidates(sizes: IntArray, num_features: int | None, allow_large: bool) -> None:
    """:raises ValueError: If there are too many to choose from."""
    count = float(np.prod(sizes.astype(float)))
    if num_features is None:
        features = int(min(count, 2.0**62))
        check_num_inducing("tolerance", features, "frequencies", allow_large=allow_large)
    elif count * len(sizes) > max(_MAX_ENTRIES, 64 * len(sizes) * num_features):
        raise ValueError(
            f"num_features, or num_inducing: {num_features} features would be chosen from those "
            f"with up to {sizes.tolist()} periods in the columns, too many to compare; leave out "
            "columns, those with very long lengthscales first, or pass fewer features."
        )
