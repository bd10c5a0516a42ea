"""Spectra against closed forms (Tiao et al. 2023, section 3)."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.kernels import RBF
from scipy.special import ive

from interdomain.covariances import Kuu_operator
from interdomain.diagnostics import harmonic_shares, spectrum
from interdomain.diagnostics.harmonics import HarmonicShares
from interdomain.families.sphere.mathematics.activations import Erf, ReLU
from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    FiniteRank,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
    ZonalKernel,
)
from interdomain.sphere import num_harmonics
from tests.conformance.helpers import assert_refused


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


def test_degrees_that_one_of_both_lacks() -> None:
    """No failure if it is the kernel; an eigenvalue that underflows makes the norm infinite."""
    found = spectrum(ArcCosine(), "erf", 2, 6)  # which has 3 and 5, too
    assert found.missing == (0, 2, 4, 6)
    np.testing.assert_array_equal(found.norm_terms > 0, [False, True] + 5 * [False])
    np.testing.assert_allclose(found.represented_share, found.variance_shares[1])
    found = spectrum(SphericalSquaredExponential(lengthscale=3.0), "softplus", 2, 20)
    assert found.norm_terms[0] < 1 < found.norm_terms[10] < found.norm_terms[20] == np.inf


@pytest.mark.parametrize("lengthscale", [0.4, 1.0])
def test_norm_of_erf_in_the_chordal_squared_exponential(lengthscale: float) -> None:
    """On the circle both sides are Bessel functions: lambda_l = exp(-1/s^2) I_l(1/s^2), and erf(t)
    has a_l = (-1)^((l-1)/2) exp(-1/2) (I_((l-1)/2) + I_((l+1)/2))(1/2) / (l sqrt(pi))."""
    found = spectrum(ChordalSquaredExponential(lengthscale=lengthscale), Erf(), 2, 9)
    for degree in (1, 3, 5, 7, 9):
        below, above = (degree - 1) / 2, (degree + 1) / 2
        coefficient = (ive(below, 0.5) + ive(above, 0.5)) / (degree * np.sqrt(np.pi))
        eigenvalue = ive(degree, lengthscale**-2)
        norm = 2 * coefficient**2 / eigenvalue
        np.testing.assert_allclose(found.kernel_roots[degree] ** 2, eigenvalue, rtol=1e-10)
        np.testing.assert_allclose(found.activation_coefficients[degree], coefficient, rtol=1e-10)
        np.testing.assert_allclose(found.norm_terms[degree], norm, rtol=1e-9)


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


# What a set of harmonics explains, and in which columns.

X = np.random.default_rng(0).normal(size=(1_200, 5))
CHAINS = [[0, 0, 0], [2, 2, 3], [-2, 2, 3], [0, 3, 3], [1, 1, 1], [0, 0, 2]]
HARMONICS = SphericalHarmonics(4, chains=CHAINS, column_order=[2, 0, 1])
KERNEL = SphericalMatern52(variance=3.0, weight_variances=[0.5, 2.0, 0.2], active_dims=[3, 0, 4])


def report(
    kernel: Any = KERNEL, harmonics: Any = HARMONICS, X: Any = X, **arguments: Any
) -> HarmonicShares:
    return harmonic_shares(harmonics, kernel, X, **arguments)


def test_shares() -> None:
    found = report()
    features = Kuf(HARMONICS, KERNEL, X).numpy()
    scale = Kuu_operator(HARMONICS, KERNEL).diag_part().numpy()
    shares = np.sum(features**2, axis=1) / scale / np.sum(KERNEL(X, full_cov=False))
    np.testing.assert_allclose(found.shares, shares, rtol=1e-10)
    np.testing.assert_array_equal(found.degrees, [0, 3, 3, 3, 1, 2])
    # The kernel sees columns 3, 0 and 4, and the harmonics those in the order 4, 3, 0.
    assert found.coordinates == ("4, 3", "0", "bias")
    expected = [[0, 0, 0], [2, 0, 1], [2, 0, 1], [0, 3, 0], [1, 0, 0], [0, 0, 2]]
    np.testing.assert_array_equal(found.raises, expected)


def test_text() -> None:
    lines = str(report(column_names=["age", "b", "c", "height", "e"])).splitlines()
    share = f"{np.sum(report().shares):.1%}"
    assert lines[0] == f"6 harmonics explain {share} of the prior variance over 1,200 rows"
    table = lines[lines.index("") + 7 :]
    assert table[1].split()[:4] == ["e,", "height", "3", "2"] and len(table) == 4
    without = SphericalHarmonics(4, chains=[[0, 0, 0], [0, 0, 1]])
    assert str(report(harmonics=without)).endswith("none in: 3, 0, 4")


def test_errors() -> None:
    ard, three_columns = ArcCosine(weight_variances=[1.0, 2.0]), ArcCosine(active_dims=[0, 1, 2])
    names = "column_names must be 5 names, one for each column .*found 2"
    assert_refused(
        [
            (lambda: spectrum(tf.nn.relu, "relu", 2, 3), "kernel must be a ZonalKernel, found"),
            (lambda: spectrum(ard, "relu", 2, 3), "that of the kernel's sphere, found 2; pass 3"),
            (lambda: report(RBF()), "kernel must be a ZonalKernel, found .*SquaredExponential"),
            (
                lambda: report(FiniteRank(KERNEL, HARMONICS)),
                "a ZonalKernel, found .*Finite",
            ),
            (lambda: report(three_columns), r"found zero for \[3\]"),
            (lambda: report(column_names=["a", "b"]), names),
        ]
    )


def test_of_a_posterior_mean() -> None:
    kernel = SphericalMatern52(weight_variances=[0.3, 1.0])
    X = np.random.default_rng(2).normal(size=(200, 2))
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=2)
    prior = report(kernel, harmonics, X)
    mean = np.zeros((9, 2))
    mean[0], mean[2], mean[5] = 7.0, [3.0, 4.0], 2.0
    found = report(kernel, harmonics, X, whitened_mean=mean)
    alone = [report(kernel, harmonics, X, whitened_mean=row).shares for row in np.eye(9)]
    np.testing.assert_allclose(alone, np.diag([0] + 8 * [1]), atol=1e-14)  # none of the constant
    np.testing.assert_allclose(np.sum(found.shares), 1, rtol=1e-14)
    np.testing.assert_array_equal(np.flatnonzero(found.shares), [2, 5])
    assert "posterior mean" in str(found) and "prior variance" in str(prior)
    with pytest.raises(ValueError, match="whitened_mean must have 9 rows"):
        report(kernel, harmonics, X, whitened_mean=mean[:5])
