"""What blocks of whitened variables contribute to the mean and the covariance of f.

For a batch of T blocks, with whitened features ``A = L^{-1} Kuf`` ``[T, m, N]`` and whitened q of
mean q_mu ``[T, m, P]`` and covariance S: the mean is ``sum_t A_t^T q_mu_t``, and the change of the
covariance is ``sum_t A_t^T (S_t - I) A_t``. S_t is diagonal, with the square roots q_sqrt
``[T, m, P]``, or ``q_sqrt q_sqrt^T`` with ``[T, P, m, m]``.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from check_shapes import check_shapes


@check_shapes(
    "A: [T, m, N]",
    "q_mu: [T, m, P]",
    "return: [N, P]",
)
def mean_of_blocks(A: tf.Tensor, q_mu: tf.Tensor) -> tf.Tensor:
    """The means, summed over the blocks by a single product."""
    stacked = tf.reshape(A, [-1, tf.shape(A)[-1]])
    return tf.matmul(stacked, tf.reshape(q_mu, [-1, tf.shape(q_mu)[-1]]), transpose_a=True)


@check_shapes(
    "A: [T, m, N]",
    "return: [N, P]",
)
def variance_change(A: tf.Tensor, q_sqrt: tf.Tensor) -> tf.Tensor:
    """The diagonals of the covariances' changes, for each of the P latent GPs."""
    if q_sqrt.shape.rank == 3:
        squares = tf.square(tf.reshape(A, [-1, tf.shape(A)[-1]]))
        # S - I as one factor: the squares are read once.
        factors = tf.reshape(tf.square(q_sqrt) - 1, [-1, tf.shape(q_sqrt)[-1]])
        return tf.matmul(squares, factors, transpose_a=True)
    projected = tf.matmul(q_sqrt, A[:, None], transpose_a=True)
    explained = tf.reduce_sum(tf.square(A), axis=[0, 1])[:, None]
    return tf.transpose(tf.reduce_sum(tf.square(projected), axis=[0, 2])) - explained


@check_shapes(
    "A: [T, m, N]",
    "return: [P, N, N]",
)
def covariance_change(A: tf.Tensor, q_sqrt: tf.Tensor) -> tf.Tensor:
    """The covariances' changes, for each of the P latent GPs."""
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


@check_shapes(
    "root: [T, m, m]",
    "columns: [T, m, N]",
    "q_mu: [T, m, P]",
    "q_sqrt: [T, P, m, m]",
    "return[0]: [N, P]",
    "return[1]: [N, P]",
)
def dense_marginals(
    root: tf.Tensor, columns: tf.Tensor, q_mu: tf.Tensor, q_sqrt: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean and :func:`variance_change` where L and S are dense: the cost of a training step.

    The gradient is in closed form. With ``C_p = q_sqrt_p q_sqrt_p^T - I``, upstream gradients g to
    the mean and w to the change, and ``H_p = A diag(w_p) A^T``,

        dA = 2 sum_p C_p A diag(w_p) + q_mu g^T,      dKuf = L^{-T} dA,
        dA A^T = 2 sum_p C_p H_p + q_mu (A g)^T,      dL = -tril(L^{-T} dA A^T),
        dq_mu = A g,                                  dq_sqrt_p = 2 tril(H_p q_sqrt_p).

    C A is at hand from the value, and ``dA A^T`` is had from H. TensorFlow's own gradient takes
    two more products of the size of m^2 N, of the six that it has.

    :param root: L, lower triangular.
    :param columns: Kuf.
    :param q_sqrt: Lower triangular.
    """
    mean, change = _dense_marginals(root, columns, q_mu, q_sqrt)
    return mean, change


@tf.custom_gradient
def _dense_marginals(
    root: tf.Tensor, columns: tf.Tensor, q_mu: tf.Tensor, q_sqrt: tf.Tensor
) -> Any:
    A = tf.linalg.triangular_solve(root, columns)
    # A batch axis for the latent GPs, unless there is one alone: plain products are faster.
    single = q_sqrt.shape[1] == 1
    roots = q_sqrt[:, 0] if single else q_sqrt
    features = A if single else A[:, None]
    C = tf.matmul(roots, roots, transpose_b=True)
    C = tf.linalg.set_diag(C, tf.linalg.diag_part(C) - 1)
    product = tf.matmul(C, features)  # [T, m, N] or [T, P, m, N]
    diagonals = tf.reduce_sum(features * product, axis=[0, -2])
    change = diagonals[:, None] if single else tf.transpose(diagonals)

    def gradient(d_mean: tf.Tensor, d_change: tf.Tensor) -> tuple[tf.Tensor, ...]:
        weights = d_change[:, 0] if single else tf.transpose(d_change)[:, None, :]
        H = tf.matmul(features * weights, features, transpose_b=True)
        H_roots = tf.matmul(H, roots)
        C_H = tf.matmul(roots, H_roots, transpose_b=True) - H
        d_A = product * (2 * weights)
        if not single:
            d_A, C_H = tf.reduce_sum(d_A, axis=1), tf.reduce_sum(C_H, axis=1)
        d_A += tf.matmul(q_mu, tf.transpose(d_mean))
        A_g = tf.tensordot(A, d_mean, 1)  # [T, m, P]
        d_A_A = 2 * C_H + tf.matmul(q_mu, A_g, transpose_b=True)
        d_root = -tf.linalg.triangular_solve(root, d_A_A, adjoint=True)
        d_roots = 2 * tf.linalg.band_part(H_roots, -1, 0)
        return (
            tf.linalg.band_part(d_root, -1, 0),
            tf.linalg.triangular_solve(root, d_A, adjoint=True),
            A_g,
            d_roots[:, None] if single else d_roots,
        )

    return (mean_of_blocks(A, q_mu), change), gradient
