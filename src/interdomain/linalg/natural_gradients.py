"""Natural-gradient steps for a Gaussian q, in closed form from gradients of its mean and root.

``q = N(m, S)`` has natural parameters ``(S^{-1} m, -S^{-1} / 2)`` and expectation parameters
``(m, S + m m^T)``. For a loss with gradients ``g`` for m and ``G_S`` for S, a step of size t is

    S_new^{-1} = S^{-1} + 2 t G_S,    m_new = m - t S_new g.

For a root L, ``S = L L^T``, with gradient G, the first equation is ``S_new^{-1} = L^{-T} A L^{-1}``
with ``A = I + t H``. H is symmetric and has the lower triangle of ``L^T G``. No covariance is
formed or inverted, whether u is whitened or not.

A is positive definite exactly if S_new is. If not, a shorter step in the same direction is used.
Each q of a batch has its own step, because the natural gradients of independent Gaussians are
independent. The mean and the root of a q use the same step.
"""

from __future__ import annotations

import tensorflow as tf

_MOST_HALVINGS = 2200
"""The most halvings of a step t. After fewer halvings, t H is zero in float64."""


def full_step(
    mean: tf.Tensor,
    root: tf.Tensor,
    mean_gradient: tf.Tensor,
    root_gradient: tf.Tensor,
    size: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean and root of ``q = N(m, L L^T)`` after a step, for one q or a batch.

    With ``A = V V^T``, V upper triangular, the new root is ``L V^{-T}``: lower triangular, with the
    signs of the diagonal of L. If A has no such factor, the step is halved until it has.

    :param mean: ``[..., M]``.
    :param root: Lower triangular, ``[..., M, M]``.
    :param mean_gradient: The gradient of the loss with respect to the mean, ``[..., M]``.
    :param root_gradient: The gradient of the loss with respect to the root, ``[..., M, M]``;
        entries above the diagonal are not used.
    :param size: The size of the step, a scalar in (0, 1].
    :returns: The new mean and root; NaN if a gradient is not finite.
    """
    # Only the lower triangle is used: that of J H J, where J reverses the order.
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
    """The mean and root after a step for independent coordinates. All arguments but ``size`` have
    one shape ``[...]``, and the roots are standard deviations l.

    The step multiplies the precision of a coordinate by ``a = 1 + t l g_l``. If a is not positive,
    the step of the coordinate goes half of the way to ``a = 0``. Repeated halving gives the same
    step up to a factor of two, but may leave a precision near zero.
    """
    slope = root * root_gradient
    leaves = 1 + size * slope <= 0
    sizes = tf.where(leaves, -0.5 / tf.where(leaves, slope, -tf.ones_like(slope)), size)
    new_root = root * tf.math.rsqrt(1 + sizes * slope)
    return mean - sizes * tf.square(new_root) * mean_gradient, new_root


def _step_and_factor(matrix: tf.Tensor, size: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The first size of t, t/2, t/4, ... at which ``I + t matrix`` has a Cholesky factor, and this
    factor, for each matrix of a batch ``[..., M, M]``."""
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
