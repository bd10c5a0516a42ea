"""Natural-gradient steps for a Gaussian q, in closed form from gradients of its mean and root.

With ``q = N(m, S)``, natural parameters ``(S^{-1} m, -S^{-1} / 2)`` and expectation parameters
``(m, S + m m^T)``, a step of size t down a loss with gradients ``g`` for m and ``G_S`` for S is

    S_new^{-1} = S^{-1} + 2 t G_S,    m_new = m - t S_new g.

In terms of a root L, ``S = L L^T``, and the gradient G for it, the first is
``S_new^{-1} = L^{-T} A L^{-1}`` with ``A = I + t H``, where H is symmetric with the lower triangle
of ``L^T G``. No covariance is formed or inverted, whatever u is (whitened or not).

A leaves the positive-definite matrices exactly where S_new would be none. There the step is
shortened, for each q by itself: independent Gaussians have natural gradients of their own, and the
shorter one is as good a direction. Mean and root take the same step.
"""

from __future__ import annotations

import tensorflow as tf

_MOST_HALVINGS = 2200
"""More than there are powers of two among the numbers of float64; t H is zero before."""


def full_step(
    mean: tf.Tensor,
    root: tf.Tensor,
    mean_gradient: tf.Tensor,
    root_gradient: tf.Tensor,
    size: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean and root after a step for ``q = N(m, L L^T)``, or for a batch of them.

    With ``A = V V^T``, V upper triangular, the new root is ``L V^{-T}``: lower triangular, with
    the signs of the diagonal of L. A step at which A has no such factor is halved until it has.

    :param mean: ``[..., M]``.
    :param root: Lower triangular, ``[..., M, M]``.
    :param mean_gradient: The gradient of the loss, ``[..., M]``.
    :param root_gradient: The gradient of the loss, ``[..., M, M]``; what is above the diagonal is
        not used.
    :param size: The size of the step, a scalar in (0, 1].
    :returns: NaN where a gradient is not finite.
    """
    # The lower triangle of J H J, where J reverses the order: that is all that is read of it.
    reversed_H = tf.reverse(tf.matmul(root_gradient, root, transpose_a=True), [-2, -1])
    sizes, factor = _step_and_factor(reversed_H, size)
    rows = tf.reverse(tf.linalg.matrix_transpose(root), [-2])
    solved = tf.linalg.triangular_solve(factor, rows)
    new_root = tf.reverse(tf.linalg.matrix_transpose(solved), [-1])
    whitened = tf.linalg.matvec(new_root, mean_gradient, transpose_a=True)
    return mean - sizes[..., None] * tf.linalg.matvec(new_root, whitened), new_root


def diagonal_step(
    mean: tf.Tensor,
    root: tf.Tensor,
    mean_gradient: tf.Tensor,
    root_gradient: tf.Tensor,
    size: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The step for independent coordinates; all arguments but ``size`` have one shape ``[...]``,
    and the roots are standard deviations l.

    The precision of a coordinate is multiplied by ``a = 1 + t l g_l``. Where that is not positive,
    the step of this coordinate goes half of the way to ``a = 0``: what repeated halving comes to,
    but for a factor of two, without a precision that is next to nothing.
    """
    slope = root * root_gradient
    leaves = 1 + size * slope <= 0
    sizes = tf.where(leaves, -0.5 / tf.where(leaves, slope, -tf.ones_like(slope)), size)
    new_root = root * tf.math.rsqrt(1 + sizes * slope)
    return mean - sizes * tf.square(new_root) * mean_gradient, new_root


def _step_and_factor(matrix: tf.Tensor, size: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The first of t, t/2, t/4, ... at which ``I + t matrix`` has a Cholesky factor, for each
    matrix of a batch ``[..., M, M]``, and the factors."""
    diagonal = tf.linalg.diag_part(matrix)
    finite = tf.reduce_all(tf.math.is_finite(matrix), [-2, -1])

    def factorised(sizes: tf.Tensor) -> tf.Tensor:
        scaled = sizes[..., None, None] * matrix
        return tf.linalg.cholesky(tf.linalg.set_diag(scaled, 1 + sizes[..., None] * diagonal))

    def outside(factor: tf.Tensor) -> tf.Tensor:
        exists = tf.reduce_all(tf.math.is_finite(tf.linalg.diag_part(factor)), -1)
        return tf.logical_and(finite, tf.logical_not(exists))

    def again(sizes: tf.Tensor, factor: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        sizes = tf.where(outside(factor), sizes / 2, sizes)
        return sizes, factorised(sizes)

    sizes = tf.fill(tf.shape(matrix)[:-2], tf.cast(size, matrix.dtype))
    sizes, factor = tf.while_loop(
        lambda _, factor: tf.reduce_any(outside(factor)),
        again,
        (sizes, factorised(sizes)),
        maximum_iterations=_MOST_HALVINGS,
    )
    return sizes, factor
