"""The columns of a table, and which of them act together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from gpflow.base import TensorType

from .._arguments import as_integer, items, real_array, short
from .columns import CategoricalColumn, Column, NumericColumn

_RULE = "tuples of columns, 'main' or 'pairs'"


def checked_names(names: Sequence[str | None]) -> tuple[str, ...]:
    """One for each column: ``column 0``, ... for those without.

    :raises ValueError: If two are the same.
    """
    labels = tuple(f"column {k}" if name is None else name for k, name in enumerate(names))
    twice = [name for name in labels if labels.count(name) > 1]
    if twice:
        raise ValueError(f"names must be different, found {twice[0]!r} twice; rename one column.")
    return labels


def columns_of_table(
    X: TensorType, names: Sequence[str] | None, categorical: Sequence[int | str]
) -> list[Column]:
    """See :meth:`interdomain.tables.Additive.from_data`."""
    values = real_array("X", X, "a matrix [N, D]")
    if values.ndim != 2 or not values.size:
        raise ValueError(f"X must be a matrix [N, D] with rows and columns, found {values.shape}.")
    if names is None:  # those of a data frame
        of_frame = list(getattr(X, "columns", ()))
        names = of_frame if of_frame and all(isinstance(name, str) for name in of_frame) else None
    count = values.shape[1]
    labels = [None] * count if names is None else items("names", names, "text for each column")
    if len(labels) != count:
        raise ValueError(f"names must be {count}, one for each column, found {short(labels)}.")
    shown = checked_names(labels)
    for column, name in enumerate(shown):
        wrong = np.count_nonzero(~np.isfinite(values[:, column]))
        if wrong:
            raise ValueError(
                f"X must be finite, found {wrong} of {len(values)} rows that are not in column "
                f"{name!r}; remove these rows, or fill in what is missing."
            )
    chosen = [categorical] if isinstance(categorical, (str, int)) else categorical
    levels = {
        column_number("categorical", entry, shown)
        for entry in items("categorical", chosen, "numbers or names of columns")
    }
    kinds = (CategoricalColumn if k in levels else NumericColumn for k in range(count))
    triples = zip(kinds, values.T, shown, strict=True)
    return [kind.from_data(column, label=name) for kind, column, name in triples]


def checked_effects(effects: Any, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The columns of each effect, increasing; effects of few columns first.

    :param effects: As of :class:`interdomain.tables.Additive`.
    :param names: Of the columns.
    :raises ValueError: If there are none, one is given twice, or has no column or one twice.
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
            checked.append(
                tuple(sorted(column_number("effects", entry, names) for entry in entries))
            )
    wrong = [e for e in checked if not 0 < len(e) == len(set(e)) or checked.count(e) > 1]
    if wrong or not checked:
        found = repr(effect_name(wrong[0], names)) if wrong else "none"
        raise ValueError(
            f"effects must be {_RULE}, different and of different columns, found {found}; the "
            "constant is always there."
        )
    return tuple(sorted(checked, key=lambda effect: (len(effect), effect)))


def column_number(argument: str, column: Any, names: Sequence[str]) -> int:
    """The number of a column that is given by its number or its name.

    :raises ValueError: If there is no such column.
    """
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
    """Such as ``age x cement``."""
    return " x ".join(names[column] for column in effect)
