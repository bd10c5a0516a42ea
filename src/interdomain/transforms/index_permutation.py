"""Permutations of the columns, on which the transformations of columns and of images are based."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from .base import IntArray
from .closed_form import ClosedFormTransform


class IndexPermutation(ClosedFormTransform):
    """``(G x)_j = x_{indices[j]}``; the order is the least common multiple of the cycle lengths.

    The gradient is a gather, like the value: by the inverse permutation.

    :param indices: A permutation of 0, ..., D - 1, which the caller has checked.
    :raises ValueError: If it is the identity.
    """

    def __init__(self, indices: IntArray) -> None:
        self.indices = np.asarray(indices, dtype=np.int32)
        self.input_dim = self.min_input_dim = self.indices.size
        self.order = math.lcm(*cycle_lengths(self.indices))
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


def cycle_lengths(indices: IntArray) -> list[int]:
    """The lengths of the cycles of a permutation."""
    following, lengths = indices.tolist(), []
    seen = [False] * len(following)
    for start in range(len(following)):
        length, position = 0, start
        while not seen[position]:
            seen[position] = True
            position = following[position]
            length += 1
        if length:
            lengths.append(length)
    return lengths


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
