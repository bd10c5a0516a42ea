"""The spectra of the zonal kernels, as the kernels hand them out."""

import numpy as np
import pytest
import tensorflow as tf
from gpflow.config import Config, as_context
from mpmath import mp

from interdomain.families.sphere.stationary import LaplaceBeltrami
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    FreeSpectrum,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
)
from tests.conformance.helpers import value_and_gradients
from tests.conformance.kernel_cases import FREE_DEGREES, FREE_RATIOS, ZONAL_CASES, KernelCase
from tests.families.sphere.mathematics.references import (
    DIGITS,
    EIGENVALUE_DEGREES,
    funk_hecke,
    legendre_in,
    matern_eigenvalues,
    multiplicity,
    relative_error,
    squared_exponential_eigenvalues,
)
from tests.families.sphere.mathematics.test_funk_hecke import exact_arc_cosine

each_case = pytest.mark.parametrize("case", ZONAL_CASES, ids=str)


def chordal_eigenvalue(lengthscale: mp.mpf, dimension: int, degree: int) -> mp.mpf:
    """By the formula of the docstring; against an integral in the next test."""
    alpha, rate = mp.mpf(dimension - 2) / 2, 1 / lengthscale**2
    bessel = mp.besseli(degree + alpha, rate)
    return (2 / rate) ** alpha * mp.gamma(alpha + 1) * mp.exp(-rate) * bessel


@pytest.mark.parametrize("dimension", [2, 5, 20])
def test_chordal_squared_exponential(dimension: int) -> None:
    """The eigenvalues of a short, a common and a long lengthscale; and their slopes."""
    with mp.workdps(DIGITS):
        for lengthscale in (0.3, 1.0, 2.5):
            kernel = ChordalSquaredExponential(lengthscale=lengthscale)
            scale = mp.mpf(float(kernel.lengthscale.numpy()))
            reference = [chordal_eigenvalue(scale, dimension, n) for n in EIGENVALUE_DEGREES]
            actual = kernel.eigenvalues(dimension, EIGENVALUE_DEGREES).numpy()
            assert relative_error(actual, reference) <= 1e-10, lengthscale
        degrees, variable = (0, 1, 9), kernel.lengthscale.unconstrained_variable
        _, slope = value_and_gradients(
            lambda: tf.math.log(kernel.eigenvalues(dimension, degrees)), variable, [1, -2, 3]
        )
        slopes = [
            mp.diff(lambda s, n=n: mp.log(chordal_eigenvalue(s, dimension, n)), scale)
            for n in degrees
        ]
        expected = float(mp.fdot([1, -2, 3], slopes)) * float(tf.sigmoid(variable))
        np.testing.assert_allclose(slope, expected, rtol=1e-8)


@each_case
def test_each_kernel_has_its_own_eigenvalues(case: KernelCase) -> None:
    """Order, smoothness and lengthscale arrive; variance does not."""
    dimension, degrees = 5, (0, 1, 2, 5)
    kernel = case.build(dimension - 1)
    assert kernel.variance != 1
    with mp.workdps(DIGITS):
        lengthscale = float(kernel.lengthscale.numpy()) if hasattr(kernel, "lengthscale") else 0.0
        if isinstance(kernel, ArcCosine):
            kappa = exact_arc_cosine(kernel.order)
            kept = kernel.nonzero_degrees(dimension, 5)
            reference = [
                funk_hecke(kappa, dimension, n, (mp.zero, mp.pi)) if n in kept else mp.zero
                for n in degrees
            ]
        elif isinstance(kernel, LaplaceBeltrami) and kernel.nu < np.inf:
            reference = matern_eigenvalues(dimension, kernel.nu, lengthscale, degrees)
        elif isinstance(kernel, ChordalSquaredExponential):
            squared = mp.mpf(lengthscale) ** 2
            reference = [
                funk_hecke(lambda a: mp.exp((mp.cos(a) - 1) / squared), dimension, n, (0, mp.pi))
                for n in degrees
            ]
        elif isinstance(kernel, FreeSpectrum):
            products = [mp.fprod(FREE_RATIOS[:place]) for place in range(len(FREE_DEGREES))]
            relative = dict(zip(FREE_DEGREES, products, strict=True))
            total = mp.fsum(multiplicity(dimension, n) * v for n, v in relative.items())
            reference = [relative.get(n, mp.zero) / total for n in degrees]
        else:
            reference = squared_exponential_eigenvalues(dimension, lengthscale, degrees)
        actual = kernel.eigenvalues(dimension, degrees)
        assert actual.dtype == tf.float64
        assert relative_error(actual.numpy(), reference) <= 1e-10


@each_case
def test_mercer(case: KernelCase) -> None:
    """kappa is its expansion, to within the variance of the degrees that are left out."""
    dimension, num_degrees = 3, 12
    kernel = case.build(dimension - 1)
    eigenvalues = kernel.eigenvalues(dimension, range(num_degrees)).numpy()
    assert np.all(eigenvalues >= 0)
    nonzero = tuple(np.flatnonzero(eigenvalues > 0).tolist())
    assert kernel.nonzero_degrees(dimension, num_degrees - 1) == nonzero
    shares = eigenvalues * [multiplicity(dimension, n) for n in range(num_degrees)]
    np.testing.assert_allclose(kernel.variance_shares(dimension, num_degrees - 1), shares)
    tail = 1 - shares.sum()
    assert -1e-12 <= tail < 0.5
    t = np.array([-1.0, -0.8, -0.1, 0.4, 0.9, 1.0])
    polynomials = [
        [float(legendre_in(dimension, n, mp.mpf(float(v)))) for v in t] for n in range(num_degrees)
    ]
    values = kernel.shape_in_dimension(tf.constant(t), dimension).numpy()
    difference = np.abs(values - shares @ np.array(polynomials))
    assert np.all(difference <= tail + case.accuracy + 1e-12)
    np.testing.assert_allclose(difference[-1], tail, atol=case.accuracy)  # kappa(1) = 1


# Kernels on the sphere are valid at every lengthscale.

KERNELS = [SphericalMatern12, SphericalMatern32, SphericalMatern52, SphericalSquaredExponential]


@pytest.mark.parametrize(("num_columns", "dtype"), [(2, np.float64), (8, np.float32)])
def test_positive_semi_definite(num_columns: int, dtype: type) -> None:
    """With points that coincide, and others that nearly do."""
    rng = np.random.default_rng(num_columns)
    X = rng.normal(size=(40, num_columns))
    X = np.concatenate([X, X[:3], X[:3], X[:4] * (1 + 3e-7)]).astype(dtype)
    weights = rng.normal(size=(len(X), len(X)))
    with as_context(Config(float=dtype)):
        for kernel_class in KERNELS if dtype is np.float64 else KERNELS[::3]:
            for lengthscale in (1e-35, 1e-4, 0.03):
                kernel = kernel_class(lengthscale=lengthscale, radial_power=0.0)
                variables = kernel.trainable_variables
                K, gradients = value_and_gradients(lambda k=kernel: k(X), variables, weights)
                case = (kernel_class.__name__, lengthscale)
                assert all(np.all(np.isfinite(gradient)) for gradient in gradients), case
                smallest = np.linalg.eigvalsh(np.asarray(K, float))[0]
                assert smallest > (-1e-9 if dtype is np.float64 else -5e-6), (*case, smallest)
                np.testing.assert_allclose(tf.linalg.diag_part(K), 1, rtol=1e-6)
                across = kernel(X, X.copy()).numpy()
                np.testing.assert_allclose(across, K, rtol=0, atol=5e-6)
