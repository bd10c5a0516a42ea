"""Fourier features with a dense Kuu, to compare with the structured one; the values are the same.

A model factorises this Kuu as it does that of any other inducing variable.
"""

from __future__ import annotations

import tensorflow as tf
from gpflow.kernels import Kernel

from interdomain.inducing_variables import SumInducingVariables, VariationalFourierFeatures
from interdomain.linalg import Full


def as_dense(operator: tf.linalg.LinearOperator, jitter: float) -> tf.linalg.LinearOperator:
    """The operator as a dense matrix, to be factorised."""
    matrix = operator.to_dense()
    return Full(matrix + jitter * tf.eye(tf.shape(matrix)[0], dtype=matrix.dtype))


class DenseFeatures(VariationalFourierFeatures):
    """Features of one column."""

    def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> tf.linalg.LinearOperator:
        return as_dense(super().Kuu(kernel), jitter)


class DenseSum(SumInducingVariables):
    """A sum of which no block is known to be independent of the others."""

    def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> tf.linalg.LinearOperator:
        return as_dense(super().Kuu(kernel), jitter)
