"""The paper's Figures 3 and 5, drawn from the records."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.results import Record
from benchmarks.kernel_recovery.starts import build_kernel
from benchmarks.kernel_recovery.table import best_records
from benchmarks.kernel_recovery.targets import (
    TARGETS,
    TESTED_GRID,
    gsm_frequency,
    gsm_slope,
    target_kernel,
)


def recovered_kernel(record: Record) -> Any:
    """The kernel of a record, as training left it."""
    import gpflow

    kernel = build_kernel(record["configuration"])
    values = {path: np.array(v) for path, v in record["result"]["parameters"].items()}
    gpflow.utilities.multiple_assign(kernel, values)
    return kernel


def draw(folder: Path, records: Sequence[Record]) -> None:
    """The paper's Figure 3 (kernels) and Figure 5 (the Wigner distribution of the GSM)."""
    from matplotlib.figure import Figure

    targets = [target for target in TARGETS if best_records(records, target, "hmk")]
    if not targets:
        return
    figure = Figure(figsize=(15.0, 2.9 * len(targets)), layout="constrained")
    axes = figure.subplots(len(targets), 5, squeeze=False)
    for row, target in zip(axes, targets, strict=True):
        _draw_target(row, target, records)
    figure.savefig(folder / "kernel_recovery.png", dpi=60)
    for record in best_records(records, "gsm", "hmk"):
        figure = Figure(figsize=(5.0, 3.6), layout="constrained")
        _draw_wigner(figure.subplots(), recovered_kernel(record))
        figure.savefig(folder / "kernel_recovery_wigner.png", dpi=80)


def _draw_target(row: Sequence[Any], target: str, records: Sequence[Record]) -> None:
    places = TARGETS[target].grid(TESTED_GRID)
    truth = np.asarray(target_kernel(target)(places))
    limit = float(np.max(np.abs(truth)))
    image = functools.partial(_image, places=places[:, 0])
    image(row[0], truth, limit=limit, title=target)
    for first, kernel in ((1, "hmk"), (3, "sm")):
        found = best_records(records, target, kernel)
        if not found:
            row[first].set_axis_off()
            row[first + 1].set_axis_off()
            continue
        values = np.asarray(recovered_kernel(found[0])(places))
        image(row[first], values, limit=limit, title=f"{target}: {kernel}")
        mse, difference = found[0]["result"]["mse"], values - truth
        image(
            row[first + 1],
            difference,
            limit=float(np.max(np.abs(difference))),
            title=f"{kernel} - truth, MSE {mse:.2g}",
        )


def _image(axis: Any, values: Array, *, places: Array, limit: float, title: str) -> None:
    mesh = axis.pcolormesh(
        places, places, values, cmap="RdBu_r", vmin=-limit, vmax=limit, rasterized=True
    )
    axis.figure.colorbar(mesh, ax=axis)
    axis.invert_yaxis()
    axis.set_title(title, fontsize=9)


def _draw_wigner(axis: Any, kernel: Any) -> None:
    import interdomain as idm

    x = np.linspace(-1.0, 1.0, 121)
    idm.plotting.wigner(kernel, x, np.linspace(0.0, 5.0, 121), axis)
    axis.plot(x, gsm_slope(x), "k-", lw=1, label="slope of mu(x) x")
    axis.plot(x, gsm_frequency(x), "k--", lw=1, label="mu(x)")
    axis.legend(fontsize=8, loc="upper left")
