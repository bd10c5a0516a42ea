"""Detection of columns of latitude and longitude by their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._arguments import Array

_LATITUDES = {"lat", "lats", "latitude", "latitudes", "latitude_deg", "lat_deg", "latdeg"}
_LONGITUDES = {"lon", "lons", "lng", "long", "longitude", "longitudes", "longitude_deg"}
_LONGITUDES |= {"lon_deg", "londeg", "longdeg", "long_deg"}


def named_places(names: Sequence[str]) -> tuple[int, int] | None:
    """The numbers of the columns named latitude and longitude; None unless there is one of each."""
    labels = [name.strip().lower() for name in names]
    found = [
        [place for place, name in enumerate(labels) if name in known]
        for known in (_LATITUDES, _LONGITUDES)
    ]
    return (found[0][0], found[1][0]) if [len(places) for places in found] == [1, 1] else None


def in_range(rows: Array, places: tuple[int, int]) -> bool:
    """Whether the values of these columns can be latitudes and longitudes."""
    latitudes, longitudes = rows[:, places[0]], rows[:, places[1]]
    in_turn = -180 <= np.min(longitudes) and np.max(longitudes) <= 360
    return bool(np.all(np.abs(latitudes) <= 90) and in_turn)
