"""Training and test rows, and normalisation by the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._lib.data import Array, Table


@dataclass(frozen=True)
class Split:
    """Training and test rows of one split; classes may be integers."""

    X_train: Array
    Y_train: NDArray[Any]
    X_test: Array
    Y_test: NDArray[Any]


@dataclass(frozen=True)
class NormalisedSplit(Split):
    """A split whose columns have zero mean and unit variance over its training rows.

    `Y_mean`, `Y_scale` [P] restore the original units: an error is multiplied by `Y_scale`, a
    squared error by its square, and log(`Y_scale`) is added to a negative log density.
    """

    Y_mean: Array
    Y_scale: Array


def seeded_rows(
    num_rows: int, seed: int, test_fraction: float = 0.1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers for training and testing, drawn with `seed`; a `test_fraction` is for testing."""
    if not 0.0 < test_fraction < 1.0:
        raise ValueError(f"test_fraction is {test_fraction}: pass a number between 0 and 1")
    order = np.random.default_rng(seed).permutation(num_rows)
    num_test = max(1, round(test_fraction * num_rows))
    return np.sort(order[num_test:]), np.sort(order[:num_test])


def take_split(table: Table, index: int) -> Split:
    """Split number `index`: a stored one if the table has splits, otherwise drawn 90/10."""
    if table.splits and not 0 <= index < len(table.splits):
        raise ValueError(
            f"split {index} of {table.name!r} does not exist: it has the splits 0 to "
            f"{len(table.splits) - 1}"
        )
    train, test = table.splits[index] if table.splits else seeded_rows(len(table.X), index)
    return Split(table.X[train], table.Y[train], table.X[test], table.Y[test])


def normalise(split: Split) -> NormalisedSplit:
    """Zero mean and unit variance by the training rows; constant columns become zero."""
    X_mean, X_scale = _moments(split.X_train)
    Y_mean, Y_scale = _moments(split.Y_train)
    return NormalisedSplit(
        (split.X_train - X_mean) / X_scale,
        (split.Y_train - Y_mean) / Y_scale,
        (split.X_test - X_mean) / X_scale,
        (split.Y_test - Y_mean) / Y_scale,
        Y_mean,
        Y_scale,
    )


def _moments(values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column; the deviation of a constant column is one."""
    mean, scale = values.mean(axis=0), values.std(axis=0)
    # A constant such as 0.1 has a mean that is off by a rounding error, and a deviation of about
    # 1e-17 in place of 0: a division by it would turn rounding errors into data.
    constant = scale <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return mean, np.where(constant, 1.0, scale)
