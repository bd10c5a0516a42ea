"""Where do the seconds of the subset stage of `fit_sgpr` go, start-up included?

The input scales of harmonics are trained on some thousand rows before the pass over all of them:
StructuredSGPR.subset_model and 50 iterations of L-BFGS of all parameters (a weight for each column,
bias, lengthscale, variance, noise), Matern-5/2 on the sphere of finite rank: harmonics up to degree
2 of the 20 columns of keggdirected, up to 3 of the 9 of Beijing's air. Each round is a fresh
process; seconds count from when everything is imported and the data are in memory:
build  the kernel, the model of all rows and that of the subset, rows drawn
trace  until the first iteration is done, without the median seconds of an iteration
steps  the iterations

Without --data-dir made-up rows of as many columns take the place of the data. OPENBLAS_NUM_THREADS
is noted: LAPACK's threads wait by spinning, which costs most on a machine that is busy otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import Array, add_data_argument, load_table, source_of
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration
from benchmarks._lib.splits import normalise, take_split
from benchmarks._lib.tables import markdown, spread
from benchmarks._lib.timing import summarise

COLUMNS = {"beijing_pm25": 9, "keggdirected": 20}
DEGREES = {"beijing_pm25": 3, "keggdirected": 2}
PARTS = ("build", "trace", "steps", "whole")
MADE_UP_ROWS = 40_000
TARGET = 8.0  # seconds of the whole


class SubsetStage(Benchmark):
    __doc__ = __doc__
    name = "subset_stage"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--rounds", type=int, default=None, help="default 5")
        parser.add_argument("--label", default="", help="what was measured, such as a version")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        for data in COLUMNS:
            yield {
                "data": data,
                "source": "made up" if arguments.data_dir is None else source_of(Path()),
                "degree": 1 if arguments.short else DEGREES[data],
                "rows": 300 if arguments.short else 3_000,
                "iterations": 3 if arguments.short else 50,
                "rounds": arguments.rounds or (1 if arguments.short else 5),
                "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "all"),
                "label": arguments.label,
                "seed": 0,
            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        folder = None if arguments.data_dir is None else str(arguments.data_dir)
        names = ("data", "degree", "rows", "iterations", "seed")
        given = {name: configuration[name] for name in names}
        found = [
            from_child(measured, data_dir=folder, **given) for _ in range(configuration["rounds"])
        ]
        return {
            **{name: found[0][name] for name in ("num_inducing", "iterations", "bound_per_row")},
            "seconds": {part: summarise([one[part] for one in found]) for part in PARTS},
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def measured(
    *, data: str, degree: int, rows: int, iterations: int, seed: int, data_dir: str | None
) -> dict[str, Any]:
    """The subset stage, once; in a process of its own."""
    import interdomain as idm

    X, Y = made_up(COLUMNS[data], seed) if data_dir is None else stored(data, data_dir)
    started = time.perf_counter()
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(X.shape[1]))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, X.shape[1], degree)
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    model = idm.models.StructuredSGPR((X, Y), prior, harmonics, noise_variance=0.5, progress=False)
    subset = model.subset_model(rows, seed=seed)
    built = time.perf_counter()
    ends: list[float] = []

    def note(step: int, model: Any) -> None:
        ends.append(time.perf_counter())

    fitted = idm.fit(
        subset,
        steps=iterations,
        callbacks=[note],
        every=1,
        progress=False,
    )
    ended = time.perf_counter()
    iteration = float(np.median(np.diff(ends)))
    trace = ends[0] - built - iteration
    return {
        "num_inducing": int(harmonics.num_inducing),
        "iterations": fitted.steps,
        "bound_per_row": float(fitted.elbo) / subset.num_data,
        "build": built - started,
        "trace": trace,
        "steps": ended - built - trace,
        "whole": ended - started,
    }


def made_up(num_columns: int, seed: int) -> tuple[Array, Array]:
    """A wave along one direction, and noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(MADE_UP_ROWS, num_columns))
    direction = generator.normal(size=(num_columns, 1)) / np.sqrt(num_columns)
    return X, np.sin(2 * X @ direction) + 0.3 * generator.normal(size=(MADE_UP_ROWS, 1))


def stored(data: str, data_dir: str) -> tuple[Array, Array]:
    """The rows for training of a stored table's first split."""
    split = normalise(take_split(load_table(data, Path(data_dir)), 0))
    return split.X_train, split.Y_train


def table_of(records: Sequence[Record]) -> str:
    """A row for each data set."""
    rows = []
    for record in records:
        run, result = record["configuration"], record["result"]
        whole = result["seconds"]["whole"]
        rows.append(
            (
                run["label"],
                f"{run['data']} ({run['source']})",
                f"{run['rows']:,}",
                result["num_inducing"],
                run["blas_threads"],
                *(spread(result["seconds"][part]) for part in PARTS),
                f"{TARGET:g} s: {'met' if whole['median'] <= TARGET else 'missed'}",
                result["iterations"],
                f"{result['bound_per_row']:.4f}",
            )
        )
    measures = (*PARTS, "target", "iterations", "bound per row")
    return markdown(("measured", "data", "rows", "M", "threads", *measures), rows)


if __name__ == "__main__":
    sys.exit(SubsetStage().main())
