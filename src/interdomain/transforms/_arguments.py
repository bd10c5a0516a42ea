"""Checks of the arguments of transformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .._arguments import as_integers, integer, real_array, short
from ..sphere._typing import Array

IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


MAX_ORDER = 65_536
"""The largest number of elements of a group: an orbit has this many copies of X."""

MAX_COLUMNS = 10_000_000
"""The largest number of columns of X, as permutations are stored and checks need some rows."""


def as_order(order: Any) -> int:
    """:raises ValueError: Unless ``order`` is an integer from 2 to :data:`MAX_ORDER`."""
    remedy = (
        "pass the number of times the transformation is applied until every input is back where "
        "it was"
    )
    value = integer("order", order, at_least=2, remedy=remedy)
    if value > MAX_ORDER:
        raise ValueError(
            f"order must be at most {MAX_ORDER}, found {value}; pass a lower one, as an orbit "
            "has that many copies of X."
        )
    return value


def as_dims(dims: Any, count: int | None = None) -> tuple[int, ...]:
    """Columns of X, each named once.

    :param count: How many there have to be; any number by default.
    :raises ValueError: If they are not, or if one is repeated or negative.
    """
    columns = as_integers("dims", dims, "pass the numbers of columns of X, for example [0, 2]")
    if min(columns) < 0:
        raise ValueError(
            f"dims must be 0 or more, found {dims!r}; pass numbers of columns, counted from the "
            "first."
        )
    if max(columns) >= MAX_COLUMNS:
        raise ValueError(
            f"dims must be below {MAX_COLUMNS:,}, found {dims!r}; pass columns below that, the "
            "most that X can have."
        )
    if len(set(columns)) < len(columns):
        raise ValueError(f"dims must differ, found {dims!r}; pass every column once.")
    if count is not None and len(columns) != count:
        raise ValueError(f"dims must be {count} columns, found {dims!r}; pass {count} of them.")
    return columns


def as_vector(name: str, values: Any, size: int | None, per: str) -> Array:
    """A scalar ``[]``, or a vector of ``size`` numbers (of any size if None).

    :raises ValueError: If it is neither, or not finite.
    """
    remedy = "pass finite numbers"
    array = real_array(name, values, "a scalar or a vector", remedy)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, found {short(array)}; {remedy}.")
    if array.ndim > 1 or (array.ndim == 1 and size is not None and array.size != size):
        expected = "" if size is None else f" ({size})"
        raise ValueError(
            f"{name} must be a scalar, or one number per {per}{expected}, found shape "
            f"{array.shape}; pass a scalar or a vector of that length."
        )
    return array


def as_matrix(name: str, values: Any, remedy: str) -> Array:
    """:raises ValueError: Unless ``values`` is a matrix of finite numbers that is not empty."""
    array = real_array(name, values, "a matrix", remedy)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must be a matrix, found shape {array.shape}; {remedy}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, found {short(array)}; pass finite numbers.")
    return array


def spread(values: Array, dims: Sequence[int], num_columns: int, fill: float) -> Array:
    """``[num_columns]``: ``values`` in the columns ``dims`` and ``fill`` in the others."""
    row = np.full(num_columns, fill)
    row[list(dims)] = values
    return row
