"""Classification and counts: collapsed passes beside minibatches, held-out log density by seconds.

kin8nm, protein and power, the first split, the target above its median or not (`--data-dir`);
flights, made up as in `airline_scale`, late by more than 15 minutes or not; counts, made up:
Poisson with a smooth rate of eight columns. Each model runs in a process of its own. The clock
starts with the rows in memory and k-means done; imports and evaluations do not count, tracing does.
collapsed          `CollapsedSVGP` over chosen harmonics, `fit_collapsed`; one point, at its end
diagonal_adam      the same harmonics with a diagonal q, minibatches of 1,000, Adam 0.03 for all
diagonal_natural   ... natural gradients of the default sizes for q
full_natural       ... a full q
svgp_200, svgp_500 stock points (k-means) with a Matern-5/2 that has a lengthscale for each column,
                   natural gradients of 0.1 (0.01 first), Adam 0.01
Harmonics have their input scales from what `collapsed` does on a subset, in its seconds; in those
of the others, too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import Array, add_data_argument, load_table, source_of
from benchmarks._lib.flight_table import flights
from benchmarks._lib.prediction import Predictor
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.splits import normalise, take_split
from benchmarks._lib.tables import markdown

Rows = tuple[Array, Array]

TABLES = ("kin8nm", "protein", "power")
DATA = (*TABLES, "flights", "counts")
METHODS = (
    "collapsed",
    "diagonal_adam",
    "diagonal_natural",
    "full_natural",
    "svgp_200",
    "svgp_500",
)
BUDGETS = (10.0, 20.0, 40.0, 80.0, 120.0)
ROWS = {"flights": 200_000, "counts": 30_000}
LATE = 15.0
BATCH_SIZE, RATE = 1_000, 0.03


class AnyLikelihood(Benchmark):
    __doc__ = __doc__
    name = "any_likelihood"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(DATA, "data sets"), default=None)
        parser.add_argument("--methods", type=names(METHODS, "methods"), default=METHODS)
        parser.add_argument("--num-inducing", type=int, default=500, help="of harmonics")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for data in arguments.datasets or (("counts",) if short else DATA):
            for method in arguments.methods:
                yield {
                    "data": data,
                    "method": method,
                    "num_inducing": 20 if short else arguments.num_inducing,
                    "rows": (600 if short else ROWS.get(data)),
                    "seconds": [1.0, 2.0] if short else list(BUDGETS),
                    "source": source_of(arguments.data_dir) if data in TABLES else "made up",
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        given = {k: v for k, v in configuration.items() if k != "source"}
        folder = None if arguments.data_dir is None else str(arguments.data_dir)
        return dict(from_child(measured, data_dir=folder, **given))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def measured(
    *,
    data: str,
    method: str,
    num_inducing: int,
    rows: int | None,
    seconds: Sequence[float],
    data_dir: str | None,
) -> dict[str, Any]:
    """Train one model, in a process of its own."""
    train, held_out = rows_of(data, rows, data_dir)
    if method.startswith("svgp"):
        size = min(int(method.partition("_")[2]), len(train[0]) // 4)
        return points(train, held_out, size, seconds, counts=data == "counts")
    return harmonics(train, held_out, method, num_inducing, seconds, counts=data == "counts")


def rows_of(data: str, count: int | None, data_dir: str | None) -> tuple[Rows, Rows]:
    """Rows to train with and rows held out; columns of X normalised."""
    if data in TABLES:
        folder = None if data_dir is None else Path(data_dir)
        split = normalise(take_split(load_table(data, folder), 0))
        middle = np.median(split.Y_train)
        train, test = (split.X_train, split.Y_train), (split.X_test, split.Y_test)
        return (train[0], (train[1] > middle) * 1.0), (test[0], (test[1] > middle) * 1.0)
    assert count is not None
    if data == "flights":
        parts = [
            [np.concatenate(part) for part in zip(*flights(0, size, test=test), strict=True)]
            for size, test in ((count, False), (count // 10, True))
        ]
        (X, delays), (X_test, delays_test) = parts
        Y, Y_test = (delays > LATE) * 1.0, (delays_test > LATE) * 1.0
    else:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(count + count // 10, 8))
        rate = np.exp(np.sin(2 * X[:, :1]) + 0.5 * np.cos(X[:, 1:2] * X[:, 2:3]))
        Y = rng.poisson(rate).astype(float)
        X, X_test, Y, Y_test = X[:count], X[count:], Y[:count], Y[count:]
    mean, scale = X.mean(axis=0), X.std(axis=0)
    return ((X - mean) / scale, Y), ((X_test - mean) / scale, Y_test)


def likelihood_of(*, counts: bool) -> Any:
    import gpflow

    return gpflow.likelihoods.Poisson() if counts else gpflow.likelihoods.Bernoulli()


def density(model: Any, held_out: Rows, *, cached: bool) -> float:
    """The mean log density of rows held out."""
    X, Y = held_out
    moments = Predictor(model, X.shape[1], cached=cached)(X)
    return float(np.mean(model.likelihood.predict_log_density(X, *moments, Y)))


def harmonics(
    train: Rows,
    held_out: Rows,
    method: str,
    num_inducing: int,
    seconds: Sequence[float],
    *,
    counts: bool,
) -> dict[str, Any]:
    import gpflow

    import interdomain as idm

    started = time.perf_counter()
    input_dim = train[0].shape[1]
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(input_dim))
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, input_dim, max_degree=2)
    first = idm.models.CollapsedSVGP(
        train, idm.kernels.FiniteRank(kernel, few), likelihood_of(counts=counts), few
    )
    scales = idm.training.fit_collapsed(first, max_passes=1, progress=False)
    chosen = idm.inducing_variables.SphericalHarmonics.for_data(kernel, train[0], num_inducing)
    prior = idm.kernels.FiniteRank(kernel, chosen)
    ready = time.perf_counter()
    if method == "collapsed":
        model = idm.models.CollapsedSVGP(train, prior, first.likelihood, chosen)
        fit = idm.training.fit_collapsed(model, progress=False)
        passed = time.perf_counter() - started
        trace = [{"seconds": passed, "log_density": density(model, held_out, cached=True)}]
        return {
            "trace": trace,
            "elbos": list(fit.elbos),
            "reason": fit.reason,
            "scales_seconds": ready - started,
            "subset_seconds": scales.subset_seconds + fit.subset_seconds,
            "pass_seconds": fit.pass_seconds,
        }
    svgp = gpflow.models.SVGP(
        prior,
        first.likelihood,
        chosen,
        q_diag=method.startswith("diagonal"),
        num_data=len(train[0]),
    )
    natural = {"natural_gradient": True} if method.endswith("natural") else {}
    trace = raced(svgp, train, held_out, seconds, started, learning_rate=RATE, **natural)
    return {"trace": trace, "scales_seconds": ready - started}


def points(
    train: Rows, held_out: Rows, num_inducing: int, seconds: Sequence[float], *, counts: bool
) -> dict[str, Any]:
    import gpflow
    from scipy.cluster.vq import kmeans2

    import interdomain  # noqa: F401 - imports are not counted

    chosen = np.random.default_rng(0).permutation(len(train[0]))[:20_000]
    centres, _ = kmeans2(train[0][chosen], num_inducing, minit="points", seed=0)
    started = time.perf_counter()
    input_dim = train[0].shape[1]
    model = gpflow.models.SVGP(
        gpflow.kernels.Matern52(lengthscales=np.full(input_dim, np.sqrt(input_dim))),
        likelihood_of(counts=counts),
        centres,
        num_data=len(train[0]),
    )

    def size(step: int) -> float:
        return 0.01 if step < 10 else 0.1

    return {"trace": raced(model, train, held_out, seconds, started, natural_gradient=size)}


def raced(
    model: Any,
    train: Rows,
    held_out: Rows,
    seconds: Sequence[float],
    started: float,
    **arguments: Any,
) -> list[dict[str, float]]:
    """The log density whenever one of the times has passed."""
    import interdomain as idm

    trace: list[dict[str, float]] = []
    apart = 0.0

    def look(step: int, model: Any) -> None:
        nonlocal apart
        now = time.perf_counter()
        passed = now - started - apart
        if passed >= seconds[len(trace)]:
            value = density(model, held_out, cached=False)
            trace.append({"seconds": passed, "steps": float(step), "log_density": value})
            apart += time.perf_counter() - now
        if len(trace) == len(seconds):
            raise idm.training.StopFit

    idm.training.fit(
        model,
        train,
        batch_size=min(BATCH_SIZE, len(train[0])),
        steps=10**6,
        callbacks=[look],
        callback_every=5,
        progress=False,
        **arguments,
    )
    return trace


def table_of(records: Sequence[Record]) -> str:
    """A row for each model: log densities at the times; and when collapsed is at its optimum."""
    lines, notes = [], []
    for record in records:
        run, result = record["configuration"], record["result"]
        texts = [f"{one['log_density']:.4f} ({one['seconds']:.0f} s)" for one in result["trace"]]
        lines.append((run["data"], run["method"], run["num_inducing"], ", ".join(texts)))
        if "elbos" in result:
            notes.append(
                f"{run['data']}: {len(result['elbos'])} passes ({result['reason']}), within 0.1 "
                f"nats of the last after {passes_to_optimum(result['elbos'])}; "
                f"{result['subset_seconds']:.1f} s on subsets, {result['pass_seconds']:.1f} s of "
                "passes"
            )
    return "\n\n".join([markdown(("data", "method", "M", "log density"), lines), *notes])


def passes_to_optimum(elbos: Sequence[float], within: float = 0.1) -> int:
    """The number of passes until the bound is as near as that to the best."""
    best = max(elbos)
    return next(number for number, one in enumerate(elbos, 1) if one >= best - within)


if __name__ == "__main__":
    sys.exit(AnyLikelihood().main())
