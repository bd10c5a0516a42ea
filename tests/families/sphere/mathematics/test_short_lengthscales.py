"""Matern kernels at lengthscales down to 1e-4, against Poisson summation in extended precision; and
tables, against the sums they are made of.

Each smoothness has a dimension, because the functions of one are compiled once.
"""

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.families.sphere.mathematics import laplace_beltrami
from tests.conformance.helpers import value_and_gradients
from tests.families.sphere.mathematics.matern_references import PoissonMatern
from tests.families.sphere.mathematics.test_laplace_beltrami import SMOOTHNESS, Stationary

LENGTHSCALES = (1e-4, 1e-3, 0.01, 0.03)
DIMENSIONS = {0.5: 20, 1.5: 2, 2.5: 4}
KINDS = [*DIMENSIONS.items(), (np.inf, 9)]


def found(
    dimension: int, nu: float, lengthscale: float, t: tf.Tensor, *, tabulate: bool
) -> np.ndarray:
    """Value, slope, and derivative with respect to the logarithm of the lengthscale."""
    # Many values of t are tabulated.
    t = tf.repeat(t[None], laplace_beltrami._LEAST_TABULATED if tabulate else 1)
    scale = tf.constant(lengthscale, t.dtype)
    first, (slope, change) = value_and_gradients(
        lambda: Stationary(dimension, scale, nu).shape_function(t)[0], (t, scale)
    )
    return np.array([first, slope[0], lengthscale * change], float)


def expected(dimension: int, nu: float, lengthscale: float, t: tf.Tensor) -> np.ndarray:
    with mp.workdps(40):  # near one a cosine holds half the digits of its angle
        angle = mp.acos(mp.mpf(float(t)))
    with mp.workdps(25):
        reference = PoissonMatern(dimension, nu, lengthscale)
        parts = (reference.value, reference.slope, reference.sensitivity)
        return np.array([float(part(angle)) for part in parts])


@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_short_lengthscales(nu: float) -> None:
    for lengthscale, distance in zip(LENGTHSCALES, (0.3, 1.0, 4.0, 0.7), strict=True):
        t = tf.constant(np.cos(distance * lengthscale), tf.float64)
        reference = expected(DIMENSIONS[nu], nu, lengthscale, t)
        for tabulate in (False, True):
            actual = found(DIMENSIONS[nu], nu, lengthscale, t, tabulate=tabulate)
            error = np.abs(actual - reference) / [1, abs(reference[1]), 1]
            bound = [1e-9, 1e-8, 1e-9] if tabulate else [1e-11, 1e-11, 1e-10]
            assert np.all(error <= bound), (lengthscale, distance, tabulate, error)


@pytest.mark.parametrize(("nu", "dimension"), KINDS)
def test_tables_are_the_sums(monkeypatch: pytest.MonkeyPatch, nu: float, dimension: int) -> None:
    """Values on a dense grid of angles; gradients where angles are known well."""
    h = tf.constant(np.concatenate([np.logspace(-20, -0.5, 5_000), np.linspace(0.31, 0.99, 500)]))
    upstream = tf.where(h > 1e-4, tf.cos(40 * h), 0)
    for lengthscale in (1e-4, 1e-3, 0.01, 0.05, 0.3, 0.6, 10.0):
        scale, results = tf.constant(lengthscale, tf.float64), []
        for least in (1, 10**9):
            monkeypatch.setattr(laplace_beltrami, "_LEAST_TABULATED", least)
            value, gradients = value_and_gradients(
                lambda s=scale: Stationary(dimension, s, nu).at_haversines(h), (h, scale), upstream
            )
            results.append((value, *gradients))
        table, summed = results
        np.testing.assert_allclose(table[0], summed[0], rtol=0, atol=5e-11, err_msg=lengthscale)
        if lengthscale == 0.6:
            assert not np.array_equal(table[0], summed[0])  # two ways indeed
            for one, other in zip(table[1:], summed[1:], strict=True):
                bound = 1e-9 * np.max(np.abs(other))
                np.testing.assert_allclose(one, other, rtol=0, atol=bound)


def test_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables in float32, which lose more digits of an angle than sums."""
    nu, dimension = KINDS[0]

    def evaluate(t: tf.Tensor, scale: tf.Tensor) -> tuple[tf.Tensor, ...]:
        value, gradients = value_and_gradients(
            lambda: Stationary(dimension, scale, nu).shape_function(t), (t, scale), tf.cos(20 * t)
        )
        return value, *gradients

    t, scale = tf.constant(np.cos(np.linspace(0.02, np.pi, 1_003)), tf.float32), tf.constant(0.6)
    expected = evaluate(tf.cast(t, tf.float64), tf.cast(scale, tf.float64))
    monkeypatch.setattr(laplace_beltrami, "_LEAST_TABULATED", 1)
    for one, other in zip(evaluate(t, scale), expected, strict=True):
        assert one.dtype == tf.float32
        np.testing.assert_allclose(one, other, rtol=0, atol=5e-4 * np.max(np.abs(other)))


@pytest.mark.parametrize(("nu", "dimension"), KINDS)
def test_the_limits(nu: float, dimension: int) -> None:
    """White noise and a constant, with eigenvalues and gradients that are numbers."""
    t = tf.constant([-1.0, 0.5, 1 - 1e-12, 1.0], tf.float64)
    for lengthscale in (1e-300, 1e-35, 1e35, 1e300):
        scale = tf.constant(lengthscale, tf.float64)
        one = Stationary(dimension, scale, nu)
        (value, eigenvalues), gradients = value_and_gradients(
            lambda one=one: [one.shape_function(t), one.eigenvalues([0, 1, 7])], (t, scale)
        )
        limit = [0, 0, 0, 1] if lengthscale < 1 else np.ones(4)
        np.testing.assert_allclose(value, limit, atol=1e-12)
        np.testing.assert_allclose(eigenvalues, np.eye(3)[0] * limit[0], atol=1e-8)
        assert all(np.all(np.isfinite(part)) for part in gradients)
