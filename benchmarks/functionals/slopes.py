"""Slopes of a smooth function of five columns, beside values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks.functionals.rows import errors, fitted, numbered, predicted
from interdomain.functionals import Derivative, Value

COLUMNS, PLANE_WAVES, FREQUENCY = 5, 50, 0.5
NOISE = 0.02, 0.05
"""The standard deviations of the noise of values, and of slopes per unit of a column, in standard
deviations of the function."""


class PlaneWaves:
    """A sum of random plane waves with a standard deviation of one."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.directions = FREQUENCY * rng.normal(size=(COLUMNS, PLANE_WAVES))
        self.phases = rng.uniform(0, 2 * np.pi, PLANE_WAVES)

    def values(self, X: Array) -> Array:
        waves = np.cos(X @ self.directions + self.phases)
        return np.asarray(np.sqrt(2 / PLANE_WAVES) * waves.sum(axis=1))

    def slopes(self, X: Array, columns: NDArray[np.int64]) -> Array:
        """The slope of each row along its column."""
        waves = -np.sin(X @ self.directions + self.phases) * self.directions[columns]
        return np.asarray(np.sqrt(2 / PLANE_WAVES) * waves.sum(axis=1))


def slopes(
    *, model: str, values: int, places: int, max_degree: int, seed: int, **_: Any
) -> dict[str, Any]:
    """Values at a few places, and at many others the slope along a random column each.

    The scales of the columns, on which the harmonics depend, are trained on the values.
    """
    rng = np.random.default_rng(seed)
    f = PlaneWaves(rng)
    X, new = (rng.uniform(-1.7, 1.7, (count, COLUMNS)) for count in (values + places, 5_000))
    columns = rng.integers(COLUMNS, size=places)
    few, others = X[:values], X[values:]
    Y = f.values(few) + NOISE[0] * rng.normal(size=values)
    along = f.slopes(others, columns) + NOISE[1] * rng.normal(size=places)
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(COLUMNS))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, COLUMNS, max_degree)
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    data = few, Y[:, None]
    trained, found = fitted(data, prior, harmonics, noise_variance=NOISE[0] ** 2)
    if model == "slopes":
        functionals = [Value(), *(Derivative(column) for column in range(COLUMNS))]
        X = np.r_[numbered(few, 0), np.c_[others, columns + 1.0]]
        data = X, np.r_[Y, along][:, None]
        variances = [NOISE[0] ** 2, *[NOISE[1] ** 2] * COLUMNS]
        trained, more = fitted(data, prior, harmonics, functionals, noise_variance=variances)
        more["cpu_seconds"] += found["cpu_seconds"]
        found = more
    return found | errors(f.values(new)[:, None], *predicted(trained, new, 0))
