"""The orthonormal sines and cosines of a box, and products of them over its columns.

A function of one column has a number: 0 is the constant, ``2 j - 1`` the cosine and ``2 j`` the
sine of j periods. A feature is a vector of such numbers, one for each column.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

IntArray = np.ndarray[Any, np.dtype[np.int64]]


def functions_of(frequencies: IntArray) -> IntArray:
    """The features of frequencies ``[J, D]``, ``[M, D]``: for each all products of sine and cosine
    in the columns where it is not zero. Ordered as :func:`products` computes them."""
    rows = [
        combination
        for frequency in frequencies.tolist()
        for combination in itertools.product(
            *[(0,) if j == 0 else (2 * j - 1, 2 * j) for j in frequency]
        )
    ]
    return np.array(sorted(rows), np.int64).reshape(len(rows), frequencies.shape[1])


def num_functions(frequencies: IntArray) -> IntArray:
    """How many features each frequency has, ``[J]``."""
    counts: IntArray = 2 ** np.count_nonzero(frequencies, axis=1)
    return counts


def frequencies_of(functions: IntArray) -> IntArray:
    """The frequency of each feature, ``[M, D]``."""
    return (functions + 1) // 2


def table(turns: tf.Tensor, orders: IntArray) -> tf.Tensor:
    """The constant, and the cosine and sine of each number of periods, ``[1 + 2 J, N]``, times the
    root of the period.

    :param turns: ``(x - lower) / period``, ``[N]``.
    :param orders: Numbers of periods, 1 or more, ``[J]``.
    """
    angular = tf.constant(2 * np.pi * orders, turns.dtype)
    angles = angular[:, None] * (turns - tf.stop_gradient(tf.floor(turns)))
    pairs = np.sqrt(2) * tf.stack([tf.cos(angles), tf.sin(angles)], axis=1)
    waves = tf.reshape(pairs, [2 * len(orders), tf.shape(turns)[0]])
    return tf.concat([tf.ones_like(turns)[None], waves], axis=0)


def products(turns: tf.Tensor, functions: IntArray, factor: float = 1.0) -> tf.Tensor:
    """The features ``[M, N]``, times the root of the box's volume.

    :param turns: ``[N, D]``.
    :param functions: ``[M, D]``.
    :param factor: A factor for all of them, which costs nothing here.
    """
    result: tf.Tensor | None = None
    for column in range(functions.shape[1]):
        own = functions[:, column]
        orders = np.unique(frequencies_of(own[own > 0]))  # however high they are
        places = np.searchsorted(orders, frequencies_of(own))
        places = np.where(own > 0, 2 * places + 1 + (own % 2 == 0), 0)
        waves = table(turns[:, column], orders)
        if result is None:
            result = tf.gather(factor * waves, places)
        else:
            result *= tf.gather(waves, places)
    assert result is not None
    return result
