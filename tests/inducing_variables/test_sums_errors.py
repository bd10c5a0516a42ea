"""Bad input to SumInducingVariables and its covariances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import RBF

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import ArcCosine

X = np.linspace(-1, 1, 6).reshape(3, 2)
COVARIANCES = pytest.mark.parametrize(
    "covariance", [Kuu, Kuu_operator, lambda u, k: Kuf(u, k, X)], ids=["Kuu", "operator", "Kuf"]
)


def test_no_blocks() -> None:
    with pytest.raises(ValueError, match="inducing_variables must have one entry .* found none"):
        SumInducingVariables([])


def test_block_that_is_an_array() -> None:
    with pytest.raises(ValueError, match=r"found ndarray; pass for example InducingPoints\(Z\)"):
        SumInducingVariables([SphericalHarmonics(3, [0]), np.zeros((4, 2))])


@COVARIANCES
def test_as_many_blocks_as_summands(covariance: Callable[..., Any]) -> None:
    blocks = SumInducingVariables([SphericalHarmonics(3, [0]), InducingPoints(X)])
    kernel = ArcCosine() + RBF() + RBF()
    with pytest.raises(ValueError, match="has 2 blocks, but the kernel is a sum of 3"):
        covariance(blocks, kernel)


@COVARIANCES
def test_kernel_that_is_no_sum(covariance: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="no covariance between SumInducingVariables and ArcCos"):
        covariance(SumInducingVariables([SphericalHarmonics(3, [0])]), ArcCosine())


@COVARIANCES
def test_blocks_in_the_wrong_order(covariance: Callable[..., Any]) -> None:
    blocks = SumInducingVariables([InducingPoints(X), SphericalHarmonics(3, [0])])
    with pytest.raises(ValueError, match="no covariance between SphericalHarmonics and Squared"):
        covariance(blocks, ArcCosine() + RBF())
