"""New figures and axes to draw in, and images on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from gpflow.base import TensorType

from .._arguments import Array, finite_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_axes() -> Axes:
    """The axes of a new figure."""
    return new_figure().subplots()


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """An empty figure, of a width and height in inches."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "interdomain.plotting needs matplotlib: pip install 'interdomain[plot]'."
        ) from error
    return pyplot.figure(figsize=size, layout="constrained")


def column(name: str, values: TensorType) -> Array:
    """Places on an axis, in order, as a vector.

    :raises ValueError: If they are not ``[N]`` or ``[N, 1]``, two or more, each once and in order.
    """
    array = finite_array(name, values, (1, 2), "[N] or [N, 1]")
    steps = np.diff(array.reshape(-1))
    if array.size != len(array) or not len(steps) or not (np.all(steps > 0) or np.all(steps < 0)):
        raise ValueError(
            f"{name} must be [N] or [N, 1], two values or more in order, found shape "
            f"{array.shape}; pass the places of one axis, each once."
        )
    return array.reshape(-1)
