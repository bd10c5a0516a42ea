"""Sums of waves by nonuniform FFTs beside dense ones, and a fit of rows in a memory-mapped file.

Rows of two columns, drawn at random, float64, one output; waves of a box, M at most. Each in a
process of its own, after a pass over 1,000 rows:
tables   one pass as the library has it
dense    the features of all rows and their products (of the fewest rows only)
file     `fit` of all hyperparameters on rows in memory-mapped files, with the most memory of it

"differ" is the largest difference between the sums of "tables" and "dense", in units of the rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.memory import CLEAR, peak_of_process
from benchmarks._lib.results import Record, runs
from benchmarks._lib.runner import Benchmark, Configuration
from benchmarks._lib.tables import markdown, megabytes

SIZES = (1_000, 3_000)
ROWS = (100_000, 1_000_000, 10_000_000)
SIDES = ("dense", "tables", "file")


class FastSums(Benchmark):
    __doc__ = __doc__
    name = "fast_sums"

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        numbers = (2_000,) if arguments.short else ROWS
        for side in SIDES:
            some = {"dense": numbers[:1], "tables": numbers, "file": numbers[-1:]}[side]
            for size in (200,) if arguments.short else SIZES:
                for rows in some:
                    yield {"side": side, "rows": rows, "num_inducing": size}

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        found: dict[str, Any] = from_child(measured, **configuration)
        return found

    def table(self, records: Sequence[Record]) -> str:
        dense = {
            run["num_inducing"]: result["seconds"] / run["rows"]
            for run, result in runs(records)
            if run["side"] == "dense"
        }
        rows = []
        for run, result in runs(records):
            size, seconds, differ = run["num_inducing"], result["seconds"], result["differ"]
            speed = dense[size] * run["rows"] / seconds if size in dense else None
            rows.append(
                (
                    *(run["side"], f"{run['rows']:,}", result["num_inducing"]),
                    *(f"{seconds:.2f}", f"{result['cpu_seconds']:.2f}"),
                    f"{speed:.1f}" if speed and run["side"] == "tables" else "",
                    f"{differ:.1e}" if differ is not None else "",
                    megabytes(result["peak_bytes"]),
                )
            )
        headers = ("rows", "M", "s", "CPU s", "dense a row / this", "differ", "peak")
        return markdown(("side", *headers), rows)


def measured(*, side: str, rows: int, num_inducing: int) -> dict[str, Any]:
    """One side; in a process of its own."""
    import interdomain as idm
    from interdomain.regression import features

    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(rows, 2))
    Y = np.sin(9 * X[:, :1]) * np.cos(7 * X[:, 1:]) + 0.1 * generator.normal(size=(rows, 1))
    fewest = features.FEWEST_IN_TABLES

    def passed(side: str, count: int) -> Any:
        features.FEWEST_IN_TABLES = (rows**2,) * 3 if side == "dense" else fewest
        return model_of(X[:count], Y[:count], num_inducing).statistics.sums

    with tempfile.TemporaryDirectory() as folder:
        if side == "file":
            names = [str(Path(folder) / name) for name in ("X.npy", "Y.npy")]
            np.save(names[0], X)
            np.save(names[1], Y)
            X, Y = (np.load(name, mmap_mode="r") for name in names)
        passed(side, 1_000)
        CLEAR.write_text("5")
        started, cpu = time.perf_counter(), time.process_time()
        if side == "file":
            idm.fit(model_of(X, Y, num_inducing), progress=False)
        else:
            sums = passed(side, rows)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        peak, differ = peak_of_process(), None
        if side == "tables" and rows <= ROWS[0]:
            other = passed("dense", rows)
            differences = [np.abs(sums[name] - other[name]).ravel() for name in sums]
            differ = float(np.max(np.concatenate(differences))) / rows
    size = int(model_of(X[:1_000], Y[:1_000], num_inducing).inducing_variable.num_inducing)
    times = {"seconds": seconds, "cpu_seconds": cpu}
    return times | {"num_inducing": size, "peak_bytes": peak, "differ": differ}


def model_of(X: Any, Y: Any, num_inducing: int) -> Any:
    import gpflow

    import interdomain as idm

    base = gpflow.kernels.Matern32(lengthscales=[0.2, 0.2])
    kernel = idm.kernels.Periodized(base, lower=[-1.5, -1.5], upper=[1.5, 1.5])
    waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, num_inducing)
    prior = idm.kernels.FiniteRank(kernel, waves)
    return idm.models.StructuredSGPR((X, Y), prior, waves, noise_variance=0.1, progress=False)


if __name__ == "__main__":
    sys.exit(FastSums().main())
