"""Fourier features with a dense Kuu, to compare with the structured one; the values are the same.

A model factorises this Kuu as it does that of any other inducing variable.
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
