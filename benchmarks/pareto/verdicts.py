"""Tables of the results: log densities at budgets, the best models, the choice of `recommend`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.runner import Records
from benchmarks._lib.standard_sets import DATA
from benchmarks._lib.tables import markdown
from benchmarks.pareto.methods import OURS


def at(trace: Sequence[Mapping[str, float]], seconds: float) -> Mapping[str, float] | None:
    """The last point before these seconds, with a tolerance of 5%."""
    points = [point for point in trace if point["seconds"] <= 1.05 * seconds]
    return points[-1] if points else None


def table_of(records: Records) -> str:
    """The log densities of all methods at the budgets, for each set; and a table of our first
    models that reach GPflow's SVGP, and the best baseline."""
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
        headers = (data, *[f"{seconds:g} s" for seconds in times], "last", "RMSE")
        texts.append(markdown(headers, rows))
        summary.append((data, *_verdict(found, times), *_named(data, found, records)))
    headers = (
        *("data", "final svgp_500", "first to reach it", "after", "better than SVGP at s"),
        *("final best baseline", "first to reach it", "after"),
        *("best model here", "recommended", "margin to the best"),
    )
    return "\n\n".join([*texts, markdown(headers, summary)])


def density_of(point: Mapping[str, float]) -> float:
    return float(point["log_density"])


def _verdict(found: Mapping[str, Any], times: Sequence[float]) -> tuple[str, ...]:
    stock = {name: r["trace"] for name, r in found.items() if name.startswith("svgp")}
    ours = {name: r["trace"] for name, r in found.items() if name in OURS}
    if "svgp_500" not in stock or not ours:
        return ("-",) * 8
    goal = density_of(stock["svgp_500"][-1])
    rivals = {name: density_of(r["trace"][-1]) for name, r in found.items() if name not in OURS}
    rival = max(rivals, key=rivals.__getitem__)
    front = [
        f"{seconds:g}" for seconds in times if _best(ours, seconds)[0] > _best(stock, seconds)[0]
    ]
    density, best = _best(ours, times[-1])
    return (
        f"{goal:.4f}",
        *_first(ours, goal),
        " ".join(front) or "none",
        f"{rival} {rivals[rival]:.4f}",
        *_first(ours, rivals[rival]),
        f"{best} {density:.4f}",
    )


def _first(ours: Mapping[str, Any], goal: float) -> tuple[str, str]:
    """The first model that reaches the goal, and its seconds."""
    reached = [
        (point["seconds"], name)
        for name, trace in ours.items()
        for point in trace
        if density_of(point) >= goal
    ]
    seconds, name = min(reached, default=(0.0, "never"))
    return name, f"{seconds:.0f} s" if reached else "-"


def _named(data: str, found: Mapping[str, Any], records: Records) -> tuple[str, str]:
    """The choice of `recommend`, and its margin to the best model, both at their last log
    density."""
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
