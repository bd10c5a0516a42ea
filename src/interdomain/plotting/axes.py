"""Where to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_axes() -> Axes:
    """The axes of a new figure.

    :raises ImportError: If there is no matplotlib.
    """
    ax: Axes = _pyplot().subplots(layout="constrained")[1]
    return ax


def new_panels(count: int, columns: int) -> tuple[Figure, list[Axes]]:
    """A new figure with so many axes, in rows of ``columns``.

    :raises ImportError: If there is no matplotlib.
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (4.2 * columns, 3.2 * rows)
    figure, panels = _pyplot().subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained"
    )
    for unused in panels.flat[count:]:
        unused.remove()
    return figure, list(panels.flat[:count])


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "interdomain.plotting needs matplotlib: pip install 'interdomain[plot]'."
        ) from error
    return pyplot
