"""The columns of a table, and the sets of columns that have an effect together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from gpflow.base import TensorType

from .._arguments import Array, as_integer, items, real_array, short, warn
from .columns import CategoricalColumn, Column, NumericColumn
from .reading import TableReader, is_frame

_RULE = "tuples of columns, 'main' or 'pairs'"


def checked_names(names: Sequence[str | None]) -> tuple[str, ...]:
    """The name of each column: ``column 0``, ... for columns without one.

    :raises ValueError: If two names are the same, or one is not text.
    """
    labels = tuple(f"column {k}" if name is None else name for k, name in enumerate(names))
    for name in labels:
        if not isinstance(name, str):
            raise ValueError(f"names must be text, found {short(name)}; pass str() of each name.")
    twice = [name for name in labels if labels.count(name) > 1]
    if twice:
        raise ValueError(f"names must be different, found {twice[0]!r} twice; rename one column.")
    return labels


def columns_of_table(
    X: TensorType, names: Sequence[str] | None, categorical: Sequence[int | str]
) -> list[Column]:
    """The columns of :meth:`interdomain.tables.Additive.from_data`."""
    level_names = None
    if is_frame(X):
        reader = TableReader.from_data(X)
        X, frame_names, level_names = reader(X), list(reader.names or ()), reader.levels
        if names is None and all(isinstance(name, str) for name in frame_names):
            names = frame_names
    values = real_array("X", X, "a matrix [N, D]")
    if values.ndim != 2 or not values.size:
        raise ValueError(f"X must be a matrix [N, D] with rows and columns, found {values.shape}.")
    count = values.shape[1]
    labels = [None] * count if names is None else items("names", names, "text for each column")
    if len(labels) != count:
        raise ValueError(f"names must be {count}, one for each column, found {short(labels)}.")
    shown = checked_names(labels)
    for column, name in zip(values.T, shown, strict=True):
        if wrong := np.count_nonzero(~np.isfinite(column)):
            raise ValueError(
                f"X must be finite, found {wrong} of {len(values)} rows that are not in column "
                f"{name!r}; remove these rows, or fill in what is missing."
            )
    chosen = [categorical] if isinstance(categorical, (str, int)) else categorical
    entries = items("categorical", chosen, "numbers or names of columns")
    levels = {column_number("categorical", entry, shown) for entry in entries}
    columns: list[Column] = []
    named = level_names or [None] * count
    for k, (column, name) in enumerate(zip(values.T, shown, strict=True)):
        if named[k] is not None or k in levels:
            columns.append(CategoricalColumn.from_data(column, label=name, level_names=named[k]))
        else:
            columns.append(NumericColumn.from_data(column, label=name))
    return columns


def numbers_of_table(X: TensorType, columns: Sequence[Column], names: Sequence[str]) -> Array:
    """The rows as numbers, as in :meth:`interdomain.tables.Additive.encode`."""
    levels = [column.level_names for column in columns]
    frame_names = list(getattr(X, "columns", ()))
    reader = TableReader(names if set(frame_names) & set(names) else None, levels)
    numbers = reader(X)
    for place, _, found in reader.unknown_levels(X, numbers):
        warn(
            f"{names[place]}: {found} are none of its {columns[place].num_levels} levels, and get "
            "the prior's mean and variance."
        )
    for place, column in enumerate(columns):
        if isinstance(column, CategoricalColumn) and column.level_names:
            levels_and_unknown = np.append(column.levels, column.levels[-1] + 1)
            numbers[:, place] = levels_and_unknown[numbers[:, place].astype(np.int64)]
    return numbers


def checked_effects(effects: Any, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The columns of each effect of :class:`Additive`, increasing; effects of few columns first.

    :param names: The names of the columns.
    :raises ValueError: If there is no effect, or an effect or one of its columns is given twice.
    """
    effects = "main" if effects is None else effects
    listed = [effects] if isinstance(effects, str) else items("effects", effects, _RULE)
    checked: list[tuple[int, ...]] = []
    for effect in listed:
        if isinstance(effect, str) and effect in ("main", "pairs"):
            checked += itertools.combinations(range(len(names)), 1 if effect == "main" else 2)
        else:
            single = isinstance(effect, str) or as_integer(effect) is not None
            entries = [effect] if single else items("effects", effect, _RULE)
            numbers = (column_number("effects", entry, names) for entry in entries)
            checked.append(tuple(sorted(numbers)))
    wrong = [e for e in checked if not 0 < len(e) == len(set(e)) or checked.count(e) > 1]
    if wrong or not checked:
        found = repr(effect_name(wrong[0], names)) if wrong else "none"
        raise ValueError(
            f"effects must be {_RULE}, different and of different columns, found {found}; the "
            "constant is always there."
        )
    return tuple(sorted(checked, key=lambda effect: (len(effect), effect)))


def column_number(argument: str, column: Any, names: Sequence[str]) -> int:
    """The number of a column, which is given by number or name and must exist."""
    number = as_integer(column)
    if number is not None and 0 <= number < len(names):
        return number
    if isinstance(column, str) and column in names:
        return names.index(column)
    raise ValueError(
        f"{argument} must name columns by numbers from 0 to {len(names) - 1} or by their names, "
        f"found {short(column)}; the columns are {', '.join(names)}."
    )


def effect_name(effect: Sequence[int], names: Sequence[str]) -> str:
    """The name of an effect, such as ``age x cement``."""
    return " x ".join(names[column] for column in effect)
