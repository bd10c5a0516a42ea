"""Fourier features whose structure nobody knows: the covariances are the same, Kuu is one matrix.

What a model does with them is what it does with any inducing variable: it factorises.
"""

from __future__ import annotations

from gpflow.kernels import Matern32, Sum

from interdomain.covariances import Kuu_operator
from interdomain.covariances.dispatch import Kuu_operator_full_matrix
from interdomain.inducing_variables import IntervalFourierFeatures, SumInducingVariables


class DenseFeatures(IntervalFourierFeatures):
    """Features of one column."""


class DenseSum(SumInducingVariables):
    """A sum of which no block is known to be independent of the others."""


Kuu_operator.register(DenseFeatures, Matern32)(Kuu_operator_full_matrix)
Kuu_operator.register(DenseSum, Sum)(Kuu_operator_full_matrix)
