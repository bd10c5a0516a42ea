from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp
from scipy.special import gammaln

from interdomain.sphere import (
    LaplaceBeltramiSpectrum,
    MaternSpectrum,
    SquaredExponentialSpectrum,
)
from tests.sphere.references import (
    EIGENVALUE_DEGREES,
    EIGENVALUE_DIMENSIONS,
    legendre_in,
    matern_eigenvalues,
    matern_total,
    multiplicity,
    relative_error,
    squared_exponential_eigenvalues,
)
from tests.tiers import in_tiers

SMOOTHNESS = [0.5, 1.5, 2.5]


def matern(dimension: int, nu: float, lengthscale: float) -> MaternSpectrum:
    return MaternSpectrum(dimension, tf.constant(lengthscale, tf.float64), nu)


def squared_exponential(dimension: int, lengthscale: float) -> SquaredExponentialSpectrum:
    return SquaredExponentialSpectrum(dimension, tf.constant(lengthscale, tf.float64))


def lengthscales(dimension: int) -> tuple[float, ...]:
    return (0.3, 1.0, float(np.sqrt(2 / (dimension - 1))))


@pytest.mark.parametrize("dimension", EIGENVALUE_DIMENSIONS)
@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_matern_eigenvalues(dimension: int, nu: float) -> None:
    for lengthscale in lengthscales(dimension):
        reference = matern_eigenvalues(dimension, nu, lengthscale, EIGENVALUE_DEGREES)
        actual = matern(dimension, nu, lengthscale).eigenvalues(EIGENVALUE_DEGREES).numpy()
        assert relative_error(actual, reference) <= 1e-10, lengthscale


@pytest.mark.parametrize("dimension", EIGENVALUE_DIMENSIONS)
def test_squared_exponential_eigenvalues(dimension: int) -> None:
    for lengthscale in lengthscales(dimension):
        reference = squared_exponential_eigenvalues(dimension, lengthscale, EIGENVALUE_DEGREES)
        actual = squared_exponential(dimension, lengthscale).eigenvalues(EIGENVALUE_DEGREES)
        assert relative_error(actual.numpy(), reference) <= 1e-10, lengthscale


@pytest.mark.parametrize("dimension", in_tiers(EIGENVALUE_DIMENSIONS, quick=[2, 9]))
@pytest.mark.parametrize("nu", SMOOTHNESS)
@pytest.mark.parametrize("lengthscale", [0.02, 0.1, 3.0, 1e3])
def test_the_normaliser_is_the_infinite_sum(dimension: int, nu: float, lengthscale: float) -> None:
    total = matern_total(dimension, nu, lengthscale)
    first = matern(dimension, nu, lengthscale).eigenvalues([0]).numpy()
    assert relative_error(first, [1 / total]) <= 1e-11


@pytest.mark.parametrize("dimension", EIGENVALUE_DIMENSIONS)
def test_the_normaliser_of_a_short_squared_exponential(dimension: int) -> None:
    reference = squared_exponential_eigenvalues(dimension, 0.02, (0,))
    actual = squared_exponential(dimension, 0.02).eigenvalues([0]).numpy()
    assert relative_error(actual, reference) <= 1e-11


# The shape functions.

ANGLES = np.array([0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.2, 1.57, 2.0, 2.6, 3.0, np.pi])


def euclidean_matern(nu: float, scaled: np.ndarray) -> np.ndarray:
    r = np.sqrt(2 * nu) * np.abs(scaled)
    polynomial = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r**2 / 3}[nu]
    return polynomial * np.exp(-r)


def wrapped_matern(nu: float, lengthscale: float, angles: np.ndarray) -> np.ndarray:
    """On the circle, by Poisson summation: the kernel of the line, summed over all turns."""
    turns = 2 * np.pi * np.arange(-60, 61)
    values = euclidean_matern(nu, (angles[:, None] + turns) / lengthscale).sum(axis=1)
    return values / euclidean_matern(nu, turns / lengthscale).sum()


SCALES = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 10.0, 1e3)
MATERNS = tuple((nu, lengthscale) for nu in SMOOTHNESS for lengthscale in SCALES)


def logarithm_slope(dimension: int, nu: float, lengthscale: float) -> float:
    """Of the normaliser, with respect to the logarithm of the lengthscale."""
    step = mp.mpf(10) ** -6
    low, high = (
        mp.log(matern_total(dimension, nu, mp.mpf(lengthscale) * factor))
        for factor in (1 - step, 1 + step)
    )
    return float((high - low) / (2 * step))


@cache
def long_series(
    dimension: int, kernels: tuple[tuple[float, float], ...] = MATERNS, length: int = 30_000
) -> dict[tuple[float, float], np.ndarray]:
    """Some kernels at ANGLES by 30,000 terms, the last half faded out smoothly: values, and
    derivatives with respect to t and to the logarithm of the lengthscale.

    A sum cut off sharply is wrong by its last terms; one that fades is wrong by less than any
    power of 1 / (length * angle).
    """
    d, alpha = dimension, (dimension - 2) / 2
    degrees = np.arange(length + 1.0)
    log_size = np.where(degrees > 0, np.log(2.0), 0.0)
    if d > 2:
        log_size = np.log(2 * degrees + d - 2) + gammaln(degrees + d - 2)
        log_size -= gammaln(degrees + 1) + gammaln(d - 1)
    s = np.clip(2 * degrees / length - 1, 1e-9, 1 - 1e-9)
    with np.errstate(over="ignore"):
        fade = 1 / (1 + np.exp(1 / (1 - s) - 1 / s))
    weights, sensitivities = [], []
    for nu, lengthscale in kernels:
        exponent = nu + alpha + 0.5
        bend = degrees * (degrees + d - 2) * lengthscale**2 / (2 * nu)
        shares = np.exp(log_size - exponent * np.log1p(bend))
        weights.append(fade * shares / float(matern_total(d, nu, lengthscale)))
        change = -2 * exponent * bend / (1 + bend) - logarithm_slope(d, nu, lengthscale)
        sensitivities.append(weights[-1] * change)
    slopes = np.array(weights)[:, 1:] * degrees[1:] * (degrees[1:] + d - 2) / (d - 1)
    values, changes = _sums(d, np.concatenate([weights, sensitivities])).reshape(
        2, len(kernels), -1
    )
    found = zip(values, _sums(d + 2, slopes), changes, strict=True)
    return dict(zip(kernels, map(np.array, found), strict=True))


def _sums(d: int, weights: np.ndarray) -> np.ndarray:
    columns, t = weights.T[:, :, None], np.cos(ANGLES)
    p_before, p = np.ones_like(t), t.copy()
    totals = columns[0] * p_before + columns[1] * p
    for n in range(1, len(columns) - 1):
        p_before, p = p, ((2 * n + d - 2) * t * p - n * p_before) / max(n + d - 2, 1)
        totals += columns[n + 1] * p
    return totals


def test_the_references_agree_on_the_circle() -> None:
    for (nu, lengthscale), (values, *_) in long_series(2).items():
        if lengthscale <= 1:
            np.testing.assert_allclose(values, wrapped_matern(nu, lengthscale, ANGLES), atol=2e-10)


@pytest.mark.parametrize("nu, lengthscale", [case for case in MATERNS if case[1] <= 1])
def test_matern_on_the_circle(nu: float, lengthscale: float) -> None:
    angles = np.append(ANGLES, [0.0, 1e-6, 1e-4, 1e-3])
    actual = matern(2, nu, lengthscale).shape_function(tf.constant(np.cos(angles)))
    # cos rounds away the angle below 1e-8.
    expected = wrapped_matern(nu, lengthscale, np.arccos(np.cos(angles)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dimension", in_tiers([2, 3, 4, 5, 10, 13, 20], quick=[3]))
def test_matern_on_spheres(dimension: int) -> None:
    """Values, slopes, and a sum of the derivatives with respect to the lengthscale. At short ones
    test_short_lengthscales.py has every dimension. Each lengthscale with half of the even ones and
    half of the odd ones."""
    t, upstream = tf.constant(np.cos(ANGLES)), np.cos(3 * np.arange(len(ANGLES)))
    half = MATERNS[dimension // 2 % 2 :: 2]
    for (nu, lengthscale), (values, slopes, changes) in long_series(dimension, half).items():
        scale = tf.constant(lengthscale, tf.float64)
        with tf.GradientTape() as tape:
            tape.watch((t, scale))
            actual = MaternSpectrum(dimension, scale, nu).shape_function(t)
        to_t, to_scale = tape.gradient(actual, (t, scale), output_gradients=tf.constant(upstream))
        case = f"{nu}, {lengthscale}"
        np.testing.assert_allclose(actual, values, rtol=0, atol=1e-9, err_msg=case)
        bound = 1e-7 * max(np.abs(slopes).max(), 1e-6)
        np.testing.assert_allclose(to_t / upstream, slopes, rtol=0, atol=bound, err_msg=case)
        change = np.sum(upstream * changes) / lengthscale
        bound = 1e-7 * max(np.abs(changes).max(), 1e-6) / lengthscale
        np.testing.assert_allclose(to_scale, change, rtol=0, atol=bound, err_msg=case)


@pytest.mark.parametrize("dimension", in_tiers(EIGENVALUE_DIMENSIONS, quick=[3]))
@pytest.mark.parametrize("nu, lengthscale", MATERNS)
def test_matern_at_one(dimension: int, nu: float, lengthscale: float) -> None:
    value = matern(dimension, nu, lengthscale).shape_function(tf.ones([1], tf.float64)).numpy()
    np.testing.assert_allclose(value, 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dimension", EIGENVALUE_DIMENSIONS)
@pytest.mark.parametrize("lengthscale", [0.1, 0.3, 1.0])
def test_squared_exponential_is_its_series(dimension: int, lengthscale: float) -> None:
    t = np.array([-1.0, -0.3, 0.2, 0.9, 0.999, 1.0])
    degrees = tuple(range(40 if lengthscale >= 0.3 else 120))
    eigenvalues = squared_exponential_eigenvalues(dimension, lengthscale, degrees)
    shares = [v * multiplicity(dimension, n) for n, v in zip(degrees, eigenvalues, strict=True)]
    assert shares[-1] < 1e-16
    expected = [
        float(mp.fdot(shares, [legendre_in(dimension, n, mp.mpf(float(v))) for n in degrees]))
        for v in t
    ]
    actual = squared_exponential(dimension, lengthscale).shape_function(tf.constant(t))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(actual[-1], 1, rtol=0, atol=1e-13)


# Gradients.

SPECTRA: list[tuple[str, Callable[[int, tf.Tensor], LaplaceBeltramiSpectrum]]] = [
    ("SE", SquaredExponentialSpectrum),
    *((f"Matern {nu}", lambda d, scale, nu=nu: MaternSpectrum(d, scale, nu)) for nu in SMOOTHNESS),
]
each_spectrum = pytest.mark.parametrize(
    "build", [build for _, build in SPECTRA], ids=[name for name, _ in SPECTRA]
)


@each_spectrum
@pytest.mark.parametrize(
    "dimension, lengthscale",
    in_tiers([(2, 0.41), (3, 0.52), (9, 0.61), (20, 0.3)], quick=[(3, 0.52)]),
)
def test_gradient_of_the_lengthscale(
    build: Callable[[int, tf.Tensor], LaplaceBeltramiSpectrum], dimension: int, lengthscale: float
) -> None:
    """At lengthscales where the number of degrees summed does not change within the step."""
    t = tf.constant([-0.9, 0.1, 0.8, 0.99, 1.0], tf.float64)

    def outputs(lengthscale: tf.Tensor) -> list[tf.Tensor]:
        """Unjoined: else the gradient of an eigenvalue takes that of the shape function too."""
        spectrum = build(dimension, lengthscale)
        return [
            *tf.unstack(spectrum.shape_function(t)),
            *tf.unstack(spectrum.eigenvalues([0, 1, 4])),
        ]

    scale, step = tf.constant(lengthscale, tf.float64), 1e-4
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(scale)
        values = outputs(scale)
    gradients = [tape.gradient(value, scale) for value in values]
    differences = np.subtract(outputs(scale + step), outputs(scale - step)) / (2 * step)
    np.testing.assert_allclose(gradients, differences, rtol=1e-6, atol=2e-6)


@each_spectrum
@pytest.mark.parametrize("dimension", [2, 3, 9])
def test_slope(build: Callable[[int, tf.Tensor], LaplaceBeltramiSpectrum], dimension: int) -> None:
    t, step = tf.constant([-0.99, -0.2, 0.5, 0.97], tf.float64), 1e-5
    spectrum = build(dimension, tf.constant(0.5, tf.float64))
    with tf.GradientTape() as tape:
        tape.watch(t)
        value = spectrum.shape_function(t)
    differences = (spectrum.shape_function(t + step) - spectrum.shape_function(t - step)) / step / 2
    np.testing.assert_allclose(tape.gradient(value, t), differences, rtol=1e-6, atol=1e-6)


@each_spectrum
@pytest.mark.parametrize("dimension", [2, 9])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_gradients_are_finite_at_both_ends(
    build: Callable[[int, tf.Tensor], LaplaceBeltramiSpectrum], dimension: int, dtype: tf.DType
) -> None:
    eps = np.finfo(dtype.as_numpy_dtype).eps
    t = tf.constant([-1 - eps, -1, 1 - eps, 1, 1 + eps], dtype)
    scale = tf.constant(0.5, dtype)
    with tf.GradientTape() as tape:
        tape.watch([t, scale])
        value = build(dimension, scale).shape_function(t)
    assert value.dtype == dtype
    for gradient in (value, *tape.gradient(value, [t, scale])):
        assert np.all(np.isfinite(gradient))
