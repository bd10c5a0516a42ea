"""Diagonal operators, such as Kuu of harmonics, which need no factorisation."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from .operators import Inverse, Root, StructuredOperator, Summable, Tensors, last_axis


class Diagonal(StructuredOperator, tf.linalg.LinearOperatorDiag, Summable):  # type: ignore[misc]
    """A diagonal matrix with positive entries.

    :param diagonal: The entries, ``[..., M]``.
    """

    def __init__(self, diagonal: tf.Tensor) -> None:
        super().__init__(diagonal, is_self_adjoint=True, is_positive_definite=True)

    @property
    def parts(self) -> Tensors:
        return (self.diag,)

    def with_parts(self, diagonal: tf.Tensor) -> Diagonal:
        return Diagonal(diagonal)

    def root(self) -> DiagonalRoot:
        return DiagonalRoot(tf.sqrt(self.diag))

    def stacked_with(self, *others: Diagonal) -> Diagonal:
        return Diagonal(tf.stack([operator.diag for operator in (self, *others)]))

    def cast(self, dtype: tf.DType) -> Diagonal:
        return Diagonal(tf.cast(self.diag, dtype))

    @property
    def sole_diagonal(self) -> tf.Tensor:
        return self.diag


class DiagonalRoot(Root):
    """A diagonal Cholesky factor L.

    :param deviations: The diagonal ``[..., M]``.
    """

    def __init__(self, deviations: tf.Tensor) -> None:
        super().__init__(last_axis(deviations), deviations.dtype)
        self._deviations = deviations

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        return columns / self._deviations[..., None]

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
    """The inverse of a diagonal L, which is its own transpose, times columns."""
    return tensors[0][..., None] * columns


def least_eigenvalue(dtype: tf.DType) -> float:
    """The least eigenvalue of Kuu that is inverted, 1e-15 in float32; it replaces smaller ones.
    Gradients contain the square of its inverse, which must be finite."""
    return float(1e4 * np.sqrt(np.finfo(dtype.as_numpy_dtype).tiny))
