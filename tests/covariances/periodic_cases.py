"""Kernels of a box and its features, for the tests of their covariances."""

from __future__ import annotations

import itertools

import numpy as np
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential

from interdomain.inducing_variables import PeriodicFourierFeatures
from interdomain.kernels import Periodized
from tests.kernels.periodic.references import LOWER, PERIODS, UPPER


def box(num_columns: int, kind: type = Matern32, **options: object) -> Periodized:
    lengthscales = np.array([0.3, 0.5, 0.2, 0.4])[:num_columns]
    base = kind(variance=1.3, lengthscales=lengthscales)
    return Periodized(base, LOWER[:num_columns], UPPER[:num_columns], **options)


def product() -> Periodized:
    base = Matern12(variance=1.3, lengthscales=0.3, active_dims=[1]) * Matern52(
        lengthscales=0.6, active_dims=[0]
    )
    return Periodized(base, LOWER[:2], UPPER[:2])


def total() -> Periodized:
    base = Matern32(variance=0.7, lengthscales=[0.2, 0.4]) + SquaredExponential(lengthscales=0.5)
    return Periodized(base, LOWER[:2], UPPER[:2])


KERNELS = {
    "one column": lambda: box(1, Matern12),
    "two columns": lambda: box(2),
    "three columns": lambda: box(3, Matern52),
    "squared exponential": lambda: box(2, SquaredExponential),
    "product": product,
    "sum": total,
}


def features(kernel: Periodized, count: int = 30) -> PeriodicFourierFeatures:
    return PeriodicFourierFeatures.for_kernel(kernel, count)


def inputs(num_columns: int, count: int = 9, seed: int = 0) -> np.ndarray:
    """In the box, at its corners, and outside."""
    rng = np.random.default_rng(seed)
    corners = np.array([LOWER, UPPER])[:, :num_columns]
    turns = rng.uniform(-0.7, 1.7, [count, num_columns])
    return np.concatenate([corners, corners[0] + turns * PERIODS[:num_columns]])


def grid(num_columns: int, counts: list[int]) -> np.ndarray:
    """Points of the rectangle rule, which is exact for waves of fewer periods than half of them."""
    axes = [
        LOWER[i] + PERIODS[i] * (np.arange(count) + 0.3) / count for i, count in enumerate(counts)
    ]
    return np.array(list(itertools.product(*axes))).reshape(-1, num_columns)
