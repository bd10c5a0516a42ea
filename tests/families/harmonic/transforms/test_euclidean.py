"""Transformations of columns, of images and of the torus."""

import itertools
from collections.abc import Callable
from math import gcd, lcm
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from interdomain.sphere import unit_vectors
from interdomain.transforms import (
    CyclicTransform,
    ImageFlip,
    ImageRotation90,
    ImageTranslation,
    LongitudeShift,
    Negation,
    Orthogonal,
    Permutation,
    PrincipalNegation,
    Rotation,
    Translation,
)
from tests.conformance.helpers import compiled, value_and_gradients
from tests.families.harmonic.transforms.cases import block_rotation, random_rows

X = np.random.default_rng(0).normal(size=(6, 4))


def test_negation() -> None:
    np.testing.assert_array_equal(Negation()(X), -X)
    np.testing.assert_array_equal(Negation(centre=2.0)(X), 4.0 - X)
    actual = Negation([3, 1], centre=[1.0, -2.0])(X).numpy()
    np.testing.assert_array_equal(actual[:, [0, 2]], X[:, [0, 2]])
    np.testing.assert_array_equal(actual[:, 3], 2.0 - X[:, 3])
    np.testing.assert_array_equal(actual[:, 1], -4.0 - X[:, 1])
    np.testing.assert_array_equal(Negation(1)(X), X * [1, -1, 1, 1])


@pytest.mark.parametrize("order", [2, 3, 8])
def test_rotation_in_polar_coordinates(order: int) -> None:
    centre = np.array([1.0, -2.0])
    z = (X[:, 2] - centre[0]) + 1j * (X[:, 0] - centre[1])
    for k, actual in enumerate(Rotation(order, (2, 0), centre).orbit(X).numpy()):
        turned = z * np.exp(2j * np.pi * k / order)
        np.testing.assert_allclose(actual[:, 2], turned.real + centre[0], atol=1e-13)
        np.testing.assert_allclose(actual[:, 0], turned.imag + centre[1], atol=1e-13)
        np.testing.assert_array_equal(actual[:, [1, 3]], X[:, [1, 3]])


def test_orthogonal() -> None:
    matrix, centre = block_rotation(3, 4), np.array([1.0, 0.0, -1.0, 2.0])
    actual = Orthogonal(matrix, centre=centre)(X).numpy()
    for x, y in zip(X, actual, strict=True):
        np.testing.assert_allclose(y, centre + matrix @ (x - centre), atol=1e-14)
    for orders in ((2, 2), (3, 5), (4, 6), (9973, 1), (97, 101)):
        assert Orthogonal(block_rotation(*orders)).order == lcm(*orders)


def test_rounding_does_not_grow_with_the_order() -> None:
    """Quarter turns are exact; the first column is turned towards the second."""
    actual = Rotation(4, dims=(3, 1))(np.eye(4)).numpy()
    expected = np.eye(4)
    expected[3], expected[1] = np.eye(4)[1], -np.eye(4)[3]
    np.testing.assert_array_equal(actual, expected)
    order = 5000
    orbit = Rotation(order).orbit(X).numpy()
    np.testing.assert_allclose(np.linalg.norm(orbit, axis=-1)[-1], np.linalg.norm(X, axis=-1))
    angles = np.arange(order) * (2 * np.pi / order)
    expected = np.cos(angles) * X[0, 0] - np.sin(angles) * X[0, 1]
    np.testing.assert_allclose(orbit[:, 0, 0], expected, rtol=0, atol=3e-15)


def test_permutation() -> None:
    for indices in [*itertools.permutations(range(4))][1::3]:
        transform = Permutation(indices)
        np.testing.assert_array_equal(transform(X), X[:, indices])
        matrix = np.eye(4)[list(indices)]
        powers = (
            k for k in range(1, 5) if np.array_equal(np.linalg.matrix_power(matrix, k), np.eye(4))
        )
        assert transform.order == next(powers)


def test_gradient_of_a_permutation_needs_no_scatter() -> None:
    transform = Permutation(np.roll(np.arange(10), 1))

    def squares(X: tf.Tensor) -> Any:
        return value_and_gradients(lambda: [transform.orbit(X) ** 2, transform(X) ** 2], X)[1]

    gradient = compiled(squares, [None, 10])
    types = {op.type for op in gradient.get_concrete_function().graph.get_operations()}
    assert "GatherV2" in types
    assert not [name for name in types if "Scatter" in name or "Segment" in name]
    inputs = np.random.default_rng(0).normal(size=(3, 10))
    np.testing.assert_allclose(gradient(inputs), 2 * (10 + 1) * inputs)


def test_principal_negation_reflects() -> None:
    directions, centre = random_rows(2, 4), np.array([1.0, 2.0, 3.0, 4.0])
    transform = PrincipalNegation(directions, centre)
    moved = transform(X).numpy() - centre
    np.testing.assert_allclose(moved @ directions.T, -(X - centre) @ directions.T, atol=1e-14)
    others = np.linalg.svd(directions)[2][2:]
    np.testing.assert_allclose(moved @ others.T, (X - centre) @ others.T, atol=1e-14)
    np.testing.assert_allclose(transform(centre[None]), centre[None])


@pytest.mark.parametrize(("num_groups", "num_rows"), [(1, 50), (3, 50), (2, 3), (4, 3)])
def test_principal_components_are_dealt_round(num_groups: int, num_rows: int) -> None:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(num_rows, 4)) @ rng.normal(size=(4, 4)) + [1.0, 2.0, 3.0, 4.0]
    product = PrincipalNegation.from_data(data, num_groups)
    assert product.orders == (2,) * num_groups
    mean = data.mean(axis=0)
    np.testing.assert_allclose(product.orbit(mean), np.tile(mean, (2**num_groups, 1)), atol=1e-13)

    variances, vectors = np.linalg.eigh(np.cov(data.T))
    components = vectors.T[np.argsort(-variances)]
    seen = []
    for group, axis in enumerate(product.axes):
        assert isinstance(axis, PrincipalNegation)
        V = axis.directions
        np.testing.assert_allclose(V @ V.T, np.eye(len(V)), atol=1e-12)
        np.testing.assert_allclose(axis.centre, mean)
        seen.append(V)
        # With three rows only two components have variance; the others are any basis of the rest.
        for direction, component in zip(V, components[group::num_groups], strict=True):
            if component @ np.cov(data.T) @ component > 1e-10:
                assert abs(direction @ component) == pytest.approx(1.0)
    stacked = np.concatenate(seen)
    np.testing.assert_allclose(stacked @ stacked.T, np.eye(4), atol=1e-12)


# Images and patches against NumPy's own flips, rolls and rotations.

Oracle = Callable[[np.ndarray], np.ndarray]
CASES: list[tuple[tuple[int, ...], Callable[[tuple[int, ...]], CyclicTransform], Oracle]] = [
    *(
        (shape, lambda s, axis=axis: ImageFlip(s, axis), lambda a, axis=axis: np.flip(a, axis))
        for shape in [(3, 4), (2, 5, 3)]
        for axis in (0, 1)
    ),
    *(
        (
            shape,
            lambda s, shift=shift: ImageTranslation(s, shift),
            lambda a, shift=shift: np.roll(a, shift, axis=(0, 1)),
        )
        for shape in [(3, 4), (2, 5, 3)]
        for shift in [(0, 1), (1, 1), (-1, 2)]
    ),
    *((shape, ImageRotation90, np.rot90) for shape in [(4, 4), (3, 3, 2)]),
]


@pytest.mark.parametrize("shape, factory, oracle", CASES)
def test_against_numpy(
    shape: tuple[int, ...], factory: Callable[..., CyclicTransform], oracle: Oracle
) -> None:
    transform = factory(shape)
    assert transform.input_dim == np.prod(shape)
    images = np.random.default_rng(0).normal(size=(3, *shape))
    expected = images
    for k, actual in enumerate(transform.orbit(images.reshape(3, -1)).numpy()):
        np.testing.assert_array_equal(actual, expected.reshape(3, -1))
        np.testing.assert_array_equal(transform.power(images.reshape(3, -1), k), actual)
        expected = np.stack([oracle(image) for image in expected])
    np.testing.assert_array_equal(expected, images)


def test_order_of_a_translation() -> None:
    for shape, shift in (((4, 6), (2, 3)), ((5, 7, 2), (0, -4)), ((28, 28), (7, 1))):
        rows, columns = (size // gcd(size, step) for size, step in zip(shape, shift, strict=False))
        assert ImageTranslation(shape, shift).order == lcm(rows, columns)


def test_translation_returns_to_the_first_period() -> None:
    X = np.array([[0.1, 5.0, 9.0], [0.95, -5.0, 0.0]])
    actual = Translation(5, [0, 2], [1.0, 10.0])(X)
    np.testing.assert_allclose(actual, [[0.3, 5.0, 1.0], [0.15, -5.0, 2.0]], atol=1e-14)
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


def test_both_coordinates_of_the_globe_agree() -> None:
    degrees, euclidean = LongitudeShift(7), LongitudeShift(7, coordinates="euclidean")
    X = degrees.probes(20)
    assert np.all((X >= [-180.0, -90.0]) & (X <= [180.0, 90.0]))
    expected = euclidean.orbit(unit_vectors(X[:, ::-1]))
    found = unit_vectors(degrees.orbit(X)[..., ::-1])
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(euclidean.probes(5), axis=1), 1.0)
