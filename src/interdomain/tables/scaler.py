"""Scales of a table, computed from the training rows and applied to new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gpflow
import numpy as np

from .._arguments import Array, choice, finite_array, short, warn
from .places import in_range, named_places
from .reading import TableReader, column_place

_ROUNDING = 1e-12
"""A standard deviation, as a part of the mean, below which a column does not vary."""


class TableScaler:
    """A function that turns rows of a table into scaled numbers, fitted to the training rows.

    A column of categories becomes a column of zeros and ones for each of its levels but the first.
    Columns that do not vary are left out, and all others are standardised. A column of many
    categories may become one column with the numbers of its levels, as :class:`GroupIntercepts`
    requires.

    >>> import numpy as np, interdomain as idm
    >>> scaler = idm.tables.TableScaler(np.array([[1.0, 7.0, 0.0], [3.0, 7.0, 1.0]]))
    >>> scaler(np.array([[2.0, 7.0, 1.0]])).tolist(), scaler.left_out
    ([[0.0, 1.0]], ('column 1',))

    Called with rows, it returns the scaled rows, ``[N, K]`` in ``gpflow.default_float()``. A frame
    may have the columns in any order, if their names are different. An unknown level raises a
    warning, and becomes the mean of each column of zeros and ones over the training rows.

    :param X: The training rows: a matrix ``[N, D]``, or a data frame of columns of numbers and of
        categories (text, or pandas' category type).
    :param scale: "columns" standardises each column. "pixels" maps all columns together to numbers
        from 0 to 1. "degrees" leaves two columns as they are, the latitude first; names of a frame
        tell them apart. "none" leaves numbers as they are. Only "columns" leaves columns out.
    :param categorical: The names or numbers of columns of numbers that are categories.
    :param most_indicators: A column of categories with more levels becomes a column of the numbers
        of its levels, after all other columns. An unknown level becomes the number of levels,
        without a warning. None gives zeros and ones for all columns of categories.
    :param bounds: ``{column: (low, high)}`` for columns of numbers, by name or number. Such a
        column is scaled as if its values were spread evenly between the bounds, which become
        -sqrt(3) and sqrt(3), whatever the rows are.
    :ivar names: The names of the K columns of scaled rows.
    :ivar num_levels: The number of levels of each of the last columns, which hold numbers of
        levels.
    :ivar left_out: The names of the columns that do not vary in the training rows.
    :ivar shift: The number that is subtracted from each column, ``[K]``.
    :ivar scale: The divisor of each column, ``[K]``.
    :raises ValueError: Naming the column, for values that are missing, infinite or neither numbers
        nor categories; if no column varies; for degrees that are not latitudes and longitudes; when
        called, for rows with other columns.
    """

    def __init__(
        self,
        X: Any,
        scale: str = "columns",
        *,
        categorical: Sequence[Any] = (),
        most_indicators: int | None = None,
        bounds: Mapping[Any, tuple[float, float]] | None = None,
    ) -> None:
        choice("scale", scale, ("columns", "pixels", "degrees", "none"))
        self._reader = TableReader.from_data(X, categorical)
        numbers = self._reader(X)
        names = list(self._reader.names or [f"column {k}" for k in range(numbers.shape[1])])
        self._names = [str(name) for name in names]
        most = np.inf if most_indicators is None else most_indicators
        sizes = [len(levels or ()) for levels in self._reader.levels]
        self._groups = [place for place, size in enumerate(sizes) if size > most]
        self.num_levels = tuple(sizes[place] for place in self._groups)
        self._others = [place for place in range(len(names)) if place not in self._groups]
        self._order = self._latitude_first(numbers) if scale == "degrees" else None
        self._shares = [
            None
            if self._reader.levels[k] is None
            else np.mean(_indicators(numbers[:, k], sizes[k]), axis=0)
            for k in self._others
        ]
        if not self._others:
            raise ValueError(
                "X must have a column beside those of many categories, found "
                f"{short(self._names)} alone; pass another column, of numbers or few categories."
            )
        rows, labels = self._columns(numbers), np.array(self._labels(), dtype=object)
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        for place, ends in self._bounded(bounds, names).items():
            mean[place], deviation[place] = np.mean(ends), np.ptp(ends) / 12**0.5
        varying = deviation > _ROUNDING * np.abs(mean) if scale == "columns" else mean == mean
        if not np.any(varying):
            raise ValueError("X: no column varies; pass columns that tell rows apart.")
        self._varying = varying
        self.shift, self.scale = np.zeros(len(labels)), np.ones(len(labels))
        if scale == "columns":
            self.shift, self.scale = mean[varying], deviation[varying]
        elif scale == "pixels":
            low, high = rows.min(), rows.max()
            if not low < high:
                raise ValueError("X: no pixel varies; pass pixels that tell images apart.")
            self.shift, self.scale = (np.full(len(labels), v) for v in (low, high - low))
        constant_names = [
            self._names[place]
            for place, shares in zip(self._others, self._shares, strict=True)
            if shares is not None and not len(shares)
        ]
        self.names = (*labels[varying], *(self._names[place] for place in self._groups))
        self.left_out = (*constant_names, *labels[~varying])

    def __call__(self, X: Any) -> Array:
        """The rows on the scales of the training rows, ``[N, K]``."""
        numbers = self._reader(X)
        for place, unknown, found in self._reader.unknown_levels(X, numbers):
            if place not in self._groups:
                warn(
                    f"X: {np.count_nonzero(unknown)} of {len(numbers)} rows have levels of column "
                    f"{self._names[place]!r} that the training rows do not have, {found}; they are "
                    f"taken for the mean of its {len(self._reader.levels[place] or ())} levels. "
                    "Train with rows of all levels, if these matter."
                )
        scaled = (self._columns(numbers)[:, self._varying] - self.shift) / self.scale
        columns: Array = np.hstack([scaled, numbers[:, self._groups]])
        return columns.astype(gpflow.default_float())

    def _bounded(
        self, bounds: Mapping[Any, tuple[float, float]] | None, names: Sequence[Any]
    ) -> dict[int, Array]:
        """The bounds by the place of a column among columns of numbers and indicators.

        :raises ValueError: For columns that are not numbers, and bounds that are not ranges.
        """
        places, first = dict[int, int](), 0
        for place, shares in zip(self._others, self._shares, strict=True):
            places[place], first = first, first + (1 if shares is None else len(shares))
        checked = dict[int, Array]()
        for column, ends in (bounds or {}).items():
            place = column_place("bounds", column, names)
            pair = finite_array(
                "bounds", ends, (1,), "a lowest and a highest value for each column"
            )
            if self._reader.levels[place] is not None or len(pair) != 2 or not pair[0] < pair[1]:
                raise ValueError(
                    "bounds must have a lowest and a higher value for columns of numbers, found "
                    f"{short(ends)} for {self._names[place]!r}; pass {{column: (low, high)}}."
                )
            checked[places[place]] = pair
        return checked

    def _columns(self, numbers: Array) -> Array:
        """Columns of numbers, and columns of zeros and ones for categories."""
        parts = [
            column[:, None] if shares is None else _indicators(column, 1 + len(shares), shares)
            for column, shares in zip(numbers[:, self._others].T, self._shares, strict=True)
        ]
        columns: Array = np.concatenate(parts, axis=1)
        return columns if self._order is None else columns[:, self._order]

    def _labels(self) -> list[str]:
        """The names of all columns of :meth:`_columns`."""
        labels = []
        for place in self._others:
            name, levels = self._names[place], self._reader.levels[place]
            labels += [name] if levels is None else [f"{name}: {level}" for level in levels[1:]]
        return labels if self._order is None else [labels[place] for place in self._order]

    def _latitude_first(self, numbers: Array) -> list[int]:
        """The places of latitude and longitude; a ValueError if there are other columns."""
        numbers = numbers[:, self._others]
        levels = [self._reader.levels[place] for place in self._others]
        places = named_places([self._names[place] for place in self._others]) or (0, 1)
        if numbers.shape[1] != 2 or any(levels) or not in_range(numbers, places):
            ends = [
                [float(f"{end:.4g}") for end in column]
                for column in zip(numbers.min(axis=0), numbers.max(axis=0), strict=True)
            ]
            raise ValueError(
                "X must have two columns, latitudes from -90 to 90 and longitudes from -180 to 360 "
                f"degrees, found {numbers.shape[1]} columns in the ranges {short(ends)}; pass "
                "latitude and longitude, in this order."
            )
        return list(places)


def _indicators(places: Array, count: int, unknown: Array | None = None) -> Array:
    """Columns of zeros and ones for all ``count`` levels but the first, ``[N, count - 1]``. Rows
    with an unknown level get the row ``unknown``."""
    columns = np.asarray(places[:, None] == np.arange(1, count), float)
    if unknown is not None:
        columns[places == count] = unknown
    return columns
