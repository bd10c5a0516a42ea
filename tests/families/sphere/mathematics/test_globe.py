"""Latitude and longitude: exact at the poles and the date line, and what is refused."""

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.families.sphere.mathematics import laplace_beltrami
from interdomain.families.sphere.mathematics.heat_kernel import angles_of, haversines
from interdomain.kernels import SphericalMatern12
from interdomain.sphere import latitude_longitude, unit_vectors
from tests.conformance.helpers import value_and_gradients
from tests.families.sphere.mathematics.matern_references import PoissonMatern

RNG = np.random.default_rng(0)
X = np.stack([RNG.uniform(-90, 90, 40), RNG.uniform(-900, 900, 40)], axis=1)


def by_rotations(latitude: float, longitude: float) -> np.ndarray:
    """The first axis, turned up and then eastwards."""
    up, east = np.radians(latitude), np.radians(longitude)
    turned_up = np.array([np.cos(up), 0.0, np.sin(up)])
    rotation = [[np.cos(east), -np.sin(east), 0], [np.sin(east), np.cos(east), 0], [0, 0, 1]]
    return np.array(rotation) @ turned_up


def test_points() -> None:
    unit = unit_vectors(X.reshape(2, 20, 2)).numpy().reshape(-1, 3)
    np.testing.assert_allclose(unit, [by_rotations(*row) for row in X], atol=1e-13)
    back = latitude_longitude(3 * unit).numpy()
    np.testing.assert_allclose(back[:, 0], X[:, 0], atol=1e-12)
    np.testing.assert_allclose((back[:, 1] - X[:, 1] + 180) % 360, 180, atol=1e-11)
    single = unit_vectors(X.astype(np.float32))
    assert single.dtype == tf.float32
    np.testing.assert_allclose(single, unit, atol=1e-6)
    assert unit_vectors([[0, 90]]).dtype == tf.float64


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exact_at_the_poles_and_the_date_line(dtype: type) -> None:
    longitudes = np.array([-540, -180, -77.3, 0, 12.3, 90, 180, 359.9, 1e6], dtype)
    for latitude, z in ((90, 1), (-90, -1)):
        poles = np.stack([np.full_like(longitudes, latitude), longitudes], axis=1)
        np.testing.assert_array_equal(unit_vectors(poles), [[0, 0, z]] * len(longitudes))
    latitudes = np.linspace(-90, 90, 7, dtype=dtype)
    west, east, twice = (
        unit_vectors(np.stack([latitudes, np.full_like(latitudes, lon)], axis=1)).numpy()
        for lon in (-180, 180, 540)
    )
    assert west.tobytes() == east.tobytes() == twice.tobytes()
    quarters = unit_vectors(np.array([[0, 0], [0, 90], [0, 180], [0, 270]], dtype))
    np.testing.assert_array_equal(quarters, [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])


def test_gradients_and_compiled() -> None:
    """Gradients of angles in degrees, at 45 degrees and the poles; past a pole, the other side."""
    points = np.array([[90.0, 30.0], [-90.0, 180.0], [45.0, -135.0], [0.0, 180.0], [30.0, 400.0]])
    compiled = tf.function(unit_vectors, input_signature=[tf.TensorSpec(None, tf.float64)])
    np.testing.assert_array_equal(compiled(points), unit_vectors(points))
    np.testing.assert_allclose(
        compiled([[100.0, 20.0]]), unit_vectors([[80.0, 200.0]]), atol=1e-15, rtol=0
    )
    variable = tf.constant(points)
    with tf.GradientTape() as tape:
        tape.watch(variable)
        unit = unit_vectors(variable)
    jacobian = tape.batch_jacobian(unit, variable)
    up, east = np.radians(points).T
    expected = np.stack(
        [
            [-np.sin(up) * np.cos(east), -np.cos(up) * np.sin(east)],
            [-np.sin(up) * np.sin(east), np.cos(up) * np.cos(east)],
            [np.cos(up), 0 * up],
        ]
    ).transpose(2, 0, 1)
    np.testing.assert_allclose(jacobian, expected * np.pi / 180, atol=1e-15)


# Small angles keep their digits, and with them kernels of short lengthscales theirs.


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
            values, found = value_and_gradients(
                lambda k=kernel, rows=rows, X=X: k(rows, X[1:])[0], unconstrained, upstream
            )
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)
            # The parameter's transformation is undone.
            found = found * (1 + np.exp(-unconstrained.numpy())) * lengthscale
            np.testing.assert_allclose(found, upstream @ changes, rtol=0, atol=2e-10)
