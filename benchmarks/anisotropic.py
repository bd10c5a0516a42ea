"""Eight to thirty columns: chosen harmonics beside whole degrees, inducing points and trees.

kin8nm, keggdirected, protein, beijing_pm25, concrete and energy (--data-dir, or a loader), 100,000
flights (`_lib/flight_table.py`), and a made-up table of 30 columns of which four matter; the first
split, a tenth of the rows for testing, normalised. Each model runs in a process of its own. The
clock starts with the rows in memory; imports and predictions of the test rows do not count.
whole_L      all SphericalHarmonics to degree L, SphericalMatern52 that ends with them, a weight for
             each column; `fit_sgpr`
prior_M      scales from 3,000 rows with whole low degrees, then the M harmonics with the most prior
             variance over the rows (`SphericalHarmonics.for_data`); `fit_sgpr` of the rest
data_M       M harmonics chosen by the data, the same low degrees to begin with;
             `fit_sgpr(model, num_inducing=M)`
svgp_M       gpflow's SVGP with M inducing points (k-means), Matern-5/2 with a lengthscale for each
             column, minibatches of 1,000, natural gradients 0.1 and Adam 0.01, evaluated at several
             times
boosting     scikit-learn's HistGradientBoostingRegressor, for orientation; its variance is that of
             the residuals of a tenth of the training rows, which it is not fitted to
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import race
from benchmarks._lib.child import from_child
from benchmarks._lib.data import (
    Array,
    Table,
    add_data_argument,
    for_a_process,
    load_table,
    source_of,
)
from benchmarks._lib.flight_table import flights
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks._lib.table_models import boosting, by_data, low
from benchmarks._lib.tables import markdown

FLIGHTS, MADE_UP = "flights", "made_up"
ROWS = {FLIGHTS: 100_000, MADE_UP: 10_000}
WHOLE = {
    "kin8nm": (3, 4),
    "keggdirected": (2,),
    "protein": (3, 4),
    "beijing_pm25": (3, 4),
    "concrete": (3, 4),
    "energy": (3, 4),
    MADE_UP: (2,),
    FLIGHTS: (3, 4),
}
"""One degree or two for each data set, with at most 1,000 harmonics; scales are trained with the
lower one before harmonics are chosen."""

CHOSEN = ("prior_300", "prior_700", "data_300", "data_700", "data_1000")
OTHERS = ("svgp_500", "boosting")
SHORT = ("whole_1", "prior_40", "data_40", "svgp_20", "boosting")
KINDS = ("whole", "prior", "data", "svgp", "boosting")
METHODS = (*KINDS, "whole_2", "whole_3", "whole_4", *CHOSEN, *OTHERS)
OURS = KINDS[:3]
SUBSET_ROWS = 3_000
BUDGETS = (10.0, 20.0, 40.0, 60.0)

# What the issue asks for: NLPD with at most so many features, and how often to be in front.
TARGETS = {"kin8nm": (0.17, 700), "protein": (1.08, 1_000), "keggdirected": (-0.97, 1_000)}
IN_FRONT = (5, 7)


class Anisotropic(Benchmark):
    __doc__ = __doc__
    name = "anisotropic"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(tuple(WHOLE), "data sets"), default=None)
        parser.add_argument("--methods", type=names(METHODS, "methods"), default=None)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for data in arguments.datasets or ((MADE_UP,) if short else WHOLE):
            whole = tuple(f"whole_{degree}" for degree in WHOLE[data])
            for method in SHORT if short else (*whole, *CHOSEN, *OTHERS):
                if {method, method.partition("_")[0]} & set(arguments.methods or KINDS):
                    yield {
                        "data": data,
                        "method": method,
                        "start_degree": 1 if short else WHOLE[data][0],
                        "rows": 500 if short else ROWS.get(data),
                        "seconds": [0.2, 0.4] if short else list(BUDGETS),
                        "source": "made up" if data in ROWS else source_of(arguments.data_dir),
                        "seed": 0,
                    }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        return dict(from_child(measured, **for_a_process(configuration, arguments.data_dir)))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def measured(
    *,
    data: str,
    method: str,
    start_degree: int,
    rows: int | None,
    seconds: Sequence[float],
    data_dir: str | None,
    seed: int,
) -> dict[str, Any]:
    """Train one model on one data set; in a process of its own."""
    split = split_of(data, rows, data_dir, seed)
    train, held_out = (split.X_train, split.Y_train), (split.X_test, split.Y_test)
    kind, _, size = method.partition("_")
    if kind == "boosting":
        return boosting(train, held_out, seed)
    import interdomain  # noqa: F401 - imports are not counted

    if kind == "svgp":
        lengthscale = float(np.sqrt(train[0].shape[1]))
        return race.svgp(
            train, held_out, int(size), lengthscale, list(seconds), seed, kernel="Matern52"
        )
    started = time.perf_counter()
    if kind == "whole":
        model, fit = whole(train, int(size))
    else:
        build = {"prior": by_prior_variance, "data": by_data}[kind]
        model, fit = build(train, int(size), start_degree)
    passed = time.perf_counter() - started
    harmonics = model.inducing_variable
    return {
        "trace": [{"seconds": passed, **race.evaluated(model, held_out)}],
        "num_inducing": int(harmonics.num_inducing),
        "max_degree": max(harmonics.degrees),
        "subset_seconds": fit.subset_seconds,
        "pass_seconds": fit.pass_seconds,
        "steps": fit.steps,
        "bound_per_row": float(model.elbo().numpy()) / len(train[0]),
        "noise_variance": float(model.likelihood.variance.numpy()),
        "rows": len(train[0]),
    }


def split_of(data: str, rows: int | None, data_dir: str | None, seed: int) -> NormalisedSplit:
    """The first split of a data set, normalised.

    :param rows: of a table that is made up.
    """
    if data == FLIGHTS:
        parts = zip(*flights(0, int(rows or 0), seed=seed), strict=True)
        table = Table(data, *(np.concatenate(part) for part in parts))
    elif data == MADE_UP:
        table = Table(data, *made_up(int(rows or 0), seed))
    else:
        table = load_table(data, None if data_dir is None else Path(data_dir))
    return normalise(take_split(table, 0))


def made_up(rows: int, seed: int) -> tuple[Array, Array]:
    """Normal rows of 30 columns; four of them, in pairs, make f; a twentieth of the variance of y
    is noise."""
    generator = np.random.default_rng([seed, 1])  # not the one that draws the rows for testing
    X = generator.normal(size=(rows, 30))
    a, b, c, d = X[:, [3, 11, 17, 26]].T
    f = np.sin(2.0 * a) * np.cos(b) + np.tanh(c * d) + 0.5 * c * np.sin(a)
    return X, (f + f.std() / np.sqrt(19.0) * generator.normal(size=rows))[:, None]


def whole(data: race.Rows, max_degree: int) -> tuple[Any, Any]:
    import interdomain as idm

    model, _ = low(data, max_degree)
    return model, idm.training.fit_sgpr(model)


def by_prior_variance(data: race.Rows, num_inducing: int, start_degree: int) -> tuple[Any, Any]:
    import gpflow

    import interdomain as idm

    first, kernel = low(data, start_degree)
    idm.fit(first.subset_model(SUBSET_ROWS), steps=50)
    for parameter in first.feature_parameters.values():
        gpflow.set_trainable(parameter, False)
    chosen = idm.inducing_variables.SphericalHarmonics.for_data(kernel, data[0], num_inducing)
    prior = idm.kernels.FiniteRank(kernel, chosen)
    model = idm.models.StructuredSGPR(data, prior, chosen, likelihood=first.likelihood)
    return model, idm.training.fit_sgpr(model)


def table_of(records: Sequence[Record]) -> str:
    """A row for each model and time, and a verdict for each data set."""
    headers = ("data", "rows", "method", "M", "highest degree", "seconds", "RMSE", "NLPD")
    rows = [
        (
            record["configuration"]["data"],
            f"{record['result']['rows']:,}",
            record["configuration"]["method"],
            record["result"].get("num_inducing"),
            record["result"].get("max_degree"),
            f"{point['seconds']:.1f}",
            f"{point['rmse']:.3f}",
            f"{point['nll']:.3f}",
        )
        for record in sorted(records, key=_place)
        for point in record["result"]["trace"]
    ]
    return "\n\n".join([markdown(headers, rows), *_races(records), *_targets(records)])


def _place(record: Record) -> tuple[int, int]:
    run = record["configuration"]
    kind = run["method"].partition("_")[0]
    return list(WHOLE).index(run["data"]), KINDS.index(kind)


def _of_kinds(records: Sequence[Record], data: str, *kinds: str) -> list[Record]:
    configured = [(record, record["configuration"]) for record in records]
    return [
        record
        for record, run in configured
        if run["data"] == data and run["method"].partition("_")[0] in kinds
    ]


def _races(records: Sequence[Record]) -> list[str]:
    """Who is in front at each budget, and how often ours is at all of them."""
    lines, verdicts = [], []
    for data in WHOLE:
        ours, stock = _of_kinds(records, data, *OURS), _of_kinds(records, data, "svgp")
        if not ours or not stock:
            continue
        parts = [
            _at(budget, point["nll"], ours)
            for budget, point in zip(
                stock[0]["configuration"]["seconds"], stock[0]["result"]["trace"], strict=True
            )
        ]
        always = all(in_front for in_front, _ in parts)
        if data != MADE_UP:
            verdicts.append(always)
        verdict = "in front at every budget" if always else "not in front at every budget"
        lines.append(f"{data}: {'; '.join(text for _, text in parts)}: {verdict}")
    if not verdicts:
        return []
    wanted, of = IN_FRONT
    met = "met" if sum(verdicts) * of >= wanted * len(verdicts) else "missed"
    count = f"{sum(verdicts)} of {len(verdicts)} data sets (target {wanted} of {of}: {met})"
    lines.append(f"In front of SVGP at every budget on {count}; the made-up table does not count.")
    return lines


def _at(budget: float, stock: float, ours: Sequence[Record]) -> tuple[bool, str]:
    finished = [
        (point["nll"], record["configuration"]["method"])
        for record in ours
        for point in record["result"]["trace"]
        if point["seconds"] <= budget
    ]
    if not finished:
        return False, f"{budget:g} s: none of ours, SVGP {stock:.3f}"
    best, method = min(finished)
    return best < stock, f"{budget:g} s: {method} {best:.3f}, SVGP {stock:.3f}"


def _targets(records: Sequence[Record]) -> list[str]:
    lines = []
    for data, (wanted, most) in TARGETS.items():
        found = [
            (record["result"]["trace"][-1]["nll"], record["configuration"]["method"])
            for record in _of_kinds(records, data, "prior", "data")
            if record["result"]["num_inducing"] <= most
        ]
        if found:
            best, method = min(found)
            verdict = "met" if best <= wanted else "missed"
            lines.append(
                f"{data}, M at most {most:,}: {method} {best:.4f} (target {wanted:g}: {verdict})"
            )
    return lines


if __name__ == "__main__":
    sys.exit(Anisotropic().main())
