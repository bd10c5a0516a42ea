"""The paper's Figure 2: the decision boundaries, drawn from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.results import Record
from benchmarks.banana_hmk.grid import grid_axes, unpacked
from benchmarks.banana_hmk.models import FULL
from benchmarks.banana_hmk.table import chosen, grouped

DRAWN = {"points": (6, 12, 18, 24), "fourier": (2, 4, 6, 8), "fourier_joint": (2, 4, 6, 8)}


def draw(folder: Path, records: Sequence[Record], data: Mapping[str, Array]) -> None:
    """The paper's Figure 2: decision boundaries of each size, the VGP's dashed."""
    from matplotlib.figure import Figure

    groups = grouped(records)
    kernel = "trained" if any(key[2] == "trained" for key in groups) else "fixed"
    best = {key[:2]: chosen(found) for key, found in groups.items() if key[2] == kernel}
    if not best:
        return
    full = [record for record in records if record["configuration"]["model"] == FULL]
    figure = Figure(figsize=(11.0, 8.0), layout="constrained")
    axes = figure.subplots(len(DRAWN), 4, squeeze=False)
    for row, (model, sizes) in zip(axes, DRAWN.items(), strict=True):
        for axis, size in zip(row, sizes, strict=True):
            axis.set_axis_off()
            if (model, size) in best:
                _draw_boundary(axis, best[model, size], full, data)
    figure.savefig(folder / "banana_hmk.png", dpi=65)


def _draw_boundary(
    axis: Any, record: Record, full: Sequence[Record], data: Mapping[str, Array]
) -> None:
    result, run = record["result"], record["configuration"]
    for label, colour in ((0.0, "C0"), (1.0, "C1")):
        rows = data["X"][data["Y"][:, 0] == label]
        axis.plot(*rows.T, ".", color=colour, ms=2.5, alpha=0.5)
    first, second = grid_axes(data["X"])
    for other in full[:1]:
        values = unpacked(other["result"]["probabilities"])
        axis.contour(first, second, values.T, [0.5], colors="grey", linestyles="dashed")
    axis.contour(first, second, unpacked(result["probabilities"]).T, [0.5], colors="k")
    if "points" in result:
        axis.plot(*np.array(result["points"]).T, "ko", mfc="none", ms=5)
    axis.plot(*np.array(result["centres"]).T, "r^", ms=6)
    axis.set_xlim(first[0], first[-1])
    axis.set_ylim(second[0], second[-1])
    axis.set_title(
        f"{run['model']} {run['size']}: {result['num_variational']} numbers, "
        f"{100 * result['test_error']:.1f}%",
        fontsize=8,
    )
