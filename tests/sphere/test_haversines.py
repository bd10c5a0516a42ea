"""Small angles keep their digits, and with them kernels of short lengthscales theirs."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.kernels import SphericalMatern12, SphericalMatern32, SphericalMatern52
from interdomain.sphere import MaternSpectrum, SquaredExponentialSpectrum, laplace_beltrami
from interdomain.sphere.haversines import angles_of, haversines
from tests.sphere.matern_references import PoissonMatern
from tests.tiers import in_tiers

KERNELS = {0.5: SphericalMatern12, 1.5: SphericalMatern32, 2.5: SphericalMatern52}
DIMENSIONS = in_tiers(range(2, 21), quick=[2, 4, 20])


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


@pytest.mark.parametrize("dimension", DIMENSIONS)
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


@pytest.mark.parametrize(
    "dimension, nu",
    in_tiers(
        # Every smoothness at both ends and one in turn between: test_short_lengthscales.py has all.
        [
            (dimension, nu)
            for dimension in range(2, 21, 2)
            for i, nu in enumerate(KERNELS)
            if dimension in (2, 20) or (dimension // 2 + 2 * i) % 3 == 1
        ],
        quick=[(2, 0.5), (4, 1.5), (20, 2.5)],
    ),
)
def test_kernels_of_points_that_are_near(dimension: int, nu: float) -> None:
    """Value and derivative to the lengthscale from rows of X, at angles down to 1e-9, against
    Poisson summation: one row is enough to be summed, many are tabulated."""
    for lengthscale in (1e-4, 1e-3, 0.01, 0.03)[dimension // 2 % 2 :: 2]:
        distances = np.append(lengthscale * np.array([3e-3, 0.1, 1.0]), [1e-9, 1e-7])
        X = neighbours(dimension - 1, distances)
        with mp.workdps(25):
            reference = PoissonMatern(dimension, nu, lengthscale)
            lifted = np.append(X, np.ones([len(X), 1]), axis=1)
            angles = [exact_angle(lifted[0], row) for row in lifted[1:]]
            expected = [float(reference.value(angle)) for angle in angles]
            changes = [float(reference.sensitivity(angle)) for angle in angles]
        for repeats in (1, laplace_beltrami._LEAST_TABULATED):
            kernel = KERNELS[nu](lengthscale=lengthscale, radial_power=0.0)
            rows = np.tile(X[:1], (repeats, 1))
            with tf.GradientTape(persistent=True) as tape:
                values = tf.unstack(kernel(rows, X[1:])[0])
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)
            for value, change in zip(values, changes, strict=True):
                found = tape.gradient(value, kernel.lengthscale.unconstrained_variable)
                # The parameter's transformation is undone.
                unconstrained = kernel.lengthscale.unconstrained_variable.numpy()
                found = found.numpy() * (1 + np.exp(-unconstrained)) * lengthscale
                np.testing.assert_allclose(found, change, rtol=0, atol=2e-10)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, None])
def test_tables_near_one(monkeypatch: pytest.MonkeyPatch, nu: float | None) -> None:
    """On a dense grid of angles, against the sum, which has no table."""
    h = tf.constant(np.logspace(-20, -0.5, 5_000))
    for dimension in (2, 3, 9, 20):
        for lengthscale in (1e-4, 1e-3, 0.01, 0.05, 0.3, 1.0, 10.0):
            found = []
            for least in (1, 10**9):
                monkeypatch.setattr(laplace_beltrami, "_LEAST_TABULATED", least)
                scale = tf.constant(lengthscale, tf.float64)
                spectrum = (
                    SquaredExponentialSpectrum(dimension, scale)
                    if nu is None
                    else MaternSpectrum(dimension, scale, nu)
                )
                found.append(spectrum.at_haversines(h))
            case = f"{dimension}, {lengthscale}"
            np.testing.assert_allclose(*found, rtol=0, atol=5e-11, err_msg=case)
