"""The comparison of methods for large spatial data by Heaton et al. (2019), simulated data.

105,569 places on a grid of 500 x 300 in degrees, and 44,431 held out, most of them behind clouds.
The field was drawn with an exponential covariance of variance 16.408 and range 4/3 degrees, and
noise of variance 0.05, which the values held out have, too. Seconds from the rows in memory to the
predictions of all places held out; each model in a process of its own, imports not counted.
nearest       the value at the nearest place, with the variance of its errors at a fiftieth of the
              rows
splines_AxB   A x B linear splines of a product of Matern-1/2, in StructuredSGPR
waves_M       M waves of a box, a periodized Matern-3/2
neighbours    VecchiaSGPR without features: an exponential covariance of the distance, 20
              neighbours, 80 in predictions
both          the same with 1,080 waves, of which `fit` keeps what the evidence prefers
gpboost_20    GPBoost's Vecchia approximation, the same covariance, 20 neighbours (if installed)
known_law     the limit: kriging with the covariance that the field was drawn with, from the 1,500
              nearest rows of each of 1,000 places held out, drawn at random, which all other models
              have a column for
Published, RMSE of the simulated data: SPDE 0.86, LatticeKrig 0.87, periodic embedding 0.91, local
GPs 1.11.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from benchmarks._lib import race
from benchmarks._lib.data import Array, load_arrays, source_of
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.race import Rows, fitted, waves
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Records
from benchmarks._lib.tables import tabulated

MODELS = (
    "nearest splines_150x90 splines_300x180 waves_1080 waves_3000 neighbours both gpboost_20 "
    "known_law"
).split()
VARIANCE, RANGE, NOISE = 16.40771, 4 / 3, 0.05


class Heaton(Benchmark, data_dir=str, models=MODELS):
    def configurations(self, arguments: Arguments) -> Configurations:
        for model in arguments.models or (("nearest", "both") if arguments.short else MODELS):
            if model.startswith("gpboost") and importlib.util.find_spec("gpboost") is None:
                continue
            yield {
                "model": model,
                "every": 200 if arguments.short else 1,
                "source": source_of(arguments.data_dir),
            }

    def table(self, records: Records) -> str:
        rows = ({**one, "memory": one["peak_bytes"] / 2**30} for one in figures(records))
        return tabulated(
            rows,
            "model; places = places ,; RMSE = rmse .3f; MAE = mae .3f; CRPS = crps .3f; "
            "interval score = interval_score .3f; RMSE of 1,000 = rmse_of_chosen .3f; "
            "in 95% = coverage .1%; s = seconds .0f; CPU s = cpu_seconds .0f; GiB = memory .1f",
        )


def measured(*, model: str, every: int, data_dir: str | None) -> dict[str, Any]:
    """One model, in a process of its own."""
    importlib.import_module("gpboost" if model.startswith("gpboost") else "interdomain")
    train, held_out = rows_of(data_dir, every)
    kind, _, size = model.partition("_")
    used, started = time.process_time(), time.perf_counter()
    chosen = np.random.default_rng(0).permutation(len(held_out[0]))[:1_000]
    if model == "known_law":
        held_out, chosen = (held_out[0][chosen], held_out[1][chosen]), np.arange(len(chosen))
    moments = METHODS[kind](train, held_out[0], size or kind)
    cpu, seconds = time.process_time() - used, time.perf_counter() - started
    errors = held_out[1][chosen, 0] - moments[0][chosen]
    return {
        **scores(held_out[1][:, 0], *moments),
        "rmse_of_chosen": float(np.sqrt(np.mean(errors**2))),
        **{"places": len(held_out[0]), "cpu_seconds": cpu, "seconds": seconds},
        "peak_bytes": peak_of_process(),
    }


def rows_of(data_dir: str | None, every: int) -> tuple[Rows, Rows]:
    """Places in degrees, and values less the mean of those to train with."""
    arrays = load_arrays("heaton_simulated", data_dir)
    train, held_out = (
        (
            np.c_[arrays[f"lon{end}"], arrays[f"lat{end}"]].astype(np.float64)[::every],
            np.asarray(arrays[f"value{end}"], np.float64)[::every, None],
        )
        for end in ("", "_test")
    )
    mean = train[1].mean()
    return (train[0], train[1] - mean), (held_out[0], held_out[1] - mean)


def scores(Y: Array, mean: Array, variance: Array) -> Mapping[str, float]:
    """Of Gaussian predictions, all ``[N]``; the interval score of Gneiting and Raftery (2007) of
    the central 95%, and CRPS, are negatively oriented."""
    deviation = np.sqrt(variance)
    z, reach = (Y - mean) / deviation, 1.959964
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    crps = deviation * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
    outside = np.maximum(np.abs(z) - reach, 0) * deviation
    return {
        "rmse": float(np.sqrt(np.mean((Y - mean) ** 2))),
        "mae": float(np.mean(np.abs(Y - mean))),
        "crps": float(np.mean(crps)),
        "interval_score": float(np.mean(2 * reach * deviation + 40 * outside)),
        "coverage": float(np.mean(outside == 0)),
    }


def predicted(model: Any, X_test: Array) -> tuple[Array, Array]:
    import interdomain as idm

    moments = idm.predict_in_batches(model, X_test, method="predict_y")
    mean, variance = (np.asarray(part)[:, 0] for part in moments)
    return mean, variance


def features(train: Rows, X_test: Array, size: str) -> tuple[Array, Array]:
    """Splines, or waves of a box."""
    import gpflow

    both = np.r_[train[0], X_test]
    if "x" in size:
        parts = race.splines(both, size, gpflow.kernels.Matern12, 1, 5.0, 1.0)
    else:
        parts = waves(both, int(size), 0.5, 2.0)
    return predicted(fitted(train, *parts)[0], X_test)


def nearest(train: Rows, X_test: Array, _: str) -> tuple[Array, Array]:
    apart = np.random.default_rng(0).permutation(len(train[0]))
    few, rest = apart[: len(apart) // 50], apart[len(apart) // 50 :]
    places = cKDTree(train[0][rest]).query(train[0][few])[1]
    variance = np.mean((train[1][few] - train[1][rest][places]) ** 2)
    mean = train[1][cKDTree(train[0]).query(X_test)[1], 0]
    return mean, np.full(len(mean), variance)


def neighbours(train: Rows, X_test: Array, name: str) -> tuple[Array, Array]:
    """Without features, or with them ("both")."""
    import gpflow

    import interdomain as idm

    parts = []
    if name == "both":
        kernel, some = waves(np.r_[train[0], X_test], min(1_080, len(train[0]) // 4), 0.5, 2.0)
        parts = [idm.kernels.FiniteRank(kernel, some), some]
    local = gpflow.kernels.Matern12(5.0, 1.0)
    model = idm.models.VecchiaSGPR(
        train, *parts, local_kernel=local, num_neighbours=20, noise_variance=0.1
    )
    idm.fit(model)
    return predicted(model, X_test)


def gpboost(train: Rows, X_test: Array, size: str) -> tuple[Array, Array]:
    how: dict[str, Any] = {"gp_approx": "vecchia", "num_neighbors": int(size)}
    how |= {"cov_function": "exponential", "likelihood": "gaussian"}
    found = race.gpboost(train, **how).predict(
        gp_coords_pred=X_test, predict_var=True, predict_response=True
    )
    return found["mu"], found["var"]


def known_law(train: Rows, X_test: Array, _: str) -> tuple[Array, Array]:
    """Simple kriging from the nearest rows."""
    (X, Y), noise = train, NOISE * np.eye(min(1_500, len(train[0])))

    def covariance(X: Array, X2: Array) -> Array:
        return np.asarray(VARIANCE * np.exp(-cdist(X, X2) / RANGE))

    nearest = cKDTree(X).query(X_test, k=min(1_500, len(X)))[1]
    moments = []
    for x, rows in zip(X_test, nearest, strict=True):
        root = cho_factor(covariance(X[rows], X[rows]) + noise, lower=True)
        across = covariance(X[rows], x[None])[:, 0]
        weights = cho_solve(root, across)
        moments.append((weights @ Y[rows, 0], VARIANCE + NOISE - weights @ across))
    mean, variance = np.transpose(moments)
    return mean, variance


METHODS = {
    **{"nearest": nearest, "splines": features, "waves": features, "neighbours": neighbours},
    **{"both": neighbours, "gpboost": gpboost, "known": known_law},
}


if __name__ == "__main__":
    Heaton.command()
