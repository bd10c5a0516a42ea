"""Products of a training step, with gradients in closed form, which take fewer products, or fewer
arrays of the features' size, than TensorFlow's. For the notation see ``variational``."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .full import matmul


def mean_of_features(A: tf.Tensor, mean: tf.Tensor) -> tf.Tensor:
    """``sum_t A_t^T mean_t`` ``[N, P]``, by one product."""
    return tf.matmul(flat(A), flat(mean), transpose_a=True)


def flat(tensor: tf.Tensor) -> tf.Tensor:
    """The parts stacked below each other: ``[T M, N]`` from ``[T, M, N]``."""
    return tf.reshape(tensor, [-1, tf.shape(tensor)[-1]])


def projected_variances(features: tf.Tensor, root: tf.Tensor) -> tf.Tensor:
    """The diagonals of ``sum_t features_t^T S_t features_t``, ``[N, P]``."""
    if root.shape.rank == 3:
        return tf.matmul(tf.square(flat(features)), tf.square(flat(root)), transpose_a=True)
    return tf.transpose(_squared_projections(features, root))


@tf.custom_gradient
def _squared_projections(features: tf.Tensor, root: tf.Tensor) -> Any:
    """The squared lengths of ``root_tp^T features_t``, summed over t, ``[P, N]``.

    A training step with harmonics consists of these products and the two products of their
    gradient. Panels of the triangular roots are multiplied, so that few factors are zero.

    :param features: ``[T, M, N]``.
    :param root: ``[T, P, M, M]``, lower triangular.
    """
    wide = features[:, None]
    bounds = _panels(root.shape[-1])
    projected = [
        matmul(root[..., first:, first:last], wide[..., first:, :], transpose_a=True)
        for first, last in bounds
    ]

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        weights = (2 * upstream)[:, None, :]
        slopes = tf.concat([panel * weights for panel in projected], axis=-2)
        d_features = tf.concat(
            [matmul(root[..., first:last, :last], slopes[..., :last, :]) for first, last in bounds],
            axis=-2,
        )
        if root.shape[1] != 1:
            d_features = tf.reduce_sum(d_features, axis=1, keepdims=True)
        d_panels = []
        for first, last in bounds:
            below = matmul(wide[..., first:, :], slopes[..., first:last, :], transpose_b=True)
            d_panels.append(tf.pad(below, [[0, 0], [0, 0], [first or 0, 0], [0, 0]]))
        return tf.squeeze(d_features, 1), tf.concat(d_panels, axis=-1)

    sums = [tf.reduce_sum(tf.square(panel), axis=[0, 2]) for panel in projected]
    return tf.add_n(sums), gradient


_PANEL = 128
"""The least number of columns of a panel: narrower products are slow."""


def _panels(size: int | None) -> list[tuple[int | None, int | None]]:
    """The first and last columns of at most four panels."""
    if size is None:
        return [(None, None)]
    count = min(4, max(1, size // _PANEL))
    bounds = [size * k // count for k in range(count + 1)]
    return list(zip(bounds[:-1], bounds[1:], strict=True))


@tf.custom_gradient
def mean_and_squares(columns: tf.Tensor, means: tf.Tensor, weights: tf.Tensor) -> Any:
    """``K^T means`` and ``(K * K)^T weights`` for columns K ``[M, N]``, the only large argument.

    TensorFlow's gradient with respect to K takes twice as many arrays of the size of K.
    """
    squares = tf.square(columns)

    def gradient(d_means: tf.Tensor, d_sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
        d_columns = tf.matmul(means, d_means, transpose_b=True)
        d_columns += columns * tf.matmul(2 * weights, d_sums, transpose_b=True)
        return d_columns, tf.matmul(columns, d_means), tf.matmul(squares, d_sums)

    values = (
        tf.matmul(columns, means, transpose_a=True),
        tf.matmul(squares, weights, transpose_a=True),
    )
    return values, gradient


def dense_terms(
    is_complete: bool, triangle: tf.Tensor, columns: tf.Tensor, mean: tf.Tensor, root: tf.Tensor
) -> Any:
    """The terms for dense L and S, which take most of a training step.

    The gradient is in closed form. With ``C_p = root_p root_p^T - I`` (without I if
    ``is_complete``), upstream gradients g of the mean and w of the change, and
    ``H_p = A diag(w_p) A^T``,

        dA = 2 sum_p C_p A diag(w_p) + mean g^T,      dKuf = L^{-T} dA,
        dA A^T = 2 sum_p C_p H_p + mean (A g)^T,      dL = -tril(L^{-T} dA A^T),
        dmean = A g,                                  droot_p = 2 tril(H_p root_p).

    C A is part of the value, and H gives ``dA A^T``. TensorFlow's gradient has six products of M^2
    N operations, two more than this gradient.
    """
    A = tf.linalg.triangular_solve(triangle, columns)
    # Several latent GPs have a batch axis; one has none, because plain products are faster.
    single = root.shape[1] == 1
    roots = root[:, 0] if single else root
    features = A if single else A[:, None]
    C = matmul(roots, roots, transpose_b=True)
    if not is_complete:
        C = tf.linalg.set_diag(C, tf.linalg.diag_part(C) - 1)
    product = matmul(C, features)  # [T, M, N] or [T, P, M, N]
    diagonals = tf.reduce_sum(features * product, axis=[0, -2])
    change = diagonals[:, None] if single else tf.transpose(diagonals)
    zeros = tf.zeros_like(A[0, 0])
    explained = zeros if is_complete else tf.reduce_sum(tf.square(A), axis=[0, 1])

    def gradient(
        d_mean: tf.Tensor, d_change: tf.Tensor, _explained: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        weights = d_change[:, 0] if single else tf.transpose(d_change)[:, None, :]
        H = matmul(features * weights, features, transpose_b=True)
        H_roots = matmul(H, roots)
        C_H = matmul(roots, H_roots, transpose_b=True)
        if not is_complete:
            C_H -= H
        d_A = product * (2 * weights)
        if not single:
            d_A, C_H = tf.reduce_sum(d_A, axis=1), tf.reduce_sum(C_H, axis=1)
        d_A += tf.matmul(mean, tf.transpose(d_mean))
        A_g = tf.tensordot(A, d_mean, 1)  # [T, M, P]
        d_A_A = 2 * C_H + matmul(mean, A_g, transpose_b=True)
        d_triangle = -tf.linalg.triangular_solve(triangle, d_A_A, adjoint=True)
        d_roots = 2 * tf.linalg.band_part(H_roots, -1, 0)
        return (
            tf.linalg.band_part(d_triangle, -1, 0),
            tf.linalg.triangular_solve(triangle, d_A, adjoint=True),
            A_g,
            d_roots[:, None] if single else d_roots,
        )

    return (mean_of_features(A, mean), change, explained), gradient
