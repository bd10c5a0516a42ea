"""Fourier features with a dense Kuu, to compare with the structured one; the values are the same.

A model factorises this Kuu as it does that of any other inducing variable.
"""

from __future__ import annotations

import tensorflow as tf
from gpflow.kernels import Kernel, Matern32, Sum

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import IntervalFourierFeatures, SumInducingVariables
from interdomain.linalg import full_operator


class DenseFeatures(IntervalFourierFeatures):
    """Features of one column."""


class DenseSum(SumInducingVariables):
    """A sum of which no block is known to be independent of the others."""


def register_dense(features: type, base: type, kernel_class: type[Kernel]) -> None:
    """The operator of the base class as a dense matrix, to be factorised."""
    structured = Kuu_operator.dispatch(base, kernel_class)

    def dense(inducing_variable: object, kernel: Kernel, *, jitter: float = 0.0) -> object:
        matrix = structured(inducing_variable, kernel).to_dense()
        return full_operator(matrix + jitter * tf.eye(tf.shape(matrix)[0], dtype=matrix.dtype))

    Kuu_operator.register(features, kernel_class)(dense)


register_dense(DenseFeatures, IntervalFourierFeatures, Matern32)
register_dense(DenseSum, SumInducingVariables, Sum)
