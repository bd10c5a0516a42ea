"""Sums over rows of products of features: what a model of many rows needs of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from .._arguments import Array

_LARGE = 400
"""Features from which on half of their products takes less time, the way to NumPy included."""


class FeatureSums(NamedTuple):
    """Sums over some rows, in float64; those of all rows are their sums.

    :ivar gram: The sum of ``w phi phi^T``, ``[M, M]``; ``[L, M, M]`` for L columns of weights.
    :ivar products: The sum of ``phi t^T``, ``[M, T]``, without weights.
    """

    gram: tf.Tensor
    products: tf.Tensor


def sums_of_features(
    features: tf.Tensor, weights: TensorType | None, targets: TensorType
) -> FeatureSums:
    """The sums of dense features ``[M, n]``, with weights ``[n, L]`` or None, and targets
    ``[n, T]``."""
    features = tf.cast(features, tf.float64)
    products = tf.matmul(features, tf.cast(targets, tf.float64))
    if weights is None:
        return FeatureSums(gram_of(features), products)
    roots = tf.sqrt(tf.linalg.matrix_transpose(tf.cast(weights, tf.float64)))
    grams = [gram_of(features * root) for root in tf.unstack(roots)]
    return FeatureSums(tf.stack(grams), products)


@tf.custom_gradient
def gram_of(features: tf.Tensor) -> Any:
    """``F F^T`` of F ``[M, n]``. Its gradient is one product, where TensorFlow has two."""

    def product(values: Array) -> Array:
        # NumPy knows that this is symmetric, and computes half of it.
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for these
            return values @ values.T

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return tf.matmul(upstream + tf.linalg.matrix_transpose(upstream), features)

    if (features.shape[0] or _LARGE) < _LARGE:
        return tf.matmul(features, features, transpose_b=True), gradient
    gram = tf.numpy_function(product, [features], features.dtype)
    return tf.ensure_shape(gram, [features.shape[0]] * 2), gradient
