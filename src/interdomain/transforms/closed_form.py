"""Transformations of which every power has a formula."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes

from .._arguments import as_integers, finite_array
from ..sphere._typing import Array
from .base import MAX_COLUMNS, CyclicTransform, IntArray, TensorLike


class ClosedFormTransform(CyclicTransform):
    """A transformation whose powers are computed directly, and several of them at once.

    Rounding does not grow with the order, nor does the number of operations in a graph.
    """

    @abc.abstractmethod
    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        """The powers ``[K, N, D]`` of X ``[N, D]``; the K exponents are in 1, ..., order - 1, and
        are either a single one or all of these in order."""

    @inherit_check_shapes
    def __call__(self, X: TensorLike) -> tf.Tensor:
        return self.power(X, 1)

    @inherit_check_shapes
    def power(self, X: TensorLike, exponent: int | Sequence[int]) -> tf.Tensor:
        X = self.validate_input(X)
        remainder = self._exponent(exponent)
        if remainder == 0:
            return X
        powers = self._powers(as_rows(X), np.array([remainder]))
        return reshape_as(powers[0] if X.shape.rank == 2 else powers, X)

    @inherit_check_shapes
    def orbit(self, X: TensorLike) -> tf.Tensor:
        X = self.validate_input(X)
        powers = self._powers(as_rows(X), np.arange(1, self.order))
        if X.shape.rank != 2:
            shape = tf.concat([[self.order - 1], tf.shape(X)], axis=0)
            powers = tf.reshape(powers, shape)
        elements = tf.concat([X[None], powers], axis=0)
        return tf.ensure_shape(elements, [self.order, *X.shape])


def as_rows(X: tf.Tensor) -> tf.Tensor:
    """X ``[batch..., D]`` as ``[N, D]``."""
    return X if X.shape.rank == 2 else tf.reshape(X, [-1, X.shape[-1]])


def reshape_as(values: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
    """``values`` in the shape of X, static where that is known."""
    if X.shape.rank != 2:
        values = tf.reshape(values, tf.shape(X))
    return tf.ensure_shape(values, X.shape)


def constant(values: Array, X: tf.Tensor) -> tf.Tensor:
    """A NumPy array as a tensor of the type of X."""
    return tf.constant(values, dtype=X.dtype)


def as_dims(dims: Any, count: int | None = None) -> tuple[int, ...]:
    """Columns of X, each named once.

    :param count: How many there have to be; any number by default.
    :raises ValueError: If they are others.
    """
    columns = as_integers("dims", dims, "pass the numbers of columns of X, for example [0, 2]")
    known = 0 <= min(columns) and max(columns) < MAX_COLUMNS
    if not known or len(set(columns)) < len(columns) or count not in (None, len(columns)):
        some = "" if count is None else f"{count} "
        raise ValueError(
            f"dims must be {some}different columns from 0 to {MAX_COLUMNS - 1:,}, found {dims!r}; "
            "pass each once, counted from the first."
        )
    return columns


def as_vector(name: str, values: Any, size: int | None, per: str) -> Array:
    """A scalar ``[]``, or a vector of ``size`` finite numbers (of any size if None).

    :raises ValueError: If it is neither.
    """
    array = finite_array(name, values, (0, 1), f"a scalar, or one number per {per}")
    if array.ndim and (array.size != size if size is not None else not array.size):
        expected = "" if size is None else f" ({size})"
        raise ValueError(
            f"{name} must be a scalar, or one number per {per}{expected}, found shape "
            f"{array.shape}; pass a scalar or a vector of that length."
        )
    return array


def spread(values: Array, dims: Sequence[int], num_columns: int, fill: float) -> Array:
    """``[num_columns]``: ``values`` in the columns ``dims`` and ``fill`` in the others."""
    row = np.full(num_columns, fill)
    row[list(dims)] = values
    return row
