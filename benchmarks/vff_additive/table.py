"""The tables of `vff_additive`: test errors beside the paper's, and times of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._lib.results import Record
from benchmarks._lib.tables import markdown, mean_and_deviation, ranges
from benchmarks._lib.vish_table import SIZES, paper_verdict
from benchmarks.vff_additive.models import METHODS


def accuracy_table(records: Sequence[Record]) -> str:
    """One row per data set and method; our figures are means over the finished splits."""
    keys = ("dataset", "method", "frequencies", "margin", "source", "max_iterations")
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        group = tuple(record["configuration"][key] for key in keys)
        groups.setdefault(group, []).append(record)
    rows = []
    for group in sorted(groups, key=_position):
        dataset, method, frequencies, margin, source, max_iterations = group
        found = groups[group]
        results = [record["result"] for record in found]
        row = [dataset, results[0]["num_train"], results[0]["num_columns"], method]
        row += [results[0]["num_inducing"]]
        row += ["" if frequencies is None else f"{frequencies}, {margin:g}"]
        for metric in ("mse", "nlpd"):
            values = [result[metric] for result in results]
            if any(value is None for value in values):
                row += ["not finite", "", "no, worse"]
                continue
            text, verdict = paper_verdict(dataset, method, metric, float(np.mean(values)))
            row += [mean_and_deviation(values), text, verdict]
        splits = ranges(record["configuration"]["split"] for record in found)
        unfinished = sum(not result["converged"] for result in results)
        row += [
            f"{np.mean([result['objective'] for result in results]):.1f}",
            f"{splits} ({'stored' if source == 'files' else 'seeded'})",
            f"{np.mean([result['fit_seconds'] for result in results]):.1f}",
            f"{unfinished} of {len(found)} at {max_iterations}",
        ]
        rows.append(row)
    headers = (
        *("data", "N", "D", "method", "M", "frequencies, margin", "MSE", "paper", "within 2 sd"),
        *("NLPD", "paper", "within 2 sd", "bound", "splits", "fit s", "not converged"),
    )
    return (
        "Test MSE and NLPD on normalised data, lower is better; N is the number of training rows.\n"
        "Signs of the paper's NLPD are inferred (see vish_table.py). Bound: the objective at the "
        "end; bounds of the additive\nmodels are comparable, a_gpr's is the evidence itself.\n\n"
        + markdown(headers, rows)
    )


def _position(group: tuple[Any, ...]) -> tuple[Any, ...]:
    dataset, method, frequencies, margin, source, max_iterations = group
    order = (list(SIZES).index(dataset), METHODS.index(method), frequencies or 0, margin or 0.0)
    return (*order, source, max_iterations)
