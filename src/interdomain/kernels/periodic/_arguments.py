"""Checks of what a periodized kernel is made of: a box, a base kernel, and integer frequencies."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Product, Stationary, Sum

from ..._arguments import different_rows, finite_array, short
from ...sphere._typing import Array, IntArray
from .spectral_density import raise_unknown, spectral_density

AnyArray = TypeVar("AnyArray", Array, IntArray)

MAX_WAVES = 20
"""How many columns of a frequency may be above zero: it has two to the power of them features."""


def check_box(lower: TensorType, upper: TensorType) -> tuple[Array, Array]:
    """The ends of a box, ``[D]`` each, which cannot be changed.

    :raises ValueError: If they are not finite, of different shapes, or not in order.
    """
    first, last = (
        np.atleast_1d(finite_array(name, value, (0, 1), "a number or a vector [D]"))
        for name, value in (("lower", lower), ("upper", upper))
    )
    if first.shape != last.shape or not first.size:
        raise ValueError(
            f"upper must have the shape of lower, {first.shape}, found {last.shape}; pass one "
            "number for each column."
        )
    if not np.all(first < last):
        raise ValueError(
            f"upper must be above lower = {short(first)} in every column, found {short(last)}; "
            "pass a box with a width, for example by Periodized.from_data(base_kernel, X)."
        )
    return read_only(first.copy()), read_only(last.copy())


def read_only(values: AnyArray) -> AnyArray:
    """The array itself, which nobody changes from now on."""
    values.setflags(write=False)
    return values


def check_base(kernel: Kernel, num_columns: int) -> None:
    """:raises ValueError: If its density is not known, or not for all columns of a box."""
    columns = np.arange(num_columns)
    seen = _columns_seen(kernel, columns)
    if sorted(seen) != columns.tolist():
        raise ValueError(
            f"base_kernel must see all {num_columns} columns of the box, found columns {seen}; "
            "leave active_dims out there, and pass active_dims to Periodized."
        )


def _columns_seen(kernel: Kernel, columns: IntArray) -> list[int]:
    if spectral_density.dispatch(type(kernel)) is spectral_density.dispatch(object):
        raise_unknown(kernel)
    try:
        seen = columns[kernel.active_dims]
    except IndexError:
        seen = None
    dims = kernel.active_dims
    if seen is None or (not isinstance(dims, slice) and np.any(np.asarray(dims) < 0)):
        raise ValueError(
            f"base_kernel: found active_dims {kernel.active_dims} of {type(kernel).__name__} in a "
            f"box of {len(columns)} columns; count the columns of the box from zero."
        )
    expected: list[int] = seen.tolist()
    if isinstance(kernel, Sum):
        for part in kernel.kernels:
            if sorted(found := _columns_seen(part, seen)) != sorted(expected):
                raise ValueError(
                    "base_kernel must be a sum of kernels on the same columns, found "
                    f"{type(part).__name__} on columns {found} of {expected}; sums of kernels on "
                    "different columns are sums of Periodized kernels, with SumInducingVariables."
                )
    elif isinstance(kernel, Product):
        parts = [column for part in kernel.kernels for column in _columns_seen(part, seen)]
        if sorted(parts) != sorted(expected):
            raise ValueError(
                "base_kernel must be a product of kernels on different columns, each of "
                f"{expected} once, found columns {parts}; pass active_dims to each factor."
            )
    elif kernel.lengthscales.shape.rank and kernel.lengthscales.shape[0] != len(expected):
        raise ValueError(
            f"base_kernel must have one lengthscale, or one for each of its {len(expected)} "
            f"columns of the box, found {kernel.lengthscales.shape[0]}; pass lower and upper with "
            "one number for each column."
        )
    return expected


def column_lengthscales(kernel: Kernel, num_columns: int) -> Array:
    """The longest lengthscale that each column has in a kernel, ``[D]``; zero where it has none."""
    longest = np.zeros(num_columns)
    own = np.arange(num_columns)[kernel.active_dims]
    if isinstance(kernel, Stationary):
        longest[own] = np.asarray(kernel.lengthscales.numpy(), float)
    else:
        parts = [column_lengthscales(part, len(own)) for part in kernel.kernels]
        longest[own] = np.max(parts, axis=0)
    return longest


def check_frequencies(frequencies: Any, num_columns: int) -> IntArray:
    """Different integer vectors ``[J, D]``, of numbers that are 0 or more, as they are.

    :raises ValueError: If they are something else.
    """
    remedy = "pass whole numbers of periods, such as PeriodicFourierFeatures.frequencies"
    rule = f"a matrix [J, {num_columns}], one column of integers for each of the box"
    found = different_rows("frequencies", frequencies, rule, num_columns, remedy)
    if np.any((found < 0) | (found >= 2**31)):
        raise ValueError(
            f"frequencies must be integers of 0 or more, found {short(found.ravel())}; {remedy}."
        )
    most = int(np.max(np.count_nonzero(found, axis=1)))
    if most > MAX_WAVES:
        raise ValueError(
            f"frequencies must have at most {MAX_WAVES} columns each that are not zero, found one "
            f"with {most}, which has 2**{most} features; {remedy}."
        )
    return found
