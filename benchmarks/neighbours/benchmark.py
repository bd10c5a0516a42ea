"""Features, neighbours and both, beside GPBoost, trees and linear interpolation.

Test RMSE, NLPD, coverage of 90% bands and z (the root mean square of the test rows' normal scores),
and CPU seconds of everything from the rows in memory to the predictions of all test rows; imports
do not count. Each model runs in a process of its own. Columns and targets are standardised.
kin8nm, power, protein, keggdirected: first split; beijing_pm25: 100,000 rows drawn from those for
training; terrain: the mountain range that ships with matplotlib, the split of `terrain`; made_N: N
made-up rows of two columns, a wave, a Matern-1/2-like sum of 2,000 random waves, and noise of 0.05.
folds_*: the protocol of GPBoost's full-scale Vecchia paper, five shuffled folds of seed 10, columns
scaled to [0, 1], which ours standardises: three of these tables, the power that Tetouan uses
(52,416 rows, 5 columns), and December's precipitation (its logarithm) at 54,502 places of the
globe, which ours knows by great-circle distance, others by coordinates.
holes: the mountain range without 20 round holes, 10 to 60 pixels wide, whose pixels are test rows;
stations: 300 readings with noise of variance one at each of 80 places, drawn from a Matern-3/2; f
at 2,000 places is predicted; flights: 100,000 made-up rows of `pareto`; flights_tails: with noise
of three degrees of freedom in place of its noise; groups: 50,000 places, as of made_N, with 5,000
groups of deviation one and noise of 0.3; 1% of the test rows are of other groups.
house_inter, house_extra: 17,751 prices of houses, test rows among and beyond them, with the answers
of an exact GP with a Matern-3/2; house_*_covs: with a mean that is linear in covariates and places.
neighbours    VecchiaSGPR without features, a local kernel that `fit` chooses, 30 neighbours; 20 of
              two columns; parameters start from the data
given_12, given_32, given_52   a given Matern kernel with a lengthscale for each column; records of
              before there was a choice were named "neighbours" then, and those of both_32 "both"
neighbours_at the kernel is chosen for the distances of the test rows (`predict_at`)
as_many       given_32, with as many neighbours in predictions; they have four times as many else
features      1,080 waves of a box (two columns), or all harmonics up to the highest degree at which
              they are no more than 500; `fit`
both, both_32 VecchiaSGPR with these features; `fit` tries each part alone, too
student_t     neighbours under Student-t noise, whose degrees of freedom are trained
merged, unmerged   at parameters that are known: rows at one place as one row, or all of them;
              neighbours_unmerged: after `fit`. exact: GPflow's GPR at these on the means of places
groups        an intercept for each group (`tables.GroupFeatures`) and neighbours by the places, a
              Matern-3/2; places_32: the same without groups
house_*       exact: the stored answers; at_law: neighbours at the exact GP's parameters;
              neighbours and given_32 (one lengthscale) after `fit`; off: the root mean square of
              distances from the exact means, in their standard deviations
gpboost_M     GPBoost's Vecchia approximation with M neighbours, a Matern-3/2, its defaults
gpboost_vif   its full-scale approximation: 200 inducing points, 30 neighbours
gpboost_groups   its intercepts of groups alone, where gpboost_20 knows places alone
gpytorch      GPyTorch's NNVariationalStrategy, the same kernel, 30 neighbours: mean and variance of
              the function at each row; Adam 0.01, batches of 256, until 200 CPU seconds; single
              precision, its default
trees         scikit-learn's gradient boosting; the variance is that of the residuals of a tenth of
              the rows; trees_t: the Student-t density that suits these residuals
linear        SciPy's linear interpolation; the variance is that of the errors at 2,000 rows
nearest_four  scikit-learn's mean of the nearest four rows by inverse distances; the same variance
GPBoost and GPyTorch run if they are installed (pip install gpboost gpytorch "pandas<3"). GPBoost's
runs that are stored had OMP_NUM_THREADS=1, but for gpboost_20 of kin8nm, beside other work.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.child import from_child
from benchmarks._lib.data import for_a_process, source_of
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.race import linear, nearest_four
from benchmarks._lib.results import runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import mean_and_deviation, tabulated
from benchmarks.neighbours import laws, methods, rivals
from benchmarks.neighbours.data_sets import (
    DATA,
    FLIGHTS,
    FOLDS,
    FROM_FILES,
    HOUSE,
    MADE,
    TWO_COLUMNS,
    Task,
    task_of,
)
from benchmarks.neighbours.predicted import Predicted

MOST_SECONDS = 900.0  # of a model
ERRORS = ("cpu_seconds", "rmse", "nll", "coverage")
LIBRARIES = {
    "gpboost": "gpboost",
    "gpytorch": "gpytorch",
    "trees": "sklearn.ensemble",
    "linear": "scipy.interpolate",
    "nearest": "sklearn.neighbors",
}
"""What a method imports, if not this library; imports are not on the clock."""


def library_of(method: str) -> str:
    return LIBRARIES.get(method.partition("_")[0], "interdomain")


def means(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the table has of several folds."""
    values = {name: [result[name] for result in results] for name in ERRORS}
    decimals = {"cpu_seconds": 0, "rmse": 4, "nll": 3}
    shown = {name: mean_and_deviation(values[name], few) for name, few in decimals.items()}
    kept = ", ".join(sorted({result.get("parts", "") for result in results}))
    folds, coverage = str(len(results)), f"{np.mean(values['coverage']):.1%}"
    z = [result["z"] for result in results if "z" in result]
    shown["z"] = mean_and_deviation(z, 2) if z else ""
    return {**shown, "folds": folds, "coverage": coverage, "parts": kept}


def measured(
    *, data: str, method: str, rows: int | None, data_dir: str | None, fold: int | None = None
) -> dict[str, Any]:
    """One model, in a process of its own."""
    task = task_of(data, data_dir, fold, rows)
    if fold is not None and not task.on_globe and library_of(method) == "interdomain":
        # Given lengthscales, and harmonics, are for such columns; the other tables have them.
        (X, Y), (X_test, Y_test) = task.train, task.test
        middle, scale = X.mean(axis=0), X.std(axis=0)
        train, test = ((X - middle) / scale, Y), ((X_test - middle) / scale, Y_test)
        task = replace(task, train=train, test=test)
    importlib.import_module(library_of(method))
    used, started = time.process_time(), time.perf_counter()
    found = method_of(data, method)(task)
    cpu, seconds = time.process_time() - used, time.perf_counter() - started
    return {
        "rows": len(task.train[0]),
        "cpu_seconds": cpu,
        "seconds": seconds,
        **found.errors(task.test[1]),
        "peak_bytes": peak_of_process(),
    }


Method = Callable[[Task], Predicted]

METHODS: Mapping[str, Method] = {
    "features": methods.features,
    "neighbours": methods.neighbours,
    "given_12": partial(methods.neighbours, kernel="12"),
    "given_32": partial(methods.neighbours, kernel="32"),
    "given_52": partial(methods.neighbours, kernel="52"),
    "neighbours_at": partial(methods.neighbours, at=True),
    "as_many": partial(methods.neighbours, kernel="32", as_many=True),
    "both": methods.both,
    "both_32": partial(methods.both, kernel="32"),
    "student_t": methods.student_t,
    "exact": laws.exact,
    "at_law": laws.at_law,
    "merged": partial(laws.at_law, merge="exact"),
    "unmerged": partial(laws.at_law, merge="off"),
    "neighbours_unmerged": partial(laws.trained, merge="off"),
    "groups": methods.grouped,
    "places_32": methods.places_alone,
    "trees": rivals.trees,
    "trees_t": rivals.trees_t,
    "linear": rivals.task_method(linear),
    "nearest_four": rivals.task_method(nearest_four),
    "gpytorch": rivals.gpytorch,
    "gpboost_20": partial(rivals.gpboost, gp_approx="vecchia", num_neighbors=20),
    "gpboost_30": partial(rivals.gpboost, gp_approx="vecchia", num_neighbors=30),
    "gpboost_vif": partial(
        rivals.gpboost, gp_approx="full_scale_vecchia", num_neighbors=30, num_ind_points=200
    ),
    "gpboost_groups": rivals.gpboost_groups,
}

TRAINED = {"neighbours": laws.trained, "given_32": partial(laws.trained, kernel="Matern32")}
"""Of data whose law is known."""

OF_TABLES = (
    *("features", "neighbours", "given_32", "as_many", "both", "both_32", "trees", "gpytorch"),
    *("gpboost_20", "gpboost_30", "gpboost_vif"),
)
GIVEN = ("given_12", "given_32", "given_52")
OF_FOLDS = ("features", "neighbours", "given_32", "both", "both_32", "gpboost_20", "trees")
OF_HOUSE = ("exact", "at_law", "neighbours", "given_32")
SUITABLE = {
    **dict.fromkeys(FOLDS, OF_FOLDS),
    "holes": ("neighbours", *GIVEN, "neighbours_at", "gpboost_20", "linear"),
    "stations": ("exact", "merged", "unmerged", "neighbours", "neighbours_unmerged"),
    **dict.fromkeys(FLIGHTS, ("neighbours", "student_t", "trees", "trees_t")),
    "groups": ("groups", "places_32", "gpboost_groups", "gpboost_20"),
    **{data: tuple(m for m in OF_HOUSE if "covs" not in data or m[0] != "n") for data in HOUSE},
}


def suitable(data: str) -> Sequence[str]:
    """The methods that run by default."""
    if data in SUITABLE:
        return SUITABLE[data]
    return (*OF_TABLES, "linear", "nearest_four") if data in TWO_COLUMNS else OF_TABLES


def method_of(data: str, method: str) -> Method:
    has_law = data in (*HOUSE, "stations")
    return TRAINED.get(method, METHODS[method]) if has_law else METHODS[method]


class NeighboursBenchmark(
    Benchmark, data_dir=str, datasets=DATA, methods=METHODS, folds=range, most_seconds=float
):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for data in arguments.datasets or (("terrain",) if short else DATA):
            wanted = arguments.methods or (("features", "both") if short else METHODS)
            for method in wanted:
                if importlib.util.find_spec(library_of(method).partition(".")[0]) is None:
                    continue
                if method not in suitable(data):
                    continue
                configuration = {
                    "data": data,
                    "method": method,
                    "rows": 600 if short else None,
                    "source": source_of(arguments.data_dir) if data in FROM_FILES else "libraries",
                }
                for fold in (arguments.folds or [0]) if data in FOLDS else [None]:
                    yield configuration if fold is None else {**configuration, "fold": fold}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        given = for_a_process(configuration, arguments)
        most_seconds = arguments.most_seconds or MOST_SECONDS
        return dict(from_child(measured, most_seconds=most_seconds, **given))

    def table(self, records: Records) -> str:
        """A row for each run; of folds that were done the means and deviations."""
        rows, folds = [], dict[tuple[str, str], list[Any]]()
        for run, result in runs(records):
            if "fold" in run and "rmse" in result:
                folds.setdefault((run["data"], run["method"]), []).append(result)
                continue
            row = {**run, **result}
            row["data"] = f"{run['data']}, {run['fold']}" if "fold" in run else run["data"]
            if "not_done_after" in result:
                row["size"] = ""
                row["cpu"] = f"not done after {result['not_done_after']:.0f} s"
            else:
                row |= {"size": f"{result['rows']:,}", "cpu": f"{result['cpu_seconds']:.0f}"}
                row["memory"] = result["peak_bytes"] / 2**30
            rows.append(row)
        run_table = tabulated(
            rows,
            "data; model = method; rows = size; CPU s = cpu; s = seconds .0f; RMSE = rmse .4f; "
            "NLPD = nll .3f; in 90% = coverage .1%; z = z .2f; GiB = memory .1f; kept = parts; "
            "kernel = local_kernel; off = off_exact .3f",
        )
        fold_table = tabulated(
            ({"data": d, "method": m, **means(found)} for (d, m), found in sorted(folds.items())),
            "data; model = method; folds; CPU s = cpu_seconds; RMSE = rmse; NLPD = nll; "
            "in 90% = coverage; z; kept = parts",
        )
        return f"{run_table}\n\n{fold_table}"

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """Seconds by the number of made-up rows."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        for method in METHODS:
            points = sorted(
                (result["rows"], result["cpu_seconds"])
                for run, result in runs(records)
                if run["data"] in MADE and run["method"] == method and "rows" in result
            )
            if len(points) > 1:
                axes.loglog(*zip(*points, strict=True), marker="o", label=method)
        if not axes.lines:
            return
        axes.set(xlabel="rows of two columns", ylabel="CPU seconds, predictions included")
        axes.legend()
        figure.savefig(folder / "neighbours.png", dpi=150)
