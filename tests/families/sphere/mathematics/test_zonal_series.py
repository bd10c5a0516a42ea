import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.families.sphere.mathematics.zonal_series import zonal_series
from tests.conformance.helpers import value_and_gradients
from tests.families.sphere.mathematics.references import horner, legendre_in, monomial_coefficients

DIMENSIONS = [2, 9]
T = np.array([-1.0, -0.99, -0.5, 0.0, 0.3, 0.98, 1.0])


def random_weights(size: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=size)


def derivative(dimension: int, weights: np.ndarray, t: np.ndarray, order: int) -> np.ndarray:
    """The derivative of a series, from the polynomials' own coefficients in extended precision."""
    total = np.zeros_like(t)
    with mp.workdps(80):
        for degree, weight in enumerate(weights):
            coefficients = monomial_coefficients(dimension, degree)
            for _ in range(order):
                coefficients = tuple(n * c for n, c in enumerate(coefficients))[1:]
            total += weight * np.array([float(horner(coefficients, mp.mpf(float(v)))) for v in t])
    return total


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("size", [1, 2, 3, 30])
def test_sums_gegenbauer_polynomials(dimension: int, size: int) -> None:
    weights = random_weights(size)
    expected = [
        float(mp.fdot(weights.tolist(), [legendre_in(dimension, n, v) for n in range(size)]))
        for v in T
    ]
    actual = zonal_series(tf.constant(T), tf.constant(weights), dimension)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-14 * np.abs(weights).sum())


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_long_series_stay_accurate(dimension: int) -> None:
    weights = np.append(np.zeros(120), 1.0)
    expected = [float(legendre_in(dimension, 120, mp.mpf(float(v)))) for v in T]
    actual = zonal_series(tf.constant(T), tf.constant(weights), dimension)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_gradients_of_t(dimension: int) -> None:
    """The first three derivatives, at the ends too, where that of cos(l acos(t)) is NaN."""
    weights, t = random_weights(9), tf.constant(T)

    def slope(order: int) -> tf.Tensor:
        if order == 0:
            return zonal_series(t, tf.constant(weights), dimension)
        return value_and_gradients(lambda: slope(order - 1), t)[1]

    for order in (1, 2, 3):
        expected = derivative(dimension, weights, T, order)
        np.testing.assert_allclose(slope(order), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_gradient_of_weights(dimension: int) -> None:
    weights, upstream = tf.constant(random_weights(8)), np.random.default_rng(1).normal(size=(2, 7))
    t = tf.constant(np.stack([T, T / 2]))
    _, gradient = value_and_gradients(
        lambda: upstream * zonal_series(t, weights, dimension), weights
    )
    expected = [
        sum(
            u * float(legendre_in(dimension, degree, mp.mpf(float(v))))
            for u, v in zip(upstream.ravel(), np.stack([T, T / 2]).ravel(), strict=True)
        )
        for degree in range(8)
    ]
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12)


def test_mixed_second_derivative() -> None:
    t, weights = tf.constant(T), tf.constant(random_weights(6))
    _, mixed = value_and_gradients(
        lambda: value_and_gradients(lambda: zonal_series(t, weights, 5), t)[1], weights
    )
    expected = [derivative(5, np.eye(6)[degree], T, 1).sum() for degree in range(6)]
    np.testing.assert_allclose(mixed, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("num_levels, computed", [(1, True), (2, False), (5, True), (12, False)])
def test_num_levels_truncates_values_and_gradients(num_levels: int, computed: bool) -> None:
    size, kept = 7, min(num_levels, 7)
    weights = tf.constant(random_weights(size))
    truncated = tf.constant(np.where(np.arange(size) < kept, weights, 0.0))
    t = tf.constant(T)
    count = tf.constant(num_levels) + tf.zeros([], tf.int32) if computed else num_levels
    (value, (dt, dw)), (expected, (expected_dt, expected_dw)) = (
        value_and_gradients(lambda w=w, n=n: zonal_series(t, w, 4, num_levels=n) ** 2, [t, w])
        for w, n in ((weights, count), (truncated, None))
    )
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(dt, expected_dt, rtol=1e-13)
    np.testing.assert_allclose(dw[:kept], expected_dw[:kept], rtol=1e-13)
    np.testing.assert_array_equal(dw[kept:], 0)
