"""Slopes of a smooth function of five columns, beside values."""

from __future__ import annotations

from typing import Any

import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks.functionals.rows import errors, fitted, predicted
from interdomain.functionals import Derivative, Value

COLUMNS, MAX_DEGREE = 5, 6
NOISE = 0.02
"""The standard deviation of the noise of values, in deviations of the function; slopes per unit of
a standardised column have five times as much."""


def friedman(X: Array) -> tuple[Array, Array]:
    """Friedman's function of five standardised uniform columns, ``[n]``, and its slopes, ``[n,
    5]``, in standard deviations of the function."""
    unit = np.sqrt(1 / 12)
    a, b, c, d, e = (X * unit + 0.5).T
    values = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    wave = 10 * np.pi * np.cos(np.pi * a * b)
    ones = np.ones_like(a)
    slopes = np.stack([b * wave, a * wave, 40 * (c - 0.5), 10 * ones, 5 * ones], axis=1)
    return (values - 14.4) / 4.9, slopes * unit / 4.9


def slopes(*, model: str, values: int, places: int, seed: int, **_: Any) -> dict[str, Any]:
    """Values at a few places, and at many others the slope along a random column each."""
    rng = np.random.default_rng(seed)
    half = np.sqrt(3)  # of the range of a standardised uniform column
    X = rng.uniform(-half, half, (values + places, COLUMNS))
    new = rng.uniform(-half, half, (5_000, COLUMNS))
    f, gradients = friedman(X)
    columns = rng.integers(COLUMNS, size=places)
    Y = f[:values] + NOISE * rng.normal(size=values)
    kinds = np.zeros(values)
    if model == "slopes":
        along = gradients[values:][np.arange(places), columns]
        Y = np.r_[Y, along + 5 * NOISE * rng.normal(size=places)]
        kinds = np.r_[kinds, columns + 1.0]
    rows = np.c_[X[: len(Y)], kinds]
    functionals = [Value(), *(Derivative(column) for column in range(COLUMNS))]
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(COLUMNS))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, COLUMNS, MAX_DEGREE)
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    if model == "values":
        rows, functionals = rows[:, :-1], []
    weights = np.where(kinds == 0, 1.0, 1 / 25)
    trained, found = fitted(
        (rows, Y[:, None]),
        prior,
        harmonics,
        functionals,
        noise_variance=NOISE**2,
        noise_weights=weights,
    )
    return found | errors(friedman(new)[0][:, None], *predicted(trained, new, 0))
