"""One picture for each data set: log density against seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks._lib.runner import Records
from benchmarks._lib.standard_sets import DATA
from benchmarks.pareto.methods import OURS
from benchmarks.pareto.verdicts import density_of

LOWEST = 1.0
"""How many nats below the best a picture shows at least; final densities are always shown."""

COLOURS = "C0 C1 C2 C3 C4 C5 C6 C8 C9 navy gold maroon pink lime black teal plum sienna".split()
"""Colours of our models; a model has one colour in all pictures."""

MARKERS = "sv^<>DpX"
"""Markers of the baselines."""

MOST = {True: 4, False: 3}
"""How many of our models, and of the baselines, a picture shows: the best ones."""

REFERENCE = "svgp_500"
"""The baseline that every picture shows."""

TYPE = {"font.size": 13, "axes.titlesize": 15, "legend.fontsize": 12}


def draw_curves(folder: Path, records: Records) -> None:
    """Draw `pareto_<data>.png`: lines for models with several evaluations, points for models with
    one. Our models are coloured, baselines are grey and dashed. The tables have all models."""
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
        plt.rcParams.update(TYPE)
        figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
        ordered = sorted(found, key=lambda name: -density_of(found[name][-1]))
        best_of = {side: [name for name in ordered if (name in OURS) is side] for side in MOST}
        ranking = [name for name in ordered if name in best_of[name in OURS][: MOST[name in OURS]]]
        if REFERENCE in found and REFERENCE not in ranking:
            ranking.append(REFERENCE)
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
                ms=5 if len(trace) > 1 else 9,
                lw=2,
                label=name.replace("_", " "),
            )
        best = density_of(found[ranking[0]][-1])
        shown = [density_of(point) for name in ranking for point in found[name]]
        worst = min(density_of(found[name][-1]) for name in ranking)
        lowest = max(min(shown), min(best - LOWEST, worst))
        ax.set_ylim(lowest - 0.05 * (best - lowest), best + 0.05 * (best - lowest) + 1e-6)
        ax.set_xscale("log")
        ax.set_xlabel("seconds of one processor, start-up included")
        ax.set_ylabel("log density of test rows")
        ax.set_title(data)
        figure.legend(loc="outside lower center", ncols=2)
        figure.savefig(folder / f"pareto_{data}.png", dpi=100)
        plt.close(figure)
