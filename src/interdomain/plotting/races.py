"""Pictures of what models learn by time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..training import Race
from .axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def race(race: Race, ax: Axes | None = None) -> Axes:
    """Draw the log density of rows held out against seconds, a line or a point for each model.

    The best is first in the legend; a model that failed before it was looked at is not drawn.

    :param race: From :func:`interdomain.training.race`.
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
