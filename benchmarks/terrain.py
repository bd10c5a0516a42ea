"""A mountain range, 344 x 403 elevations: seconds from the data to test errors, on one clock.

The elevations near Jacksboro ship with matplotlib; nothing is downloaded. One row in ten, drawn at
random, is for testing. Each model runs in a process of its own; imports are not counted, everything
from the standardised rows in memory to the predictions of all test rows is.
box_M        M BoxFourierFeatures, a Periodized Matern-3/2 of their rank; `fit`: one
             pass over the rows, then all hyperparameters without them
sphere_M     M SphericalHarmonics of the projected sphere, SphericalMatern32 that ends with them;
             `fit`: weight variances from a subset, one pass, the rest without rows
svgp_M       gpflow's SVGP with M inducing points (k-means of 20,000 rows), Matern-3/2, minibatches
             of 1,000, natural gradients 0.1 and Adam 0.01, evaluated at several times (which do not
             count); the clock stops after the last
A picture of the terrain, the data, mean and standard deviation of the largest box is drawn beside
the results.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import race
from benchmarks._lib.child import from_child
from benchmarks._lib.data import Array
from benchmarks._lib.elevations import jacksboro, land
from benchmarks._lib.prediction import Predictor
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown

MODELS = ("box_480", "box_1080", "box_3000", "sphere_441", "sphere_1024", "svgp_500")
SHORT = ("box_60", "sphere_49", "svgp_20")
SVGP_SECONDS = (10.0, 35.0, 60.0, 120.0, 230.0)
TEST_FRACTION = 0.1
LENGTHSCALE = 0.2  # of all models at the start, in standard deviations of the coordinates
MARGIN = 2.0  # of the box, in such lengthscales

# What the issue asks for: seconds and NLPD.
TARGETS = {"box_1080": (10.0, -0.03), "box_3000": (60.0, None)}
SPEED_UP = 25.0  # over svgp_500's last NLPD


class Terrain(Benchmark):
    __doc__ = __doc__
    name = "terrain"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--models", type=names((*MODELS, *SHORT), "models"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for model in arguments.models or (SHORT if arguments.short else MODELS):
            yield {
                "model": model,
                "seconds": [2.0, 4.0] if arguments.short else list(SVGP_SECONDS),
                "every": 8 if arguments.short else 1,
                "seed": 0,
            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        result: dict[str, Any] = from_child(measured, **configuration)
        return result

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        boxes = [
            r["configuration"] for r in records if r["configuration"]["model"].startswith("box")
        ]
        if boxes:
            largest = max(boxes, key=lambda box: int(box["model"].partition("_")[2]))
            draw_terrain(largest, folder / "terrain.png")


def split(every: int, seed: int) -> tuple[Array, Array, Array]:
    """Standardised coordinates [N, 2] and elevations [N, 1], and which rows are for testing.

    :param every: take only so many rows and columns of the grid.
    """
    grid = jacksboro()[::every, ::every]
    rows, columns = np.indices(grid.shape)
    X = np.stack([columns.ravel(), -rows.ravel()], axis=1).astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    test = np.random.default_rng(seed).uniform(size=len(X)) < TEST_FRACTION
    Y = grid.reshape(-1, 1)
    return X, (Y - Y[~test].mean()) / Y[~test].std(), test


def measured(*, model: str, seconds: Sequence[float], every: int, seed: int) -> dict[str, Any]:
    """Train one model; in a process of its own."""
    import interdomain  # noqa: F401 - imports are not counted

    kind, _, size = model.partition("_")
    X, Y, test = split(every, seed)
    train = X[~test], Y[~test]
    held_out = X[test], Y[test]
    if kind == "svgp":
        return race.svgp(train, held_out, int(size), LENGTHSCALE, list(seconds), seed)
    started = time.perf_counter()
    if kind == "box":
        fitted, fit = race.box(train, int(size), LENGTHSCALE, MARGIN)
    else:
        fitted, fit = sphere(train, int(size), seed)
    return race.collapsed(fitted, fit, held_out, started)


def sphere(data: tuple[Array, Array], num_inducing: int, seed: int) -> tuple[Any, Any]:
    """Harmonics on the projected sphere, after a subset and one pass."""
    import interdomain as idm

    degree = round(np.sqrt(num_inducing)) - 1
    scale = LENGTHSCALE**-2
    kernel = idm.kernels.SphericalMatern32(
        weight_variances=np.full(2, scale), lengthscale=LENGTHSCALE
    )
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, degree)
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    model = idm.models.StructuredSGPR(data, prior, harmonics, noise_variance=0.1)
    return model, idm.fit(model, options={"seed": seed})


def table_of(records: Sequence[Record]) -> str:
    headers = ("model", "M", "seconds", "test RMSE", "test NLPD", "target")
    rows = [
        (
            record["configuration"]["model"],
            record["result"]["num_inducing"],
            f"{point['seconds']:.1f}",
            f"{point['rmse']:.3f}",
            f"{point['nll']:.3f}",
            _target(record["configuration"]["model"], point),
        )
        for record in records
        for point in record["result"]["trace"]
    ]
    return markdown(headers, rows) + _speed_up(records)


def _target(model: str, point: dict[str, float]) -> str:
    if model not in TARGETS:
        return ""
    seconds, density = TARGETS[model]
    met = point["seconds"] <= seconds and (density is None or point["nll"] <= density)
    wanted = f"{seconds:g} s" + ("" if density is None else f", NLPD {density:g}")
    return f"{wanted}: {'met' if met else 'missed'}"


def _speed_up(records: Sequence[Record]) -> str:
    """How much sooner a box has the last NLPD of the inducing points."""
    traces = {r["configuration"]["model"]: r["result"]["trace"] for r in records}
    stock = traces.get("svgp_500")
    if not stock:
        return ""
    last = stock[-1]
    better = [
        (point["seconds"], model)
        for model, trace in traces.items()
        if model.startswith("box")
        for point in trace
        if point["nll"] <= last["nll"]
    ]
    if not better:
        return ""
    seconds, model = min(better)
    factor = last["seconds"] / seconds
    verdict = "met" if factor >= SPEED_UP else "missed"
    return (
        f"\n\n{model} is at or below svgp_500's NLPD of {last['nll']:.3f} after {seconds:.1f} s, "
        f"{factor:.0f} times sooner (target {SPEED_UP:g}: {verdict})."
    )


def draw_terrain(configuration: Configuration, path: Path) -> None:
    """Fit the model of a configuration again, and draw it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    size = int(configuration["model"].partition("_")[2])
    X, Y, test = split(configuration["every"], configuration["seed"])
    model, _ = race.box((X[~test], Y[~test]), size, LENGTHSCALE, MARGIN)
    mean, variance = Predictor(model, X.shape[1])(X)
    shape = jacksboro()[:: configuration["every"], :: configuration["every"]].shape
    metres = jacksboro()[:: configuration["every"], :: configuration["every"]].reshape(-1, 1)
    scale = metres[~test].std()
    maps = {
        "elevation": metres,
        "the rows for training (white: for testing)": np.where(test[:, None], np.nan, metres),
        f"mean of {size} Fourier features": metres[~test].mean() + scale * mean,
        "standard deviation of f": scale * np.sqrt(variance),
    }
    figure, axes = pyplot.subplots(2, 2, figsize=(12, 10), layout="constrained")
    for ax, (title, values) in zip(axes.flat, maps.items(), strict=True):
        is_map = not title.startswith("standard")
        limits = {"vmin": metres.min(), "vmax": metres.max()}
        if not is_map:
            limits = {"vmin": 0, "vmax": np.quantile(values, 0.98)}  # the edge is far above
        colours = land() if is_map else "magma"
        image = ax.imshow(values.reshape(shape), cmap=colours, **limits)
        ax.set(title=title, xticks=[], yticks=[])
        figure.colorbar(image, ax=ax, shrink=0.8, label="metres")
    figure.savefig(path, dpi=50)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(Terrain().main())
