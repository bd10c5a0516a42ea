"""Sums over rows of products of features: what a model of many rows needs of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import Dispatcher

from .._arguments import Array
from .domains import Kuf_in_domain

_LARGE = 400
"""Features from which on half of their products takes less time, the way to NumPy included."""


class FeatureSums(NamedTuple):
    """Sums over some rows, in float64; those of all rows are their sums.

    :ivar gram: The sum of ``w phi phi^T``, ``[M, M]``; ``[L, M, M]`` for L columns of weights.
    :ivar products: The sum of ``phi t^T``, ``[M, T]``, without weights.
    """

    gram: tf.Tensor
    products: tf.Tensor


feature_sums = Dispatcher("feature_sums")
feature_sums.__doc__ = """The sums over rows of products of their features.

``feature_sums(inducing_variable, kernel, X, weights, targets)``, with X ``[n, D]`` in the domain of
the features phi = Kuf, weights ``[n, L]`` that are not negative, or None for ones, and targets
``[n, T]``, returns :class:`FeatureSums`, with gradients. By default it is one product of the dense
features. A family that has a quicker way, such as sums of waves or of banded features, registers
its own.
"""


@feature_sums.register(InducingVariables, Kernel, object, object, object)
def feature_sums_dense(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    X: TensorType,
    weights: TensorType | None,
    targets: TensorType,
) -> FeatureSums:
    """By the dense features."""
    features = tf.cast(Kuf_in_domain(inducing_variable, kernel, X), tf.float64)
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
