"""Bad input to SphericalHarmonics and its covariances: what is said, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import (
    InducingVariables,
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from gpflow.kernels import RBF, Kernel, SeparateIndependent, SharedIndependent

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import ArcCosine, FiniteRank, SphericalMatern32

X = np.linspace(-1, 1, 12).reshape(4, 3)
Y = np.zeros((4, 1))


def svgp(kernel: Kernel, inducing_variable: InducingVariables, outputs: int = 1) -> Any:
    model = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(), inducing_variable, num_latent_gps=outputs
    )
    return model.elbo((X, np.tile(Y, outputs)))


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        (3, r"degrees must be a sequence of integers, found 3; .*range\(max_degree \+ 1\)"),
        ([], "degrees must hold at least one degree, found none; pass"),
        ([0, 2, 2], r"degrees must be increasing, without repeats, found \(0, 2, 2\)"),
        ([2, 1], r"degrees must be increasing, without repeats, found \(2, 1\)"),
        ([-1, 0], r"degrees must be integers of 0 or more, found \(-1, 0\)"),
        ([0, 1.5], r"degrees must be integers of 0 or more, found \(0, 1.5\)"),
    ],
)
def test_bad_degrees(degrees: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SphericalHarmonics(4, degrees)


@pytest.mark.parametrize("dimension", [1, 0, -3])
def test_bad_dimension(dimension: int) -> None:
    message = f"dimension must be 2 or more, found {dimension}; pass .* input columns plus one"
    with pytest.raises(ValueError, match=message):
        SphericalHarmonics(dimension, [0, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"degrees must be given, or chains, found neither; pass for example range"),
        (
            {"chains": [0, 1, 2]},
            r"chains must be a matrix \[M, 3\] of integers, found shape \(3,\)",
        ),
        (
            {"chains": [[0, 1]]},
            r"chains must have 3 columns in dimension 4, found 2; pass int.* k_4",
        ),
        ({"chains": [[0, 1, 1.5]]}, r"chains must be integers, found <array \[1, 3\]>; pass"),
        (
            {"chains": [[0, 0, 1], [-2, 1, 3]]},
            r"chains must not decrease along a row, found \[-2, 1, 3\] in row 1; .*\|k_2\| <= k_3",
        ),
        (
            {"chains": [[0, 2, 1]]},
            r"chains must not decrease along a row, found \[0, 2, 1\] in row 0",
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
        ({"degrees": [1], "column_order": [0, 1]}, "must be a permutation of 3 columns, found"),
    ],
)
def test_bad_chains(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SphericalHarmonics(4, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((RBF(), 3, 2), "kernel must be a ZonalKernel, found SquaredExponential; .*ArcCosine"),
        ((ArcCosine(), 0, 2), "input_dim must be an integer of 1 or more, found 0"),
        ((ArcCosine(), 3, -1), "max_degree must be an integer of 0 or more, found -1"),
    ],
)
def test_bad_arguments_of_for_kernel(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SphericalHarmonics.for_kernel(*arguments)


def separate(inner: SphericalHarmonics, kernel: Kernel) -> tuple[Kernel, InducingVariables]:
    wrapped = SeparateIndependentInducingVariables([inner, inner])
    return SeparateIndependent([kernel, kernel]), wrapped


def shared(inner: SphericalHarmonics, kernel: Kernel) -> tuple[Kernel, InducingVariables]:
    return SharedIndependent(kernel, output_dim=2), SharedIndependentInducingVariables(inner)


def alone(inner: SphericalHarmonics, kernel: Kernel) -> tuple[Kernel, InducingVariables]:
    return kernel, inner


@pytest.mark.parametrize("wrap", [alone, shared, separate])
@pytest.mark.parametrize("dimension", [3, 5])
def test_wrong_dimension(wrap: Callable[..., Any], dimension: int) -> None:
    kernel, inducing_variable = wrap(SphericalHarmonics(dimension, [0, 1, 2]), SphericalMatern32())
    message = (
        f"kernel sees 3 columns of Xnew, but the inducing variable has dimension {dimension}; "
        "dimension must be the number of columns plus one, 4 here"
    )
    with pytest.raises(ValueError, match=message):
        svgp(kernel, inducing_variable, outputs=1 if wrap is alone else 2)


def test_wrong_dimension_counts_active_columns() -> None:
    kernel = SphericalMatern32(active_dims=[0, 2])
    with pytest.raises(ValueError, match="sees 2 columns .* has dimension 4; .* 3 here"):
        svgp(kernel, SphericalHarmonics(4, [0, 1]))


@pytest.mark.parametrize("wrap", [alone, shared, separate])
def test_zero_eigenvalue(wrap: Callable[..., Any]) -> None:
    kernel, inducing_variable = wrap(SphericalHarmonics(4, [0, 1, 2, 3, 5]), ArcCosine(1))
    message = (
        r"nonzero eigenvalues under ArcCosine in dimension 4, found zero for \[3, 5\]; .*for_k"
    )
    with pytest.raises(ValueError, match=message):
        svgp(kernel, inducing_variable, outputs=1 if wrap is alone else 2)


@pytest.mark.parametrize("covariance", [Kuu, Kuu_operator, lambda u, k: Kuf(u, k, X)])
def test_zero_eigenvalue_in_each_covariance(covariance: Callable[..., Any]) -> None:
    with pytest.raises(
        ValueError, match=r"degrees must have nonzero eigenvalues .* found zero for \[3\]"
    ):
        covariance(SphericalHarmonics(4, [0, 3]), ArcCosine(1))


def test_kernel_of_finite_rank_without_a_degree() -> None:
    kernel = FiniteRank(SphericalMatern32(), SphericalHarmonics(4, [0, 1, 2]))
    with pytest.raises(
        ValueError,
        match=r"inducing_variable must be that of the FiniteRank kernel, .* with others than its "
        r"SphericalHarmonics; pass kernel\.inducing_variable, or make",
    ):
        svgp(kernel, SphericalHarmonics(4, [0, 1, 2, 3]))


@pytest.mark.parametrize("wrap", [alone, shared, separate])
def test_wrong_kernel(wrap: Callable[..., Any]) -> None:
    kernel, inducing_variable = wrap(SphericalHarmonics(4, [0, 1]), RBF())
    message = (
        "kernel: there is no covariance between SphericalHarmonics and SquaredExponential; "
        "use a kernel of the family that the inducing variable belongs to"
    )
    with pytest.raises(ValueError, match=message):
        svgp(kernel, inducing_variable, outputs=1 if wrap is alone else 2)


@pytest.mark.parametrize("covariance", [Kuu, Kuu_operator, lambda u, k: Kuf(u, k, X)])
def test_wrong_kernel_in_each_covariance(covariance: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="no covariance between SphericalHarmonics and Sum"):
        covariance(SphericalHarmonics(4, [0]), ArcCosine() + RBF())


@pytest.mark.parametrize("covariance", [Kuu, Kuu_operator, lambda u, k: Kuf(u, k, X)])
def test_multi_output_kernel_without_wrapper(covariance: Callable[..., Any]) -> None:
    kernel = SharedIndependent(ArcCosine(), output_dim=2)
    message = (
        "no covariance between SphericalHarmonics and SharedIndependent; it has several outputs: "
        "pass both to a model, which takes them as they are; where Kuu and Kuf are needed, wrap it "
        r"in interdomain.inducing_variables.SharedIndependentInducingVariables\("
        r"SphericalHarmonics\(...\)\) or SeparateIndependentInducingVariables"
    )
    with pytest.raises(ValueError, match=message):
        covariance(SphericalHarmonics(4, [0, 1]), kernel)


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
