"""The terms of a small precision matrix, factorised by TensorFlow.

A step that trains features uses TensorFlow's threads. LAPACK has its own threads, which spin while
they wait for work. After a factorisation of some hundred rows, which takes a millisecond, they keep
processors from TensorFlow for longer than the step takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

MOST_ROWS = 400
"""The most rows. TensorFlow factorises and inverts on one thread, so LAPACK is faster above
this."""


def small_precision_terms(
    scale: tf.Tensor, gram: tf.Tensor, columns: tf.Tensor, noise_variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The status of ``B = I + D G D / s`` (0.0 if B is finite and has no factor, else 1.0), and the
    two terms of :func:`~interdomain.linalg.precision.precision_terms`, with gradients."""
    size = columns.shape[0]
    whitening = scale / tf.sqrt(noise_variance)
    precision = gram[:size, :size] * whitening * whitening[:, None]
    precision = tf.linalg.set_diag(precision, tf.linalg.diag_part(precision) + 1)
    log_determinant, fit = _terms(precision, scale[:, None] * columns / noise_variance)
    finite = tf.reduce_all(tf.math.is_finite(precision))
    ok = tf.logical_or(tf.math.is_finite(log_determinant), tf.logical_not(finite))
    return tf.cast(ok, tf.float64), log_determinant, fit


@tf.custom_gradient
def _terms(precision: tf.Tensor, columns: tf.Tensor) -> Any:
    """``log det B`` and ``tr(C^T B^{-1} C)``, whose gradients take one inverse."""
    identity = tf.eye(columns.shape[0], dtype=precision.dtype)
    finite = tf.reduce_all(tf.math.is_finite(precision))
    lower = tf.linalg.cholesky(tf.where(finite, precision, identity))
    lower = tf.where(finite, lower, np.nan)
    half = tf.linalg.triangular_solve(lower, columns)
    log_determinant = 2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(lower)))

    def gradient(*upstream: tf.Tensor) -> list[tf.Tensor]:
        def closed_form(*tensors: tf.Tensor) -> list[tf.Tensor]:
            *_, to_log_determinant, to_fit = tensors
            inverse_root = tf.linalg.triangular_solve(lower, identity)
            inverse = tf.matmul(inverse_root, inverse_root, transpose_a=True)
            solved = tf.matmul(inverse_root, half, transpose_a=True)
            outer = tf.matmul(solved, solved, transpose_b=True)
            return [to_log_determinant * inverse - to_fit * outer, 2 * to_fit * solved]

        return once(closed_form, (precision, columns, *upstream))

    return (log_determinant, tf.reduce_sum(tf.square(half))), gradient


def once(gradient: Callable[..., list[tf.Tensor]], inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The gradient, whose own derivative raises an error.

    TensorFlow would take the derivative of a function that is computed in Python for zero.
    """

    @tf.custom_gradient
    def first(*inputs: tf.Tensor) -> Any:
        def second(*upstream: tf.Tensor) -> Any:
            raise NotImplementedError(
                "The collapsed bound and its optimal q can be differentiated once: the gradient of "
                "their gradient is not implemented."
            )

        return tuple(gradient(*inputs)), second

    return list(first(*inputs))
