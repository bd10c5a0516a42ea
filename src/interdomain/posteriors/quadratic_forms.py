"""``sum_t A_t^T (S_t - I) A_t`` over a batch of blocks, and its diagonal.

A is ``[T, m, N]``. S_t is diagonal, with the square roots q_sqrt ``[T, m, P]``, or
``q_sqrt q_sqrt^T`` with ``[T, P, m, m]``.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from check_shapes import check_shapes


@check_shapes(
    "A: [T, m, N]",
    "return: [N, P]",
)
def variance_change(A: tf.Tensor, q_sqrt: tf.Tensor) -> tf.Tensor:
    """The diagonals, for each of the P latent GPs."""
    if q_sqrt.shape.rank == 3:
        squares = tf.square(A)
        # S - I as one factor: the squares are read once.
        changes = tf.matmul(squares, tf.square(q_sqrt) - 1, transpose_a=True)
        return tf.reduce_sum(changes, axis=0)
    identity = tf.eye(tf.shape(A)[1], dtype=A.dtype)
    return _quadratic_diagonal(A, tf.matmul(q_sqrt, q_sqrt, transpose_b=True) - identity)


@tf.custom_gradient
def _quadratic_diagonal(A: tf.Tensor, C: tf.Tensor) -> Any:
    """``sum_t diag(A_t^T C_tp A_t)``, ``[N, P]``, for symmetric C ``[T, P, m, m]``.

    The product C A serves the value and the gradient to A; TensorFlow would compute the latter
    anew, as it does not know that C is symmetric.
    """
    if C.shape[1] == 1:
        product = tf.matmul(C[:, 0], A)  # [T, m, N]
        value = tf.reduce_sum(A * product, axis=[0, 1])[:, None]
    else:
        product = tf.matmul(C, A[:, None])  # [T, P, m, N]
        value = tf.transpose(tf.reduce_sum(A[:, None] * product, axis=[0, 2]))

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if C.shape[1] == 1:
            weights = upstream[:, 0]
            d_C = tf.matmul(A * weights, A, transpose_b=True)[:, None]
            return 2 * weights * product, d_C
        weights = tf.transpose(upstream)[:, None, :]  # [P, 1, N]
        d_A = 2 * tf.reduce_sum(product * weights, axis=1)
        d_C = tf.matmul(A[:, None] * weights, A[:, None], transpose_b=True)
        return d_A, d_C

    return value, gradient


@check_shapes(
    "A: [T, m, N]",
    "return: [P, N, N]",
)
def covariance_change(A: tf.Tensor, q_sqrt: tf.Tensor) -> tf.Tensor:
    """The matrices, for each of the P latent GPs."""
    if q_sqrt.shape.rank == 3:
        projected = tf.transpose(q_sqrt, [0, 2, 1])[..., None] * A[:, None]
    else:
        projected = tf.matmul(q_sqrt, A[:, None], transpose_a=True)
    # The blocks one below the other: one product sums over them.
    shape = tf.shape(projected)
    projected = tf.reshape(tf.transpose(projected, [1, 0, 2, 3]), [shape[1], -1, shape[3]])
    stacked = tf.reshape(A, [-1, tf.shape(A)[-1]])
    explained = tf.matmul(stacked, stacked, transpose_a=True)
    return tf.matmul(projected, projected, transpose_a=True) - explained
