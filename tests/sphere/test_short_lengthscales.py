"""Matern kernels at lengthscales down to 1e-4, against Poisson summation in extended precision."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.sphere import MaternSpectrum, laplace_beltrami
from tests.sphere.matern_references import PoissonMatern
from tests.sphere.test_laplace_beltrami import ANGLES, SMOOTHNESS, long_series
from tests.tiers import in_tiers

LENGTHSCALES = (1e-4, 1e-3, 0.01, 0.03)


def found(
    dimension: int, nu: float, lengthscale: float, t: tf.Tensor, *, tabulate: bool
) -> np.ndarray:
    """Value, slope, and derivative with respect to the logarithm of the lengthscale."""
    # Many values of t are tabulated.
    t = tf.repeat(t[None], laplace_beltrami._LEAST_TABULATED if tabulate else 1)
    scale = tf.constant(lengthscale, t.dtype)
    with tf.GradientTape() as tape:
        tape.watch((t, scale))
        value = MaternSpectrum(dimension, scale, nu).shape_function(t)
        first = value[0]
    slope, change = tape.gradient(first, (t, scale))
    return np.array([first, slope[0], lengthscale * change], float)


def expected(dimension: int, nu: float, lengthscale: float, t: tf.Tensor) -> np.ndarray:
    with mp.workdps(40):  # near one a cosine holds half the digits of its angle
        angle = mp.acos(mp.mpf(float(t)))
    with mp.workdps(25):
        reference = PoissonMatern(dimension, nu, lengthscale)
        return np.array(
            [
                float(part(angle))
                for part in (reference.value, reference.slope, reference.sensitivity)
            ]
        )


# Each pair of a dimension, a smoothness and a lengthscale, at one of the distances in turn.
EVEN = [
    (dimension, nu, lengthscale, (0.3, 1.0, 4.0)[(dimension // 2 + j) % 3])
    for dimension in range(2, 21, 2)
    for i, nu in enumerate(SMOOTHNESS)
    for j, lengthscale in enumerate(LENGTHSCALES)
    if (dimension // 2 + i + j) % 3 == 0
]
# The reference of an odd dimension takes seconds.
ODD = [
    (dimension, SMOOTHNESS[i % 3], LENGTHSCALES[i % 4], (0.5, 1.5)[i % 2])
    for i, dimension in enumerate(range(3, 20, 2))
]


def check(dimension: int, nu: float, lengthscale: float, distance: float) -> None:
    t = tf.constant(np.cos(distance * lengthscale), tf.float64)
    reference = expected(dimension, nu, lengthscale, t)
    for tabulate in (False, True):
        actual = found(dimension, nu, lengthscale, t, tabulate=tabulate)
        error = np.abs(actual - reference) / [1, abs(reference[1]), 1]
        bound = [1e-9, 1e-8, 1e-9] if tabulate else [1e-11, 1e-11, 1e-10]
        assert np.all(error <= bound), (dimension, nu, lengthscale, distance, tabulate, error)


@pytest.mark.parametrize(("dimension", "nu"), [(20, 0.5), (4, 2.5)])
def test_some_even_dimensions(dimension: int, nu: float) -> None:
    for lengthscale in LENGTHSCALES:
        check(dimension, nu, lengthscale, 0.7)


def test_an_odd_dimension() -> None:
    check(3, 0.5, 1e-3, 0.7)


@pytest.mark.full
@pytest.mark.parametrize("dimension", range(2, 21, 2))
def test_even_dimensions(dimension: int) -> None:
    for case in EVEN:
        if case[0] == dimension:
            check(*case)


@pytest.mark.full
@pytest.mark.parametrize("case", ODD)
def test_odd_dimensions(case: tuple[int, float, float, float]) -> None:
    check(*case)


@pytest.mark.parametrize("dimension", in_tiers([2, 3, 6, 19], quick=[2]))
def test_the_references_agree(dimension: int) -> None:
    # Of a high odd dimension one: its sum takes many seconds.
    for nu in SMOOTHNESS if dimension < 19 else SMOOTHNESS[:1]:
        values, slopes, changes = long_series(dimension, ((nu, 0.03),))[nu, 0.03]
        reference = PoissonMatern(dimension, nu, 0.03)
        with mp.workdps(20):
            angle = mp.mpf(float(ANGLES[3]))
            assert abs(reference.value(angle) - values[3]) < 1e-9
            assert abs(reference.slope(angle) / slopes[3] - 1) < 1e-7
            if dimension % 2 == 0:
                assert abs(reference.sensitivity(angle) - changes[3]) < 1e-8


@pytest.mark.parametrize("dimension", in_tiers([2, 5, 20], quick=[5]))
@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_float32(dimension: int, nu: float) -> None:
    """At angles whose cosines float32 holds: there it is as exact as float32 is."""
    for lengthscale in (1e-2, 0.1, 1.0, 1e3):
        t = tf.constant([0.2, 0.9, 0.99, 1 - 2.0**-10, 1], tf.float32)
        scale = tf.constant(lengthscale, tf.float32)
        values = []
        for dtype in (tf.float32, tf.float64):
            spectrum = MaternSpectrum(dimension, tf.cast(scale, dtype), nu)
            values.append(spectrum.shape_function(tf.cast(t, dtype)))
        assert values[0].dtype == tf.float32
        np.testing.assert_allclose(values[0], values[1], rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dimension", in_tiers([2, 3, 20], quick=[20]))
def test_the_limits(dimension: int) -> None:
    """White noise and a constant, with eigenvalues and gradients that are numbers."""
    t = tf.constant([-1.0, 0.5, 1 - 1e-12, 1.0], tf.float64)
    for nu in SMOOTHNESS:
        for lengthscale in (1e-300, 1e-35, 1e35, 1e300):
            scale = tf.constant(lengthscale, tf.float64)
            with tf.GradientTape() as tape:
                tape.watch((t, scale))
                spectrum = MaternSpectrum(dimension, scale, nu)
                value, eigenvalues = spectrum.shape_function(t), spectrum.eigenvalues([0, 1, 7])
                total = tf.reduce_sum(value) + tf.reduce_sum(eigenvalues)
            limit = [0, 0, 0, 1] if lengthscale < 1 else np.ones(4)
            np.testing.assert_allclose(value, limit, atol=1e-12)
            np.testing.assert_allclose(eigenvalues, np.eye(3)[0] * limit[0], atol=1e-8)
            assert all(np.all(np.isfinite(part)) for part in tape.gradient(total, (t, scale)))
