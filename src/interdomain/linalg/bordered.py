"""Operators with a few dense rows at the end: Kuu of waves of an interval and of polynomials.

``K = [[A, B], [B^T, C]]`` has the Cholesky factor ``[[L_A, 0], [W^T, L_S]]``, with
``W = L_A^{-1} B`` and ``L_S L_S^T = C - W^T W``: it keeps the structure of A.
"""

from __future__ import annotations

from functools import partial

import tensorflow as tf

from .full import Full
from .operators import Inverse, Root, StructuredOperator, Tensors


class Bordered(StructuredOperator):
    """The matrix ``[[A, B], [B^T, C]]``.

    :param base: A, ``[..., M, M]``.
    :param border: B, ``[..., M, k]``.
    :param corner: C, ``[..., k, k]``.
    """

    def __init__(self, base: StructuredOperator, border: tf.Tensor, corner: tf.Tensor) -> None:
        self.base, self.border, self.corner = base, border, corner
        super().__init__(
            border.dtype,
            is_self_adjoint=True,
            is_positive_definite=True,
            is_square=True,
            parameters={"base": base, "border": border, "corner": corner},
        )

    def _shape(self) -> tf.TensorShape:
        size = self.base.shape[-1] + self.corner.shape[-1]
        return self.corner.shape[:-2].concatenate([size, size])

    def _to_dense(self) -> tf.Tensor:
        below = tf.concat([tf.linalg.matrix_transpose(self.border), self.corner], axis=-1)
        return tf.concat([tf.concat([self.base.to_dense(), self.border], axis=-1), below], axis=-2)

    def _matmul(self, x: tf.Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> tf.Tensor:
        x = tf.linalg.matrix_transpose(x) if adjoint_arg else x
        count = self.border.shape[-1]
        first, last = x[..., :-count, :], x[..., -count:, :]
        above = self.base.matmul(first) + tf.matmul(self.border, last)
        below = tf.matmul(self.border, first, transpose_a=True) + tf.matmul(self.corner, last)
        return tf.concat([above, below], axis=-2)

    def root(self) -> BorderedRoot:
        return BorderedRoot(self.base.root(), self.border, self.corner)

    def stacked_with(self, *others: Bordered) -> StructuredOperator:
        """A batch of operators; a dense batch if the borders have different sizes."""
        operators = (self, *others)
        if any(operator.border.shape != self.border.shape for operator in others):
            return Full(tf.stack([operator.to_dense() for operator in operators]))
        return Bordered(
            self.base.stacked_with(*(operator.base for operator in others)),
            tf.stack([operator.border for operator in operators]),
            tf.stack([operator.corner for operator in operators]),
        )

    def cast(self, dtype: tf.DType) -> Bordered:
        border, corner = (tf.cast(part, dtype) for part in (self.border, self.corner))
        return Bordered(self.base.cast(dtype), border, corner)


class BorderedRoot(Root):
    """The Cholesky factor of ``[[A, B], [B^T, C]]``.

    :param base: The Cholesky factor of A.
    :param border: B, ``[..., M, k]``.
    :param corner: C, ``[..., k, k]``.
    """

    def __init__(self, base: Root, border: tf.Tensor, corner: tf.Tensor) -> None:
        super().__init__(base.size + corner.shape[-1], corner.dtype)
        self._base, whitened = base, base.solve(border)
        rest = corner - tf.matmul(whitened, whitened, transpose_a=True)
        self._triangle = tf.linalg.cholesky(rest)
        below = tf.linalg.matrix_transpose(whitened)
        self._last_rows = tf.concat([below, self._triangle], axis=-1)

    def log_determinant(self) -> tf.Tensor:
        logs = tf.math.log(tf.linalg.diag_part(self._triangle))
        return self._base.log_determinant() + tf.reduce_sum(logs, axis=-1)

    def inverse(self) -> tuple[Inverse, Tensors]:
        function, tensors = self._base.inverse()
        return partial(_inverse, function), (self._last_rows, *tensors)


def _inverse(
    base_inverse: Inverse, tensors: Tensors, columns: tf.Tensor, *, adjoint: bool = False
) -> tf.Tensor:
    """The inverse times columns, from the last rows of L ``[..., k, M + k]`` and the base's
    tensors."""
    rows, *base = tensors
    count = rows.shape[-2]
    border, triangle = rows[..., :-count], rows[..., -count:]
    first, last = columns[..., :-count, :], columns[..., -count:, :]
    if adjoint:
        last = tf.linalg.triangular_solve(triangle, last, adjoint=True)
        first = base_inverse(base, first - tf.matmul(border, last, transpose_a=True), adjoint=True)
    else:
        first = base_inverse(base, first)
        last = tf.linalg.triangular_solve(triangle, last - tf.matmul(border, first))
    return tf.concat([first, last], axis=-2)
