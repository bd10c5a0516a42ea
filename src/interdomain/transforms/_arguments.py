"""Checks of the arguments of transformations, and their short forms for messages."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..sphere._typing import Array

IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


def as_integer(value: Any) -> int | None:
    """``value`` as an int, None if it is not an integer (True and False are none)."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def as_order(order: Any) -> int:
    """:raises ValueError: Unless ``order`` is an integer of 2 or more."""
    value = as_integer(order)
    if value is None or value < 2:
        raise ValueError(
            f"order must be an integer of 2 or more, found {order!r}; pass the number of times the "
            "transformation is applied until every input is back where it was."
        )
    return value


def as_integers(name: str, values: Any, remedy: str) -> tuple[int, ...]:
    """An integer, or several, as a tuple.

    :raises ValueError: If there are none, or one is not an integer.
    """
    single = as_integer(values)
    if single is not None:
        return (single,)
    try:
        integers = [as_integer(value) for value in values]
    except TypeError:
        integers = [None]
    found = [integer for integer in integers if integer is not None]
    if not found or len(found) < len(integers):
        raise ValueError(f"{name} must be integers, found {values!r}; {remedy}.")
    return tuple(found)


def as_dims(dims: Any, count: int | None = None) -> tuple[int, ...]:
    """Columns of X, each named once.

    :param count: How many there have to be; any number by default.
    :raises ValueError: If they are not, or if one is repeated or negative.
    """
    columns = as_integers("dims", dims, "pass the numbers of columns of X, for example [0, 2]")
    if min(columns) < 0:
        raise ValueError(
            f"dims must be 0 or more, found {dims!r}; count columns from the first one."
        )
    if len(set(columns)) < len(columns):
        raise ValueError(f"dims must differ, found {dims!r}; pass every column once.")
    if count is not None and len(columns) != count:
        raise ValueError(f"dims must be {count} columns, found {dims!r}; pass {count} of them.")
    return columns


def as_numbers(name: str, values: Any) -> Array:
    """:raises ValueError: Unless ``values`` is an array of finite numbers."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be numbers, found {values!r}; pass a NumPy array or a list."
        ) from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, found {short(array)}; pass finite numbers.")
    return array


def as_vector(name: str, values: Any, size: int | None, per: str) -> Array:
    """A scalar ``[]``, or a vector of ``size`` numbers (of any size if None).

    :raises ValueError: If it is neither, or not finite.
    """
    array = as_numbers(name, values)
    if array.ndim > 1 or (array.ndim == 1 and size is not None and array.size != size):
        expected = "" if size is None else f" ({size})"
        raise ValueError(
            f"{name} must be a scalar, or one number per {per}{expected}, found shape "
            f"{array.shape}; pass a scalar or a vector of that length."
        )
    return array


def as_matrix(name: str, values: Any, remedy: str) -> Array:
    """:raises ValueError: Unless ``values`` is a matrix of finite numbers that is not empty."""
    array = as_numbers(name, values)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must be a matrix, found shape {array.shape}; {remedy}.")
    return array


def spread(values: Array, dims: Sequence[int], num_columns: int, fill: float) -> Array:
    """``[num_columns]``: ``values`` in the columns ``dims`` and ``fill`` in the others."""
    row = np.full(num_columns, fill)
    row[list(dims)] = values
    return row


def short(value: Any) -> str:
    """A value as it is shown by the repr of a transformation: a long array is abbreviated."""
    array = np.asarray(value)
    if array.ndim == 0:
        return repr(array.item())
    if array.ndim > 1:
        return f"<array {list(array.shape)}>"
    text = np.array2string(array, precision=4, separator=", ", threshold=6, edgeitems=2)
    return " ".join(text.split())
