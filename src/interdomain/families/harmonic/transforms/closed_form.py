"""Transformations of which every power has a formula."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ...._arguments import Array, as_integers, finite_array
from .base import CyclicTransform, IntArray, TensorLike

MAX_COLUMNS = 10_000_000
"""The largest number of columns of X, as permutations are stored and checks need some rows."""


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


class IndexPermutation(ClosedFormTransform):
    """``(G x)_j = x_{indices[j]}``; the order is the least common multiple of the cycle lengths.

    The gradient is a gather, like the value: by the inverse permutation.

    :param indices: A permutation of 0, ..., D - 1, which the caller has checked.
    :raises ValueError: If it is the identity.
    """

    def __init__(self, indices: IntArray) -> None:
        self.indices = np.asarray(indices, dtype=np.int32)
        self.input_dim = self.min_input_dim = self.indices.size
        size = self.input_dim
        cycles = csr_array((np.ones(size), (np.arange(size), self.indices)), shape=(size, size))
        self.order = math.lcm(*np.bincount(connected_components(cycles)[1]).tolist())
        self._stack: IntArray | None = None
        if self.order == 1:
            raise ValueError(f"{self!r} is the identity, which decomposes nothing; leave it out.")
        self.verify_order()

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        if len(exponents) == 1:
            return gather_columns(X, index_power(self.indices, int(exponents[0]))[None])
        if self._stack is None:
            self._stack = np.stack([index_power(self.indices, int(k)) for k in exponents])
        return gather_columns(X, self._stack)


def index_power(indices: IntArray, exponent: int) -> IntArray:
    """The indices of the permutation applied ``exponent`` times, by repeated squaring."""
    power = np.arange(indices.size, dtype=np.int32)
    while exponent:
        if exponent % 2:
            power = power[indices]
        indices = indices[indices]
        exponent //= 2
    return power


def gather_columns(X: tf.Tensor, indices: IntArray) -> tf.Tensor:
    """The columns of X ``[N, D]`` in the order of each of K permutations ``[K, D]``: ``[K, N, D]``.

    TensorFlow's own gradient of a gather adds up entries one by one, not knowing that every column
    is taken once; here it is a gather too, and a sum over the K permutations.
    """
    count, columns = indices.shape
    # Where the gradient of column j comes from, the K gradients standing side by side.
    sources = np.argsort(indices, axis=-1) + columns * np.arange(count)[:, None]

    @tf.custom_gradient
    def gather(X: tf.Tensor) -> tuple[tf.Tensor, object]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            if count == 1:
                return tf.gather(upstream[0], sources[0], axis=-1)
            flat = tf.reshape(tf.transpose(upstream, [1, 0, 2]), [-1, count * columns])
            return tf.reduce_sum(tf.gather(flat, sources, axis=-1), axis=1)

        if count == 1:
            return tf.gather(X, indices[0], axis=-1)[None], gradient
        return tf.transpose(tf.gather(X, indices, axis=-1), [1, 0, 2]), gradient

    return gather(X)
