"""Zonal kernels of points that are on a sphere: unit vectors, and the globe in degrees."""

import warnings

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf
from scipy.special import eval_legendre

import interdomain as idm
from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    GlobeMatern12,
    GlobeMatern32,
    GlobeMatern52,
    GlobeSquaredExponential,
    HarmonicKernel,
    SphericalMatern32,
    SphericalMatern52,
    ZonalKernel,
)
from interdomain.sphere import unit_vectors
from interdomain.transforms import LongitudeShift
from tests.conformance.helpers import assert_refused

RNG = np.random.default_rng(0)
X = np.stack([RNG.uniform(-90, 90, 30), RNG.uniform(-180, 180, 30)], axis=1)
UNIT = unit_vectors(X).numpy()
LENGTHSCALE, VARIANCE = 0.4, 1.7
MATERN = {GlobeMatern12: 0.5, GlobeMatern32: 1.5, GlobeMatern52: 2.5}


@pytest.mark.parametrize("kernel_class", [*MATERN, GlobeSquaredExponential])
def test_legendre_series(kernel_class: type[ZonalKernel]) -> None:
    """``sum_l (2 l + 1) lambda_l P_l(t)`` with the eigenvalues of Dutordoir et al. 2020, divided by
    the value at t = 1. An integral stands for the degrees after the last one."""
    kernel = kernel_class(variance=VARIANCE, lengthscale=LENGTHSCALE)
    degrees = np.arange(1_500.0)
    eigenvalues = degrees * (degrees + 1)
    beyond = 0.0
    if kernel_class in MATERN:
        nu = MATERN[kernel_class]
        powers = (2 * nu / LENGTHSCALE**2 + eigenvalues) ** (-nu - 1)
        beyond = (2 * nu / LENGTHSCALE**2 + len(degrees) ** 2) ** -nu / nu
    else:
        powers = np.exp(-(LENGTHSCALE**2) * eigenvalues / 2)
    shares = (2 * degrees + 1) * powers
    places = np.arange(len(degrees))[:, None, None]
    t = UNIT[:4] @ UNIT[4:16].T
    expected = np.tensordot(shares, eval_legendre(places, t), 1) / (np.sum(shares) + beyond)
    atol = {GlobeMatern12: 1e-5, GlobeMatern32: 1e-9}.get(kernel_class, 1e-12)
    np.testing.assert_allclose(kernel(X[:4], X[4:16]), VARIANCE * expected, rtol=0, atol=atol)
    np.testing.assert_allclose(kernel(X, full_cov=False), VARIANCE)
    assert set(gpflow.utilities.parameter_dict(kernel)) == {".variance", ".lengthscale"}


def test_one_kernel_from_degrees_and_from_unit_vectors() -> None:
    """In any rotation; data that begin with the longitude select their columns."""
    globe, unit = GlobeMatern32(), SphericalMatern32(inputs="unit_vectors")
    expected = globe(X).numpy()
    np.testing.assert_allclose(unit(UNIT), expected, atol=1e-14)
    rotation = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    np.testing.assert_allclose(unit(UNIT @ rotation), expected, atol=1e-13)
    np.testing.assert_allclose(GlobeMatern32(active_dims=[1, 0])(X[:, ::-1].copy()), expected)
    np.testing.assert_allclose(globe(X + [0.0, 720.0]), expected, atol=1e-13)


@pytest.mark.parametrize("dimension", [2, 5])
def test_unit_vectors_of_other_dimensions(dimension: int) -> None:
    """On the circle and beyond: harmonics of all degrees sum to the kernel."""
    points = RNG.normal(size=(7, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    kernel = ChordalSquaredExponential(inputs="unit_vectors", lengthscale=1.3)
    squared = np.sum((points[:, None] - points) ** 2, axis=2)
    np.testing.assert_allclose(kernel(points), np.exp(-squared / 2 / 1.3**2), atol=1e-14)
    harmonics = SphericalHarmonics.for_kernel(kernel, dimension, 12)
    assert harmonics.dimension == dimension
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    np.testing.assert_allclose(prior(points), kernel(points), atol=1e-8)


def test_features_of_points_of_the_globe() -> None:
    """Longitude shifts decompose them, and units point at them."""
    longitude_first = HarmonicKernel(GlobeMatern52(active_dims=[1, 0]), LongitudeShift(6))
    kernel, unit = GlobeMatern52(), SphericalMatern52(inputs="unit_vectors", lengthscale=0.5)
    np.testing.assert_allclose(longitude_first(X[:, ::-1].copy()), kernel(X), atol=1e-12)
    units = ActivationFeatures.from_data(kernel, X, 5, "relu", 6)
    assert units.dimension == 3
    np.testing.assert_allclose(Kuf(units, kernel, X), Kuf(units, unit, UNIT), atol=1e-13)


def test_points_outside_of_their_range() -> None:
    """Only a tensor, which is not looked into, holds such points, since training may take them
    there: a step over the pole comes down on the other side."""
    globe, unit = GlobeMatern32(), SphericalMatern32(inputs="unit_vectors")
    beyond, short = np.array([[10.0, 20.0], [95.5, 3.0]]), 0.9 * UNIT
    harmonics = SphericalHarmonics(3, [0, 1])
    assert_refused(
        [
            (
                lambda: ArcCosine(inputs="radians"),
                "inputs must be 'euclidean' or .*found 'radians'",
            ),
            (lambda: globe(X, beyond), "^X must have latitudes.*found 10 to 95.5"),
            (lambda: unit(short), "length 1.*found .* 0.9"),
            (lambda: Kuf(harmonics, globe, beyond), "^Xnew must have latitudes"),
        ]
    )
    over, back = tf.constant([[95.0, 20.0]], tf.float64), tf.constant([[85.0, 200.0]], tf.float64)
    np.testing.assert_allclose(globe(over, X), globe(back, X), rtol=1e-12)
    np.testing.assert_allclose(unit(tf.constant(short), UNIT), unit(UNIT, UNIT), atol=1e-7)


def test_radians_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="X: .*look like radians"):
        SphericalHarmonics.for_data(GlobeMatern32(), np.radians(X), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SphericalHarmonics.for_data(GlobeMatern32(), X, 4)
