"""Pictures of the effects of a table's columns: lines, bars and maps, and a bar of shares."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import Array, integer
from ..plotting.axes import draw_image, new_axes, new_figure
from .columns import Column
from .effects import Effects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAND = 2.0
"""Bands and error bars extend this many standard deviations to either side."""

_ONE, _SEVERAL = "C0", "C1"
"""Colours of the effects of one column and of interactions."""

_POINTS_OF_LINE = 200
_POINTS_OF_MAP = 60
_LONGEST_LINE = 42


def plot_effects(
    report: Effects, num: int = 6, *, columns: int = 3, label: str = "effect"
) -> Figure:
    """Draw the largest effects, each in a panel with its name and its share of the variance.

    See :func:`plot_effect` for what a panel shows. All panels of single columns have one scale.

    :param report: From :func:`interdomain.tables.effects`.
    :param num: The largest number of effects to draw; only effects of one or two columns are drawn.
    :param columns: The number of panels in a row.
    :param label: A label for f with its units.
    :raises ValueError: If the numbers are not positive.
    """
    num, columns = integer("num", num, at_least=1), integer("columns", columns, at_least=1)
    chosen = [k for k in report.order if len(report.effects[k]) <= 2][:num]
    columns = min(columns, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = new_figure((4.2 * columns, 3.2 * rows))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in panels[len(chosen) :]:
        unused.remove()
    for k, ax in zip(chosen, panels, strict=False):
        plot_effect(report, report.effects[k], ax, label=label)
    of_one = [ax for k, ax in zip(chosen, panels, strict=False) if len(report.effects[k]) == 1]
    limits = [ax.get_ylim() for ax in of_one]
    for ax in of_one:
        ax.set_ylim(np.min(limits), np.max(limits))
    return figure


def plot_effect(
    report: Effects, effect: Any, ax: Axes | None = None, *, label: str = "effect"
) -> Axes:
    """Draw one effect, over the range of its columns in the data, in their units.

    For a numeric column this is a line with a band of two standard deviations to either side; for a
    categorical column, a bar for each level with error bars of the same size; for two columns, a
    map of the mean, in which zero is white.

    :param report: From :func:`interdomain.tables.effects`.
    :param effect: An effect of one or two columns, by its name or by its columns.
    :param ax: Where to draw; a new figure by default.
    :param label: A label for f with its units.
    :raises ValueError: If there is no such effect, or it has more than two columns.
    """
    number = report.number_of(effect)
    places = report.effects[number]
    if len(places) > 2:
        raise ValueError(
            f"effect must have one or two columns to be drawn, found {report.names[number]!r}; "
            "hold some of its columns and pass the others' values to report.of."
        )
    ax = new_axes() if ax is None else ax
    shown = [report.columns[k] for k in places]
    names = [report.column_names[k] for k in places]
    if len(places) == 2:
        _map(report, number, shown, names, ax, label)
    else:
        _curve(report, number, shown[0], ax)
        ax.set(xlabel=names[0], ylabel=label)
    share, deviation = report.shares[number], report.share_deviations[number]
    title = f"{report.names[number]}: {share:.1%} ± {deviation:.1%}"
    ax.set_title(textwrap.fill(title, _LONGEST_LINE), fontsize="medium")
    return ax


def plot_shares(report: Effects, ax: Axes | None = None, *, num: int = 15) -> Axes:
    """Draw the share of each effect as a bar with its error bar, the largest first.

    Effects of single columns are blue, interactions orange.

    :param report: From :func:`interdomain.tables.effects`.
    :param ax: Where to draw; a new figure by default.
    :param num: The largest number of effects; the others are summed in one bar.
    :raises ValueError: If ``num`` is not positive.
    """
    num = integer("num", num, at_least=1)
    order = list(report.order)
    draws = [report.share_draws[:, k] for k in order[:num]]
    names = [report.names[k] for k in order[:num]]
    colours = [_ONE if len(report.effects[k]) == 1 else _SEVERAL for k in order[:num]]
    if len(order) > num:
        draws.append(np.sum(report.share_draws[:, order[num:]], axis=1))
        names.append(f"{len(order) - num} others")
        colours.append("0.7")
    ax = new_axes() if ax is None else ax
    place = np.arange(len(names))
    means, spread = np.mean(draws, axis=1), _BAND * np.std(draws, axis=1)
    # Shares are not negative, and so are no error bars.
    errors = np.stack([np.minimum(spread, means), spread])
    ax.barh(place, means, xerr=errors, color=colours, error_kw={"capsize": 3, "ecolor": "0.2"})
    ax.set_yticks(place, names)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    ax.set_xlabel("share of the variance of f (± 2 standard deviations)")
    if {_ONE, _SEVERAL} <= set(colours):
        from matplotlib.patches import Patch

        bars = [Patch(color=_ONE), Patch(color=_SEVERAL)]
        ax.legend(bars, ["one column", "interaction"], loc="lower right")
    return ax


def _curve(report: Effects, number: int, column: Column, ax: Axes) -> None:
    values = column.grid(_POINTS_OF_LINE)
    mean, variance = report.of(report.effects[number], values)
    spread = _BAND * np.sqrt(variance)
    ax.axhline(0, color="0.6", lw=0.8, zorder=0)
    if column.num_levels is None:
        ax.fill_between(values, mean - spread, mean + spread, alpha=0.3, lw=0)
        ax.plot(values, mean)
        ax.margins(x=0)
        return
    place = np.arange(len(values))
    ax.bar(place, mean, yerr=spread, alpha=0.7, error_kw={"capsize": 3, "ecolor": "0.2"})
    _level_ticks(ax.xaxis, values)


def _map(
    report: Effects, number: int, columns: list[Column], names: list[str], ax: Axes, label: str
) -> None:
    across, up = (column.grid(_POINTS_OF_MAP) for column in columns)
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    mean, _ = report.of(report.effects[number], grid.reshape([-1, 2]))
    places: list[Any] = [
        values if column.num_levels is None else np.arange(len(values))
        for column, values in zip(columns, (across, up), strict=True)
    ]
    draw_image(ax, places[0], places[1], mean.reshape(grid.shape[:2]), label, names)
    for axis, column, values in zip((ax.xaxis, ax.yaxis), columns, (across, up), strict=True):
        if column.num_levels is not None:
            _level_ticks(axis, values)


def _level_ticks(axis: Any, levels: Array) -> None:
    """The levels, or some of them if there are many."""
    step = -(-len(levels) // 12)
    axis.set_ticks(np.arange(len(levels))[::step], [f"{level:g}" for level in levels[::step]])
