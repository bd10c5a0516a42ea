"""Spectral densities of GPflow's stationary kernels.

With ``k(tau) = (2 pi)^-D int S(w) exp(i w^T tau) dw``, w in radians per unit of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any, NoReturn

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import (
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Product,
    SquaredExponential,
    Stationary,
    Sum,
)

from ..._arguments import Array, IntArray
from ...linalg.periodic import matern_density

MATERN_ORDERS = {Matern12: 0.5, Matern32: 1.5, Matern52: 2.5, SquaredExponential: math.inf}
KNOWN = tuple(MATERN_ORDERS)


def spectral_density(kernel: Kernel, frequencies: TensorType) -> tf.Tensor:
    """The spectral density of a stationary kernel.

    It is known for GPflow's ``Matern12``, ``Matern32``, ``Matern52`` and ``SquaredExponential``,
    with one lengthscale or one for each column; for sums of these on the same columns, and for
    products of these on different columns (``active_dims``).

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = gpflow.kernels.Matern32(lengthscales=0.5)
    >>> w = np.linspace(-200, 200, 100_001)[:, None]
    >>> density = idm.kernels.spectral_density(kernel, w)
    >>> print(f"{np.sum(density) * (w[1, 0] - w[0, 0]) / (2 * np.pi):.3f}")  # the variance
    1.000

    :param kernel: The kernel.
    :param frequencies: Angular frequencies ``[J, D]``, in radians per unit of x, for all columns
        that ``active_dims`` selects from.
    :return: ``[J]``.
    :raises ValueError: For a kernel whose density is not known, or that is not stationary.
    """
    return by_parts(kernel, _stationary_density, frequencies)


def raise_unknown(kernel: Kernel | type) -> NoReturn:
    """:raises ValueError: Always."""
    name = kernel.__name__ if isinstance(kernel, type) else type(kernel).__name__
    raise ValueError(
        f"base_kernel must have a known spectral density, found {name}; pass "
        "Matern12, Matern32, Matern52 or SquaredExponential of gpflow.kernels, a sum of these, or "
        "a product of these on different columns (active_dims)."
    )


def by_parts(kernel: Kernel, of_stationary: Callable[..., tf.Tensor], *columns: TensorType) -> Any:
    """What is the sum of the summands' and, as they are on different columns, the product of the
    factors'.

    :param of_stationary: Gives it for one of the known kernels and the columns that this one sees.
    :param columns: ``[..., D]`` each, for all columns that ``active_dims`` selects from.
    :raises ValueError: If there is another kernel among them.
    """
    dims = kernel.active_dims
    # Not kernel.slice, which takes no vectors.
    columns = tuple(
        values[..., dims] if isinstance(dims, slice) else tf.gather(values, dims, axis=-1)
        for values in (tf.convert_to_tensor(value, gpflow.default_float()) for value in columns)
    )
    if isinstance(kernel, KNOWN):
        return of_stationary(kernel, *columns)
    if not isinstance(kernel, (Sum, Product)):
        raise_unknown(kernel)
    parts = [by_parts(part, of_stationary, *columns) for part in kernel.kernels]
    return reduce(add if isinstance(kernel, Sum) else mul, parts)


def _stationary_density(kernel: Stationary, frequencies: tf.Tensor) -> tf.Tensor:
    """That of a multivariate Student's t, or a Gaussian."""
    dim = frequencies.shape[-1]
    squares = tf.reduce_sum(tf.square(frequencies * kernel.lengthscales), axis=-1)
    ones = tf.ones(dim, kernel.lengthscales.dtype)
    volume = tf.reduce_prod(kernel.lengthscales * ones)
    return kernel.variance * volume * matern_density(matern_order(type(kernel)), squares, dim)


def matern_order(kind: type[Stationary]) -> float:
    """nu; infinite for a squared exponential kernel.

    :raises ValueError: For a class of another family.
    """
    for known, nu in MATERN_ORDERS.items():
        if issubclass(kind, known):
            return nu
    raise_unknown(kind)


def check_base(kernel: Kernel, num_columns: int) -> None:
    """:raises ValueError: If its density is not known, or not for all columns of a box."""
    seen = _columns_seen(kernel, np.arange(num_columns))
    if sorted(seen) != list(range(num_columns)):
        raise ValueError(
            f"base_kernel must see all {num_columns} columns of the box, found columns {seen}; "
            "leave active_dims out there, and pass active_dims to Periodized."
        )


def _columns_seen(kernel: Kernel, columns: IntArray) -> list[int]:
    if not isinstance(kernel, (*KNOWN, Sum, Product)):
        raise_unknown(kernel)
    dims = kernel.active_dims
    if not isinstance(dims, slice) and not np.all(np.isin(dims, np.arange(len(columns)))):
        raise ValueError(
            f"base_kernel: found active_dims {dims} of {type(kernel).__name__} in a box of "
            f"{len(columns)} columns; count the columns of the box from zero."
        )
    seen = columns[dims]
    expected: list[int] = seen.tolist()
    if isinstance(kernel, Sum):
        for part in kernel.kernels:
            if sorted(of_part := _columns_seen(part, seen)) != sorted(expected):
                raise ValueError(
                    "base_kernel must be a sum of kernels on the same columns, found "
                    f"{type(part).__name__} on columns {of_part} of {expected}; sums of kernels on "
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
    seen = np.arange(num_columns)[kernel.active_dims]
    if isinstance(kernel, Stationary):
        longest[seen] = np.asarray(kernel.lengthscales.numpy(), float)
    else:
        parts = [column_lengthscales(part, len(seen)) for part in kernel.kernels]
        longest[seen] = np.max(parts, axis=0)
    return longest
