"""Columns of a table, from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gpflow.base import TensorType

from ..._arguments import items, real_array, short
from .columns import CategoricalColumn, Column, NumericColumn
from .effects import column_number


def checked_names(names: Sequence[str | None]) -> tuple[str, ...]:
    """One for each column: ``column 0``, ... for those without.

    :raises ValueError: If two are the same.
    """
    found = tuple(f"column {k}" if name is None else name for k, name in enumerate(names))
    twice = [name for name in found if found.count(name) > 1]
    if twice:
        raise ValueError(f"names must be different, found {twice[0]!r} twice; rename one column.")
    return found


def columns_of_table(
    X: TensorType,
    *,
    names: Sequence[str] | None,
    categorical: Sequence[int | str],
    quantiles: bool | None,
    margin: float,
) -> list[Column]:
    """See :meth:`interdomain.kernels.Additive.from_data`."""
    values = real_array("X", X, "a matrix [N, D]")
    if values.ndim != 2 or not values.size:
        raise ValueError(f"X must be a matrix [N, D] with rows and columns, found {values.shape}.")
    if names is None:  # those of a data frame
        own = list(getattr(X, "columns", ()))
        names = own if own and all(isinstance(name, str) for name in own) else None
    labels = _given_names(names, values.shape[1])
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
        column_number("categorical", one, shown)
        for one in items("categorical", chosen, "numbers or names of columns")
    }
    return [
        CategoricalColumn.from_data(values[:, k], label=shown[k])
        if k in levels
        else NumericColumn.from_data(
            values[:, k], quantiles=quantiles, margin=margin, label=shown[k]
        )
        for k in range(values.shape[1])
    ]


def _given_names(names: Any, count: int) -> list[str | None]:
    if names is None:
        return [None] * count
    found = items("names", names, "text for each column")
    if len(found) != count or not all(isinstance(name, str) for name in found):
        raise ValueError(
            f"names must be text, one for each of the {count} columns of X, found {short(found)}."
        )
    return found
