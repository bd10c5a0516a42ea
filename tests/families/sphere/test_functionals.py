"""Functionals of harmonics: operators of degrees, and slopes, means and blurs on the globe."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import eval_legendre

import interdomain as idm
from interdomain.functionals import Blur, ByDegree, Derivative, Mean, Value
from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import FiniteRank, Functional, GlobeMatern32, SphericalMatern32
from interdomain.sphere import latitude_longitude, unit_vectors
from tests.conformance.helpers import assert_refused
from tests.functional_oracles import acted, blurs, features_of, means, slopes

RNG = np.random.default_rng(0)
INNER = np.stack([RNG.uniform(-80, 80, 6), RNG.uniform(-180, 180, 6)], axis=1)
EDGES = np.array([[90.0, 30.0], [-90.0, 10.0], [88.0, -170.0], [-89.9, 77.0], [20.0, 180.0]])
X = np.concatenate([INNER, EDGES])
DEGREE = 7


def globe(**options: Any) -> Any:
    return GlobeMatern32(lengthscale=0.4, **options), SphericalHarmonics(3, range(DEGREE + 1))


def chosen() -> Any:
    chains = [[-3, 4], [0, 4], [1, 1], [2, 7], [-2, 6]]
    return GlobeMatern32(), SphericalHarmonics(3, chains=chains, column_order=[1, 0])


def along_meridians(kernel: Any, harmonics: Any) -> Any:
    """The features at latitudes of any size: past a pole f continues along the meridian."""
    phi = features_of(kernel, harmonics)

    def features(places: np.ndarray) -> np.ndarray:
        latitudes, longitudes = np.radians(places.T)
        along = np.cos(latitudes)
        unit = [along * np.cos(longitudes), along * np.sin(longitudes), np.sin(latitudes)]
        return phi(latitude_longitude(np.stack(unit, axis=1)).numpy())

    return features


@pytest.mark.parametrize("make", [globe, chosen])
def test_slopes_means_and_blurs(make: Any) -> None:
    """Also at both poles, near them, over them and on the date line."""
    prior, harmonics = make()
    phi = along_meridians(prior, harmonics)
    expected = {
        Derivative(0): slopes(phi, X, 0, 1, 0.3),
        Derivative(1): slopes(phi, X, 1, 1, 0.3),
        Derivative(0, 2): slopes(phi, X, 0, 2, 0.5),
        Mean([8.0, 30.0]): means(phi, X, [8.0, 30.0]),
        Mean([0.0, 360.0]): means(phi, X, [0.0, 360.0], 200),
        Blur([9.0, 100.0]): blurs(phi, X, [3.0, 10.0]),
    }
    for functional, each in expected.items():
        found = acted(prior, harmonics, functional, X)
        np.testing.assert_allclose(found, each, rtol=1e-8, atol=1e-8, err_msg=str(functional))


def test_columns_in_another_order() -> None:
    """With another column between them, and a column of widths."""
    prior, harmonics = globe(active_dims=[2, 0])
    phi = along_meridians(globe()[0], harmonics)
    widths = RNG.uniform(0, 20, len(X))
    rows = np.stack([X[:, 1], RNG.normal(size=len(X)), widths, X[:, 0]], axis=1)
    found = acted(prior, harmonics, Mean([40.0, 0, 0], width_columns=[None, None, 2]), rows)
    of_rows = np.stack([widths, np.full(len(X), 40.0)], axis=1)
    np.testing.assert_allclose(found, means(phi, X, of_rows), rtol=1e-8, atol=1e-8)
    inputs = np.delete(rows, 2, axis=1)
    found = acted(prior, harmonics, Derivative(2), inputs)
    np.testing.assert_allclose(found, slopes(phi, X, 0, 1, 0.3), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(acted(prior, harmonics, Derivative(1), inputs), 0)


def cap(centre: np.ndarray, radius: float, count: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the mean over a cap: rings, uniform in the height over the sphere."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    heights = 1 - (1 - np.cos(radius)) * (1 + nodes) / 2
    angles = 2 * np.pi * np.arange(count) / count
    first = np.linalg.qr(np.concatenate([centre[:, None], np.eye(3)[:, :2]], axis=1))[0]
    axis = first[:, 0] * np.sign(first[:, 0] @ centre)
    rings = np.sqrt(1 - heights**2)[:, None, None] * (
        np.cos(angles)[:, None] * first[:, 1] + np.sin(angles)[:, None] * first[:, 2]
    )
    points = (rings + heights[:, None, None] * axis).reshape(-1, 3)
    return points, np.repeat(weights / 2 / count, count)


@pytest.mark.parametrize("unit", [False, True])
def test_caps(unit: bool) -> None:
    """The mean over a cap has the factors ``(P_{l-1}(c) - P_{l+1}(c)) / ((2 l + 1)(1 - c))``."""
    radius = 0.35
    c, degrees = np.cos(radius), np.arange(1, DEGREE + 1)
    differences = eval_legendre(degrees - 1, c) - eval_legendre(degrees + 1, c)
    factors = np.concatenate([[1.0], differences / (2 * degrees + 1) / (1 - c)])
    prior, harmonics = globe()
    phi = along_meridians(prior, harmonics)
    expected = []
    for centre in unit_vectors(X).numpy():
        points, weights = cap(centre, radius)
        expected.append(phi(latitude_longitude(points).numpy()) @ weights)
    places = X
    if unit:
        prior, places = SphericalMatern32(inputs="unit_vectors"), unit_vectors(X).numpy()
    found = acted(prior, harmonics, ByDegree(factors), places)
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-8, atol=1e-8)


def test_upward_continuation() -> None:
    """By Poisson's integral over the sphere, a quadrature of its points, for the radius 1/h."""
    height = 1.3
    prior, harmonics = globe()
    phi = along_meridians(prior, harmonics)
    nodes, weights = np.polynomial.legendre.leggauss(120)
    angles = 2 * np.pi * np.arange(240) / 240
    along = np.sqrt(1 - nodes**2)[:, None]
    z = np.broadcast_to(nodes[:, None], [120, 240])
    points = np.stack([along * np.cos(angles), along * np.sin(angles), z], axis=2).reshape(-1, 3)
    areas = np.repeat(weights / 2 / 240, 240)
    values = phi(latitude_longitude(points).numpy())
    cosines = unit_vectors(X).numpy() @ points.T
    poisson = height * (height**2 - 1) / (1 + height**2 - 2 * height * cosines) ** 1.5
    found = acted(prior, harmonics, ByDegree(height ** -(np.arange(DEGREE + 1.0))), X)
    np.testing.assert_allclose(found, values @ (areas * poisson).T, rtol=1e-8, atol=1e-8)


def test_covariances_of_operators() -> None:
    """Under a prior of all degrees, two means over caps have the factors of both."""
    prior, harmonics = globe()
    factors = np.exp(-0.1 * np.arange(DEGREE + 1.0))
    kernel = Functional(FiniteRank(prior, harmonics), [Value(), ByDegree(factors)])
    rows = np.concatenate([np.insert(X, 2, 1.0, axis=1), np.insert(X, 2, 0.0, axis=1)])
    found = kernel(rows).numpy()
    shares = prior.variance_shares(3, DEGREE).numpy()
    cosines = unit_vectors(X).numpy() @ unit_vectors(X).numpy().T
    legendre = eval_legendre(np.arange(DEGREE + 1)[:, None, None], np.clip(cosines, -1, 1))
    for power, block in ((2, found[:11, :11]), (1, found[:11, 11:]), (0, found[11:, 11:])):
        expected = np.tensordot(shares * factors**power, legendre, 1)
        np.testing.assert_allclose(block, expected, rtol=1e-8, atol=1e-8)


def test_compiled_and_in_float32() -> None:
    prior, harmonics = globe()
    functionals = [Derivative(0), Mean([8.0, 30.0]), ByDegree(np.ones(DEGREE + 1) / 2)]
    rows = np.concatenate([np.insert(X, 2, float(k), axis=1) for k in range(3)])
    kernel = Functional(prior, functionals)
    expected = gpflow.covariances.Kuf(harmonics, kernel, rows)
    fresh = SphericalHarmonics(3, range(DEGREE + 1))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float64)], autograph=False)
    def compiled(rows: tf.Tensor) -> tf.Tensor:
        return gpflow.covariances.Kuf(fresh, kernel, rows)

    np.testing.assert_allclose(compiled(rows), expected, atol=1e-12)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        kernel = Functional(GlobeMatern32(), functionals)
        single = gpflow.covariances.Kuf(harmonics, kernel, rows.astype(np.float32))
        assert single.dtype == tf.float32
        np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-4)


def test_refusals() -> None:
    prior, harmonics = globe()
    lifted = SphericalMatern32(weight_variances=[1.0, 1.0])
    others = SphericalHarmonics.for_kernel(lifted, 2, 2)
    factors, few = ByDegree(np.ones(9)), ByDegree([1.0, 0.5])
    units = ActivationFeatures.from_data(prior, X, 5, "relu", 6)
    assert_refused(
        [
            (lambda: acted(prior, harmonics, few, X), "^factors must have 8 entries.*found 2"),
            (lambda: acted(lifted, others, factors, X), "ByDegree.*not of the globe"),
            (lambda: acted(prior, units, factors, X), "no degrees"),
        ]
    )


def test_lifted_inputs() -> None:
    """By the default: forward differentiation and quadrature."""
    kernel = SphericalMatern32(weight_variances=[1.0, 1.0])
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, 3)
    phi, places = features_of(kernel, harmonics), RNG.normal(size=(5, 2))
    found = acted(kernel, harmonics, Derivative(1), places)
    np.testing.assert_allclose(found, slopes(phi, places, 1, 1, 3e-3), rtol=1e-7, atol=1e-8)
    assert idm.kernels.Functional(kernel, Mean(0.3)).rows.num_added == 0
    found = acted(kernel, harmonics, Mean(0.3), places)
    np.testing.assert_allclose(found, means(phi, places, [0.3, 0.3]), rtol=1e-7, atol=1e-8)
