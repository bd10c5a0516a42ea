"""Where to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes() -> Axes:
    """The axes of a new figure.

    :raises ImportError: If there is no matplotlib.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "interdomain.plotting needs matplotlib: pip install 'interdomain[plot]'."
        ) from error
    return pyplot.subplots(layout="constrained")[1]
