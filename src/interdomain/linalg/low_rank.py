"""Diagonal operators plus a matrix of low rank: Kuu of Fourier features on an interval.

The Cholesky factor of ``K = D + U U^T``, for M rows and r columns of U, is computed by cumulative
sums over the rows. Let ``G_j = I + sum_{i < j} u_i u_i^T / d_i`` (r x r). If the rows before j are
eliminated, the remaining entries of K are

    d_j + u_j^T G_j^{-1} u_j = delta_j  on the diagonal,    u_i^T G_j^{-1} u_j  below it,

by the Woodbury identity. With ``w_j = G_j^{-1} u_j / sqrt(delta_j)``, the factor is

    L = diag(sqrt(delta)) + tril(U W^T, -1).

The inverse is a product of factors. The product telescopes, because
``I - G_k^{-1} u_k u_k^T / delta_k = G_{k+1}^{-1} G_k``, and gives

    L^{-1} = diag(1 / sqrt(delta)) - tril(W (D^{-1} U)^T, -1).

Cumulative sums apply ``L^{-1}`` and its transpose to columns, at a cost of M r for each column.
"""

from __future__ import annotations

import tensorflow as tf

from .diagonal import Diagonal
from .operators import Inverse, Root, StructuredOperator, Tensors, last_axis


class LowRankUpdate(StructuredOperator, tf.linalg.LinearOperatorLowRankUpdate):  # type: ignore[misc]
    """The matrix ``D + U U^T``.

    :param diagonal: D ``[..., M]``, positive.
    :param update: U ``[..., M, r]``.
    """

    def __init__(self, diagonal: tf.Tensor, update: tf.Tensor) -> None:
        base = Diagonal(diagonal)
        super().__init__(base, update, is_self_adjoint=True, is_positive_definite=True)

    def root(self) -> LowRankRoot:
        return LowRankRoot(self.base_operator.diag, self.u)

    def stacked_with(self, *others: LowRankUpdate) -> LowRankUpdate:
        """A batch of the operators; columns of zeros make the ranks equal."""
        operators = (self, *others)
        rank = max(operator.u.shape[-1] for operator in operators)
        updates = [
            tf.pad(operator.u, [[0, 0], [0, rank - operator.u.shape[-1]]]) for operator in operators
        ]
        diagonals = [operator.base_operator.diag for operator in operators]
        return LowRankUpdate(tf.stack(diagonals), tf.stack(updates))

    def cast(self, dtype: tf.DType) -> LowRankUpdate:
        return LowRankUpdate(tf.cast(self.base_operator.diag, dtype), tf.cast(self.u, dtype))


class LowRankRoot(Root):
    """The Cholesky factor of ``D + U U^T``.

    :param diagonal: D ``[..., M]``, positive.
    :param update: U ``[..., M, r]``.
    """

    def __init__(self, diagonal: tf.Tensor, update: tf.Tensor) -> None:
        super().__init__(last_axis(diagonal), update.dtype)
        self._scaled = update / diagonal[..., None]
        # G_j for all j at once: sums of u_i u_i^T / d_i over the rows before j.
        products = self._scaled[..., :, None] * update[..., None, :]
        identity = tf.eye(update.shape[-1], dtype=update.dtype)
        G = identity + tf.cumsum(products, axis=-3, exclusive=True)
        solved = tf.linalg.cholesky_solve(tf.linalg.cholesky(G), update[..., None])[..., 0]
        self._deviations = tf.sqrt(diagonal + tf.reduce_sum(update * solved, axis=-1))
        self._W = solved / self._deviations[..., None]

    def log_determinant(self) -> tf.Tensor:
        return tf.reduce_sum(tf.math.log(self._deviations), axis=-1)

    def inverse(self) -> tuple[Inverse, Tensors]:
        return _inverse, (1 / self._deviations, self._W, self._scaled)

    def inverse_diagonal(self) -> tf.Tensor:
        # In column j of L^{-1}: the square of the diagonal entry, plus the squares below it.
        products = self._W[..., :, None] * self._W[..., None, :]
        after = tf.cumsum(products, axis=-3, exclusive=True, reverse=True)
        below = tf.einsum("...jr,...jrs,...js->...j", self._scaled, after, self._scaled)
        return 1 / tf.square(self._deviations) + below


def _inverse(tensors: Tensors, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
    """The product of ``diag(t) - tril(W V^T, -1)``, or of its transpose, with columns
    ``[..., M, N]``, by r cumulative sums; the tensors are t, W and V ``[..., M, r]``."""
    inverse_deviations, W, V = tensors
    left, right = (V, W) if adjoint else (W, V)
    below = [
        left[..., k : k + 1]
        * tf.cumsum(right[..., k : k + 1] * columns, axis=-2, exclusive=True, reverse=adjoint)
        for k in range(left.shape[-1])
    ]
    return inverse_deviations[..., None] * columns - tf.add_n(below)
