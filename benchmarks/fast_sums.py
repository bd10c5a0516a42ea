"""Sums of waves by nonuniform FFTs and by dense products, and a fit of memory-mapped rows.

Rows of two random columns, float64, one output; at most M waves of a box. Each side runs in its own
process, after a pass over 1,000 rows; the clock starts when the model exists.
tables   one pass, as the library does it.
dense    the features of all rows and their products (only for the fewest rows).
file     `fit` of all hyperparameters on rows in memory-mapped files, with its peak memory.
rule     one pass by tables and one by dense sums, in one to three columns: the shortest of three,
         at half, at, and at twice the least number of waves for tables.
sites    one pass of `DualSVGP` for counts by tables and one by dense sums, with the cost of q.
step     one pass, and the first evaluation of the bound with gradients, with its peak memory.
effects  the products of M waves of each of ten columns with those of the other columns, as for main
         effects: by a table for each pair of columns (not in the library), and by dense products.

"dense / this" is the time of a dense pass divided by the time of this side; the time of a dense
pass for "tables" is that of "dense" per row. "differ" is the largest difference between the sums of
"tables" and "dense", divided by the number of rows.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.child import from_child
from benchmarks._lib.memory import CLEAR, peak_of_process
from benchmarks._lib.results import runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import megabytes, tabulated
from interdomain.linalg.wave_tables import BoxWaves, WaveTables
from interdomain.sums import waves

SIZES = (1_000, 3_000)
ROWS = (100_000, 1_000_000, 10_000_000)
SIDES = ("dense", "tables", "file")
FEWEST = (16, 64, 128)
"""The least numbers of waves, in one, two and three columns, for which the library uses tables."""


class FastSums(Benchmark):
    def configurations(self, arguments: Arguments) -> Configurations:
        numbers = (2_000,) if arguments.short else ROWS
        for side in SIDES:
            some = {"dense": numbers[:1], "tables": numbers, "file": numbers[-1:]}[side]
            for size in (200,) if arguments.short else SIZES:
                for rows in some:
                    yield {"side": side, "rows": rows, "num_inducing": size}
        around = (2,) if arguments.short else (1, 2, 4)
        others = [("rule", n, c * m // 2) for n, m in enumerate(FEWEST, 1) for c in around]
        others += [("sites", 2, SIZES[0]), ("step", 2, 10_201)]
        others += [("effects", 10, size) for size in ((10,) if arguments.short else (20, 40, 80))]
        for side, columns, size in others:
            few = side in ("rule", "effects")
            run = {"side": side, "rows": ROWS[not few], "num_inducing": size}
            run |= {"rows": 2_000, "num_inducing": min(size, 200)} if arguments.short else {}
            yield run | {"columns": columns}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        others = {"rule": both_ways, "sites": both_ways, "step": step, "effects": effects}
        function = others.get(configuration["side"], measured)
        found: dict[str, Any] = from_child(function, **configuration)
        return found

    def table(self, records: Records) -> str:
        dense = {
            run["num_inducing"]: result["seconds"] / run["rows"]
            for run, result in runs(records)
            if run["side"] == "dense"
        }
        rows = []
        for run, result in runs(records):
            others = result.get("dense_seconds")
            if run["side"] == "tables" and run["num_inducing"] in dense:
                others = dense[run["num_inducing"]] * run["rows"]
            ratio = others / result["seconds"] if others else None
            row = {"columns": 2, **run, **result, "all_rows": run["rows"], "ratio": ratio}
            rows.append(row | {"peak": megabytes(result["peak_bytes"])})
        return tabulated(
            rows,
            "side; columns; rows = all_rows ,; M = num_inducing; s = seconds .3g; "
            "CPU s = cpu_seconds .3g; dense / this = ratio .1f; gradient s = gradient_seconds .1f; "
            "differ = differ .1e; peak",
        )


def drawn(rows: int, columns: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(rows, columns))
    noise = 0.1 * generator.normal(size=(rows, 1))
    return X, np.sin(9 * X[:, :1]) * np.cos(7 * X[:, -1:]) + noise


def measured(*, side: str, rows: int, num_inducing: int) -> dict[str, Any]:
    """The figures of one side, in its own process."""
    X, Y = drawn(rows, 2)
    fewest = waves.FEWEST

    def passed(side: str, count: int) -> tuple[Any, tuple[float, float]]:
        """A model, and the time of its pass, or of `fit`."""
        waves.FEWEST = (rows**2,) * 3 if side == "dense" else fewest
        model = model_of(X[:count], Y[:count], num_inducing)
        if side == "file" and count == rows:
            return model, _timed(lambda: idm.fit(model, progress=False))
        return model, _timed(lambda: model.statistics)

    with tempfile.TemporaryDirectory() as folder:
        if side == "file":
            names = [str(Path(folder) / name) for name in ("X.npy", "Y.npy")]
            np.save(names[0], X)
            np.save(names[1], Y)
            X, Y = (np.load(name, mmap_mode="r") for name in names)
        passed(side, 1_000)
        CLEAR.write_text("5")
        model, (seconds, cpu) = passed(side, rows)
        peak, differ = peak_of_process(), None
        if side == "tables" and rows <= ROWS[0]:
            sums, others = (some.statistics.sums for some in (model, passed("dense", rows)[0]))
            differences = [np.abs(sums[name] - others[name]).ravel() for name in sums]
            differ = float(np.max(np.concatenate(differences))) / rows
    size = int(model.inducing_variable.num_inducing)
    times = {"seconds": seconds, "cpu_seconds": cpu}
    return times | {"num_inducing": size, "peak_bytes": peak, "differ": differ}


def both_ways(*, side: str, rows: int, num_inducing: int, columns: int) -> dict[str, Any]:
    """The times of one pass by tables and one by dense sums, of fixed features; in its own
    process."""
    X, Y = drawn(rows, columns)
    seconds, size = [], 0
    for fewest in (rows**2, 1):
        waves.FEWEST = (fewest,) * 3
        if side == "rule":
            model = model_of(X[:1_000], Y[:1_000], num_inducing)
            _, *times = (_timed(partial(model.accumulate, (X, Y))) for _ in range(4))
        else:
            counts = np.floor(np.exp(Y) + 0.5)
            model = model_of(X, counts, num_inducing, counts=True)
            model.sites_of(X[:1_000], counts[:1_000])  # compiles
            times = [_timed(model.pass_over_data)]
        seconds.append(min(times))
        size = int(model.inducing_variable.num_inducing)
    (dense, _), (wall, cpu) = seconds
    found = {"seconds": wall, "cpu_seconds": cpu, "dense_seconds": dense}
    return found | {"num_inducing": size, "peak_bytes": peak_of_process()}


def step(*, side: str, rows: int, num_inducing: int, columns: int) -> dict[str, Any]:
    """The times of one pass, and of one evaluation with gradients; in its own process."""
    X, Y = drawn(rows, columns)
    model = model_of(X, Y, num_inducing)
    wall, cpu = _timed(lambda: model.statistics)

    def gradients() -> Any:
        with tf.GradientTape() as tape:
            loss = model.training_loss()
        return tape.gradient(loss, model.trainable_variables)

    found = {"seconds": wall, "cpu_seconds": cpu, "gradient_seconds": _timed(gradients)[0]}
    size = int(model.inducing_variable.num_inducing)
    return found | {"num_inducing": size, "peak_bytes": peak_of_process()}


def effects(*, side: str, rows: int, num_inducing: int, columns: int) -> dict[str, Any]:
    """The times of products of waves between columns; in its own process."""
    X, _ = drawn(rows, columns)
    numbers, none = np.arange(1, num_inducing + 1), np.zeros(num_inducing, int)
    functions = np.stack([np.r_[numbers, none], np.r_[none, numbers]], axis=1)
    orders, ones = np.arange(1, num_inducing // 2 + 1), np.ones((rows, 1))

    def dense() -> None:
        waves = np.exp(np.pi * 1j * orders[:, None, None] * X.T).reshape(-1, rows)
        features = np.concatenate([waves.real, waves.imag])
        features @ features.T

    def by_tables() -> None:
        for pair in itertools.combinations(range(columns), 2):
            waves = BoxWaves(np.array(pair), -np.ones(2), np.full(2, 2.0), functions)
            tables = WaveTables(waves)
            tables.gram(tables.table(X, ones)[0])

    (seconds, _), (wall, cpu) = (min(_timed(way) for _ in range(3)) for way in (dense, by_tables))
    found = {"seconds": wall, "cpu_seconds": cpu, "dense_seconds": seconds}
    return found | {"num_inducing": num_inducing, "peak_bytes": peak_of_process()}


def _timed(function: Callable[[], Any]) -> tuple[float, float]:
    """The seconds of the wall clock, and CPU seconds."""
    started, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - started, time.process_time() - cpu


def model_of(X: Any, Y: Any, num_inducing: int, *, counts: bool = False) -> Any:
    ends = np.full(X.shape[1], 1.5)
    base = gpflow.kernels.Matern32(lengthscales=ends / 7.5)
    kernel = idm.kernels.Periodized(base, lower=-ends, upper=ends)
    waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, num_inducing)
    prior = idm.kernels.FiniteRank(kernel, waves)
    if counts:
        likelihood = gpflow.likelihoods.Poisson()
        return idm.models.DualSVGP((X, Y), prior, likelihood, waves, progress=False)
    return idm.models.StructuredSGPR((X, Y), prior, waves, noise_variance=0.1, progress=False)


if __name__ == "__main__":
    FastSums.command()
