"""Pictures of one effect: lines and bars of one column, maps of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import Array
from ..plotting.axes import draw_image
from .columns import Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curve(ax: Axes, column: Column, values: Array, mean: Array, spread: Array) -> None:
    """A line with a band, or a bar with an error bar for each level."""
    ax.axhline(0, color="0.6", lw=0.8, zorder=0)
    if column.num_levels is None:
        ax.fill_between(values, mean - spread, mean + spread, alpha=0.3, lw=0)
        ax.plot(values, mean)
        ax.margins(x=0)
        return
    place = np.arange(len(values))
    ax.bar(place, mean, yerr=spread, alpha=0.7, error_kw={"capsize": 3, "ecolor": "0.2"})
    _level_ticks(ax.xaxis, values)


def draw_map(
    ax: Axes,
    columns: Sequence[Column],
    values: Sequence[Array],
    mean: Array,
    label: str,
    names: Sequence[str],
) -> None:
    """The mean ``[up, across]``, zero in white."""
    is_numeric = [column.num_levels is None for column in columns]
    across, up = (
        v if numeric else np.arange(float(len(v)))
        for numeric, v in zip(is_numeric, values, strict=True)
    )
    draw_image(ax, across, up, mean, label, names)
    for axis, numeric, levels in zip((ax.xaxis, ax.yaxis), is_numeric, values, strict=True):
        if not numeric:
            _level_ticks(axis, levels)


def _level_ticks(axis: Any, levels: Array) -> None:
    """The levels, or some of them if there are many."""
    step = -(-len(levels) // 12)
    axis.set_ticks(np.arange(len(levels))[::step], [f"{level:g}" for level in levels[::step]])
