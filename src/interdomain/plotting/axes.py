"""New figures and axes to draw in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_axes() -> Axes:
    """The axes of a new figure.

    :raises ImportError: If there is no matplotlib.
    """
    return new_figure().subplots()


def new_panels(count: int, columns: int) -> tuple[Figure, list[Axes]]:
    """A new figure with so many axes, in rows of ``columns``.

    :raises ImportError: If there is no matplotlib.
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = new_figure((4.2 * columns, 3.2 * rows))
    panels = figure.subplots(rows, columns, squeeze=False)
    for unused in panels.flat[count:]:
        unused.remove()
    return figure, list(panels.flat[:count])


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """An empty figure.

    :param size: Width and height in inches.
    :raises ImportError: If there is no matplotlib.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "interdomain.plotting needs matplotlib: pip install 'interdomain[plot]'."
        ) from error
    return pyplot.figure(figsize=size, layout="constrained")
