"""Natural gradients: what a step costs beside one of Adam, and what they reach at equal seconds.

Seconds of a step of `training.fit` (`--kinds step`): a full q, 1,000 rows of eight columns,
Matern-5/2, Gaussian likelihood; points in stock SVGP (M of them), AdditiveSVGP (two blocks of M/2)
and OrthogonalSVGP (M/2 and M/2). Sides take turns; a sample is the median of the steps of one fit
but its first two, of which one compiles. Aim: one gradient at most 1.25 times Adam.
adam            Adam for everything
one_gradient    natural gradients for q, Adam for the rest, both from one gradient

Held-out log density at equal seconds (`--kinds race`): kin8nm and power, the first split, as they
are under a Gaussian likelihood, and above and below the median under a Bernoulli one; minibatches
of 1,000 and Adam 0.03 for all but q. Evaluations do not count, tracing does.
adam_diagonal         a diagonal q over 1,000 harmonics with the most prior variance (scales from
                      3,000 rows with whole low degrees, not counted), by the same Adam
natural_diagonal      ... by natural gradients of the default sizes
constant_diagonal     ... by natural gradients of size 0.1
natural_full          stock SVGP with 300 points and a full q, natural gradients, default sizes
adam_full             ... by the same Adam
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import Array, add_data_argument, load_table, source_of
from benchmarks._lib.race import Rows, density_trace
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.splits import normalise, take_split
from benchmarks._lib.table_models import chosen_for_regression
from benchmarks._lib.tables import markdown, spread
from benchmarks._lib.timing import ratio, summarise

KINDS = ("step", "race")
MODELS = ("SVGP", "AdditiveSVGP", "OrthogonalSVGP")
SIDES: dict[str, dict[str, Any]] = {
    "adam": {"optimizer": 0.01, "natural_gradient": False},
    "one_gradient": {"natural_gradient": True},
}
AIM = 1.25
DATA = ("kin8nm", "power")
LIKELIHOODS = ("Gaussian", "Bernoulli")
METHODS: dict[str, dict[str, Any]] = {
    "adam_diagonal": {"natural_gradient": False},
    "natural_diagonal": {"natural_gradient": True},
    "constant_diagonal": {"natural_gradient": 0.1},
    "adam_full": {"natural_gradient": False},
    "natural_full": {"natural_gradient": True},
}
RATE = 0.03
BUDGETS = (5.0, 10.0, 20.0)


class NaturalGradients(Benchmark):
    __doc__ = __doc__
    name = "natural_gradients"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--kinds", type=names(KINDS, "kinds"), default=KINDS)
        parser.add_argument("--methods", type=names(tuple(METHODS), "methods"), default=None)
        parser.add_argument("--rounds", type=int, default=None, help="of steps, default 9")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        if "step" in arguments.kinds:
            for model in MODELS:
                for size in (20,) if short else (500, 1_000):
                    rounds = arguments.rounds or (2 if short else 9)
                    yield {"kind": "step", "model": model, "num_inducing": size, "rounds": rounds}
        if "race" in arguments.kinds:
            for data in ("made_up",) if short else DATA:
                for likelihood in LIKELIHOODS:
                    for method in arguments.methods or METHODS:
                        yield {
                            "kind": "race",
                            "data": data,
                            "likelihood": likelihood,
                            "method": method,
                            "num_inducing": (
                                20 if short else 1_000 if method.endswith("diagonal") else 300
                            ),
                            "seconds": [0.05, 0.1] if short else list(BUDGETS),
                            "source": "made up" if short else source_of(arguments.data_dir),
                        }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        given = {k: v for k, v in configuration.items() if k not in ("kind", "source")}
        if configuration["kind"] == "race":
            given["data_dir"] = None if arguments.data_dir is None else str(arguments.data_dir)
            result: dict[str, Any] = from_child(race, **given)
            return result
        return dict(from_child(seconds_of_steps, **given))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def seconds_of_steps(*, model: str, num_inducing: int, rounds: int) -> dict[str, Any]:
    """Seconds of a step of each side, and their ratios to Adam's."""
    import interdomain as idm

    data = rows(1_000)
    models = {side: model_of(model, num_inducing, data[0]) for side in SIDES}
    samples: dict[str, list[float]] = {side: [] for side in SIDES}
    for k in range(rounds):
        for side in [*SIDES][k % len(SIDES) :] + [*SIDES][: k % len(SIDES)]:
            stamps: list[float] = []
            idm.fit(
                models[side],
                data,
                steps=7,
                callbacks=[lambda step, model, stamps=stamps: stamps.append(time.perf_counter())],
                every=1,
                progress=False,
                **SIDES[side],
            )
            samples[side].append(statistics.median(np.diff(stamps)[1:]))
    return {
        "seconds": {side: summarise(values) for side, values in samples.items()},
        "ratios": {side: ratio(samples, side, "adam") for side in SIDES},
    }


def rows(count: int) -> Rows:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 8))
    f = np.sin(2 * X[:, :1]) * np.cos(X[:, 1:2]) + X[:, 2:3]
    return X, f + 0.1 * rng.normal(size=f.shape)


def model_of(name: str, num_inducing: int, X: Array) -> Any:
    import gpflow

    import interdomain as idm

    def points(some: Array) -> Any:
        return gpflow.inducing_variables.InducingPoints(some.copy())

    kernels = [gpflow.kernels.Matern52(lengthscales=np.full(X.shape[1], 3.0)) for _ in range(2)]
    likelihood, half = gpflow.likelihoods.Gaussian(0.1), num_inducing // 2
    first, second = X[:half], X[half:num_inducing]
    if name == "SVGP":
        return gpflow.models.SVGP(kernels[0], likelihood, points(X[:num_inducing]))
    if name == "AdditiveSVGP":
        both = idm.inducing_variables.SumInducingVariables([points(first), points(second)])
        return idm.models.AdditiveSVGP(kernels[0] + kernels[1], likelihood, both)
    return idm.models.OrthogonalSVGP(kernels[0], likelihood, points(first), points(second))


def race(
    *,
    data: str,
    likelihood: str,
    method: str,
    num_inducing: int,
    seconds: Sequence[float],
    data_dir: str | None,
) -> dict[str, Any]:
    """Train one model on one table; evaluated whenever one of the times has passed."""
    import gpflow

    train, (X_test, Y_test) = table_rows(data, data_dir)
    if method.endswith("diagonal"):
        kernel, inducing_variable = chosen_for_regression(
            train, num_inducing, 1 if num_inducing < 100 else 2
        )
    else:
        kernel, inducing_variable = points(train, num_inducing)
    if likelihood == "Bernoulli":
        median = np.median(train[1])
        train, Y_test = (train[0], (train[1] > median) * 1.0), (Y_test > median) * 1.0
        of_rows = gpflow.likelihoods.Bernoulli()
    else:
        of_rows = gpflow.likelihoods.Gaussian(0.1)
    model = gpflow.models.SVGP(
        kernel,
        of_rows,
        inducing_variable,
        q_diag=method.endswith("diagonal"),
        num_data=len(train[0]),
    )
    started = time.perf_counter()
    trace = density_trace(
        model, train, (X_test, Y_test), seconds, started, optimizer=RATE, **METHODS[method]
    )
    return {"trace": trace}


def table_rows(data: str, data_dir: str | None) -> tuple[Rows, Rows]:
    """Rows to train with and rows held out, normalised."""
    if data == "made_up":
        X, Y = rows(1_000)
        return (X[:800], Y[:800]), (X[800:], Y[800:])
    split = normalise(take_split(load_table(data, None if data_dir is None else Path(data_dir)), 0))
    return (split.X_train, split.Y_train), (split.X_test, split.Y_test)


def points(data: Rows, num_inducing: int) -> tuple[Any, Any]:
    """Rows of the data, which are trained."""
    import gpflow

    X = data[0]
    chosen = np.random.default_rng(0).choice(len(X), num_inducing, replace=False)
    kernel = gpflow.kernels.Matern52(lengthscales=np.full(X.shape[1], np.sqrt(X.shape[1])))
    return kernel, gpflow.inducing_variables.InducingPoints(X[chosen])


def table_of(records: Sequence[Record]) -> str:
    """A row for each model and size, and for each race; the best of a race at each time in bold."""
    kinds = {kind: [r for r in records if r["configuration"]["kind"] == kind] for kind in KINDS}
    parts = [table(kinds[k]) for k, table in (("step", _steps), ("race", _races)) if kinds[k]]
    return "\n\n".join(parts)


def _steps(records: Sequence[Record]) -> str:
    lines = []
    for record in records:
        run, result = record["configuration"], record["result"]
        found = result["ratios"]["one_gradient"]["median"]
        lines.append(
            (
                run["model"],
                run["num_inducing"],
                *(spread(result["seconds"][side]) for side in SIDES),
                *(f"{result['ratios'][side]['median']:.2f}" for side in [*SIDES][1:]),
                f"{AIM}: {'met' if found <= AIM else 'missed'}",
            )
        )
    relative = (f"{side}/adam" for side in [*SIDES][1:])
    return markdown(("model", "M", *SIDES, *relative, "target"), lines)


def _races(records: Sequence[Record]) -> str:
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        run = record["configuration"]
        key = run["data"], run["likelihood"], run["method"].partition("_")[2]
        groups.setdefault(key, []).append(record)
    lines = []
    for (data, likelihood, q), group in groups.items():
        traces = [record["result"]["trace"] for record in group]
        best = [max(one["log_density"] for one in at) for at in zip(*traces, strict=True)]
        for record, trace in zip(group, traces, strict=True):
            values = [one["log_density"] for one in trace]
            marks = ["**" if value == top else "" for value, top in zip(values, best, strict=True)]
            texts = [f"{m}{value:.4f}{m}" for m, value in zip(marks, values, strict=True)]
            method = record["configuration"]["method"].partition("_")[0]
            lines.append((data, likelihood, q, method, *texts, f"{trace[-1]['steps']:,.0f}"))
    times = records[0]["configuration"]["seconds"]
    headers = ("data", "likelihood", "q", "method", *(f"{time:g} s" for time in times), "steps")
    return markdown(headers, lines)


if __name__ == "__main__":
    sys.exit(NaturalGradients().main())
