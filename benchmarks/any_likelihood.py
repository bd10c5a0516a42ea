"""Classification and counts: collapsed passes beside minibatches, held-out log density by seconds.

kin8nm, protein and power, the first split, the target above its median or not (`--data-dir`);
flights, made up as in `airline_scale`, late by more than 15 minutes or not; counts at 30,000 places
of the earth, Poisson with a rate of three to the power of the standardised elevation (`etopo20`, or
without --data-dir a made-up field); magic, showers of gamma rays and of hadrons, the first of five
shuffled folds of seed 10, columns in [0, 1], as in GPBoost's full-scale Vecchia paper. Each model
runs in a process of its own. The clock starts with the rows in memory and k-means done; imports and
evaluations do not count, tracing does.
collapsed          `DualSVGP` over harmonics, `fit`; one point, at its end
collapsed_by_data  ... harmonics that the data choose, `fit(num_inducing=)`; tables and
                   flights
diagonal_adam      the same harmonics with a diagonal q, minibatches of 1,000, Adam 0.03 for all
diagonal_natural   ... natural gradients of the default sizes for q
full_natural       ... a full q
svgp_200, svgp_500 stock points (k-means) with a Matern-5/2 that has a lengthscale for each column,
                   natural gradients of 0.1 (0.01 first), Adam 0.01
gpboost_20         magic: GPBoost's Vecchia and Laplace approximations, 20 neighbours, a Matern-3/2,
                   probit, its defaults; one point, at its end
Harmonics of tables are chosen, and have their input scales from what `collapsed` does on a subset,
in its seconds; in those of the others, too. Harmonics of the earth need no subset.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib import race
from benchmarks._lib.child import from_child
from benchmarks._lib.data import for_a_process, load_table, source_of
from benchmarks._lib.elevations import globe, grid, rows_of, unit_rows
from benchmarks._lib.flight_table import flights
from benchmarks._lib.mixed_tables import rows_of_fold
from benchmarks._lib.race import Rows, density_trace, log_density, stock
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.splits import normalise, take_split
from benchmarks._lib.table_models import chosen_harmonics, low_degrees
from benchmarks._lib.tables import markdown

TABLES = ("kin8nm", "protein", "power")
DATA = (*TABLES, "flights", "counts", "magic")
HARMONICS = ("collapsed", "diagonal_adam", "diagonal_natural", "full_natural")
GPBOOST = "gpboost_20"
METHODS = (*HARMONICS, "collapsed_by_data", "svgp_200", "svgp_500", GPBOOST)
OF_LABELS = (*TABLES, "flights", "magic")
BUDGETS = (10.0, 20.0, 40.0, 80.0, 120.0)
ROWS = {"flights": 200_000, "counts": 30_000}
MOST_SECONDS = 900.0  # of any model, tracing and evaluations included
LATE = 15.0
RATE = 0.03
LIKELIHOODS = dict.fromkeys(DATA, gpflow.likelihoods.Bernoulli)
LIKELIHOODS["counts"] = gpflow.likelihoods.Poisson


class AnyLikelihood(Benchmark, data_dir=str, datasets=DATA, methods=METHODS):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for method in arguments.methods or METHODS:
            for data in arguments.datasets or (("counts",) if short else DATA):
                if method == "collapsed_by_data" and data not in OF_LABELS:
                    continue
                if method == GPBOOST and (data != "magic" or not find_spec("gpboost")):
                    continue
                yield {
                    "data": data,
                    "method": method,
                    "num_inducing": 20 if short else 500,
                    "rows": (600 if short else ROWS.get(data)),
                    "seconds": [0.2, 0.4] if short else list(BUDGETS),
                    "source": "made up" if data == "flights" else source_of(arguments.data_dir),
                }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        given = for_a_process(configuration, arguments)
        return dict(from_child(measured, most_seconds=MOST_SECONDS, **given))

    def table(self, records: Records) -> str:
        """A row for each model: log densities at the times; and when collapsed has its optimum."""
        lines, notes = [], []
        for record in records:
            run, result = record["configuration"], record["result"]
            texts = [
                f"{one['log_density']:.4f} ({one['seconds']:.0f} s)"
                for one in result.get("trace", ())
            ]
            if "not_done_after" in result:
                texts = [f"not done after {result['not_done_after']:.0f} s"]
            lines.append((run["data"], run["method"], run["num_inducing"], ", ".join(texts)))
            if "elbos" in result:
                elbos = result["elbos"]
                near = next(k for k, one in enumerate(elbos, 1) if one >= max(elbos) - 0.1)
                notes.append(
                    f"{run['data']}, {run['method']}: {len(elbos)} passes "
                    f"({result['reason']}), within 0.1 nats of the last after "
                    f"{near}; {result['subset_seconds']:.1f} s on "
                    f"subsets, {result['pass_seconds']:.1f} s of passes"
                )
        return "\n\n".join([markdown(("data", "method", "M", "log density"), lines), *notes])


def measured(**run: Any) -> Entries:
    """Train one model, in a process of its own."""
    data, method, rows = run["data"], run["method"], run["rows"]
    train, held_out = READERS.get(data, _halves_of_a_table)(data, rows, run["data_dir"])
    train = (train[0][:rows], train[1][:rows]) if data == "magic" else train
    if method == GPBOOST:
        return gpboost(train, held_out)
    if method.startswith("svgp"):
        size = min(int(method.partition("_")[2]), len(train[0]) // 4)
        if data == "counts":
            train, held_out = ((unit_rows(X), Y) for X, Y in (train, held_out))
        return points(train, held_out, size, run["seconds"], data)
    return features(train, held_out, run)


def _halves_of_a_table(name: str, _: int | None, folder: str | None) -> tuple[Rows, Rows]:
    """Columns normalised; whether the target is above its median."""
    split = normalise(take_split(load_table(name, folder), 0))
    middle = np.median(split.Y_train)
    train, test = (split.X_train, split.Y_train), (split.X_test, split.Y_test)
    return (train[0], (train[1] > middle) * 1.0), (test[0], (test[1] > middle) * 1.0)


def _late_flights(_: str, count: int | None, __: str | None) -> tuple[Rows, Rows]:
    assert count is not None
    X, delays = flights(count)
    X_test, delays_test = flights(count // 10, test=True)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    return (
        ((X - mean) / scale, (delays > LATE) * 1.0),
        ((X_test - mean) / scale, (delays_test > LATE) * 1.0),
    )


def _counts_on_earth(_: str, count: int | None, folder: str | None) -> tuple[Rows, Rows]:
    """Degrees, and counts with a rate of three to the power of the standardised elevation."""
    assert count is not None
    latitude, longitude, heights = grid("synthetic" if folder is None else "etopo20", folder, 1)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(heights.size)[: count + count // 10]
    X, heights = rows_of(latitude, longitude)[chosen], heights.reshape(-1, 1)[chosen]
    rate = 3.0 ** ((heights - heights.mean()) / heights.std())
    Y = rng.poisson(rate).astype(float)
    return (X[:count], Y[:count]), (X[count:], Y[count:])


READERS: Mapping[str, Callable[[str, int | None, str | None], tuple[Rows, Rows]]] = {
    "flights": _late_flights,
    "counts": _counts_on_earth,
    "magic": lambda name, _, folder: rows_of_fold(name, folder, 0),
}


def features(train: Rows, held_out: Rows, run: Entries) -> dict[str, Any]:
    """Harmonics: collapsed, or in stock SVGP."""
    method, data, num_inducing = run["method"], run["data"], run["num_inducing"]
    started = time.perf_counter()
    by_data, likelihood = (
        method == "collapsed_by_data",
        LIKELIHOODS[data](),
    )
    if by_data:  # to begin with
        kernel, chosen = low_degrees(train[0])
    elif data == "counts":  # as many degrees as there are features for
        kernel, chosen = globe(int(np.sqrt(num_inducing)) - 1)
    else:
        kernel, chosen = chosen_harmonics(train, likelihood, num_inducing)
    prior = idm.kernels.FiniteRank(kernel, chosen)
    ready = time.perf_counter()
    if method.startswith("collapsed"):
        model = idm.models.DualSVGP(train, prior, likelihood, chosen)
        wanted = {"num_inducing": num_inducing} if by_data else {}
        fit = idm.fit(model, progress=False, **wanted)
        passed = time.perf_counter() - started
        trace = [{"seconds": passed, "log_density": log_density(model, held_out, cached=True)}]
        return {
            "trace": trace,
            "elbos": list(fit.elbos),
            "reason": fit.reason,
            "subset_seconds": ready - started + fit.subset_seconds,
            "pass_seconds": fit.pass_seconds,
        }
    svgp = gpflow.models.SVGP(
        prior, likelihood, chosen, q_diag=method.startswith("diagonal"), num_data=len(train[0])
    )
    optimizer = RATE if method.endswith("natural") else (None, RATE)
    seconds = run["seconds"]
    trace = density_trace(svgp, train, held_out, seconds, started, optimizer=optimizer)
    return {"trace": trace, "subset_seconds": ready - started}


def points(
    train: Rows, held_out: Rows, num_inducing: int, seconds: Sequence[float], data: str
) -> dict[str, Any]:
    """Stock SVGP at centres of k-means."""
    input_dim = train[0].shape[1]
    lengthscales = 0.2 if data == "counts" else np.full(input_dim, np.sqrt(input_dim))
    kernel = gpflow.kernels.Matern52(lengthscales=lengthscales)
    model = stock(train, num_inducing, kernel, 0, LIKELIHOODS[data]())
    started = time.perf_counter()

    def size(step: int) -> float:
        return 0.01 if step < 10 else 0.1

    natural = gpflow.optimizers.NaturalGradient(size)
    trace = density_trace(model, train, held_out, seconds, started, optimizer=natural)
    return {"trace": trace}


def gpboost(train: Rows, held_out: Rows) -> dict[str, Any]:
    started = time.perf_counter()
    options = {"gp_approx": "vecchia", "num_neighbors": 20}
    model = race.gpboost(train, likelihood="bernoulli_probit", **options)
    found = model.predict(gp_coords_pred=held_out[0], predict_response=True)["mu"]
    passed = time.perf_counter() - started
    right = np.where(held_out[1][:, 0] > 0.5, found, 1 - found)
    return {"trace": [{"seconds": passed, "log_density": float(np.mean(np.log(right)))}]}


if __name__ == "__main__":
    AnyLikelihood.command()
