"""Bad input to SphericalHarmonics and its covariances: what is said, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.kernels import RBF, SharedIndependent

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import ArcCosine, FiniteRank, SphericalMatern32

X = np.linspace(-1, 1, 12).reshape(4, 3)


CONSTRUCTOR: list[tuple[dict[str, Any], str]] = [
    ({"degrees": [2, 1]}, r"degrees must be increasing, without repeats, found \(2, 1\)"),
    (
        {"dimension": 1, "degrees": [0, 1]},
        "dimension must be 2 or more, found 1; pass .* input columns plus one",
    ),
    ({}, r"degrees must be given, or chains, found neither; pass for example range"),
    ({"chains": [[0, 1]]}, r"chains must have 3 columns in dimension 4, found 2; pass int.* k_4"),
    ({"chains": [[0, 1, 1.5]]}, r"chains must be integers, found <array \[1, 3\]>; pass"),
    (
        {"chains": [[0, 0, 1], [-2, 1, 3]]},
        r"chains must not decrease along a row, found \[-2, 1, 3\] in row 1; .*\|k_2\| <= k_3",
    ),
    ({"chains": [[1, 1, 1]] * 2}, r"chains must be different, found \[1, 1, 1\] twice; pass"),
    ({"chains": [[0, 0, 30_000]]}, r"degrees: max_degree: the quadrature for 30,001 degrees"),
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
    for arguments, message in (
        ((RBF(), 3, 2), "kernel must be a ZonalKernel, found SquaredExponential; .*ArcCosine"),
        ((ArcCosine(), 0, 2), "input_dim must be an integer of 1 or more, found 0"),
        ((ArcCosine(), 3, -1), "max_degree must be an integer of 0 or more, found -1"),
    ):
        with pytest.raises(ValueError, match=message):
            SphericalHarmonics.for_kernel(*arguments)


def test_wrong_dimension() -> None:
    for dimension in (3, 5):
        message = (
            f"kernel sees 3 columns of Xnew, but the inducing variable has dimension {dimension}; "
            "dimension must be the number of columns plus one, 4 here"
        )
        with pytest.raises(ValueError, match=message):
            Kuf(SphericalHarmonics(dimension, [0, 1, 2]), SphericalMatern32(), X)
    with pytest.raises(ValueError, match="sees 2 columns .* has dimension 4; .* 3 here"):
        Kuf(SphericalHarmonics(4, [0, 1]), SphericalMatern32(active_dims=[0, 2]), X)


def test_kernels_that_do_not_fit() -> None:
    base = SphericalMatern32()
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
        ([0], ArcCosine() + RBF(), "no covariance between SphericalHarmonics and Sum"),
        (
            [0, 1, 2, 3],
            FiniteRank(base, SphericalHarmonics(4, [0, 1, 2])),
            r"inducing_variable must be that of the FiniteRank kernel, .* with others than its "
            r"SphericalHarmonics; pass kernel\.inducing_variable, or make",
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


def test_unknown_rank() -> None:
    """The number of columns alone is not needed: the harmonics have it."""
    kernel = ArcCosine()
    inducing_variable = SphericalHarmonics(4, [0, 1])

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float64)], autograph=False)
    def features(inputs: tf.Tensor) -> tf.Tensor:
        return Kuf(inducing_variable, kernel, inputs)

    message = r"X must have a known number of columns, .*tf.ensure_shape\(X, \[None, D\]\)"
    with pytest.raises(ValueError, match=message):
        features(X)
