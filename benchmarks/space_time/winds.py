"""Wind speeds along the orbits of a satellite: harmonics of the globe times splines of time."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpflow.kernels import Matern12

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays
from benchmarks.space_time.rows import Clock, errors, fitted, predicted, times
from interdomain.inducing_variables import SphericalHarmonics, SplineFeatures

HOUR = 3600.0
PASS_SECONDS = 3372.8
"""The time of half an orbit of Jason-3."""
HALF_DAY = 60.0, 72.0
"""The hours of the gap of half a day."""


def held_out(hours: Array, seed: int) -> dict[str, Any]:
    """Test rows by name, as masks: "half day", "pass" for a tenth of the other half orbits, and
    "random" for a tenth of the other rows."""
    gap = (hours >= HALF_DAY[0]) & (hours < HALF_DAY[1])
    one = np.floor(hours * HOUR / PASS_SECONDS).astype(int)
    passes = (one % 10 == 4) & ~gap
    random = (np.random.default_rng(seed).uniform(size=len(hours)) < 0.1) & ~gap & ~passes
    return {"random": random, "pass": passes, "half day": gap}


def winds(
    *, model: str, num_inducing: int, knots: int, rows: int, seed: int, data_dir: str | None
) -> dict[str, Any]:
    """The errors of wind speeds in metres a second.

    :param model: "harmonics" for harmonics of the globe times splines of time, "neighbours", or
        "mean" for the mean of all rows.
    :param num_inducing: the largest degree of the harmonics, or the number of neighbours.
    :param knots: the number of splines of time.
    :param rows: the largest number of rows that are used.
    """
    arrays = load_arrays("jason3", data_dir)
    X = np.column_stack([np.asarray(arrays[name], float) for name in ("lat", "lon", "time")])
    X[:, 2] /= HOUR
    wind = np.asarray(arrays["windspeed"], float)
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:rows])
    X, wind = X[chosen], wind[chosen]
    tests = held_out(X[:, 2], seed)
    train = ~np.any(list(tests.values()), axis=0)
    level, unit = wind[train].mean(), wind[train].std()
    Y = ((wind - level) / unit)[:, None]
    if model == "mean":
        variance = np.full_like(Y, unit**2)
        return {"all_rows": int(train.sum())} | {
            name: errors(wind[one, None], np.full_like(Y[one], level), variance[one])
            for name, one in tests.items()
        }
    if model == "neighbours":
        X = np.column_stack([unit_rows(X), X[:, 2] / 24.0])
        clock = Clock()
        trained: Any = idm.models.VecchiaSGPR((X[train], Y[train]), num_neighbours=num_inducing)
        idm.fit(trained, progress=False)
        found: dict[str, Any] = {
            **clock.figures(),
            "num_inducing": num_inducing,
            "all_rows": int(train.sum()),
        }
    else:
        globe = idm.kernels.GlobeMatern32(lengthscale=0.2, active_dims=[0, 1])
        harmonics = SphericalHarmonics.for_kernel(globe, 2, max_degree=num_inducing)
        splines = SplineFeatures(X[:, 2].min() - 0.1, X[:, 2].max() + 0.1, knots, 1)
        time = Matern12(lengthscales=24.0, active_dims=[2])
        pair = times((globe, harmonics), (time, splines))
        trained, found = fitted((X[train], Y[train]), pair, noise_variance=0.3)
    clock = Clock()
    for name, one in tests.items():
        mean, variance = predicted(trained, X[one])
        found[name] = errors(wind[one, None], level + unit * mean, unit**2 * variance)
    return {**found, "predict_seconds": clock.figures()["seconds"]}


def unit_rows(X: Array) -> Array:
    """Points of the unit sphere from latitudes and longitudes in degrees."""
    lat, lon = np.radians(X[:, 0]), np.radians(X[:, 1])
    rows = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return np.asarray(np.stack(rows, axis=1))
