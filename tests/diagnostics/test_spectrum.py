"""Spectra against closed forms (Tiao et al. 2023, section 3)."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuu
from scipy.special import ive

from interdomain.diagnostics import spectrum
from interdomain.families.sphere.mathematics.activations import Erf, ReLU
from interdomain.inducing_variables import ActivationFeatures
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
    ZonalKernel,
)
from interdomain.sphere import num_harmonics


def cubic(t: tf.Tensor) -> tf.Tensor:
    return t**3 + 0.5


@pytest.mark.parametrize("dimension", [2, 9])
def test_relu_under_arc_cosine(dimension: int) -> None:
    """lambda_l = 2 d a_l^2: every degree adds N(d, l) / (2 d) to the norm, which diverges."""
    found = spectrum(ArcCosine(), "relu", dimension, 12)
    for degree, term in enumerate(found.norm_terms):
        carried = degree == 1 or degree % 2 == 0
        expected = num_harmonics(dimension, degree) / (2 * dimension) if carried else 0.0
        np.testing.assert_allclose(term, expected, rtol=1e-12)
    np.testing.assert_allclose(
        found.kernel_roots, np.sqrt(2 * dimension) * found.activation_coefficients, rtol=1e-12
    )
    assert found.missing == ()


def matern_shares(dimension: int, lengthscale: float, num_degrees: int) -> np.ndarray:
    """N(d, l) lambda_l of Matern-5/2, normalised by a long sum."""
    degrees = np.arange(20_000)
    density = (5 / lengthscale**2 + degrees * (degrees + dimension - 2.0)) ** (
        -2.5 - (dimension - 1) / 2
    )
    if dimension == 2:
        counts = np.where(degrees == 0, 1, 2)
    else:
        assert dimension == 3
        counts = 2 * degrees + 1
    shares = counts * density
    return (shares / shares.sum())[:num_degrees]


@pytest.mark.parametrize(("dimension", "lengthscale"), [(2, 0.3), (3, 0.5)])
def test_relu_under_matern_misses_the_odd_degrees(dimension: int, lengthscale: float) -> None:
    found = spectrum(SphericalMatern52(lengthscale=lengthscale), ReLU(), dimension, 8)
    shares = matern_shares(dimension, lengthscale, 41)
    assert found.missing == (3, 5, 7)
    np.testing.assert_allclose(found.variance_shares, shares[:9], rtol=1e-9)
    np.testing.assert_allclose(found.missing_share, shares[[3, 5, 7]].sum(), rtol=1e-9)
    np.testing.assert_allclose(found.truncated_share, 1 - shares[:9].sum(), rtol=1e-6)
    total = found.represented_share + found.missing_share + found.truncated_share
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    share = f"{shares[[3, 5, 7]].sum():.2%} is in degrees that it lacks (3, 5, 7), "
    assert share in str(found) and "ReLU() represents " in str(found)


def test_degrees_the_kernel_lacks_are_no_failure() -> None:
    found = spectrum(ArcCosine(), "erf", 2, 6)  # which has 3 and 5, too
    assert found.missing == (0, 2, 4, 6)
    np.testing.assert_array_equal(found.norm_terms > 0, [False, True] + 5 * [False])
    np.testing.assert_allclose(found.represented_share, found.variance_shares[1])


@pytest.mark.parametrize("lengthscale", [0.4, 1.0])
def test_norm_of_erf_in_the_chordal_squared_exponential(lengthscale: float) -> None:
    """On the circle both sides are Bessel functions: lambda_l = exp(-1/s^2) I_l(1/s^2), and erf(t)
    has a_l = (-1)^((l-1)/2) exp(-1/2) (I_((l-1)/2) + I_((l+1)/2))(1/2) / (l sqrt(pi))."""
    found = spectrum(ChordalSquaredExponential(lengthscale=lengthscale), Erf(), 2, 9)
    for degree in (1, 3, 5, 7, 9):
        below, above = (degree - 1) / 2, (degree + 1) / 2
        coefficient = (ive(below, 0.5) + ive(above, 0.5)) / (degree * np.sqrt(np.pi))
        eigenvalue = ive(degree, lengthscale**-2)
        np.testing.assert_allclose(found.kernel_roots[degree] ** 2, eigenvalue, rtol=1e-10)
        np.testing.assert_allclose(found.activation_coefficients[degree], coefficient, rtol=1e-10)
        np.testing.assert_allclose(
            found.norm_terms[degree], 2 * coefficient**2 / eigenvalue, rtol=1e-9
        )


def test_an_eigenvalue_that_underflows_makes_the_norm_infinite() -> None:
    found = spectrum(SphericalSquaredExponential(lengthscale=3.0), "softplus", 2, 20)
    assert found.norm_terms[0] < 1 < found.norm_terms[10] < found.norm_terms[20] == np.inf


@pytest.mark.parametrize("activation", ["relu", cubic], ids=["relu", "own"])
def test_the_norm_is_the_diagonal_of_Kuu(activation: object) -> None:
    """Over the degrees that the features use."""
    kernel, dimension, max_degree = SphericalMatern32(), 3, 6
    found = spectrum(kernel, activation, dimension, max_degree)
    features = ActivationFeatures([[0.3, -0.4, 1.0]], activation, max_degree)
    used = np.flatnonzero(found.norm_terms)
    assert tuple(used) == features.degrees(kernel)
    kernel.variance.assign(1.7)
    np.testing.assert_allclose(Kuu(features, kernel), [[found.norm_terms.sum() / 1.7]], rtol=1e-10)


class Quadratic(ZonalKernel):
    """Degrees 0, 1 and 2, which only its shape function knows: eigenvalues by quadrature."""

    def shape_function(self, t: tf.Tensor) -> tf.Tensor:
        return ((1 + t) / 2) ** 2


def test_eigenvalues_by_quadrature() -> None:
    """((1 + t) / 2)^2 = 1/3 + t/2 + P_2(t) / 6 in three dimensions."""
    found = spectrum(Quadratic(), "relu", 3, 7)
    np.testing.assert_allclose(found.variance_shares, [1 / 3, 1 / 2, 1 / 6] + 5 * [0], atol=1e-14)
    np.testing.assert_allclose(found.represented_share, 1.0, rtol=1e-12)
    assert found.missing_share < 1e-14  # ReLU has degrees that the kernel does not


def test_errors() -> None:
    ard = ArcCosine(weight_variances=[1.0, 2.0])
    with pytest.raises(ValueError, match="kernel must be a ZonalKernel, found"):
        spectrum(tf.nn.relu, "relu", 2, 3)
    with pytest.raises(ValueError, match="that of the kernel's sphere, found 2; pass 3"):
        spectrum(ard, "relu", 2, 3)
