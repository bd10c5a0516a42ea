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
gpytorch_M    GPyTorch's SVGP, the same points and kernel, Adam 0.01, single precision, its default;
              left out if it is not installed
exact         GPflow's GPR on 2,000 rows
boosting      scikit-learn's gradient boosting; the variance is that of the residuals of a tenth of
              the rows
the others    what `diagnostics.candidates` has for the data, of M = 500, waves 1,000; of
              M = 200 harmonics_200, effects_200, orthogonal points_200
main effects  `fit_additive` of 100 features of single columns
recommend     which of these `diagnostics.recommend` names after 60 seconds
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import add_data_argument, for_a_process, source_of
from benchmarks._lib.gpytorch import has_gpytorch
from benchmarks._lib.race import Rows
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.table_models import boosting
from benchmarks.pareto.data_sets import CLASSES, DATA, MADE, TWO_COLUMNS, rows_of
from benchmarks.pareto.pictures import draw_curves
from benchmarks.pareto.verdicts import OURS, table_of

BUDGETS = (10.0, 20.0, 40.0, 80.0, 120.0)
STOCK = ("svgp_500", "svgp_200", "svgp_1000", "svgp_500_adam")
GPYTORCH = "gpytorch_500"
ORIENTATION = (GPYTORCH, "exact", "boosting")
METHODS = (*STOCK, *OURS, *ORIENTATION, "recommend")
OF_IMAGES = (
    *(*STOCK, GPYTORCH, "recommend"),
    *("patches", "orthogonal points", "orthogonal points_200"),
)
MAIN_EFFECTS = "main effects"
FEW = 100
OF_NUMBERS = ("exact", "boosting", "effects and harmonics", MAIN_EFFECTS)
"""Not of classes."""
ROWS_EXACT = 2_000
MOST_TESTED = 10_000
SECONDS_TO_RECOMMEND = 60.0


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
            if method == GPYTORCH and not has_gpytorch(self.name):
                continue
            for data in arguments.datasets or (("terrain",) if short else DATA):
                if fits(method, data):
                    yield {
                        "data": data,
                        "method": method,
                        "num_inducing": 20 if short else 500,
                        "rows": 500 if short else None,
                        "seconds": [0.5, 1.0] if short else list(BUDGETS),
                        "source": "libraries" if data in MADE else source_of(arguments.data_dir),
                    }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        return dict(from_child(measured, **for_a_process(configuration, arguments.data_dir)))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        draw_curves(folder, records)


def fits(method: str, data: str) -> bool:
    """Whether the method is for such data."""
    if data == "mnist":
        return method in OF_IMAGES
    if method == "waves":
        return data in TWO_COLUMNS
    if method in OF_NUMBERS:
        return data not in CLASSES
    return method != "patches"


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
    train, held_out = rows_of(data, folder)
    order = np.random.default_rng(0).permutation(len(train[0]))[:rows]
    train = (train[0][order], train[1][order])
    held_out = (held_out[0][:MOST_TESTED], held_out[1][:MOST_TESTED])
    if method == "boosting":
        (point,) = boosting(train, held_out, 0, clock=time.process_time)["trace"]
        trace = [{"seconds": point["seconds"], "log_density": -point["nll"], "rmse": point["rmse"]}]
        return {"trace": trace, "num_rows": len(train[0])}
    if method == GPYTORCH:
        from benchmarks.pareto.gpytorch_side import trained

        found = trained(train, held_out, num_inducing, seconds, classes=data in CLASSES)
        return {**found, "num_rows": len(train[0])}
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
    name, *rest = method.split("_")
    kind = "points" if name == "svgp" else name
    if rest and rows is None:
        num_inducing = int(rest[0])
    if method == MAIN_EFFECTS:
        return raced(
            method, idm.training.Entrant(main_effects, trained=True), train, held_out, seconds
        )
    started = time.process_time()
    found = idm.diagnostics.candidates(*train, num_inducing=num_inducing, **common)
    if kind not in found:
        return {"trace": [], "num_rows": len(train[0]), "error": "does not fit"}
    entrant = found[kind].entrant
    if found[kind].training == "fit" and kind != "exact":
        own = dict(entrant.arguments)
        del own["steps"]
        if method.endswith("adam"):
            own |= {"natural_gradient": False, "learning_rate": 0.01}
        entrant = idm.training.Entrant(entrant.build, own)
    prepared = time.process_time() - started
    return {**raced(method, entrant, train, held_out, seconds), "choosing_seconds": prepared}


def raced(
    method: str, entrant: Any, train: Rows, held_out: Rows, seconds: Sequence[float]
) -> dict[str, Any]:
    """What the test rows say of a model at the budgets."""
    import interdomain as idm

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
        "error": entry.error,
        "num_rows": len(train[0]),
    }


def main_effects(rows: Rows) -> Any:
    """Of few features."""
    import interdomain as idm

    return idm.training.fit_additive(rows, FEW, effects="main", progress=False).model


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
