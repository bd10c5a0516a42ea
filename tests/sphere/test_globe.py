"""Latitude and longitude: exact at the poles and the date line, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import tensorflow as tf

from interdomain.sphere import latitude_longitude, unit_vectors

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
    """Of an angle in degrees, 45 degrees and the poles included; beyond a pole the other side."""
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


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            [[10.0, 20.0], [95.5, 3.0]],
            "latitude_longitude must have latitudes from -90 to 90 degrees in its first column, "
            "found 10 to 95.5 there, 1 of 2 beyond; pass latitude and longitude",
        ),
        ([[np.nan, 3.0]], "latitude_longitude must be finite, found 1 entries"),
        ([["a", "b"]], "latitude_longitude must be an array"),
    ],
)
def test_errors(X: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unit_vectors(X)


def test_radians_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="latitudes up to 1.*look like radians; pass degrees"):
        unit_vectors(np.radians(np.mod(X + 90, 180) - 90))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fine in ([[0.5, 0.5]], [[0.0, 0.0], [1.0, 1.0]], X, np.zeros([0, 2])):
            unit_vectors(fine)
