"""The spectrum of the Laplace-Beltrami operator and kernels of it, and its heat kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp
from scipy.special import gammaln

from interdomain.families.sphere.mathematics import laplace_beltrami
from interdomain.families.sphere.mathematics.heat_kernel import (
    heat_at_haversines,
    log_heat_constant,
    longest_time,
)
from interdomain.families.sphere.mathematics.laplace_beltrami import (
    stationary_eigenvalues,
    stationary_kernel,
)
from tests.conformance.helpers import value_and_gradients
from tests.families.sphere.mathematics.references import (
    EIGENVALUE_DEGREES,
    EIGENVALUE_DIMENSIONS,
    legendre_in,
    matern_eigenvalues,
    matern_total,
    multiplicity,
    relative_error,
    squared_exponential_eigenvalues,
)

SMOOTHNESS = [0.5, 1.5, 2.5]


@dataclass(frozen=True)
class Stationary:
    """Kernels of one lengthscale, as functions of what they are compared at."""

    dimension: int
    lengthscale: tf.Tensor
    nu: float = np.inf

    def at_haversines(self, haversines: tf.Tensor) -> tf.Tensor:
        return stationary_kernel(haversines, self.dimension, self.lengthscale, self.nu)

    def shape_function(self, t: tf.Tensor) -> tf.Tensor:
        return self.at_haversines((1 - t) / 2)

    def eigenvalues(self, degrees: Sequence[int]) -> tf.Tensor:
        return stationary_eigenvalues(degrees, self.dimension, self.lengthscale, self.nu)


def stationary(dimension: int, lengthscale: float, nu: float = np.inf) -> Stationary:
    return Stationary(dimension, tf.constant(lengthscale, tf.float64), nu)


LENGTHSCALES = (0.02, 0.3, 1.0, 1e3)
"""At the first the kernel is a mixture of short times alone."""


@pytest.mark.parametrize(
    "nu, dimension", [*((nu, dimension) for nu in SMOOTHNESS for dimension in (2, 3, 9)), (0.5, 20)]
)
def test_matern_eigenvalues(nu: float, dimension: int) -> None:
    """The first is the inverse of the infinite sum."""
    for lengthscale in LENGTHSCALES:
        reference = matern_eigenvalues(dimension, nu, lengthscale, EIGENVALUE_DEGREES)
        actual = stationary(dimension, lengthscale, nu).eigenvalues(EIGENVALUE_DEGREES).numpy()
        assert relative_error(actual, reference) <= 1e-10, lengthscale
        assert relative_error(actual[:1], reference[:1]) <= 1e-11, lengthscale


@pytest.mark.parametrize("dimension", EIGENVALUE_DIMENSIONS)
def test_squared_exponential_eigenvalues(dimension: int) -> None:
    for lengthscale in LENGTHSCALES[:-1]:
        reference = squared_exponential_eigenvalues(dimension, lengthscale, EIGENVALUE_DEGREES)
        actual = stationary(dimension, lengthscale).eigenvalues(EIGENVALUE_DEGREES)
        assert relative_error(actual.numpy(), reference) <= 1e-10, lengthscale
        assert relative_error(actual.numpy()[:1], reference[:1]) <= 1e-11, lengthscale


# The shape functions.

ANGLES = np.array([0.03, 0.05, 0.1, 0.2, 0.5, 1.2, 1.57, 2.0, 2.6, 3.0, np.pi])


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
    """The slope of the normaliser, with respect to the logarithm of the lengthscale."""
    step = mp.mpf(10) ** -6
    low, high = (
        mp.log(matern_total(dimension, nu, mp.mpf(lengthscale) * factor))
        for factor in (1 - step, 1 + step)
    )
    return float((high - low) / (2 * step))


@cache
def long_series(
    dimension: int, kernels: tuple[tuple[float, float], ...] = MATERNS, length: int = 10_000
) -> dict[tuple[float, float], np.ndarray]:
    """Some kernels at ANGLES by 10,000 terms, the last half faded out smoothly: values, and
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


@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_matern_on_the_circle(nu: float) -> None:
    angles = np.append(ANGLES, [0.0, 1e-6, 1e-4, 1e-3, 0.01])
    for lengthscale in (0.03, 0.1, 0.2, 0.3, 0.5, 1.0):
        actual = stationary(2, lengthscale, nu).shape_function(tf.constant(np.cos(angles)))
        # cos rounds away the angle below 1e-8.
        expected = wrapped_matern(nu, lengthscale, np.arccos(np.cos(angles)))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_matern_on_the_sphere() -> None:
    """Values, slopes, and a sum of the derivatives with respect to the lengthscale; and one at
    t = 1. test_short_lengthscales.py has other dimensions."""
    t, upstream = tf.constant(np.cos(ANGLES)), np.cos(3 * np.arange(len(ANGLES)))
    for (nu, lengthscale), (values, slopes, changes) in long_series(3, MATERNS[1::2]).items():
        scale = tf.constant(lengthscale, tf.float64)
        actual, (to_t, to_scale) = value_and_gradients(
            lambda s=scale, nu=nu: Stationary(3, s, nu).shape_function(t), (t, scale), upstream
        )
        case = f"{nu}, {lengthscale}"
        np.testing.assert_allclose(actual, values, rtol=0, atol=1e-9, err_msg=case)
        bound = 1e-7 * max(np.abs(slopes).max(), 1e-6)
        np.testing.assert_allclose(to_t / upstream, slopes, rtol=0, atol=bound, err_msg=case)
        change = np.sum(upstream * changes) / lengthscale
        bound = 1e-7 * max(np.abs(changes).max(), 1e-6) / lengthscale
        np.testing.assert_allclose(to_scale, change, rtol=0, atol=bound, err_msg=case)
        at_one = Stationary(3, scale, nu).shape_function(tf.ones([1], tf.float64))
        np.testing.assert_allclose(at_one, 1, rtol=0, atol=1e-12, err_msg=case)


@pytest.mark.parametrize("dimension", [2, 9])
def test_squared_exponential_is_its_series(dimension: int) -> None:
    """Values; gradients by differences. At the shortest it is one heat kernel at a short time."""
    t, step = np.array([-0.9, -0.3, 0.2, 0.9, 0.99, -1.0, 0.999, 1.0]), 1e-5
    degrees = tuple(range(60))

    def value(t: Any, lengthscale: Any) -> tf.Tensor:
        spectrum = Stationary(dimension, tf.convert_to_tensor(lengthscale))
        return spectrum.shape_function(tf.convert_to_tensor(t))

    for lengthscale in np.array([0.18, 0.41, 1.0]):
        eigenvalues = squared_exponential_eigenvalues(dimension, float(lengthscale), degrees)
        shares = [v * multiplicity(dimension, n) for n, v in zip(degrees, eigenvalues, strict=True)]
        assert shares[-1] < 1e-16
        expected = [
            float(mp.fdot(shares, [legendre_in(dimension, n, mp.mpf(float(v))) for n in degrees]))
            for v in t
        ]
        inner, scale = tf.constant(t[:5]), tf.constant(lengthscale)
        upstream = tf.cos(tf.range(5, dtype=tf.float64))
        np.testing.assert_allclose(value(t, scale), expected, rtol=0, atol=1e-13)
        _, (to_t, to_scale) = value_and_gradients(
            lambda t=inner, s=scale: value(t, s), (inner, scale), upstream
        )
        slopes = (value(inner + step, scale) - value(inner - step, scale)) / (2 * step)
        np.testing.assert_allclose(to_t, upstream * slopes, rtol=1e-6, atol=1e-6)
        changes = (value(inner, scale + step) - value(inner, scale - step)) / (2 * step)
        np.testing.assert_allclose(to_scale, np.sum(upstream * changes), rtol=1e-6, atol=1e-6)


# Gradients.


@pytest.mark.parametrize("nu", [np.inf, *SMOOTHNESS])
def test_gradients_of_eigenvalues(nu: float) -> None:
    for dimension, lengthscale in ((3, 0.02), (3, 0.52), (9, 0.61)):
        scale = tf.constant(lengthscale, tf.float64)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(scale)
            values = tf.unstack(Stationary(dimension, scale, nu).eigenvalues([0, 1, 4]))
        gradients = np.array([tape.gradient(value, scale) for value in values])
        step = 1e-4 * lengthscale
        up, down = (
            Stationary(dimension, scale + d, nu).eigenvalues([0, 1, 4]) for d in (step, -step)
        )
        bound = 1e-7 * np.abs(gradients).max()
        np.testing.assert_allclose(gradients, (up - down) / (2 * step), rtol=1e-6, atol=bound)


@pytest.mark.parametrize("nu", [np.inf, 0.5])
@pytest.mark.parametrize("least_tabulated", [1, 10**9], ids=["table", "sums"])
def test_gradients_are_finite_at_both_ends(
    nu: float, least_tabulated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And beyond by a rounding error."""
    monkeypatch.setattr(laplace_beltrami, "_LEAST_TABULATED", least_tabulated)
    # The first derivative diverges for Matern-1/2.
    for dtype in (tf.float64, tf.float32) if nu == 0.5 else (tf.float64,):
        eps = np.finfo(dtype.as_numpy_dtype).eps
        t = tf.constant([-1 - eps, -1, 1 - eps, 1, 1 + eps], dtype)
        scale = tf.constant(0.5, dtype)
        value, (to_t, to_scale) = value_and_gradients(
            lambda t=t, scale=scale: Stationary(2, scale, nu).shape_function(t), (t, scale)
        )
        assert value.dtype == dtype
        np.testing.assert_allclose(value[-3:], 1, rtol=1e-3)
        assert all(np.all(np.isfinite(part)) for part in (value, to_t, to_scale))
        if nu == 0.5:
            np.testing.assert_array_equal(to_t[-2:], 0)


# The heat kernel at short times, against its series.


def series(dimension: int, time: float, t: float) -> float:
    """``time^((d - 1) / 2) sum_l N(d, l) exp(-time x^2) P_l(t) / C``, in extended precision."""
    with mp.workdps(60):
        d, time, t = dimension, mp.mpf(time), mp.mpf(t)
        total, p, p_before, degree = mp.zero, mp.one, mp.zero, 0
        while degree < mp.sqrt(140 / time) + 4 * d:
            x = degree + mp.mpf(d - 2) / 2
            total += multiplicity(d, degree) * mp.exp(-time * x**2) * p
            below = degree + d - 2
            p_next = ((2 * degree + d - 2) * t * p - degree * p_before) / below if below else t
            p, p_before, degree = p_next, p, degree + 1
        return float(total * time ** (mp.mpf(d - 1) / 2) / mp.exp(log_heat_constant(d)))


@pytest.mark.parametrize("dimension", [2, 3, 5, 22, 50])
def test_short_times(dimension: int) -> None:
    """Values, and the slopes with respect to t: relative to the largest."""
    longest = longest_time(dimension)
    for time in (longest, longest / 3):
        angles = np.sqrt(4 * time) * np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0])
        t = tf.constant(np.cos(angles))
        with tf.GradientTape() as tape:
            tape.watch(t)
            value = heat_at_haversines((1 - t) / 2, tf.constant([time], tf.float64), dimension)[
                :, 0
            ]
        expected = [series(dimension, time, float(cosine)) for cosine in t]
        np.testing.assert_allclose(value, expected, rtol=0, atol=5e-12)
        slopes = tape.gradient(value, t) * 2 * time
        if dimension < 24:  # the dimension above has a shorter longest time
            higher = [series(dimension + 2, time, float(cosine)) for cosine in t]
            np.testing.assert_allclose(slopes, higher, rtol=0, atol=5e-12)
