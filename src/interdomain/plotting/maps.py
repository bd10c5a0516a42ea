"""Maps of the whole earth: an equal-area oval, and a disc about each pole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from gpflow.base import TensorType

from .._arguments import Array, finite_array, real_array
from .axes import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

Draw: TypeAlias = Callable[..., Any]
"""A function that draws the cells of some rows of the grid, and the coastline."""

LOWEST_LATITUDE = 60.0
"""The latitude of the rim of the discs."""


def globe(
    latitude: TensorType,
    longitude: TensorType,
    values: TensorType,
    *,
    coastline: TensorType | None = None,
    coastline_level: float = 0.0,
    title: str = "",
    label: str = "",
    figure: FigureBase | None = None,
    **colours: Any,
) -> tuple[Axes, Axes, Axes]:
    """Draw values on a grid of latitudes and longitudes as maps. No file of coastlines is needed.

    The oval is a Mollweide projection, which cuts the earth at the date line and distorts the
    poles. There is therefore also a disc about each pole: Lambert's azimuthal equal-area
    projection, down to 60 degrees of latitude.

    :param latitude: ``[H]``, in degrees, increasing or decreasing.
    :param longitude: ``[W]``, in degrees, increasing from any start, at most once around the globe.
    :param values: ``[H, W]``; NaN for missing values.
    :param coastline: Another field on the same grid, such as the elevation, ``[H, W]``. A line is
        drawn along the level ``coastline_level`` of this field.
    :param title: The title of the oval.
    :param label: The label of the colour bar: the quantity and its unit.
    :param figure: An empty figure or subfigure; a new figure by default.
    :param colours: Arguments of matplotlib's ``pcolormesh``, such as ``cmap``, ``vmin`` and
        ``vmax``.
    :return: The axes, for further drawing: the oval, in radians, and the polar axes of the discs.
        Longitude 0 is at the bottom of the north disc and at the top of the south disc.
    :raises ValueError: If latitudes exceed 90 degrees or are not in order; if longitudes are not
        increasing or span more than 360 degrees; or if values are not ``[H, W]``.
    """
    latitude, longitude = _column("latitude", latitude), _column("longitude", longitude)
    if np.max(np.abs(latitude)) > 90:
        raise ValueError(
            f"latitude must be from -90 to 90 degrees, found {latitude.min():.6g} to "
            f"{latitude.max():.6g}; pass latitudes in degrees, and longitudes after them."
        )
    if longitude[-1] - longitude[0] > 360 or longitude[0] > longitude[-1]:
        raise ValueError(
            f"longitude must increase by 360 degrees at most, found {longitude[0]:.6g} to "
            f"{longitude[-1]:.6g}; pass each meridian once, from west to east."
        )
    shape = (len(latitude), len(longitude))
    rows = slice(None, None, 1 if latitude[0] < latitude[-1] else -1)
    shown = _field("values", values, shape)[rows]
    coast = None if coastline is None else _field("coastline", coastline, shape)[rows]
    latitude = latitude[rows]
    if 360 - (longitude[-1] - longitude[0]) < 1.5 * np.max(np.diff(longitude)):
        # The grid closes around the globe: the first column is the neighbour of the last.
        longitude = np.append(longitude, longitude[0] + 360)
        shown = np.append(shown, shown[:, :1], axis=1)
        coast = None if coast is None else np.append(coast, coast[:, :1], axis=1)

    figure = new_figure((9.0, 4.0)) if figure is None else figure
    spec = figure.add_gridspec(2, 2, width_ratios=[2.8, 1])
    oval = figure.add_subplot(spec[:, 0], projection="mollweide")
    discs = [figure.add_subplot(spec[row, 1], projection="polar") for row in range(2)]
    low, high = np.nanmin(shown, initial=np.inf), np.nanmax(shown, initial=-np.inf)
    scale = {"vmin": low, "vmax": high, "rasterized": True, **colours}

    def draw(ax: Axes, edges: Any, places: Any, rows: Any = slice(None)) -> Any:
        """The mesh of the cells between edges, drawn with the coastline at the places."""
        mesh = ax.pcolormesh(*edges, shown[rows], **scale)
        if coast is not None:
            line = *places, coast[rows], [coastline_level]
            ax.contour(*line, colors="black", linewidths=0.5)
        return mesh

    mesh = _draw_map(oval, latitude, longitude, draw)
    for ax, pole in zip(discs, (1, -1), strict=True):
        _draw_disc(ax, pole, latitude, longitude, draw)
    oval.set_title(title)
    bar = figure.colorbar(mesh, ax=[oval, *discs], orientation="horizontal", shrink=0.5, aspect=40)
    bar.set_label(label)
    return oval, discs[0], discs[1]


def _column(name: str, values: TensorType) -> Array:
    """The places along an axis as a vector: two or more, different and in order."""
    array = finite_array(name, values, (1, 2), "[N] or [N, 1]")
    steps = np.diff(array.reshape(-1))
    if array.size != len(array) or not len(steps) or not (np.all(steps > 0) or np.all(steps < 0)):
        raise ValueError(
            f"{name} must be [N] or [N, 1], two values or more in order, found shape "
            f"{array.shape}; pass the places of one axis, each once."
        )
    return array.reshape(-1)


def _field(name: str, values: TensorType, shape: tuple[int, int]) -> Array:
    field = real_array(name, values, "a matrix [H, W]")
    if field.shape != shape:
        raise ValueError(
            f"{name} must be [H, W] = {list(shape)}, one for each latitude and longitude, found "
            f"shape {list(field.shape)}; pass values.reshape(len(latitude), len(longitude))."
        )
    return field


def _edges(places: Array) -> Array:
    """The ends of the cells around places, ``[n + 1]``."""
    middle = (places[1:] + places[:-1]) / 2
    return np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])


def _draw_map(ax: Axes, latitude: Array, longitude: Array, draw: Draw) -> Any:
    """The mesh of the oval. Cells past the date line are drawn again, shifted by 360 degrees."""
    north = np.radians(np.clip(_edges(latitude), -90, 90))
    first, last = np.floor((180 - longitude[[-1, 0]]) / 360)
    for turn in np.arange(first, last + 1):
        around = longitude + 360 * turn
        east = np.radians(np.clip(_edges(around), -180, 180))
        mesh = draw(ax, (east, north), (np.radians(around), np.radians(latitude)))
    ax.grid(color="grey", linewidth=0.3)
    ax.set_xticks(np.radians(np.arange(-120, 121, 60)))
    ax.set_yticks(np.radians(np.arange(-60, 61, 30)))
    ax.tick_params(labelsize="small")
    return mesh


def _draw_disc(ax: Any, pole: int, latitude: Array, longitude: Array, draw: Draw) -> None:
    """Draw the disc about a pole. Polar coordinates are longitude and an equal-area radius."""

    def radius(latitude: Any) -> Any:
        return 2 * np.sin(np.radians(90 - pole * latitude) / 2)

    beyond = np.flatnonzero(pole * latitude > LOWEST_LATITUDE - 5)
    if len(beyond) > 1:
        rows = slice(beyond[0], beyond[-1] + 1)
        ends = radius(np.clip(_edges(latitude[rows]), -90, 90))
        edges = np.radians(_edges(longitude)), ends
        draw(ax, edges, (np.radians(longitude), radius(latitude[rows])), rows)
    ax.set_theta_zero_location("S" if pole > 0 else "N")
    ax.set_theta_direction(pole)
    ax.set_rlim(0, radius(pole * LOWEST_LATITUDE))
    ax.set_rgrids([radius(pole * 75.0)], [])
    ax.set_thetagrids([0, 90, 180, 270], ["0°", "90°E", "180°", "90°W"], fontsize="x-small")
    ax.grid(color="grey", linewidth=0.3)
    ax.set_title(f"beyond {LOWEST_LATITUDE:.0f}° {'N' if pole > 0 else 'S'}", fontsize="small")
