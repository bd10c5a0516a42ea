"""New matplotlib figures and axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_axes() -> Axes:
    """The axes of a new figure."""
    return new_figure().subplots()


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """An empty figure of a given width and height in inches."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "interdomain.plotting needs matplotlib: pip install 'interdomain[plot]'."
        ) from error
    return pyplot.figure(figsize=size, layout="constrained")
