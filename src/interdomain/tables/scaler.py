"""Scales of a table, taken from the training rows and applied to new rows."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np

from .._arguments import Array, choice, short, warn
from .places import in_range, named_places
from .reading import TableReader

_ROUNDING = 1e-12
"""A column whose standard deviation is a smaller part of its mean does not vary."""


class TableScaler:
    """The numbers and scales of a table: fitted to the training rows, and the same for new rows.

    A column of categories becomes a column of zeros and ones for each of its levels but the first.
    Columns that do not vary are left out, and all others are standardised.

    >>> import numpy as np, interdomain as idm
    >>> scaler = idm.tables.TableScaler(np.array([[1.0, 7.0, 0.0], [3.0, 7.0, 1.0]]))
    >>> scaler(np.array([[2.0, 7.0, 1.0]])).tolist(), scaler.left_out
    ([[0.0, 1.0]], ('column 1',))

    Called with rows, it returns the rows on these scales, ``[N, K]`` in ``gpflow.default_float()``.
    A frame may have the columns in any order, if their names are different. An unknown level comes
    with a warning, and has the mean of each column of zeros and ones.

    :param X: The training rows: a matrix ``[N, D]``, or a data frame of columns of numbers and of
        categories (text, or what pandas calls a category).
    :param scale: "columns" standardises each column; "pixels" brings all columns together to
        between 0 and 1; "degrees" leaves two columns as they are, the latitude first, which the
        names of a frame tell apart; "none" leaves numbers as they are. Only "columns" leaves
        columns out.
    :ivar names: The names of the K columns that rows have afterwards.
    :ivar left_out: The names of the columns that do not vary in the training rows.
    :ivar shift: The number that is subtracted from each column, ``[K]``.
    :ivar scale: The divisor of each column, ``[K]``.
    :raises ValueError: Naming the column, for values that are missing, infinite or neither numbers
        nor categories; if no column varies; for degrees that are no latitudes and longitudes; when
        called, for rows with other columns.
    """

    def __init__(self, X: Any, scale: str = "columns") -> None:
        choice("scale", scale, ("columns", "pixels", "degrees", "none"))
        self._reader = TableReader.from_data(X)
        numbers = self._reader(X)
        self._order = _latitude_first(self._reader, numbers) if scale == "degrees" else None
        names = self._reader.names or [f"column {place}" for place in range(numbers.shape[1])]
        self._names = [str(name) for name in names]
        self._shares = [
            None if levels is None else np.mean(_indicators(column, len(levels)), axis=0)
            for column, levels in zip(numbers.T, self._reader.levels, strict=True)
        ]
        rows, labels = self._columns(numbers), np.array(self._labels(), dtype=object)
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
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
        of_one_level = [
            name
            for name, shares in zip(self._names, self._shares, strict=True)
            if shares is not None and not len(shares)
        ]
        self.names = tuple(labels[varying])
        self.left_out = (*of_one_level, *labels[~varying])

    def __call__(self, X: Any) -> Array:
        """The rows on the scales of the training rows, ``[N, K]``."""
        numbers = self._reader(X)
        for place, unknown, found in self._reader.unknown_levels(X, numbers):
            warn(
                f"X: {np.count_nonzero(unknown)} of {len(numbers)} rows have levels of column "
                f"{self._names[place]!r} that the training rows do not have, {found}; they are "
                f"taken for the mean of its {len(self._reader.levels[place] or ())} levels. Train "
                "with rows of all levels, if these matter."
            )
        scaled: Array = (self._columns(numbers)[:, self._varying] - self.shift) / self.scale
        return scaled.astype(gpflow.default_float())

    def _columns(self, numbers: Array) -> Array:
        """Columns of numbers, and columns of zeros and ones for categories."""
        parts = [
            column[:, None] if shares is None else _indicators(column, 1 + len(shares), shares)
            for column, shares in zip(numbers.T, self._shares, strict=True)
        ]
        columns: Array = np.concatenate(parts, axis=1)
        return columns if self._order is None else columns[:, self._order]

    def _labels(self) -> list[str]:
        """The names of all columns of :meth:`_columns`."""
        labels = []
        for name, levels in zip(self._names, self._reader.levels, strict=True):
            labels += [name] if levels is None else [f"{name}: {level}" for level in levels[1:]]
        return labels if self._order is None else [labels[place] for place in self._order]


def _indicators(places: Array, count: int, unknown: Array | None = None) -> Array:
    """Zeros and ones for each of so many levels but the first; the row ``unknown`` for no level:
    ``[N, count - 1]``."""
    columns = np.asarray(places[:, None] == np.arange(1, count), float)
    if unknown is not None:
        columns[places == count] = unknown
    return columns


def _latitude_first(reader: TableReader, numbers: Array) -> list[int]:
    """The places of latitude and longitude in two columns, which must be these."""
    places = named_places([str(name) for name in reader.names or ()]) or (0, 1)
    if numbers.shape[1] != 2 or any(reader.levels) or not in_range(numbers, places):
        ends = [
            [float(f"{end:.4g}") for end in column]
            for column in zip(numbers.min(axis=0), numbers.max(axis=0), strict=True)
        ]
        raise ValueError(
            "X must have two columns, latitudes from -90 to 90 and longitudes from -180 to 360 "
            f"degrees, found {numbers.shape[1]} columns in the ranges {short(ends)}; pass latitude "
            "and longitude, in this order."
        )
    return list(places)
