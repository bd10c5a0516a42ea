"""Plots of how models improve with time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tables import Race
from .axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def race(race: Race, ax: Axes | None = None) -> Axes:
    """Draw the log density of held-out rows against seconds, as a line or a point for each model.

    The best model is first in the legend. A model that failed before it was evaluated is not drawn.

    :param race: From :func:`interdomain.tables.race`.
    :param ax: Where to draw; a new figure by default.
    :return: The axes.
    :raises ImportError: If there is no matplotlib.
    """
    ax = new_axes() if ax is None else ax
    for name in race.ranking:
        trace = race.entries[name].trace
        seconds = [point.seconds for point in trace]
        densities = [point.log_density for point in trace]
        ax.plot(seconds, densities, "o-", ms=4, lw=1.2, label=name)
    ax.set_xscale("log")
    clock = "wall time" if race.clock == "wall" else "time of the processors"
    ax.set_xlabel(f"seconds ({clock}, start-up included)")
    ax.set_ylabel("log density of rows held out")
    if race.ranking:
        ax.legend(fontsize="small")
    return ax
