"""Diagonal operators plus a matrix of low rank: Fourier features on an interval.

The Cholesky factor of ``K = D + U U^T``, for M rows and r columns of U, is known from cumulative
sums over the rows. With ``G_j = I + sum_{i < j} u_i u_i^T / d_i`` (r x r), elimination of the rows
before j leaves of K

    d_j + u_j^T G_j^{-1} u_j = delta_j  on the diagonal,    u_i^T G_j^{-1} u_j  below it,

by the Woodbury identity; so, with ``w_j = G_j^{-1} u_j / sqrt(delta_j)``,

    L = diag(sqrt(delta)) + tril(U W^T, -1).

The product of the factors that an inverse is made of telescopes, as
``I - G_k^{-1} u_k u_k^T / delta_k = G_{k+1}^{-1} G_k``, and leaves

    L^{-1} = diag(1 / sqrt(delta)) - tril(W (D^{-1} U)^T, -1).

Both are applied to columns by cumulative sums, at a cost of M r for each column.
"""

from __future__ import annotations

from typing import TypeAlias

import tensorflow as tf

from .diagonal import diagonal_operator, sole_diagonal
from .full import full_operator
from .operators import (
    Inverse,
    Root,
    Tensors,
    cast,
    last_axis,
    square_root,
    stack_alike,
    stack_dense,
)

LowRankUpdate: TypeAlias = tf.linalg.LinearOperatorLowRankUpdate


def low_rank_operator(diagonal: tf.Tensor, update: tf.Tensor) -> LowRankUpdate:
    """``D + U U^T`` for a positive diagonal ``[..., M]`` and U ``[..., M, r]``."""
    return LowRankUpdate(
        diagonal_operator(diagonal), update, is_self_adjoint=True, is_positive_definite=True
    )


class LowRankRoot(Root):
    """The Cholesky factor of ``D + U U^T``.

    :param diagonal: D ``[..., M]``, positive.
    :param update: U ``[..., M, r]``.
    """

    def __init__(self, diagonal: tf.Tensor, update: tf.Tensor) -> None:
        super().__init__(last_axis(diagonal), update.dtype)
        self._update, self._scaled = update, update / diagonal[..., None]
        # G_j for all j at once: sums of u_i u_i^T / d_i over the rows before j.
        products = self._scaled[..., :, None] * update[..., None, :]
        identity = tf.eye(update.shape[-1], dtype=update.dtype)
        G = identity + tf.cumsum(products, axis=-3, exclusive=True)
        solved = tf.linalg.cholesky_solve(tf.linalg.cholesky(G), update[..., None])[..., 0]
        self._deviations = tf.sqrt(diagonal + tf.reduce_sum(update * solved, axis=-1))
        self._W = solved / self._deviations[..., None]

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        inverse, tensors = self.inverse()
        return inverse(tensors, columns, adjoint=adjoint)

    def matmul(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        below = _product_below_diagonal(self._update, self._W, columns, adjoint)
        return self._deviations[..., None] * columns + below

    def log_determinant(self) -> tf.Tensor:
        return tf.reduce_sum(tf.math.log(self._deviations), axis=-1)

    def inverse(self) -> tuple[Inverse, Tensors]:
        return _inverse, (1 / self._deviations, self._W, self._scaled)

    def inverse_diagonal(self) -> tf.Tensor:
        # Of column j of L^{-1}: its diagonal entry, and the squares of what is below it.
        products = self._W[..., :, None] * self._W[..., None, :]
        after = tf.cumsum(products, axis=-3, exclusive=True, reverse=True)
        below = tf.einsum("...jr,...jrs,...js->...j", self._scaled, after, self._scaled)
        return 1 / tf.square(self._deviations) + below


def _inverse(tensors: Tensors, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
    """``diag(t) - tril(W V^T, -1)``, from t, W and V, times columns."""
    inverse_deviations, W, V = tensors
    below = _product_below_diagonal(W, V, columns, adjoint)
    return inverse_deviations[..., None] * columns - below


def _product_below_diagonal(
    left: tf.Tensor, right: tf.Tensor, columns: tf.Tensor, adjoint: bool
) -> tf.Tensor:
    """``tril(left right^T, -1) columns``, or its transpose's, for ``[..., M, r]`` and
    ``[..., M, N]``; r cumulative sums."""
    if adjoint:
        left, right = right, left
    return tf.add_n(
        [
            left[..., k : k + 1]
            * tf.cumsum(right[..., k : k + 1] * columns, axis=-2, exclusive=True, reverse=adjoint)
            for k in range(left.shape[-1])
        ]
    )


@square_root.register(LowRankUpdate)
def square_root_low_rank(operator: LowRankUpdate) -> Root:
    """In its structure for ``D + U U^T`` and for ``D + U C U^T`` where the operator says that the
    diagonal C is positive; that of the dense matrix otherwise."""
    diagonal = sole_diagonal(operator.base_operator)
    of_diagonal = diagonal is not None
    update = operator.u
    if operator.diag_update is not None:
        of_diagonal = of_diagonal and operator.is_diag_update_positive
        update = update * tf.sqrt(operator.diag_update)[..., None, :] if of_diagonal else None
    if not of_diagonal or operator.v is not operator.u:
        return square_root(full_operator(operator.to_dense()))
    return LowRankRoot(diagonal, update)


def _is_plain(operator: LowRankUpdate) -> bool:
    """Whether it is ``D + U U^T``."""
    return (
        sole_diagonal(operator.base_operator) is not None
        and operator.diag_update is None
        and operator.v is operator.u
    )


@stack_alike.register(LowRankUpdate)
def stack_low_rank(operator: LowRankUpdate, *others: LowRankUpdate) -> tf.linalg.LinearOperator:
    """Diagonals, and updates whose ranks columns of zeros make equal."""
    operators = (operator, *others)
    if not all(_is_plain(one) for one in operators):
        return stack_dense(operators)
    rank = max(one.u.shape[-1] for one in operators)
    updates = [tf.pad(one.u, [[0, 0], [0, rank - one.u.shape[-1]]]) for one in operators]
    diagonals = [one.base_operator.diag_part() for one in operators]
    return low_rank_operator(tf.stack(diagonals), tf.stack(updates))


@cast.register(LowRankUpdate)
def cast_low_rank(operator: LowRankUpdate, dtype: tf.DType) -> tf.linalg.LinearOperator:
    """Diagonal and update in another type."""
    if not _is_plain(operator):
        return full_operator(tf.cast(operator.to_dense(), dtype))
    diagonal = operator.base_operator.diag_part()
    return low_rank_operator(tf.cast(diagonal, dtype), tf.cast(operator.u, dtype))
