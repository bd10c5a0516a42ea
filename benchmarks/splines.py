"""Splines on a grid: a mountain range, a long line, and trees counted on a map.

Seconds from the rows in memory to the predictions of all test rows, on one clock; each model in a
process of its own, imports not counted. splines_AxB has A x B quadratic splines, a product of
Matern-3/2 kernels that ends with them, and `fit`; rough_AxB linear splines and Matern-1/2.
mountains    the range and the split of `terrain`; beside waves of a box, points in stock SVGP (as
             in `terrain`), 20 neighbours and linear interpolation (as in `neighbours`)
line         a million rows in one column: a random walk and noise; `fit` alone and with predictions
trees        3,604 trees on 1,000 by 500 metres (`bei_trees` with --data-dir, otherwise made-up
             places), half of them, drawn at random, counted in cells of 5 metres; Poisson, the log
             density of the counts of the other half; DualSVGP beside stock SVGP with points
             (minibatches, natural gradients, Adam)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib import race
from benchmarks._lib.data import Array, load_arrays, source_of
from benchmarks._lib.elevations import mountains
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.prediction import gaussian_errors
from benchmarks._lib.race import Rows
from benchmarks._lib.results import points, runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Records
from benchmarks._lib.tables import tabulated

MODELS = {
    "mountains": "splines_100x85 splines_160x140 splines_260x220 splines_400x345 rough_180x155 "
    "rough_260x220 box_3000 svgp_500 neighbours linear",
    "line": "splines_100000",
    "trees": "splines_80x40 splines_160x80 svgp_500",
}
SHORT = {
    "mountains": "splines_12x10 linear",
    "line": "splines_200",
    "trees": "splines_12x8 svgp_20",
}
SECONDS = [35.0, 120.0]  # of stock SVGP
SIDES, CELL = (1_000.0, 500.0), 5.0


class Splines(Benchmark, data_dir=str, datasets=MODELS):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for data in arguments.datasets or MODELS:
            for model in (SHORT if short else MODELS)[data].split():
                yield {
                    "data": data,
                    "model": model,
                    "seconds": [2.0] if short else SECONDS,
                    "every": 20 if short else 1,
                    "source": source_of(arguments.data_dir) if data == "trees" else "libraries",
                }

    def table(self, records: Records) -> str:
        rows = (
            {"fit_seconds": one["seconds"], **one, "memory": one["peak_bytes"] / 2**30}
            for one in points(records)
        )
        return tabulated(
            rows,
            "data; model; M = num_inducing ,; fit = fit_seconds .1f; all = seconds .1f; "
            "RMSE = rmse .4f; NLPD = nll .4f; log density = log_density .5f; GiB = memory .1f",
        )

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """Error on the mountains by seconds."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots(1, 2)
        for run, result in runs(records):
            if run["data"] == "mountains":
                for one, name in zip(axes, ("rmse", "nll"), strict=True):
                    seconds = [point["seconds"] for point in result["trace"]]
                    errors = [point[name] for point in result["trace"]]
                    one.semilogx(seconds, errors, marker="o", label=run["model"])
        axes[0].set(xlabel="seconds", ylabel="RMSE, in standard deviations", yscale="log")
        axes[1].set(xlabel="seconds", ylabel="NLPD")
        axes[1].legend(fontsize="small")
        figure.savefig(folder / "splines.png", dpi=150)


def measured(
    *, data: str, model: str, seconds: list[float], every: int, data_dir: str | None
) -> dict[str, Any]:
    """Train and evaluate one model; in a process of its own."""
    readers = {"mountains": lambda: mountains(every, 0), "line": lambda: _line(every)}
    train, held_out = readers.get(data, lambda: _trees(every, data_dir))()
    kind, _, size = model.partition("_")
    if data == "trees":
        found = counted(train, held_out, kind, size, seconds)
    elif kind == "svgp":
        found = race.svgp(train, held_out, int(size), 0.2, seconds, 0)
    else:
        found = regression(train, held_out, kind, size)
    return {"rows": len(train[0]), "peak_bytes": peak_of_process(), **found}


def _line(every: int) -> tuple[Rows, Rows]:
    """A random walk of 20,000 steps, and noise a tenth of it."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=20_001))
    X = rng.uniform(0, 20_000, (1_010_000, 1))[::every]
    f = np.interp(X, np.arange(len(walk)), (walk - walk.mean()) / walk.std())
    Y = f + 0.1 * rng.normal(size=f.shape)
    few = 10_000 // every
    return (X[few:], Y[few:]), (X[:few], Y[:few])


def _trees(every: int, data_dir: str | None) -> tuple[Rows, Rows]:
    """The middle of each cell, and how many trees of each half are in it."""
    rng = np.random.default_rng(0)
    if data_dir is None:  # places near a few lines
        along = rng.uniform(0, 1, (3_604, 1)) * SIDES
        bend = 60 * np.sin(along[:, :1] / 80) + rng.normal(scale=25, size=(3_604, 1))
        places = np.clip(np.c_[along[:, :1], 250 + bend], 0, SIDES)
    else:
        places = np.asarray(load_arrays("bei_trees", data_dir)["points"], float)
    step = CELL * (4 if every > 1 else 1)
    edges = [np.arange(0, side + step, step) for side in SIDES]
    is_first = rng.permutation(len(places)) < len(places) // 2
    middles = np.meshgrid(*((part[1:] + part[:-1]) / 2 for part in edges), indexing="ij")
    X = np.stack(middles, axis=-1).reshape(-1, 2) / 100  # in hundreds of metres
    halves = (
        np.histogram2d(*places[which].T, bins=edges)[0].reshape(-1, 1)
        for which in (is_first, ~is_first)
    )
    first, second = halves
    return (X, first), (X, second)


def prior_of(X: Array, kind: str, size: str, lengthscale: float) -> tuple[Any, Any]:
    """A product of Matern kernels that ends with its splines, and these."""
    smooth = gpflow.kernels.Matern32, 2
    how = smooth if kind == "splines" else (gpflow.kernels.Matern12, 1)
    kernel, splines = race.splines(X, size, *how, 1.0, lengthscale)
    return idm.kernels.FiniteRank(kernel, splines), splines


def regression(train: Rows, held_out: Rows, kind: str, size: str) -> dict[str, Any]:
    X, Y = train
    found, started = dict[str, Any](), time.perf_counter()
    if kind in ("splines", "rough"):
        prior, splines = prior_of(X, kind, size, 0.1 if X.shape[1] == 2 else 100.0)
        model = idm.models.StructuredSGPR(train, prior, splines, noise_variance=0.01)
        found = race.fit_record(model, idm.fit(model))
        found["fit_seconds"] = time.perf_counter() - started
        errors = race.evaluated(model, held_out)
    elif kind == "box":
        model, fit = race.fitted(train, *race.waves(X, int(size), 0.2, 2.0))
        found, errors = race.fit_record(model, fit), race.evaluated(model, held_out)
    elif kind == "neighbours":
        local = gpflow.kernels.Matern32(lengthscales=[0.1, 0.1])
        near = idm.models.VecchiaSGPR(
            train, local_kernel=local, num_neighbours=20, noise_variance=0.1
        )
        idm.fit(near)
        moments = idm.predict_in_batches(near, held_out[0], method="predict_y")
        errors = gaussian_errors(held_out[1], *moments)
    else:
        mean, variance = race.linear(X, Y, held_out[0])
        errors = gaussian_errors(held_out[1], mean[:, None], variance[:, None])
    return {**found, "trace": [{"seconds": time.perf_counter() - started, **errors}]}


def counted(
    train: Rows, held_out: Rows, kind: str, size: str, seconds: Sequence[float]
) -> dict[str, Any]:
    """A log-Gaussian Cox process on the map."""
    mean = gpflow.functions.Constant(np.log(np.mean(train[1])))
    likelihood, started = gpflow.likelihoods.Poisson(), time.perf_counter()
    if kind == "splines":
        prior, splines = prior_of(train[0], kind, size, 0.5)
        model = idm.models.DualSVGP(train, prior, likelihood, splines, mean_function=mean)
        fit = idm.fit(model)
        density = race.log_density(model, held_out, cached=True)
        trace = [{"seconds": time.perf_counter() - started, "log_density": density}]
        return {"num_inducing": splines.num_inducing, "steps": fit.steps, "trace": trace}
    kernel = gpflow.kernels.Matern32(lengthscales=[0.5, 0.5])
    stock = race.stock(train, int(size), kernel, 0, likelihood)
    stock.mean_function = mean
    natural = gpflow.optimizers.NaturalGradient(0.1)
    trace = race.density_trace(stock, train, held_out, seconds, started, optimizer=natural)
    return {"num_inducing": int(size), "trace": trace}


if __name__ == "__main__":
    Splines.command()
