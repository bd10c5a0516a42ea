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


def table(turns: tf.Tensor, highest: int) -> tf.Tensor:
    """All functions of one column with up to ``highest`` periods, ``[2 highest + 1, N]``, times the
    root of the period.

    One sine and one cosine are computed. The others follow by adding angles, to which the number of
    orders is doubled at a time, so that errors grow with its logarithm.

    :param turns: ``(x - lower) / period``, ``[N]``.
    """
    ones = tf.ones_like(turns)[None]
    if not highest:
        return ones
    angles = 2 * np.pi * (turns - tf.stop_gradient(tf.floor(turns)))[None]
    cosines, sines = tf.cos(angles), tf.sin(angles)
    while (count := cosines.shape[0]) < highest:
        more = min(count, highest - count)
        c, s, c_last, s_last = cosines[:more], sines[:more], cosines[-1:], sines[-1:]
        cosines, sines = (
            tf.concat([cosines, c * c_last - s * s_last], axis=0),
            tf.concat([sines, s * c_last + c * s_last], axis=0),
        )
    pairs = np.sqrt(2) * tf.stack([cosines, sines], axis=1)
    return tf.concat([ones, tf.reshape(pairs, [2 * highest, -1])], axis=0)


def products(turns: tf.Tensor, functions: IntArray, factor: float = 1.0) -> tf.Tensor:
    """The features ``[M, N]``, times the root of the box's volume.

    :param turns: ``[N, D]``.
    :param functions: ``[M, D]``.
    :param factor: A factor for all of them, which costs nothing here.
    """
    result: tf.Tensor | None = None
    for column in range(functions.shape[1]):
        own = functions[:, column]
        highest = int((np.max(own, initial=0) + 1) // 2)
        waves = table(turns[:, column], highest)
        if result is None:
            result = tf.gather(factor * waves, own)
        else:
            result *= tf.gather(waves, own)
    assert result is not None
    return result
