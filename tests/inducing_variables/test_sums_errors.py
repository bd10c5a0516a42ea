"""Bad input to SumInducingVariables and its covariances."""

from __future__ import annotations

import numpy as np
import pytest
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import RBF

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import ArcCosine

X = np.linspace(-1, 1, 6).reshape(3, 2)


def test_blocks() -> None:
    with pytest.raises(ValueError, match="inducing_variables must have one entry .* found none"):
        SumInducingVariables([])
    with pytest.raises(ValueError, match="must have an entry that is not None"):
        SumInducingVariables([None])
    with pytest.raises(ValueError, match=r"found ndarray; pass for example InducingPoints\(Z\)"):
        SumInducingVariables([SphericalHarmonics(3, [0]), np.zeros((4, 2))])


def test_kernels_that_do_not_fit() -> None:
    """Another number of summands, no sum, and another order."""
    harmonics, points = SphericalHarmonics(3, [0]), InducingPoints(X)
    for blocks, kernel, message in (
        (
            [harmonics, points],
            ArcCosine() + RBF() + RBF(),
            "2 blocks, but the kernel is a sum of 3",
        ),
        ([harmonics], ArcCosine(), "no covariance between SumInducingVariables and ArcCos"),
        ([points, harmonics], ArcCosine() + RBF(), "between SphericalHarmonics and Squared"),
    ):
        for covariance in (Kuu, Kuu_operator, lambda u, k: Kuf(u, k, X)):
            with pytest.raises(ValueError, match=message):
                covariance(SumInducingVariables(blocks), kernel)
