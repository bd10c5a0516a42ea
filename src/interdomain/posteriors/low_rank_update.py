"""A square root of a diagonal plus a matrix of low rank."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class LowRankUpdateRoot(tf.linalg.LinearOperator):  # type: ignore[misc]
    """L with ``L L^T = D + U U^T``, for M rows and r columns of U at a cost of ``M r^2``.

    ``L = D^{1/2} (I + V Y^{-1} V^T)`` for ``V = D^{-1/2} U`` and ``Y = I + C``, where
    ``C C^T = I + V^T V``: the product of the bracket and its transpose is ``I + V V^T`` because
    ``Y Y^T - Y - Y^T + I = (Y - I)(Y - I)^T = I + V^T V``. It is not triangular.

    As ``Y + V^T V = C Y^T``, the bracket's inverse is ``I - V Y^{-T} C^{-1} V^T``; its determinant
    is that of C. So nothing but triangles of r rows is solved with, which XLA compiles as well.

    :param diagonal: D ``[..., M]``.
    :param update: U ``[..., M, r]``.
    """

    def __init__(self, diagonal: tf.Tensor, update: tf.Tensor) -> None:
        parameters = {"diagonal": diagonal, "update": update}
        self._deviations = tf.sqrt(diagonal)[..., None]
        self._V = update / self._deviations
        identity = tf.eye(update.shape[-1], dtype=update.dtype)
        self._C = tf.linalg.cholesky(identity + tf.matmul(self._V, self._V, transpose_a=True))
        self._Y = identity + self._C
        super().__init__(
            dtype=update.dtype, is_non_singular=True, is_square=True, parameters=parameters
        )

    def _shape(self) -> tf.TensorShape:
        return self._V.shape[:-1].concatenate(self._V.shape[-2:-1])

    def _shape_tensor(self) -> tf.Tensor:
        shape = tf.shape(self._V)
        return tf.concat([shape[:-1], shape[-2:-1]], axis=0)

    def _project(self, x: tf.Tensor) -> tf.Tensor:
        return tf.matmul(self._V, x, transpose_a=True)

    def _matmul(self, x: tf.Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = tf.linalg.adjoint(x) if adjoint_arg else x
        x = self._deviations * x if adjoint else x
        inner = tf.linalg.triangular_solve(self._Y, self._project(x), adjoint=adjoint)
        x = x + tf.matmul(self._V, inner)
        return x if adjoint else self._deviations * x

    def _solve(self, rhs: tf.Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = tf.linalg.adjoint(rhs) if adjoint_arg else rhs
        rhs = rhs if adjoint else rhs / self._deviations
        first, second = (self._Y, self._C) if adjoint else (self._C, self._Y)
        inner = tf.linalg.triangular_solve(first, self._project(rhs))
        inner = tf.linalg.triangular_solve(second, inner, adjoint=True)
        rhs = rhs - tf.matmul(self._V, inner)
        return rhs / self._deviations if adjoint else rhs

    def _log_abs_determinant(self) -> tf.Tensor:
        of_bracket = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(self._C)), axis=-1)
        return tf.reduce_sum(tf.math.log(self._deviations[..., 0]), axis=-1) + of_bracket
