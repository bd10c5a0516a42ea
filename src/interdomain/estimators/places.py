"""Detection of tables of two columns that are latitude and longitude in degrees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._arguments import Array, choice
from ..tables.places import in_range, named_places

_WIDE = 20.0
"""The extent of a column, in degrees, above which a plane distorts the area."""

_SENTENCES = {
    "wide": "The columns are latitude and longitude: the models are models of the globe. Pass "
    "inputs='euclidean' for models of a plane.",
    "small": "The columns are latitude and longitude of a small area, which is taken for a plane. "
    "Pass inputs='degrees' for models of the globe.",
    "among others": "Latitude and longitude are taken for columns of a plane, since there are "
    "other columns. To use the globe, add or multiply a kernel GlobeMatern52(active_dims=...).",
    "perhaps": "If the columns are latitude and longitude in degrees, pass inputs='degrees' (in "
    "this order) for models of the globe.",
}


def is_on_the_globe(
    names: Sequence[str], rows: Array, inputs: str | None, *, is_table: bool
) -> tuple[bool, tuple[str, ...]]:
    """Whether a table has latitudes and longitudes of a globe, and remarks for the user.

    :param names: The names of the columns.
    :param rows: The rows, ``[N, D]``.
    :param inputs: "degrees" for places, "euclidean" for a plane, None to recognise places by the
        names of the columns.
    :raises ValueError: For "degrees" if there are not exactly two columns.
    """
    if inputs is not None:
        remedy = "pass None to recognise latitude and longitude by the names of the columns"
        choice("inputs", inputs, ("degrees", "euclidean"), remedy)
    if inputs == "degrees":
        if rows.shape[1] != 2 or not is_table:
            raise ValueError(
                "inputs must be 'degrees' for two columns alone, latitude and longitude, found "
                f"{rows.shape[1]} columns; pass inputs=None."
            )
        return True, ()
    if inputs == "euclidean" or not is_table:
        return False, ()
    named, only, extents = named_places(names), rows.shape[1] == 2, np.ptp(rows, axis=0)
    if named is not None and in_range(rows, named):
        case = "among others" if not only else "wide" if np.max(extents) > _WIDE else "small"
    elif only and np.min(extents) > _WIDE and (in_range(rows, (0, 1)) or in_range(rows, (1, 0))):
        case = "perhaps"
    else:
        return False, ()
    return case == "wide", (_SENTENCES[case],)
