"""Tables: sums of effects by one call, compared with inducing points, exact GPs and trees.

concrete, energy, power, kin8nm (five splits), protein, keggdirected (one), beijing_pm25 (log of
PM2.5, nine columns and the station; --data-dir), and Friedman's synthetic function of five of ten
columns. A tenth of the rows are test rows; constant columns are left out. Each model runs in its
own process. The clock starts with the rows in memory; it excludes imports and predictions.
additive_M   `fit_additive` with its defaults and M features; columns and target in their units.
svgp_M       gpflow's SVGP with M inducing points (k-means), Matern-5/2 with a lengthscale for each
             column, minibatches of 1,000, natural gradients 0.1 and Adam 0.01. It is evaluated
             after 1, 2 and 4 times the seconds of additive.
gpr          gpflow's GPR with this kernel, L-BFGS; up to 2,000 rows.
boosting     scikit-learn's HistGradientBoostingRegressor, fitted to nine tenths of the training
             rows; its variance is that of the residuals of the last tenth.
svgp and gpr have normalised columns, and one column for each station. Errors are those of
normalised targets; ± is the standard deviation over splits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import interdomain as idm
from benchmarks._lib import race, table_models
from benchmarks._lib.child import from_child
from benchmarks._lib.data import for_a_process, source_of
from benchmarks._lib.mixed_tables import BEIJING, FRIEDMAN, Data, data_of, indicators
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.splits import normalise
from benchmarks._lib.tables import tabulated

SPLITS = dict.fromkeys(("concrete", "energy", "power", "kin8nm"), 5)
SPLITS |= dict.fromkeys(("protein", "keggdirected", BEIJING, FRIEDMAN), 1)
SMALL = ("concrete", "energy")  # sets on which an exact GP is quick
METHODS = ("additive_500", "svgp_500", "gpr", "boosting")
SHORT = ("additive_60", "svgp_20", "gpr", "boosting")
KINDS = ("additive", "svgp", "gpr", "boosting")
TIMES = (1.0, 2.0, 4.0)


class AdditiveTables(
    Benchmark, data_dir=str, datasets=SPLITS, methods=(*KINDS, *METHODS), splits=range
):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        wanted = set(arguments.methods or KINDS)
        for data in arguments.datasets or ((FRIEDMAN,) if short else SPLITS):
            for split in arguments.splits or range(1 if short else SPLITS[data]):
                for method in SHORT if short else METHODS:
                    if method == "gpr" and data not in SMALL and not short:
                        continue
                    if {method, method.partition("_")[0]} & wanted:
                        yield {
                            "data": data,
                            "split": split,
                            "method": method,
                            "rows": (400 if short else 10_000) if data == FRIEDMAN else None,
                            "times": [0.2] if short else list(TIMES),
                            "source": source_of(arguments.data_dir),
                            "seed": 0,
                        }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        given = for_a_process(configuration, arguments)
        all_times = given.pop("times")
        seconds: list[float] = []
        if configuration["method"].startswith("svgp"):
            same = ("data", "split", "rows", "source", "seed")
            wanted = {name: configuration[name] for name in same}
            wanted["method"] = (SHORT if arguments.short else METHODS)[0]
            remedy = "svgp is given the seconds of additive: run --methods additive"
            passed = self.stored(arguments, remedy, **wanted)["trace"][-1]["seconds"]
            seconds = [times * passed for times in all_times]
        return dict(from_child(measured, seconds=seconds, **given))

    def table(self, records: Records) -> str:
        """A row for each model, with means over its splits."""
        found: dict[tuple[str, str, int], list[Entries]] = {}
        order = [(data, kind) for data in SPLITS for kind in KINDS]
        runs = [(one["data"], one["method"].partition("_")[0], one) for one in figures(records)]
        for *_, one in sorted(runs, key=lambda run: (order.index(run[:2]), run[2]["split"])):
            for number, point in enumerate(one["trace"]):
                key = (one["data"], one["method"], number)
                found.setdefault(key, []).append({**one, **point})
        rows = [
            {
                **fits[-1],
                "splits": len(fits),
                "seconds": np.mean([one["seconds"] for one in fits]),
                **{name: _spread([one[name] for one in fits]) for name in ("rmse", "nll")},
            }
            for fits in found.values()
        ]
        return tabulated(
            rows,
            "data; rows = rows ,; method; M = num_inducing; splits; seconds = seconds .1f; "
            "RMSE = rmse; NLPD = nll",
        )


def measured(**run: Any) -> Entries:
    """Train one model on one split, in its own process."""
    found = data_of(run["data"], run["split"], run["rows"], run["data_dir"])
    (kind, _, size), seed, own = run["method"].partition("_"), run["seed"], normalise(found.split)
    if kind == "boosting":
        train = found.split.X_train, own.Y_train
        held_out = found.split.X_test, own.Y_test
        categorical = list(found.categorical) or None
        return table_models.boosting(train, held_out, seed, categorical=categorical)
    if kind == "additive":
        return additive(found, int(size), float(own.Y_scale[0]), seed)
    X_train, X_test = indicators(found)
    rows = (X_train, own.Y_train), (X_test, own.Y_test)
    if kind == "svgp":
        scale, seconds = float(np.sqrt(X_train.shape[1])), run["seconds"]
        return race.svgp(*rows, int(size), scale, seconds, seed, kernel="Matern52")
    return table_models.exact(*rows)


def additive(data: Data, num_inducing: int, unit: float, seed: int) -> dict[str, Any]:
    split = data.split
    started = time.perf_counter()
    fit = idm.tables.fit_additive(
        (split.X_train, split.Y_train), num_inducing, categorical=data.categorical, seed=seed
    )
    passed = time.perf_counter() - started
    errors = race.evaluated(fit.model, (split.X_test, split.Y_test))
    errors = {"rmse": errors["rmse"] / unit, "nll": errors["nll"] - float(np.log(unit))}
    return {
        "trace": [{"seconds": passed, **errors}],
        "num_inducing": int(fit.model.inducing_variable.num_inducing),
        "subset_seconds": fit.subset_seconds,
        "pass_seconds": fit.pass_seconds,
        "rows": fit.model.num_data,
        "pairs": list(map(list, fit.pairs.items())),
    }


def _spread(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


if __name__ == "__main__":
    AdditiveTables.command()
