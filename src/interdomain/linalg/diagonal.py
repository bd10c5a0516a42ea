"""Diagonal operators: the harmonics', which nothing has to factorise."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import tensorflow as tf

from .operators import Inverse, Root, Tensors, cast, last_axis, square_root, stack_alike

Diagonal: TypeAlias = tf.linalg.LinearOperatorDiag


def diagonal_operator(diagonal: tf.Tensor) -> Diagonal:
    """The positive-definite operator with this diagonal ``[..., M]``."""
    return Diagonal(diagonal, is_self_adjoint=True, is_positive_definite=True)


def sole_diagonal(operator: tf.linalg.LinearOperator) -> tf.Tensor | None:
    """The diagonal ``[..., M]`` of an operator that has nothing else; None for any other."""
    return operator.diag_part() if isinstance(operator, tf.linalg.LinearOperatorDiag) else None


class DiagonalRoot(Root):
    """A diagonal L.

    :param deviations: The diagonal ``[..., M]``.
    """

    def __init__(self, deviations: tf.Tensor) -> None:
        super().__init__(last_axis(deviations), deviations.dtype)
        self._deviations = deviations

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        return columns / self._deviations[..., None]

    def matmul(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        return columns * self._deviations[..., None]

    def log_determinant(self) -> tf.Tensor:
        return tf.reduce_sum(tf.math.log(self._deviations), axis=-1)

    def inverse(self) -> tuple[Inverse, Tensors]:
        return _scaled, (1 / self._deviations,)

    def inverse_diagonal(self) -> tf.Tensor:
        return 1 / tf.square(self._deviations)

    @property
    def diagonal(self) -> tf.Tensor:
        return self._deviations


def _scaled(tensors: Tensors, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
    """The inverse of a diagonal matrix is its own transpose."""
    return tensors[0][..., None] * columns


@square_root.register(Diagonal)
def square_root_diagonal(operator: Diagonal) -> DiagonalRoot:
    """Square roots of the entries."""
    return DiagonalRoot(tf.sqrt(operator.diag_part()))


@stack_alike.register(Diagonal)
def stack_diagonal(operator: Diagonal, *others: Diagonal) -> Diagonal:
    """Diagonals of equal length."""
    return diagonal_operator(tf.stack([one.diag_part() for one in (operator, *others)]))


@cast.register(Diagonal)
def cast_diagonal(operator: Diagonal, dtype: tf.DType) -> Diagonal:
    """The diagonal in another type."""
    return diagonal_operator(tf.cast(operator.diag_part(), dtype))


def least_eigenvalue(dtype: tf.DType) -> float:
    """The smallest that Kuu inverts, 1e-15 in float32: the square of its inverse, of which
    gradients are made, is a number. Smaller ones are taken for this one."""
    return float(1e4 * np.sqrt(np.finfo(dtype.as_numpy_dtype).tiny))
