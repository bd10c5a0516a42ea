"""Test log density and RMSE against seconds: GPflow's SVGP, boosted trees, an exact GP and ours.

Nine data sets: kin8nm, power, protein, keggdirected (first split), beijing_pm25 (a tenth held out),
flights (200,000 made-up rows, as in `airline_scale`: the delay), terrain (the mountain range that
ships with matplotlib), banana and mnist, zeros against ones (Bernoulli). Each model runs in a
process of its own, on the seconds of its processors (`training.race(clock="cpu")`); imports and
predictions of test rows do not count, k-means, tracing and everything else does. Columns and the
target of a regression are standardised.
svgp_M        GPflow's SVGP with M points (k-means), Matern-5/2 with a lengthscale for each column,
              natural gradients and Adam, minibatches of 1,000: the defaults of `training.race`
svgp_M_adam   ... Adam 0.01 for all
exact         GPflow's GPR on 2,000 rows
boosting      scikit-learn's gradient boosting; the variance is that of the residuals of a tenth of
              the rows
the others    what `diagnostics.candidates` has for the data, of M = 500, waves 1,000
recommend     which of these `diagnostics.recommend` names after 60 seconds
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import (
    add_data_argument,
    load_arrays,
    load_images,
    only_classes,
    source_of,
)
from benchmarks._lib.flight_table import flights
from benchmarks._lib.image_models import labelled_rows
from benchmarks._lib.mixed_tables import BEIJING, data_of, indicators
from benchmarks._lib.race import Rows
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.splits import Split, normalise, seeded_rows
from benchmarks._lib.table_models import boosting
from benchmarks._lib.tables import markdown

TABLES = ("kin8nm", "power", "protein", "keggdirected", BEIJING)
CLASSES = ("banana", "mnist")
DATA = (*TABLES, "flights", "terrain", *CLASSES)
BUDGETS = (10.0, 20.0, 40.0, 80.0, 120.0)
STOCK = ("svgp_500", "svgp_200", "svgp_1000", "svgp_500_adam")
ORIENTATION = ("exact", "boosting")
OURS = (
    "harmonics",
    "effects",
    "waves",
    "patches",
    "effects and harmonics",
    "harmonics with diagonal q",
    "blocks",
    "orthogonal points",
    "harmonics with full q",
)
METHODS = (*STOCK, *OURS, *ORIENTATION, "recommend")
FLIGHTS = 200_000
ROWS_EXACT = 2_000
MOST_TESTED = 10_000
SECONDS_TO_RECOMMEND = 60.0
AS_GOOD = 0.03
"""Nats a row that the model named by `recommend` may be behind the best."""


class Pareto(Benchmark):
    __doc__ = __doc__
    name = "pareto"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(DATA, "data sets"), default=None)
        parser.add_argument(
            "--methods", type=names(METHODS, "methods"), default=None, help="those that fit"
        )

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for method in arguments.methods or (("svgp_200", "waves") if short else METHODS):
            for data in arguments.datasets or (("terrain",) if short else DATA):
                if fits(method, data):
                    yield {
                        "data": data,
                        "method": method,
                        "num_inducing": 20 if short else 500,
                        "rows": 500 if short else None,
                        "seconds": [0.5, 1.0] if short else list(BUDGETS),
                        "source": "libraries"
                        if data in ("terrain", "flights")
                        else source_of(arguments.data_dir),
                    }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        given = {k: v for k, v in configuration.items() if k != "source"}
        folder = None if arguments.data_dir is None else str(arguments.data_dir)
        return dict(from_child(measured, data_dir=folder, **given))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def fits(method: str, data: str) -> bool:
    """Whether the method is for such data."""
    few_columns = data in ("terrain", "banana")
    wanted = {
        "waves": few_columns,
        "patches": data == "mnist",
        "effects and harmonics": data not in CLASSES,
        "boosting": data not in CLASSES,
        "exact": data not in CLASSES,
        "blocks": data != "mnist",
    }
    return wanted.get(method, data != "mnist" or method.startswith(("svgp", "orth", "recommend")))


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
    folder = None if data_dir is None else Path(data_dir)
    train, held_out = READERS.get(data, _table)(data, folder)
    order = np.random.default_rng(0).permutation(len(train[0]))[:rows]
    train = (train[0][order], train[1][order])
    held_out = (held_out[0][:MOST_TESTED], held_out[1][:MOST_TESTED])
    if method == "boosting":
        return {**boosting(train, held_out, 0), "num_rows": len(train[0])}
    import interdomain as idm

    likelihood, shape = None, (28, 28) if data == "mnist" else None
    if data in CLASSES:
        import gpflow

        likelihood = gpflow.likelihoods.Bernoulli()
    common: dict[str, Any] = {"likelihood": likelihood, "image_shape": shape}
    if method == "recommend":
        return recommended(train, common, 8.0 if rows else SECONDS_TO_RECOMMEND)
    if method == "exact":
        train = (train[0][:ROWS_EXACT], train[1][:ROWS_EXACT])
    kind = "points" if method.startswith("svgp") else method
    if kind == "points":
        num_inducing = int(method.split("_")[1]) if rows is None else num_inducing
    started = time.process_time()
    found = idm.diagnostics.candidates(*train, num_inducing=num_inducing, **common)
    if kind not in found:
        return {"trace": [], "num_rows": len(train[0]), "error": "does not fit"}
    entrant = found[kind].entrant
    if found[kind].training == "fit" and kind != "exact":
        own = dict(entrant.arguments)
        del own["steps"]
        if method.endswith("adam"):
            own |= {"natural_gradient": None, "learning_rate": 0.01}
        entrant = idm.training.Entrant(entrant.build, own)
    prepared = time.process_time() - started
    race = idm.training.race(
        {method: entrant},
        train,
        list(seconds),
        validation_data=held_out,
        clock="cpu",
        progress=False,
    )
    entry = race.entries[method]
    return {
        "trace": [
            {"seconds": one.seconds, "log_density": one.log_density, "rmse": one.rmse}
            for one in entry.trace
        ],
        "startup_seconds": entry.startup_seconds,
        "choosing_seconds": prepared,
        "error": entry.error,
        "num_rows": len(train[0]),
    }


def recommended(train: Rows, common: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """What `diagnostics.recommend` names, and what the small versions predicted."""
    import interdomain as idm

    found = idm.diagnostics.recommend(*train, seconds=seconds, **common, progress=False)
    entries = {} if found.race is None else found.race.entries
    return {
        "trace": [],
        "named": found.name,
        "seconds": found.seconds,
        "tried": {
            name: entry.trace[-1].log_density if entry.trace else entry.error
            for name, entry in entries.items()
        },
        "not_tried": list(found.not_tried),
        "num_rows": len(train[0]),
    }


def _table(name: str, folder: Path | None) -> tuple[Rows, Rows]:
    found = data_of(name, 0, None, None if folder is None else str(folder))
    X_train, X_test = indicators(found)
    own = normalise(found.split)
    return (X_train, own.Y_train), (X_test, own.Y_test)


def _halves(split: Split) -> tuple[Rows, Rows]:
    own = normalise(split)
    return (own.X_train, own.Y_train), (own.X_test, own.Y_test)


def _flights(_: str, __: Path | None) -> tuple[Rows, Rows]:
    parts = [
        [np.concatenate(part) for part in zip(*flights(0, count, test=test), strict=True)]
        for count, test in ((FLIGHTS, False), (FLIGHTS // 10, True))
    ]
    return _halves(Split(*parts[0], *parts[1]))


def _terrain(_: str, __: Path | None) -> tuple[Rows, Rows]:
    from matplotlib.cbook import get_sample_data

    with get_sample_data("jacksboro_fault_dem.npz") as file:
        height = file["elevation"].astype(float)
    X, Y = np.argwhere(np.isfinite(height)) / 100.0, height.reshape(-1, 1)
    train, test = seeded_rows(len(X), 0)
    return _halves(Split(X[train], Y[train], X[test], Y[test]))


def _banana(_: str, folder: Path | None) -> tuple[Rows, Rows]:
    arrays = {name: values.astype(float) for name, values in load_arrays("banana", folder).items()}
    mean, scale = arrays["X"].mean(axis=0), arrays["X"].std(axis=0)
    return (
        ((arrays["X"] - mean) / scale, arrays["Y"]),
        ((arrays["X_test"] - mean) / scale, arrays["Y_test"]),
    )


def _zeros_and_ones(_: str, folder: Path | None) -> tuple[Rows, Rows]:
    images = only_classes(load_images("mnist", folder), 2)
    rows = labelled_rows(images, train=len(images.X_train), test=10_000, seed=0)
    return (rows.X_train, rows.Y_train), (rows.X_test, rows.Y_test)


READERS: Mapping[str, Any] = {
    "flights": _flights,
    "terrain": _terrain,
    "banana": _banana,
    "mnist": _zeros_and_ones,
}


def at(trace: Sequence[Mapping[str, float]], seconds: float) -> Mapping[str, float] | None:
    """The last point that was there by then, or hardly later."""
    points = [point for point in trace if point["seconds"] <= 1.05 * seconds]
    return points[-1] if points else None


def table_of(records: Sequence[Record]) -> str:
    """For each set the log densities at the budgets, all methods; and when stock SVGP's is
    reached."""
    texts, summary = [], []
    for data in DATA:
        found = {
            record["configuration"]["method"]: record["result"]
            for record in records
            if record["configuration"]["data"] == data and record["result"]["trace"]
        }
        if not found:
            continue
        budgets = next(r for r in records if r["configuration"]["data"] == data)["configuration"]
        times = budgets["seconds"]
        rows = []
        for method, result in found.items():
            points = [at(result["trace"], seconds) for seconds in times]
            last = result["trace"][-1]
            rows.append(
                (
                    method,
                    *["-" if p is None else f"{density_of(p):.4f}" for p in points],
                    f"{density_of(last):.4f} ({last['seconds']:.0f} s)",
                    f"{last['rmse']:.4f}",
                )
            )
        headers = (data, *[f"{seconds:g} s" for seconds in times], "in the end", "RMSE")
        texts.append(markdown(headers, rows))
        summary.append((data, *_verdict(found, times), *_named(data, found, records)))
    headers = (
        "data",
        "svgp_500 at last",
        "ours gets there",
        "in",
        "in front at",
        "best of ours",
        "recommended",
        "behind the best",
    )
    return "\n\n".join([*texts, markdown(headers, summary)])


def density_of(point: Mapping[str, float]) -> float:
    return float(point.get("log_density", -point.get("nll", np.nan)))


def _verdict(found: Mapping[str, Any], times: Sequence[float]) -> tuple[str, ...]:
    stock = {name: r["trace"] for name, r in found.items() if name.startswith("svgp")}
    ours = {name: r["trace"] for name, r in found.items() if name in OURS}
    if "svgp_500" not in stock or not ours:
        return ("-",) * 5
    goal = density_of(stock["svgp_500"][-1])
    reached = [
        (point["seconds"], name)
        for name, trace in ours.items()
        for point in trace
        if density_of(point) >= goal
    ]
    front = [
        f"{seconds:g}" for seconds in times if _best(ours, seconds)[0] > _best(stock, seconds)[0]
    ]
    density, best = _best(ours, times[-1])
    first = min(reached, default=None)
    return (
        f"{goal:.4f}",
        "never" if first is None else first[1],
        "-" if first is None else f"{first[0]:.0f} s",
        " ".join(front) or "none",
        f"{best} {density:.4f}",
    )


def _named(data: str, found: Mapping[str, Any], records: Sequence[Record]) -> tuple[str, str]:
    """The candidate that `recommend` named, and how far it is behind the best of all, each at its
    last."""
    own = [
        record["result"]["named"]
        for record in records
        if record["configuration"]["data"] == data and "named" in record["result"]
    ]
    last = {
        {"svgp_500": "points"}.get(name, name): density_of(result["trace"][-1])
        for name, result in found.items()
        if name in (*OURS, "svgp_500", "exact")
    }
    if not own or own[-1] not in last:
        return (own[-1] if own else "-", "-")
    return own[-1], f"{max(last.values()) - last[own[-1]]:.4f}"


def _best(traces: Mapping[str, Any], seconds: float) -> tuple[float, str]:
    found = [
        (density_of(point), name)
        for name, trace in traces.items()
        if (point := at(trace, seconds)) is not None
    ]
    return max(found, default=(-np.inf, "-"))


if __name__ == "__main__":
    sys.exit(Pareto().main())
