"""One and three columns: Fourier features read once, beside inducing points on the same clock.

co2       monthly CO2 of Mauna Loa, 741 rows (--data-dir)
million   a made-up function of one column with noise, 1,000,000 rows
beijing   PM2.5 (its logarithm) from time, temperature and pressure, 410,144 rows (--data-dir)
One row in ten, drawn at random, is for testing; all columns are standardised. Each model runs in a
process of its own; imports are not counted, everything from the rows in memory to the predictions
of all test rows is.
box        BoxFourierFeatures, a Periodized Matern-3/2 of their rank; `fit_sgpr`
interval   VariationalFourierFeatures of a Matern-3/2 (one column); `fit_sgpr`
svgp       gpflow's SVGP with 500 inducing points (k-means), natural gradients, evaluated at several
           times
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib import race
from benchmarks._lib.child import from_child
from benchmarks._lib.data import Array, add_data_argument, for_a_process, load_arrays, source_of
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.tables import markdown

TEST_FRACTION = 0.1
LENGTHSCALES = {"co2": 0.1, "million": 0.02, "beijing": 0.2}  # at the start
MARGIN = 3.0  # of the box and the interval, in such lengthscales
SIZES = {"co2": 400, "million": 2_000, "beijing": 2_000}
MODELS = {
    "co2": ("box", "interval", "svgp"),
    "million": ("box", "interval", "svgp"),
    "beijing": ("box", "svgp"),
}
NUM_POINTS = 500
SVGP_SECONDS = (10.0, 30.0, 60.0)


class OnePass(Benchmark):
    __doc__ = __doc__
    name = "one_pass"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(tuple(MODELS), "data sets"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for data in arguments.datasets or (("million",) if arguments.short else MODELS):
            for model in MODELS[data]:
                yield {
                    "data": data,
                    "model": model,
                    "num_inducing": 41 if arguments.short else _size(data, model),
                    "rows": 3_000 if arguments.short else 1_000_000,
                    "seconds": [2.0] if arguments.short else list(SVGP_SECONDS),
                    "source": source_of(arguments.data_dir) if data != "million" else "made up",
                    "seed": 0,
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        return dict(from_child(measured, **for_a_process(configuration, arguments.data_dir)))

    def table(self, records: Sequence[Record]) -> str:
        headers = ("data", "rows", "model", "M", "pass s", "steps", "seconds", "RMSE", "NLPD")
        rows = []
        for record in records:
            run, result = record["configuration"], record["result"]
            seconds = result.get("pass_seconds")
            for point in result["trace"]:
                rows.append(
                    (
                        run["data"],
                        f"{result['rows']:,}",
                        run["model"],
                        result["num_inducing"],
                        "" if seconds is None else f"{seconds:.1f}",
                        int(point.get("steps", result.get("steps", 0))),
                        f"{point['seconds']:.1f}",
                        f"{point['rmse']:.3f}",
                        f"{point['nll']:.3f}",
                    )
                )
        return markdown(headers, rows)


def _size(data: str, model: str) -> int:
    return min(NUM_POINTS, SIZES[data]) if model == "svgp" else SIZES[data]


def measured(
    *,
    data: str,
    model: str,
    num_inducing: int,
    rows: int,
    seconds: Sequence[float],
    data_dir: str | None,
    seed: int,
) -> dict[str, Any]:
    """Train one model on one data set; in a process of its own."""
    import interdomain  # noqa: F401 - imports are not counted

    X, Y = made_up(rows, seed) if data == "million" else stored(data, data_dir)
    test = np.random.default_rng(seed).uniform(size=len(X)) < TEST_FRACTION
    X = (X - X[~test].mean(axis=0)) / X[~test].std(axis=0)
    Y = (Y - Y[~test].mean()) / Y[~test].std()
    train, held_out = (X[~test], Y[~test]), (X[test], Y[test])
    started = time.perf_counter()
    if model == "svgp":
        return race.svgp(train, held_out, num_inducing, LENGTHSCALES[data], list(seconds), seed)
    build = {"box": race.box, "interval": race.interval}[model]
    fitted, fit = build(train, num_inducing, LENGTHSCALES[data], MARGIN)
    return race.collapsed(fitted, fit, held_out, started)


def made_up(rows: int, seed: int) -> tuple[Array, Array]:
    """A sum of waves of many lengths with noise; a third of its variance is noise."""
    generator = np.random.default_rng([seed, 1])  # not the one that draws the rows for testing
    X = generator.uniform(size=(rows, 1))
    orders = np.arange(1, 201)
    weights = generator.normal(size=(2, 200)) / orders**1.2
    f = sum(
        cosine * np.cos(2 * np.pi * j * X) + sine * np.sin(2 * np.pi * j * X)
        for j, cosine, sine in zip(orders, *weights, strict=True)
    )
    f = np.asarray(f)
    return X, f + f.std() * np.sqrt(0.5) * generator.normal(size=f.shape)


def stored(data: str, data_dir: str | None) -> tuple[Array, Array]:
    """The columns and the target of a stored table."""
    from pathlib import Path

    folder = None if data_dir is None else Path(data_dir)
    if data == "co2":
        arrays = load_arrays("co2_maunaloa", folder)
        return np.asarray(arrays["X"], float), np.asarray(arrays["Y"], float)
    arrays = load_arrays("beijing_pm25", folder)
    return np.asarray(arrays["X"], float)[:, [0, 3, 4]], np.log(np.asarray(arrays["Y"], float))


if __name__ == "__main__":
    sys.exit(OnePass().main())
