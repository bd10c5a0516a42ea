"""GPRegressor and GPClassifier, called as in scikit-learn, compared with other estimators.

Each model runs in its own process with one thread. CPU seconds are from the rows in memory to the
predictions of all test rows with their standard deviations, imports excluded. GiB is the peak of
resident memory of the process; before: the memory of imports and rows.
tables   the tables and maps of `pareto`, first split or fold, and folds of `neighbours`, columns
         and targets standardised. NLPD of y uses its mean and standard deviation; coverage uses
         `predict_interval`. For classes: the share of errors, and the negative log probability.
           auto        the estimator; it has 60 s to choose a model, which it then trains.
           student     auto with noise="student"; NLPD uses the likelihood.
           trees       scikit-learn's HistGradientBoosting, at most 500 trees, early stopping; the
                       variance is that of the residuals of a tenth of the rows.
           sklearn_gp  scikit-learn's GaussianProcessRegressor on 2,000 rows drawn at random
                       (classifier: 1,000), Matern-3/2 with a lengthscale for each column.
           gpboost     GPBoost's Vecchia approximation, 20 neighbours, this kernel. Records of
                       `neighbours` are used if they exist; fit seconds then include predictions.
map      814,084 readings of the earth's heights at scattered places, noise of 20 m. Predictions
         with error bars at a grid of 500 x 500 with test readings. Targets: 60 s and 4 GiB.
memory   synthetic rows of two columns (`neighbours`, made_N), 1,000 test rows: the estimator, and
         scikit-learn's GaussianProcessRegressor, with given parameters or with its optimizer, at
         most 150 s.
stream   20 calls of `partial_fit` with 50,000 synthetic rows each and bounds. The reference is one
         model (`StructuredSGPR`) of all rows with these features and parameters. Differences
         are the largest of predictions, in standard deviations of y. "one fit" is the estimator on
         all rows. neighbours: 20 x 2,500 rows; the reference is one call with the last 19 parts.
groups   numbers_L: 12 numbers and a column of L groups of deviation 0.7. places_5000: the set
         `groups` of `neighbours`. 1% of test rows are of new groups.
           trees             HistGradientBoosting with the mean of each group (`TargetEncoder`).
           gpboost_boosting  GPBoost's trees with grouped intercepts.
           gpboost_linear    GPBoost's linear mean with grouped intercepts.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from benchmarks._lib.child import from_child
from benchmarks._lib.data import for_a_process
from benchmarks._lib.results import runs
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import tabulated
from benchmarks.estimators import groups, large, streams, tables

PARTS = ("tables", "map", "memory", "stream", "groups")
METHODS = tuple(
    dict.fromkeys(
        (
            *tables.METHODS,
            *large.MAP_METHODS,
            *large.MEMORY_METHODS,
            *streams.METHODS,
            *(method for methods in groups.METHODS.values() for method in methods),
        )
    )
)
DATASETS = (*tables.DATA, "etopo20", "synthetic", "made", *groups.DATA)
ONE_THREAD = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
        *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
    ),
    "1",
)
MOST_SECONDS, MOST_SECONDS_OF_OTHERS = 1_200.0, 150.0
"""The most seconds of a model, by the wall clock."""
LAYOUTS = {
    "tables": "data; model = method; rows = rows ,; chosen; RMSE = rmse .4f; "
    "errors = error_rate .2%; NLPD = nll .3f; in 50% = in_50 .1%; in 90% = in_90 .1%; "
    "in 99% = in_99 .1%; fit CPU s = fit_cpu .1f; predict = predict_cpu .1f; late",
    "map": "data; model = method; rows = rows ,; chosen; RMSE = rmse .1f; NLPD = nll .3f; "
    "in 90% = in_90 .1%; fit s = fit_seconds .0f; CPU s = fit_cpu .0f; "
    "grid s = predict_seconds .0f; grid CPU s = predict_cpu .0f; GiB = gib .2f; "
    "before = before_gib .2f; late",
    "memory": "model = method; rows = rows ,; chosen; RMSE = rmse .4f; NLPD = nll .3f; "
    "in 90% = in_90 .1%; fit CPU s = fit_cpu .1f; predict = predict_cpu .1f; GiB = gib .2f; "
    "before = before_gib .2f; late",
    "stream": "model = method; parts; rows = rows ,; means differ = mean_difference .1e; "
    "deviations differ = std_difference .1e; stream CPU s = stream_cpu .0f; "
    "one model = once_cpu .0f; one fit = fit_cpu .0f; GiB = gib .2f; late",
    "groups": "data; model = method; rows = rows ,; groups = levels ,; chosen; RMSE = rmse .4f; "
    "NLPD = nll .3f; in 90% = in_90 .1%; fit CPU s = fit_cpu .1f; predict = predict_cpu .1f; "
    "GiB = gib .2f; late",
}


class EstimatorsBenchmark(
    Benchmark, data_dir=str, parts=PARTS, datasets=DATASETS, methods=METHODS, most_seconds=float
):
    name = "estimators"

    def configurations(self, arguments: Arguments) -> Configurations:
        short, data_dir = arguments.short, arguments.data_dir
        made = {
            "tables": lambda: tables.configurations(short, data_dir),
            "map": lambda: large.map_configurations(short, data_dir),
            "memory": lambda: large.memory_configurations(short, data_dir),
            "stream": lambda: streams.configurations(short),
            "groups": lambda: groups.configurations(short),
        }
        for part in arguments.parts or PARTS:
            for one in made[part]():
                named = arguments.methods is None or one["method"] in arguments.methods
                wanted = arguments.datasets is None or one["data"] in arguments.datasets
                installed = not _gpboost(one) or importlib.util.find_spec("gpboost") is not None
                if named and wanted and installed:
                    yield {"part": part, **one}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        given, method = for_a_process(configuration, arguments), str(configuration["method"])
        part = given.pop("part")
        others = _gpboost(configuration) or (part == "memory" and method.startswith("sklearn"))
        most = arguments.most_seconds or (MOST_SECONDS_OF_OTHERS if others else MOST_SECONDS)
        function = MEASURED[part]
        return dict(from_child(function, environment=ONE_THREAD, most_seconds=most, **given))

    def table(self, records: Records) -> str:
        """A table for each part."""
        parts = []
        for part, layout in LAYOUTS.items():
            found = [(run, result) for run, result in runs(records) if run["part"] == part]
            if part == "tables":
                shown = {run["data"] for run, _ in found}
                found += [
                    pair for pair in tables.stored_by_neighbours() if pair[0]["data"] in shown
                ]
            found.sort(key=lambda pair: _place(pair[0]))
            if found:
                rows = [_row(*pair) for pair in found]
                parts.append(f"{part}\n\n{tabulated(rows, layout)}")
        return "\n\n".join(parts)


MEASURED: dict[str, Any] = {
    "tables": tables.measured,
    "map": large.measured_map,
    "memory": large.measured_memory,
    "stream": streams.measured,
    "groups": groups.measured,
}


def _gpboost(configuration: Entries) -> bool:
    return str(configuration["method"]).startswith("gpboost")


def _place(run: Entries) -> tuple[int, int, int]:
    """The sort key of a row of the table: data, method and rows."""
    return DATASETS.index(run["data"]), METHODS.index(run["method"]), run["rows"] or 0


def _row(run: Entries, result: Entries) -> Entries:
    """The table's row of a record."""
    row = {**run, **result}
    if "not_done_after" in result:
        row["late"] = f"not done after {result['not_done_after']:.0f} s"
    for name, figure in (("gib", "peak_bytes"), ("before_gib", "before_bytes")):
        if figure in result:
            row[name] = result[figure] / 2**30
    if row.get("learnt") is False:
        row["chosen"] = f"{row['chosen']} (nothing learnt)"
    return row
