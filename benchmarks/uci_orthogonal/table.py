"""The table of `uci_orthogonal`, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._lib.results import Record
from benchmarks._lib.tables import markdown, mean_and_deviation, ranges
from benchmarks.uci_orthogonal.cells import DATASETS, INDUCING, KERNELS, ROUTES
from benchmarks.uci_orthogonal.paper import PAPER


def table_of(records: Sequence[Record]) -> str:
    """One row per cell with both metrics; our figures are means over the finished splits."""
    names_of_group = ("dataset", "kernel", "inducing", "M", "K", "q", "max_iterations", "source")
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        group = tuple(record["configuration"][name] for name in names_of_group)
        groups.setdefault(group, []).append(record)
    rows = []
    compared = {"rmse": [0, 0], "nlpd": [0, 0]}
    for group in sorted(groups, key=_position):
        found = groups[group]
        dataset, kernel, iv, M, K, q, max_iterations, source = group
        splits = ranges(record["configuration"]["split"] for record in found)
        unfinished = sum(not record["result"]["converged"] for record in found)
        used = {record["result"]["num_inducing"] for record in found}
        row = [dataset, kernel, iv, f"{M}, {K}"]
        row[-1] += f" ({ranges(used)} used)" if used != {M} else ""
        for i, metric in enumerate(("rmse", "nlpd")):
            values = [record["result"][metric] for record in found]
            printed_kernel = kernel.removesuffix("_isotropic").removesuffix("_euclidean")
            figures = PAPER.get((dataset, printed_kernel, iv, M, K))
            paper = figures[i] if figures else None
            compared[metric][1] += paper is not None
            if any(value is None for value in values):
                row += ["not finite", str(paper or ""), "no, worse"]
                continue
            verdict = paper.verdict(float(np.mean(values))) if paper else ""
            compared[metric][0] += verdict == "yes"
            row += [mean_and_deviation(values), str(paper or ""), verdict]
        seconds = np.mean([record["result"]["fit_seconds"] for record in found])
        row += [
            f"{splits} ({'stored' if source == 'files' else 'seeded'})",
            q,
            f"{seconds:.1f}",
            f"{unfinished} of {len(found)} at {max_iterations}",
        ]
        rows.append(row)
    headers = ["data", "kernel", "inducing", "M, K"]
    for metric in ("RMSE", "NLPD"):
        headers += [metric, "paper", "within 2 sd"]
    headers += ["splits", "q", "fit s", "not converged"]
    counts = ", ".join(
        f"{metric.upper()} {within} of {total}" for metric, (within, total) in compared.items()
    )
    return (
        "Tables 3 and 4 of the paper: test RMSE and NLPD in original units, lower is better; mean "
        "± deviation over our splits\n(no deviation: one split only) beside the paper's over 5.\n"
        '"undecided": the printed digits do not tell (a deviation of 0.00 may be up to 0.005).\n\n'
        + markdown(headers, rows)
        + f"\n\nWithin two of the paper's standard deviations: {counts}."
    )


def _position(group: tuple[Any, ...]) -> tuple[Any, ...]:
    dataset, kernel, iv, M, K, q, max_iterations, source = group
    order = (list(DATASETS).index(dataset), KERNELS.index(kernel), INDUCING.index(iv))
    return (*order, M + K, K == 0, M, ROUTES.index(q), max_iterations, source)
