"""Weights of rows: the noise variance of row n is s / w_n, where s is the noise variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arguments import Array, sliceable


def with_weights(data: Any, noise_weights: Any) -> Any:
    """The data (X, Y) with the weights of their rows as a third part.

    :param noise_weights: ``[N]`` or ``[N, 1]``; None for data as they are.
    :raises ValueError: For data that are not a pair of arrays, and for wrong weights. Passes check
        weights in a file when they read them.
    """
    if noise_weights is None:
        return data
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        kind = type(data).__name__ + (f" of {len(data)}" if isinstance(data, (tuple, list)) else "")
        raise ValueError(
            f"noise_weights must come with arrays (X, Y), found a {kind} as data; leave it out, "
            "and pass batches (X, Y, w) in a Dataset or function. Statistics contain their weights."
        )
    noise_weights = sliceable("noise_weights", noise_weights, "one number a row")
    if type(noise_weights) is np.ndarray:
        check_weights(noise_weights)
    return (*data, noise_weights)


def check_number_of_weights(weights: Any, num_rows: int) -> None:
    """:raises ValueError: If there is not one weight a row."""
    if tuple(weights.shape) not in ((num_rows,), (num_rows, 1)):
        raise ValueError(
            f"noise_weights must be one number a row, of shape [{num_rows}] or [{num_rows}, 1], "
            f"found shape {tuple(weights.shape)}; pass the weight of each row of X."
        )


def check_weights(*weights: Array, first: int = 0) -> None:
    """:raises ValueError: If a weight is not positive and finite.

    :param weights: The weights of some rows, or nothing.
    :param first: The number of the first row.
    """
    for array in map(np.ravel, weights):
        wrong = np.flatnonzero(~((array > 0) & np.isfinite(array)))
        if len(wrong):
            raise ValueError(
                f"noise_weights must be positive and finite, found {array[wrong[0]]:g} for row "
                f"{first + wrong[0]} (counted from zero), and {len(wrong) - 1} more such weights; "
                "pass 1 / v for noise variances v, and leave out rows without information."
            )
