"""Bad input to SphericalHarmonics and its covariances: what is said, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpflow.covariances import Kuf, Kuu
from gpflow.kernels import RBF, SharedIndependent

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import ArcCosine, SphericalMatern32

X = np.linspace(-1, 1, 12).reshape(4, 3)


CONSTRUCTOR: list[tuple[dict[str, Any], str]] = [
    ({"degrees": [2, 1]}, r"degrees must be increasing, without repeats, found \(2, 1\)"),
    ({}, r"degrees must be given, or chains, found neither; pass for example range"),
    ({"chains": [[1, 1, 1]] * 2}, r"chains must be different, found \[1, 1, 1\] twice; pass"),
    (
        {"degrees": [0, 1], "chains": [[0, 0, 2], [0, 1, 1]]},
        r"chains must be of other degrees than \(0, 1\), .* found \[0, 1, 1\]; leave these out",
    ),
    (
        {"degrees": [1], "column_order": [0, 0, 1]},
        r"column_order must be a permutation of 3 columns, found \(0, 0, 1\); .*least first",
    ),
]


def test_bad_arguments() -> None:
    for arguments, message in CONSTRUCTOR:
        with pytest.raises(ValueError, match=message):
            SphericalHarmonics(**{"dimension": 4} | arguments)


def test_bad_arguments_of_for_kernel() -> None:
    message = "kernel must be a ZonalKernel, found SquaredExponential; .*ArcCosine"
    with pytest.raises(ValueError, match=message):
        SphericalHarmonics.for_kernel(RBF(), 3, 2)


def test_wrong_dimension() -> None:
    with pytest.raises(ValueError, match="sees 2 columns .* has dimension 4; .* 3 here"):
        Kuf(SphericalHarmonics(4, [0, 1]), SphericalMatern32(active_dims=[0, 2]), X)


def test_kernels_that_do_not_fit() -> None:
    for degrees, kernel, message in (
        (
            [0, 1, 2, 3, 5],
            ArcCosine(1),
            r"degrees must have nonzero eigenvalues under ArcCosine in dimension 4, found zero for "
            r"\[3, 5\]; .*for_k",
        ),
        (
            [0, 1],
            RBF(),
            "kernel: there is no covariance between SphericalHarmonics and SquaredExponential; "
            "use a kernel of the family that the inducing variable belongs to",
        ),
        (
            [0, 1],
            SharedIndependent(ArcCosine(), output_dim=2),
            "no covariance between SphericalHarmonics and SharedIndependent; it has several "
            "outputs: pass both to a model, which takes them as they are; where Kuu and Kuf are "
            "needed, wrap it in interdomain.inducing_variables.SharedIndependentInducingVariables"
            r"\(SphericalHarmonics\(...\)\) or SeparateIndependentInducingVariables",
        ),
    ):
        for covariance in (Kuu, Kuu_operator, lambda u, k: Kuf(u, k, X)):
            with pytest.raises(ValueError, match=message):
                covariance(SphericalHarmonics(4, degrees), kernel)
