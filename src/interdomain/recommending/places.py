"""Recognises a table of places: two columns, latitude and longitude in degrees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._arguments import Array, choice

_LATITUDES = {"lat", "lats", "latitude", "latitudes", "latitude_deg", "lat_deg", "latdeg"}
_LONGITUDES = {"lon", "lons", "lng", "long", "longitude", "longitudes", "longitude_deg"}
_LONGITUDES |= {"lon_deg", "londeg", "longdeg", "long_deg"}

_WIDE = 20.0
"""Degrees of either column: a plane distorts wider areas."""


def latitude_longitude(
    names: Sequence[str], rows: Array, inputs: str | None, *, is_table: bool
) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    """The columns of latitude and longitude of a table of places, None for other tables; and what
    the user should know of them.

    :param names: The names of the columns.
    :param rows: The rows, ``[N, D]``.
    :param inputs: "degrees" for places, "euclidean" for a plane, None to recognise places by the
        names of the columns.
    :raises ValueError: For "degrees" with other than two columns, or with latitudes beyond 90.
    """
    if inputs is not None:
        remedy = "pass None to recognise latitude and longitude by the names of the columns"
        choice("inputs", inputs, ("degrees", "euclidean"), remedy)
    named = _named(names)
    if inputs == "degrees":
        if rows.shape[1] != 2 or not is_table:
            raise ValueError(
                "inputs must be 'degrees' for two columns alone, latitude and longitude, found "
                f"{rows.shape[1]} columns; pass inputs=None."
            )
        places = (0, 1) if named is None else named
        if not _in_range(rows, places):
            raise ValueError(
                "X must have latitudes from -90 to 90 and longitudes from -180 to 360 degrees, "
                f"found {rows.min(axis=0)} to {rows.max(axis=0)}; pass latitude and longitude in "
                "this order."
            )
        return places, ()
    if inputs == "euclidean" or not is_table:
        return None, ()
    if named is not None and rows.shape[1] == 2 and _in_range(rows, named):
        if np.max(np.ptp(rows, axis=0)) > _WIDE:
            return named, (
                "The columns are latitude and longitude: the models are those of the globe. Pass "
                "inputs='euclidean' for those of a plane.",
            )
        return None, (
            "The columns are latitude and longitude of a small area, which is taken for a plane. "
            "Pass inputs='degrees' for models of the globe.",
        )
    if named is not None and _in_range(rows, named):
        return None, (
            "Latitude and longitude are taken for columns of a plane, since there are other "
            "columns: GlobeMatern52(active_dims=...) is the kernel of the globe for a sum or a "
            "product.",
        )
    if rows.shape[1] == 2 and any(
        _in_range(rows, order) and np.min(np.ptp(rows, axis=0)) > _WIDE
        for order in ((0, 1), (1, 0))
    ):
        return None, (
            "If the columns are latitude and longitude in degrees, pass inputs='degrees' (in this "
            "order) for models of the globe.",
        )
    return None, ()


def _named(names: Sequence[str]) -> tuple[int, int] | None:
    """The columns whose names are those of latitude and longitude, if there is one of each."""
    of_columns = [name.strip().lower() for name in names]
    found = [
        [place for place, name in enumerate(of_columns) if name in known]
        for known in (_LATITUDES, _LONGITUDES)
    ]
    return (found[0][0], found[1][0]) if [len(places) for places in found] == [1, 1] else None


def _in_range(rows: Array, places: tuple[int, int]) -> bool:
    latitudes, longitudes = rows[:, places[0]], rows[:, places[1]]
    in_turn = -180 <= np.min(longitudes) and np.max(longitudes) <= 360
    return bool(np.all(np.abs(latitudes) <= 90) and in_turn)
