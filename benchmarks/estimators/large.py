"""The parts `map` and `memory`: many rows of two columns, seconds and peak memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._lib import elevations
from benchmarks._lib.data import Array, source_of
from benchmarks._lib.mixed_tables import made
from benchmarks._lib.race import Rows
from benchmarks.estimators.judged import judged

MAP_ROWS, GRID = 814_084, 500
"""The rows of PyKrige's issue 310, and the places on a side of the grid."""
MAP_NOISE = 20.0
"""The standard deviation of readings, metres."""
MAP_METHODS = ("splines", "waves", "neighbours", "auto")
NEIGHBOURS, SKLEARN = (1_000, 10_000, 100_000, 1_000_000), (1_000, 5_000, 10_000)
MEMORY_METHODS = ("neighbours", "auto", "sklearn_given", "sklearn")
TESTED = 1_000


def map_configurations(short: bool, data_dir: str | None) -> Iterator[dict[str, Any]]:
    for method in ("splines",) if short else MAP_METHODS:
        yield {
            "data": "synthetic" if data_dir is None else "etopo20",
            "method": method,
            "rows": 2_000 if short else MAP_ROWS,
            "seconds": 60.0,
            "source": source_of(data_dir),
        }


def memory_configurations(short: bool, data_dir: str | None) -> Iterator[dict[str, Any]]:
    """The configurations of `memory`. scikit-learn's optimizer stops at 5,000 rows: the gradients
    of a kernel with three parameters take [N, N, 4] numbers, several times."""
    numbers = {"neighbours": NEIGHBOURS, "auto": NEIGHBOURS, "sklearn_given": SKLEARN}
    numbers["sklearn"] = SKLEARN[:-1]
    for method in ("neighbours", "sklearn_given") if short else MEMORY_METHODS:
        for rows in (500,) if short else numbers[method]:
            yield {"data": "made", "method": method, "rows": rows, "seconds": 60.0}


def scattered(data: str, data_dir: str | None, rows: int) -> tuple[Rows, Rows]:
    """Readings of heights at places drawn evenly in latitude and longitude, and at a grid.

    :return: degrees [N, 2] and metres [N, 1], for both. Heights are interpolated linearly in the
        cells of the data, and each reading has noise.
    """
    from scipy.interpolate import RegularGridInterpolator

    latitude, longitude, heights = elevations.grid(data, data_dir, 1)
    order = np.argsort(latitude)
    surface = RegularGridInterpolator((latitude[order], longitude), heights[order])
    ends = np.array([[latitude.min(), latitude.max()], [longitude.min(), longitude.max()]])
    rng = np.random.default_rng(0)

    def read(X: Array) -> Rows:
        return X, (surface(X) + MAP_NOISE * rng.normal(size=len(X)))[:, None]

    sides = [np.linspace(*side, GRID) for side in ends]
    return read(rng.uniform(*ends.T, (rows, 2))), read(elevations.rows_of(*sides))


def measured_map(
    *, data: str, method: str, rows: int, seconds: float, data_dir: str | None
) -> dict[str, Any]:
    """The figures of a map with error bars from scattered readings."""
    from interdomain.estimators import GPRegressor

    (X, Y), test = scattered(data, data_dir, rows)
    regressor = GPRegressor(method, seconds=seconds, inputs="euclidean", progress=False)
    return {"rows": rows, "grid": len(test[0]), **judged(lambda: regressor.fit(X, Y[:, 0]), test)}


def measured_memory(
    *, data: str, method: str, rows: int, seconds: float, data_dir: str | None
) -> dict[str, Any]:
    """The figures of synthetic rows of two columns, with predictions at 1,000 places."""
    (X, Y), test = made(rows)
    few = test[0][:TESTED], test[1][:TESTED]
    if method.startswith("sklearn"):
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        kernel = ConstantKernel(2.0) * Matern([0.3, 0.3], (1e-2, 1e2), nu=1.5)
        kernel += WhiteKernel(0.01, (1e-5, 1e1))
        optimizer = None if method == "sklearn_given" else "fmin_l_bfgs_b"
        model = GaussianProcessRegressor(
            kernel, optimizer=optimizer, normalize_y=True, random_state=0
        )
    else:
        from interdomain.estimators import GPRegressor

        model = GPRegressor(method, seconds=seconds, progress=False)
    return {"rows": rows, **judged(lambda: model.fit(X, Y[:, 0]), few)}
