"""Images and patches against NumPy's own flips, rolls and rotations."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, lcm

import numpy as np
import pytest

from interdomain.transforms import CyclicTransform, ImageFlip, ImageRotation90, ImageTranslation

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


def test_patches_of_an_image() -> None:
    patches = np.random.default_rng(0).normal(size=(2, 5, 3, 3))
    actual = ImageFlip((3, 3), 1)(patches.reshape(2, 5, 9))
    np.testing.assert_array_equal(actual, patches[..., ::-1].reshape(2, 5, 9))
