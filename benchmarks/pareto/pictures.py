"""One picture for each data set: log density against seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks._lib.runner import Records
from benchmarks._lib.standard_sets import DATA
from benchmarks.pareto.methods import OURS
from benchmarks.pareto.verdicts import density_of

LOWEST = 1.0
"""The lowest log density that a picture shows, as nats below the best."""

COLOURS = "C0 C1 C2 C3 C4 C5 C6 C8 C9 navy gold maroon pink lime black teal plum".split()
"""Colours of our models; a model has one colour in all pictures."""

MARKERS = "sv^<>DpX"
"""Markers of the baselines."""


def draw_curves(folder: Path, records: Records) -> None:
    """Draw `pareto_<data>.png`: lines for models with several evaluations, points for models with
    one. Our models are coloured, baselines are grey and dashed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    for data in DATA:
        found = {
            record["configuration"]["method"]: record["result"]["trace"]
            for record in records
            if record["configuration"]["data"] == data and record["result"]["trace"]
        }
        if not found:
            continue
        figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
        ranking = sorted(found, key=lambda name: -density_of(found[name][-1]))
        others = [name for name in ranking if name not in OURS]
        for name in ranking:
            trace = found[name]
            style: dict[str, Any] = {"color": "0.5", "ls": "--"}
            if name in OURS:
                style = {"color": COLOURS[OURS.index(name)], "marker": "o", "ls": "-"}
            else:
                style["marker"] = MARKERS[others.index(name) % len(MARKERS)]
            ax.plot(
                [point["seconds"] for point in trace],
                [density_of(point) for point in trace],
                **style,
                ms=4 if len(trace) > 1 else 7,
                lw=1.2,
                label=name,
            )
        best = density_of(found[ranking[0]][-1])
        shown = [density_of(point) for trace in found.values() for point in trace]
        lowest = max(min(shown), best - LOWEST)
        ax.set_ylim(lowest - 0.05 * (best - lowest), best + 0.05 * (best - lowest) + 1e-6)
        ax.set_xscale("log")
        ax.set_xlabel("seconds of one processor, start-up included")
        ax.set_ylabel("log density of test rows")
        ax.set_title(data)
        ax.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.savefig(folder / f"pareto_{data}.png", dpi=80)
        plt.close(figure)
