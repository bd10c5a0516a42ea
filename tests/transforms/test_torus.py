from __future__ import annotations

import numpy as np
import pytest

from interdomain.sphere import unit_vectors
from interdomain.transforms import LongitudeShift, Translation


def test_translation() -> None:
    X = np.array([[0.1, 5.0, 9.0], [0.95, -5.0, 0.0]])
    actual = Translation(5, [0, 2], [1.0, 10.0])(X)
    np.testing.assert_allclose(actual, [[0.3, 5.0, 1.0], [0.15, -5.0, 2.0]], atol=1e-14)


def test_translation_returns_to_the_first_period() -> None:
    X = np.array([[-7.3], [12.9], [-1e-18], [0.0], [np.nextafter(1.5, 0.0)]])
    orbit = Translation(3, 0, 1.5).orbit(X).numpy()
    np.testing.assert_array_equal(orbit[0], X)
    assert np.all((orbit[1:] >= 0.0) & (orbit[1:] < 1.5))
    for k in (1, 2):
        angle = 2 * np.pi * (X / 1.5 + k / 3)
        np.testing.assert_allclose(np.cos(2 * np.pi * orbit[k] / 1.5), np.cos(angle), atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wrapping_never_returns_the_period_itself(dtype: type) -> None:
    third = np.arange(-40, 40, dtype=dtype) / dtype(3)
    X = np.concatenate([np.nextafter(third, dtype(-100)), third, np.nextafter(third, dtype(100))])
    moved = Translation(3, 0, 1.0).orbit(X[:, None]).numpy()[1:]
    assert np.all((moved >= 0) & (moved < 1))
    east = np.stack([120 * X, X], axis=1)
    longitude = LongitudeShift(3).orbit(east).numpy()[1:, :, 0]
    assert np.all((longitude >= -180) & (longitude < 180))


def test_distance_on_the_torus() -> None:
    transform = Translation(2, 1, 4.0)
    X = np.array([[1.0, 0.1]])
    assert transform.distance(X, X + [0.0, 8.0]) == pytest.approx(0.0, abs=1e-14)
    assert transform.distance(X, [[1.0, 3.9]]) == pytest.approx(0.2)
    assert transform.distance(X, [[5.0, 0.1]]) == pytest.approx(4.0)


def test_periods_of_any_size() -> None:
    for period in (1e-9, 1.0, 1e8):
        transform = Translation(50, 0, period)
        assert transform.order == 50
        np.testing.assert_allclose(transform(np.zeros((1, 2))), [[period / 50, 0.0]])


def test_longitude_shift() -> None:
    X = np.array([[170.0, 10.0], [-180.0, -80.0], [0.0, 90.0]])
    actual = LongitudeShift(4)(X)
    np.testing.assert_array_equal(actual, [[-100.0, 10.0], [-90.0, -80.0], [90.0, 90.0]])


def test_both_coordinates_of_the_globe_agree() -> None:
    degrees, euclidean = LongitudeShift(7), LongitudeShift(7, coordinates="euclidean")
    X = degrees.probes(20)
    assert np.all((X >= [-180.0, -90.0]) & (X <= [180.0, 90.0]))
    expected = euclidean.orbit(unit_vectors(X[:, ::-1]))
    found = unit_vectors(degrees.orbit(X)[..., ::-1])
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(euclidean.probes(5), axis=1), 1.0)
