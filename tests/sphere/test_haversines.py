"""Small angles keep their digits, and with them kernels of short lengthscales theirs."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.kernels import SphericalMatern12
from interdomain.sphere import laplace_beltrami
from interdomain.sphere.haversines import angles_of, haversines
from tests.sphere.matern_references import PoissonMatern


def exact_angle(x: np.ndarray, y: np.ndarray) -> mp.mpf:
    """Between two vectors of any lengths."""
    with mp.workdps(60):
        x, y = (mp.matrix([mp.mpf(float(v)) for v in vector]) for vector in (x, y))
        x, y = x / mp.norm(x), y / mp.norm(y)
        return 2 * mp.asin(mp.norm(x - y) / 2)


def neighbours(num_columns: int, distances: np.ndarray) -> np.ndarray:
    """A point, and others at about these distances from it."""
    rng = np.random.default_rng(num_columns)
    centre = rng.normal(size=num_columns)
    steps = rng.normal(size=(len(distances), num_columns))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    steps *= np.linalg.norm(np.append(centre, 1))
    return np.vstack([centre, centre + distances[:, None] * steps])


@pytest.mark.parametrize("dimension", [2, 20])
def test_angles(dimension: int) -> None:
    """From the same point to the opposite one, against extended precision."""
    near = neighbours(dimension, np.logspace(-9, -0.5, 60))
    rest = np.random.default_rng(0).normal(size=(20, dimension))
    vectors = np.vstack([near, rest, -rest[:1]])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    angles = angles_of(haversines(tf.constant(unit))).numpy()
    for i, j in [(0, k) for k in range(1, 61)] + [(61, k) for k in range(62, 81)]:
        exact = float(exact_angle(unit[i], unit[j]))
        # The opposite point is at the end of the arcsine, where its slope diverges.
        bound = 1e-15 + 4e-24 / exact + 1e-15 / (np.pi - exact)
        assert abs(angles[i, j] - exact) <= bound, (i, j, exact, angles[i, j] - exact)
    assert np.all(np.diag(angles) == 0)
    np.testing.assert_allclose(angles, angles.T, rtol=0, atol=1e-14)
    assert abs(angles[61, -1] - np.pi) < 1e-7
    across = haversines(tf.constant(unit), tf.constant(unit.copy()))
    np.testing.assert_array_equal(angles_of(across), angles)


def test_gradients() -> None:
    """Those of the inner products."""
    rng = np.random.default_rng(0)
    unit, unit2 = (tf.math.l2_normalize(rng.normal(size=(5, 3)), axis=-1) for _ in range(2))
    upstream = tf.constant(rng.normal(size=(5, 5)))
    for pair in ((unit, unit2), (unit, None)):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch((unit, unit2))
            other = unit if pair[1] is None else unit2
            found, expected = haversines(*pair), (1 - tf.matmul(unit, other, transpose_b=True)) / 2
        np.testing.assert_allclose(found, expected, atol=1e-15)
        for variable in (unit, other):
            to = [tape.gradient(value, variable, upstream) for value in (found, expected)]
            np.testing.assert_allclose(*to, rtol=1e-12)


def test_batches() -> None:
    rng = np.random.default_rng(0)
    unit, unit2 = (tf.math.l2_normalize(rng.normal(size=s), axis=-1) for s in ((2, 4, 3), (5, 3)))
    assert haversines(unit).shape == (2, 4, 4) and haversines(unit, unit2).shape == (2, 4, 5)
    np.testing.assert_array_equal(haversines(unit, unit2)[1], haversines(unit[1], unit2))
    np.testing.assert_array_equal(
        haversines(unit2, unit), tf.transpose(haversines(unit, unit2), [2, 0, 1])
    )


def test_a_kernel_of_points_that_are_near() -> None:
    """Value and derivative to the lengthscale from rows of X, at angles down to 1e-9, against
    Poisson summation: one row is enough to be summed, many are tabulated."""
    upstream = np.random.default_rng(0).normal(size=5)
    for lengthscale in (1e-4, 0.01):
        distances = np.append(lengthscale * np.array([3e-3, 0.1, 1.0]), [1e-9, 1e-7])
        X = neighbours(3, distances)
        with mp.workdps(25):
            reference = PoissonMatern(4, 0.5, lengthscale)
            lifted = np.append(X, np.ones([len(X), 1]), axis=1)
            angles = [exact_angle(lifted[0], row) for row in lifted[1:]]
            expected = [float(reference.value(angle)) for angle in angles]
            changes = [float(reference.sensitivity(angle)) for angle in angles]
        for repeats in (1, laplace_beltrami._LEAST_TABULATED):
            kernel = SphericalMatern12(lengthscale=lengthscale, radial_power=0.0)
            unconstrained = kernel.lengthscale.unconstrained_variable
            rows = np.tile(X[:1], (repeats, 1))
            with tf.GradientTape() as tape:
                values = kernel(rows, X[1:])[0]
                total = tf.reduce_sum(upstream * values)
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)
            # The parameter's transformation is undone.
            found = tape.gradient(total, unconstrained).numpy()
            found *= (1 + np.exp(-unconstrained.numpy())) * lengthscale
            np.testing.assert_allclose(found, upstream @ changes, rtol=0, atol=2e-10)
