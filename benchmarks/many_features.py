"""Ten thousand features and more by a diagonal q: a step, its memory, and what they are worth.

Steps (`--kinds step`): a stock SVGP with `q_diag=True` under a FiniteRank kernel, minibatches of
1,000 of made-up rows, Adam for everything, by `training.fit`; each configuration in a process of
its own.
harmonics  chosen spherical harmonics of eight columns, input scales trained
frozen     ... input scales as they are
box        Fourier features of a box of three columns, which no parameter moves
"step" is the median of the steps but the first, "features" that of evaluating Kuf of as many rows
alone, compiled. "step MB" is the peak of a few steps above what was resident before them; "process
MB" that of a whole process, in which the features were chosen, too. The picture is
many_features.png.

Held-out log density (`--kinds density`): kin8nm and protein, the first split, M harmonics with the
most prior variance (scales from 3,000 rows with whole low degrees; neither counts), 30 seconds of
natural gradients and Adam 0.03 for the rest; q begins at the prior.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import add_data_argument, load_table, source_of
from benchmarks._lib.memory import peak_bytes, peak_of_process
from benchmarks._lib.race import BATCH_SIZE, Rows, density_trace
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.splits import normalise, take_split
from benchmarks._lib.table_models import chosen_for_regression
from benchmarks._lib.tables import markdown, megabytes, spread
from benchmarks._lib.timing import alternate, summarise

KINDS = ("step", "density")
SIDES = ("harmonics", "frozen", "box")
DATA = ("kin8nm", "protein")
SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
ROWS = 10_000
STEPS, STEPS_FOR_MEMORY = 30, 3
RATE, SECONDS = 0.03, 30.0


class ManyFeatures(Benchmark):
    __doc__ = __doc__
    name = "many_features"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--kinds", type=names(KINDS, "kinds"), default=KINDS)
        parser.add_argument("--sides", type=names(SIDES, "sides"), default=None)
        parser.add_argument("--datasets", type=names(DATA, "data sets"), default=None)
        parser.add_argument("--seconds", type=float, default=None, help="of training, default 30")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        sizes = (20,) if short else SIZES
        if "step" in arguments.kinds:
            for side in arguments.sides or (("frozen", "box") if short else SIDES):
                for size in sizes:
                    yield {
                        "kind": "step",
                        "side": side,
                        "num_inducing": size,
                        "rows": BATCH_SIZE if short else ROWS,
                        "steps": 3 if short else STEPS,
                    }
        if "density" in arguments.kinds:
            for data in arguments.datasets or (("made_up",) if short else DATA):
                for size in sizes:
                    yield {
                        "kind": "density",
                        "data": data,
                        "num_inducing": size,
                        "seconds": arguments.seconds or (0.2 if short else SECONDS),
                        "source": "made up" if short else source_of(arguments.data_dir),
                    }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        given = {k: v for k, v in configuration.items() if k not in ("kind", "source")}
        if configuration["kind"] != "step":
            folder = None if arguments.data_dir is None else str(arguments.data_dir)
            return dict(from_child(densities, data_dir=folder, **given))
        memory = {**given, "steps": STEPS_FOR_MEMORY}
        return {
            **from_child(seconds_of_step, **given),
            "step_bytes": peak_bytes(training, **memory),
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        steps = of_kind(records, "step")
        if steps:
            draw_growth(steps, folder / "many_features.png")


def seconds_of_step(*, side: str, num_inducing: int, rows: int, steps: int) -> dict[str, Any]:
    """Seconds of a step and of the features of its rows, and the memory of this process."""
    import tensorflow as tf
    from gpflow.covariances import Kuf

    import interdomain as idm

    data = made_up(side, rows)
    started = time.perf_counter()
    model = model_of(side, num_inducing, data)
    made = time.perf_counter()
    stamps: list[float] = []
    idm.fit(
        model,
        data,
        batch_size=BATCH_SIZE,
        optimizer=RATE,
        natural_gradient=False,
        steps=steps + 1,
        callbacks=[lambda step, model: stamps.append(time.perf_counter())],
        every=1,
        progress=False,
    )
    peak = peak_of_process()
    batch = tf.constant(data[0][:BATCH_SIZE])
    features = tf.function(lambda X: Kuf(model.inducing_variable, model.kernel, X), autograph=False)
    samples = alternate({"features": lambda: features(batch)}, rounds=max(3, steps // 3))
    return {
        "num_inducing": int(model.inducing_variable.num_inducing),
        "choice_seconds": made - started,
        "step_seconds": summarise(np.diff(stamps).tolist()),
        "features_seconds": summarise(samples["features"]),
        "process_bytes": peak,
    }


def training(*, side: str, num_inducing: int, rows: int, steps: int) -> Callable[[], Any]:
    """A few steps, as a call whose memory is measured."""
    import interdomain as idm

    data = made_up(side, rows)
    model = model_of(side, num_inducing, data)
    return lambda: idm.fit(
        model,
        data,
        batch_size=BATCH_SIZE,
        optimizer=RATE,
        natural_gradient=False,
        steps=steps,
        progress=False,
    )


def made_up(side: str, count: int) -> Rows:
    """Rows of a smooth function with noise; those of a box are spread evenly."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.7, 1.7, size=(count, 3)) if side == "box" else rng.normal(size=(count, 8))
    f = np.sin(2 * X[:, :1]) * np.cos(X[:, 1:2]) + X[:, 2:3]
    return X, f + 0.1 * rng.normal(size=f.shape)


def model_of(side: str, num_inducing: int, data: Rows) -> Any:
    """The SVGP of one side."""
    import gpflow

    import interdomain as idm

    if side == "box":
        base = gpflow.kernels.Matern32(lengthscales=np.full(data[0].shape[1], 0.5))
        kernel = idm.kernels.Periodized.from_data(base, data[0], margin=1.5)
        features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, num_inducing)
    else:
        kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(data[0].shape[1]))
        features = idm.inducing_variables.SphericalHarmonics.for_data(kernel, data[0], num_inducing)
    if side == "frozen":
        gpflow.set_trainable(kernel.weight_variances, False)
        gpflow.set_trainable(kernel.bias_variance, False)
    return diagonal_model(idm.kernels.FiniteRank(kernel, features), features, data)


def diagonal_model(kernel: Any, features: Any, data: Rows) -> Any:
    import gpflow

    return gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(0.1), features, q_diag=True, num_data=len(data[0])
    )


def rows_of(data: str, data_dir: str | None) -> tuple[Rows, Rows]:
    """Rows to train with, and rows held out."""
    if data == "made_up":
        X, Y = made_up("harmonics", 1_000)
        return (X[:800], Y[:800]), (X[800:], Y[800:])
    table = load_table(data, None if data_dir is None else Path(data_dir))
    split = normalise(take_split(table, 0))
    return (split.X_train, split.Y_train), (split.X_test, split.Y_test)


def densities(
    *, data: str, num_inducing: int, seconds: float, data_dir: str | None
) -> dict[str, Any]:
    """The log density of held-out rows of one table after so many seconds of training."""
    train, held_out = rows_of(data, data_dir)
    kernel, features = chosen_for_regression(train, num_inducing, 1 if num_inducing < 100 else 2)
    model = diagonal_model(kernel, features, train)
    started = time.perf_counter()
    trace = density_trace(
        model, train, held_out, [seconds], started, optimizer=RATE, natural_gradient=True
    )
    return {"num_inducing": int(features.num_inducing), **trace[-1]}


def of_kind(records: Sequence[Record], kind: str) -> list[Record]:
    """The records of one kind, those of a side or table together, M rising."""
    found = [record for record in records if record["configuration"]["kind"] == kind]
    return sorted(found, key=lambda record: (_group(record), record["result"]["num_inducing"]))


def _group(record: Record) -> str:
    run = record["configuration"]
    return str(run["side"] if run["kind"] == "step" else run["data"])


def growth(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The exponent of M in the growth from the last size but one to the last."""
    return float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2]))


def table_of(records: Sequence[Record]) -> str:
    """A row for each side and M, and for each table and M; how seconds and memory grow."""
    parts = []
    steps, races = (of_kind(records, kind) for kind in KINDS)
    if steps:
        headers = ("features", "M", "step s", "features s", "step / features", "step MB")
        parts.append(markdown((*headers, "process MB", "choice s"), map(_step_row, steps)))
        parts += [text for side in SIDES if (text := _growth_of(side, steps))]
    if races:
        headers = ("data", "M", "seconds", "steps", "log density")
        parts.append(markdown(headers, map(_density_row, races)))
    return "\n\n".join(parts)


def _step_row(record: Record) -> tuple[object, ...]:
    result = record["result"]
    share = result["step_seconds"]["median"] / result["features_seconds"]["median"]
    return (
        _group(record),
        f"{result['num_inducing']:,}",
        spread(result["step_seconds"]),
        spread(result["features_seconds"]),
        f"{share:.1f}",
        megabytes(result["step_bytes"]),
        megabytes(result["process_bytes"]),
        f"{result['choice_seconds']:.1f}",
    )


def _growth_of(side: str, records: Sequence[Record]) -> str:
    """The exponents of one side, once there are two sizes."""
    results = [record["result"] for record in records if _group(record) == side]
    if len(results) < 2:
        return ""
    sizes = [result["num_inducing"] for result in results]
    seconds = growth(sizes, [result["step_seconds"]["median"] for result in results])
    memory = growth(sizes, [result["step_bytes"] for result in results])
    return (
        f"{side}: from M = {sizes[-2]:,} to {sizes[-1]:,} a step grows as M^{seconds:.2f}, "
        f"its memory as M^{memory:.2f}."
    )


def _density_row(record: Record) -> tuple[object, ...]:
    result = record["result"]
    return (
        _group(record),
        f"{result['num_inducing']:,}",
        f"{result['seconds']:.0f}",
        f"{result['steps']:,.0f}",
        f"{result['log_density']:.4f}",
    )


def draw_growth(records: Sequence[Record], path: Path) -> None:
    """Seconds and memory of a step against M."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    seconds, memory = figure.subplots(1, 2)
    for i, side in enumerate(SIDES):
        results = [record["result"] for record in records if _group(record) == side]
        if not results:
            continue
        sizes = [result["num_inducing"] for result in results]
        steps, features = (
            [result[name]["median"] for result in results]
            for name in ("step_seconds", "features_seconds")
        )
        seconds.plot(sizes, steps, "o-", color=f"C{i}", label=side)
        seconds.plot(sizes, features, "--", color=f"C{i}", lw=1)
        of_steps = [result["step_bytes"] / 1e6 for result in results]
        memory.plot(sizes, of_steps, "o-", color=f"C{i}", label=side)
    seconds.set_title("seconds of a step (dashed: its features alone)", fontsize=9)
    memory.set_title("MB of a step", fontsize=9)
    largest = max(record["result"]["num_inducing"] for record in records)
    ends = np.array([largest / 10, largest])
    memory.plot(ends, ends * BATCH_SIZE * 8 / 1e6, "k--", lw=1, label="Kuf once")
    for axis in (seconds, memory):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("M")
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(ManyFeatures().main())
