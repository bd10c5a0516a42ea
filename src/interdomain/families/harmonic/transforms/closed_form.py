"""Transformations whose powers have a closed form; permutations of the columns."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ...._arguments import Array, as_integers, finite_array, refusal, short
from .base import CyclicTransform, IntArray, TensorLike


class ClosedFormTransform(CyclicTransform):
    """A transformation whose powers have a closed form; several powers are computed together.

    Neither rounding errors nor the number of operations in a graph grow with the order.
    """

    _stack: Any = None

    @abc.abstractmethod
    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor: ...

    @inherit_check_shapes
    def __call__(self, X: TensorLike) -> tf.Tensor:
        return self.power(X, 1)

    def verify_order(self, input_dim: int | None = None) -> None:
        """Check nothing, because the order follows from the formula."""

    def _each(self, power: Callable[[int], Any], exponents: IntArray) -> Any:
        """The stacked powers of a matrix or of a permutation; all powers together are cached."""
        if len(exponents) == 1:
            return power(int(exponents[0]))[None]
        if self._stack is None:
            self._stack = np.stack([power(int(k)) for k in exponents])
        return self._stack


def constant(values: Array, X: tf.Tensor) -> tf.Tensor:
    """A tensor with the values of a NumPy array and the type of X."""
    return tf.constant(values, dtype=X.dtype)


def as_dims(dims: Any, count: int | None = None) -> tuple[int, ...]:
    """The checked numbers of different columns of X; ``count`` of them, or any number if None."""
    columns = as_integers("dims", dims, "pass the numbers of columns of X, for example [0, 2]")
    if min(columns) < 0 or len(set(columns)) < len(columns) or count not in (None, len(columns)):
        some = "" if count is None else f"{count} "
        remedy = "pass each once"
        raise refusal("dims", f"be {some}different columns, counted from 0", f"{dims!r}", remedy)
    return columns


def as_vector(name: str, values: Any, size: int | None, per: str) -> Array:
    """A checked finite scalar ``[]``, or a vector of ``size`` finite numbers (any size if None)."""
    array = finite_array(name, values, (0, 1), f"a scalar, or one number per {per}")
    if array.ndim and (array.size != size if size is not None else not array.size):
        expected = "" if size is None else f" ({size})"
        remedy = "pass a scalar or a vector of that length"
        rule = f"be a scalar, or one number per {per}{expected}"
        raise refusal(name, rule, f"shape {array.shape}", remedy)
    return array


def spread(values: Array, dims: Sequence[int], num_columns: int, fill: float) -> Array:
    """A row ``[num_columns]`` with ``values`` in the columns ``dims`` and ``fill`` elsewhere."""
    row = np.full(num_columns, fill)
    row[list(dims)] = values
    return row


class Permutation(ClosedFormTransform):
    """A permutation of the columns: column j of the result is column ``indices[j]`` of X.

    The order is the least common multiple of the lengths of the permutation's cycles. The gradient
    is a gather by the inverse permutation.

    :param indices: A list with each of 0, ..., D - 1 once.
    :raises ValueError: If ``indices`` is not a permutation, or is the identity.
    """

    shown: tuple[str, ...] = ("indices",)

    def __init__(self, indices: Sequence[int] | IntArray) -> None:
        columns = as_integers("indices", indices, "pass each of 0, ..., D - 1 once")
        size = self.input_dim = self.min_input_dim = len(columns)
        self.indices = np.array(columns, dtype=np.int32)
        if sorted(columns) != list(range(size)):
            remedy = f"pass each of 0, ..., {size - 1} once"
            raise refusal("indices", "be a permutation", short(self.indices), remedy)
        cycles = csr_array((np.ones(size), (np.arange(size), self.indices)), shape=(size, size))
        self.order = math.lcm(*np.bincount(connected_components(cycles)[1]).tolist())
        if self.order == 1:
            raise ValueError(f"{self!r} is the identity, which decomposes nothing; leave it out.")

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        return gather_columns(X, self._each(partial(index_power, self.indices), exponents))


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

    TensorFlow's gradient of a gather adds entries one by one. Every column is used once here, so
    the gradient is also a gather, followed by a sum over the K permutations.
    """
    count, columns = indices.shape
    # The positions of the K gradients of column j in the concatenated gradients.
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
