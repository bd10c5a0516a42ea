"""Fine dust by day at 69 stations in Germany: each station from the others."""

from __future__ import annotations

import gc
from typing import Any

import gpflow
import numpy as np
from gpflow.kernels import Matern12
from scipy.special import roots_hermitenorm

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays
from benchmarks.space_time.rows import Clock, Pair, errors, fitted, plus, predicted, times
from interdomain.inducing_variables import FixedPlaces, SplineFeatures
from interdomain.kernels import FiniteRank

UNITS = np.array([1e5, 1e5, 300.0])
"""Metres of a unit of the two coordinates and of the altitude."""
NODES, WEIGHTS = roots_hermitenorm(20)
"""Gauss-Hermite quadrature of a standard normal variable."""


def prior(model: str, places: Array, days: int) -> Pair:
    """The sum of the model's terms, on daily knots: places, with the altitude or without, times
    time; for "country" also a function of time alone."""
    splines = SplineFeatures(0.0, days - 1.0, days, 1)
    time = Matern12(lengthscales=4.0, active_dims=[3])
    columns = [0, 1] if model.startswith("places") else [0, 1, 2]
    space = Matern12(lengthscales=[4.0] * len(columns), active_dims=columns)
    terms = [times((space, FixedPlaces(places[:, columns], columns)), (time, splines))]
    if model.endswith("country"):
        country = Matern12(variance=0.3, lengthscales=2.0, active_dims=[3])
        terms.append((FiniteRank(country, splines), splines))
    return plus(terms)


def pm10(
    *, model: str, scale: str, days: int, groups: int, folds: int, data_dir: str | None, **_: Any
) -> dict[str, Any]:
    """The errors of each station's daily means, which are predicted from the other stations.

    :param scale: "root" for a prior of the square root of the values, "log" for log(value + 2),
        "raw" for the values. RMSE is in micrograms per cubic metre, NLPD is that of raw values.
    :param groups: with one group, all parameters are trained once, on all stations. With several
        groups of stations, they are trained for each group, on all other stations.
    :param folds: the number of stations that are predicted.
    """
    arrays = load_arrays("pm10_germany_2005", data_dir)
    few = np.asarray(arrays["day"], int) < days
    station, day = (np.asarray(arrays[name][few], int) for name in ("station", "day"))
    dust = np.asarray(arrays["pm10"], float)[few]
    places = np.column_stack([arrays["xy_utm32"], arrays["altitude"]]) / UNITS
    places -= places.mean(axis=0)
    tested = station < folds
    if model == "inverse distance":
        guess = inverse_distance(places[:, :2], station, day, dust)
        return {"all_rows": len(dust)} | errors(dust[tested], guess[tested])
    shown = {"raw": dust, "root": np.sqrt(dust), "log": np.log(dust + 2.0)}[scale]
    level, unit = shown.mean(), shown.std()
    X, Y = np.c_[places[station], day], ((shown - level) / unit)[:, None]
    clock, found = Clock(), dict[str, Any]()
    moments = np.empty([2, len(X)])
    for group in range(groups):
        kept = station % groups != group if groups > 1 else station >= 0
        pair = prior(model, places, days)
        trained, found = fitted((X[kept], Y[kept]), pair, noise_variance=0.1)
        total = trained.accumulate((X, Y))
        for one in range(group, folds, groups):
            apart = station == one
            rest = total - trained.accumulate((X[apart], Y[apart]))
            others = idm.models.StructuredSGPR(
                rest, *pair, likelihood=trained.likelihood, progress=False
            )
            gc.collect()  # the compiled predictions of the station before
            moments[:, apart] = [part[:, 0] for part in predicted(others, X[apart])]
    mean, deviation = level + unit * moments[0], unit * np.sqrt(moments[1])
    raw = values(scale, mean[:, None] + deviation[:, None] * NODES) @ (WEIGHTS / WEIGHTS.sum())
    found |= {"fit_seconds": found["seconds"], **clock.figures()}
    found |= errors(shown[tested], mean[tested], deviation[tested] ** 2)
    found["nll"] += float(np.mean(log_slope(scale, dust[tested])))
    found["rmse"] = errors(dust[tested], raw[tested])["rmse"]
    return found | {"all_rows": len(X), "parameters": parameters(trained)}


def parameters(model: Any) -> dict[str, Any]:
    """The values of trainable parameters by name."""
    found = gpflow.utilities.parameter_dict(model).items()
    return {name: value.numpy().tolist() for name, value in found if value.trainable}


def values(scale: str, shown: Array) -> Array:
    """The values of which the prior has shown numbers."""
    if scale == "raw":
        return shown
    raw = np.maximum(shown, 0.0) ** 2 if scale == "root" else np.exp(shown) - 2.0
    return np.asarray(raw)


def log_slope(scale: str, dust: Array) -> Array:
    """The log of the slope of the value with respect to its shown number."""
    if scale == "raw":
        return np.zeros_like(dust)
    smallest = np.maximum(dust, 0.05)  # a value of zero has no density on the root's scale
    slope = np.log(2 * np.sqrt(smallest)) if scale == "root" else np.log(dust + 2.0)
    return np.asarray(slope)


def inverse_distance(places: Array, station: Any, day: Any, dust: Array) -> Array:
    """The mean of the same day's values, weighted by squared inverse distances."""
    grid = np.full([int(day.max()) + 1, len(places)], np.nan)
    grid[day, station] = dust
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    weights = distances[station] ** -2.0 * ~np.isnan(grid[day])
    return np.asarray(np.sum(weights * np.nan_to_num(grid[day]), axis=1) / weights.sum(axis=1))
