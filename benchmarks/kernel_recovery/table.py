"""The table of `kernel_recovery`, and the best records of a target and kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks._lib.results import Record
from benchmarks._lib.tables import markdown, ranges
from benchmarks.kernel_recovery.starts import KERNELS
from benchmarks.kernel_recovery.targets import TARGETS


def table_of(records: Sequence[Record]) -> str:
    """One row for each target and approximation: the best and the median start."""
    rows = []
    for key, found in _grouped(records).items():
        target = TARGETS[key[0]]
        results = [record["result"] for record in found]
        errors = [result["mse"] for result in results]
        best = min(errors)
        rows.append(
            (
                *key[:2],
                f"{key[2]} x {key[3]}",
                results[0]["num_parameters"],
                f"{best:.5f}",
                f"{np.median(errors):.5f}",
                f"{min(result['mse_after_adam'] for result in results):.5f}",
                target.paper if key[1] == "hmk" else None,
                _verdict(best, float(np.median(errors)), target.paper) if key[1] == "hmk" else None,
                f"{best / results[0]['mean_square']:.1e}",
                f"{np.median(errors) / results[0]['mean_square']:.1e}",
                f"{results[0]['stationary_mse']:.3f}",
                f"{np.median([r['adam_seconds'] + r['lbfgs_seconds'] for r in results]):.0f}",
                ranges(record["configuration"]["seed"] for record in found),
            )
        )
    headers = (
        *("target", "kernel", "P x Q", "numbers", "MSE, best", "median", "best of Adam alone"),
        *("paper's MSE", "met", "relative MSE, best", "median", "least stationary MSE"),
        *("seconds", "starts"),
    )
    text = (
        "Mean squared errors on a regular grid of 100 x 100. The paper's functions and scales are "
        "not known: the relative error is to the target's mean square.\n\n"
        + markdown(headers, rows)
    )
    ridges = [record["result"]["ridge"] for record in best_records(records, "gsm", "hmk")]
    if ridges:
        text += (
            "\n\nThe ridge of the best GSM's Wigner distribution is {to_slope:.2f} from the slope "
            "of mu(x) x and {to_mu:.2f} from mu(x), in the mean over |x| < 0.9."
        ).format(**ridges[0])
    return text


def _verdict(best: float, median: float, paper: float) -> str:
    if median <= paper:
        return "yes, median too"
    return "yes, best only" if best <= paper else "no"


def _grouped(
    records: Sequence[Record],
) -> Mapping[tuple[str, str, int, int, int, int], list[Record]]:
    """The records by target, kernel, P, Q, steps and iterations, in a fixed order."""
    groups: dict[tuple[str, str, int, int, int, int], list[Record]] = {}
    for record in records:
        run = record["configuration"]
        key = (
            *(run["target"], run["kernel"], run["num_components"], run["num_frequencies"]),
            *(run["steps"], run["iterations"]),
        )
        groups.setdefault(key, []).append(record)
    order = tuple(TARGETS)
    return {
        key: groups[key]
        for key in sorted(groups, key=lambda k: (order.index(k[0]), KERNELS.index(k[1]), k[2:]))
    }


def best_records(records: Sequence[Record], target: str, kernel: str) -> list[Record]:
    """A list with the record of least error; empty if there are no records."""
    found = [
        record
        for record in records
        if (record["configuration"]["target"], record["configuration"]["kernel"])
        == (target, kernel)
    ]
    return sorted(found, key=lambda record: record["result"]["mse"])[:1]
