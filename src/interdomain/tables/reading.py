"""Conversion of tables to numbers: the columns of a data frame in order, categories as numbers of
levels. Names of columns are never evaluated as code."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._arguments import Array, BoolArray, as_integer, filled_matrix, real_array, short

Level = Any
"""A value of a column of categories, such as a text."""


class TableReader:
    """A reader of rows as numbers, in the columns and levels of the training rows.

    A category becomes the place of its level among the levels of the training rows. Any other level
    becomes the number of levels.

    :param names: The names of the columns; None if new frames are read by the order of columns.
    :param levels: The levels of each column in increasing order; None for a column of numbers.
    """

    def __init__(
        self, names: Sequence[Any] | None, levels: Sequence[Sequence[Level] | None]
    ) -> None:
        self.names = None if names is None else tuple(names)
        self.levels = tuple(None if some is None else tuple(some) for some in levels)

    @classmethod
    def from_data(cls, X: Any, categorical: Sequence[Any] = ()) -> TableReader:
        """Make the reader for training rows: a matrix, or a data frame of numbers and categories.

        :param categorical: The names or numbers of columns of numbers that are categories.
        :raises ValueError: Naming the column, for a column that is neither; for values that are
            missing or infinite; for a table without rows or columns.
        """
        if not is_frame(X) and not len(categorical):
            return cls(None, [None] * filled_matrix("X", X, _RULE).shape[1])
        rows = X if is_frame(X) else _matrix(X)
        names = list(X.columns) if is_frame(X) else list(range(rows.shape[1]))
        columns = [_column(rows, place) for place in range(len(names))]
        if not names or not len(columns[0]):
            raise ValueError(f"X must be {_RULE}, found {len(names)} columns without rows.")
        chosen = {column_place("categorical", column, names) for column in categorical}
        levels: list[list[Level] | None] = [None] * len(names)
        for place, (name, values) in enumerate(zip(names, columns, strict=True)):
            if place in chosen or _is_categorical(values):
                levels[place] = _in_order(_present(values, name))
            else:
                _numbers(values, name)
        return cls(names if is_frame(X) else None, levels)

    def __call__(self, X: Any) -> Array:
        """The rows as numbers, ``[N, D]``.

        :raises ValueError: For other columns, and for values that are missing, infinite or not
            numbers.
        """
        if not is_frame(X) and not any(self.levels):
            rows = filled_matrix("X", X, _RULE)
            self._check_number(rows.shape[1])
            return rows
        read = []
        for (name, values), levels in zip(self.columns(X), self.levels, strict=True):
            if levels is None:
                read.append(_numbers(values, name))
            else:
                known = {level: float(place) for place, level in enumerate(levels)}
                present = _present(values, name)
                read.append(np.array([known.get(value, len(levels)) for value in present]))
        return np.stack(read, axis=1)

    def columns(self, X: Any) -> list[tuple[Any, Any]]:
        """The name and the values of each column, in the order of the training rows."""
        if is_frame(X):
            names = list(X.columns)
            return [(names[place], _column(X, place)) for place in self._places(names)]
        rows = _matrix(X)
        self._check_number(rows.shape[1])
        return list(enumerate(rows.T))

    def unknown_levels(self, X: Any, numbers: Array) -> Iterator[tuple[int, BoolArray, str]]:
        """Triples: the place of a column with unknown levels, the rows that have them, the levels.

        :param numbers: The rows X as numbers.
        """
        for place, levels in enumerate(self.levels):
            unknown = numbers[:, place] == len(levels or ())
            if levels is not None and np.any(unknown):
                values = np.asarray(self.columns(X)[place][1], object)[unknown]
                yield place, unknown, short(list(dict.fromkeys(values.tolist())))

    def _check_number(self, found: int) -> None:
        if found != (count := len(self.levels)):
            raise ValueError(
                f"X must have {count} columns, those of the training rows, found {found}."
            )

    def _places(self, found: list[Any]) -> list[int]:
        """The place of each column of the training rows among the given columns."""
        count = len(self.levels)
        if self.names is None:
            self._check_number(len(found))
            return list(range(count))
        new, known = [_key(name) for name in found], [_key(name) for name in self.names]
        if new == known:
            return list(range(count))
        if set(new) == set(known) and len(new) == len(set(new)) == count:
            return [new.index(name) for name in known]
        missing = [name for name in self.names if _key(name) not in new]
        others = [name for name in found if _key(name) not in known]
        raise ValueError(
            f"X must have the {count} columns of the training rows, each once, found {len(new)}: "
            f"{short(missing)} are missing, and {short(others)} are others; pass these columns by "
            "the same names."
        )


_RULE = "a matrix [N, D], or a data frame of numbers and categories"


def column_place(argument: str, column: Any, names: Sequence[Any]) -> int:
    """The place of a column that is given by its name or by its number.

    :raises ValueError: If there is no such column.
    """
    keys = [_key(name) for name in names]
    if _key(column) in keys:
        return keys.index(_key(column))
    place = as_integer(column)
    if place is None or not 0 <= place < len(names):
        texts = [str(name) for name in names]
        near = difflib.get_close_matches(str(column), texts, cutoff=0.3) or texts[:10]
        raise ValueError(
            f"{argument} must have names or numbers of columns, found {short(column)}; pass one of "
            f"the {len(texts)} columns, such as {', '.join(map(repr, near))}."
        )
    return place


def is_frame(X: Any) -> bool:
    """Whether X has columns with names, like a data frame of pandas or polars."""
    return getattr(X, "columns", None) is not None


def _matrix(X: Any) -> Any:
    """The rows as a matrix of objects, for numbers and categories without names."""
    rows = np.asarray(X, dtype=object)
    if rows.ndim != 2:
        raise ValueError(f"X must be {_RULE}, found shape {rows.shape}; pass X[:1] for one row.")
    return rows


def _column(X: Any, place: int) -> Any:
    """The values of the column at this place; two columns may have the same name."""
    if hasattr(X, "iloc"):
        return X.iloc[:, place]
    if is_frame(X) and hasattr(X, "__getitem__"):
        return X[list(X.columns)[place]]
    return np.asarray(X)[:, place]


def _key(name: Any) -> Any:
    """A key for each name that equals itself, also for NaN, which does not equal itself."""
    return ("not a number",) if _is_missing(name) else name


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # the NA of pandas is neither true nor false; an array
        return np.ndim(value) == 0


def _is_categorical(column: Any) -> bool:
    """Whether a column has pandas' category type, or holds text."""
    if str(getattr(column, "dtype", "")) == "category":
        return True
    values = np.asarray(column)
    if values.dtype.kind not in "OUST":
        return False
    present = [value for value in values if not _is_missing(value)]
    return bool(present) and all(isinstance(value, str) for value in present)


def _present(column: Any, name: Any) -> list[Level]:
    """The values of a column of categories, with an error if one is missing."""
    values = list(column.tolist() if hasattr(column, "tolist") else column)
    if any(map(_is_missing, values)):
        raise _has_gaps(name)
    return values


def _numbers(column: Any, name: Any) -> Array:
    """The values of a column of numbers, with an error if one is missing or infinite."""
    values = np.asarray(column)
    remedy = "pass numbers, or text for categories"
    if values.dtype == object:
        gaps = list(map(_is_missing, values))
        values = values if all(gaps) else np.where(gaps, np.nan, values)
    numbers = real_array(f"X: column {_shown(name)}", values, "a column", remedy)
    if not np.all(np.isfinite(numbers)):
        raise _has_gaps(name)
    return numbers


def _has_gaps(name: Any) -> ValueError:
    return ValueError(
        f"X: column {_shown(name)} must not have missing or infinite values; remove these rows, "
        "or fill in what is missing."
    )


def _shown(name: Any) -> str:
    return short(name if isinstance(name, (str, int)) else str(name))


def _in_order(values: Sequence[Level]) -> list[Level]:
    """The distinct values in increasing order, or in the order of their text if they have none."""
    different = list(dict.fromkeys(values))
    try:
        return sorted(different)
    except TypeError:
        return sorted(different, key=str)
