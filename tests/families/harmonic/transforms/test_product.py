"""Products of transformations: their orbits against loops, and wrong arguments."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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
    Product,
    Rotation,
    Translation,
)
from tests.conformance.helpers import assert_refused
from tests.families.harmonic.transforms.cases import RollThree, random_rows

SHAPE = (4, 4)
Pair = Callable[[], list[CyclicTransform]]

COMMUTING: dict[str, Pair] = {
    "flips": lambda: [ImageFlip(SHAPE, 0), ImageFlip(SHAPE, 1)],
    "flip and half translation": lambda: [ImageFlip(SHAPE, 0), ImageTranslation(SHAPE, (2, 0))],
    "negations": lambda: [Negation(0), Negation([1, 2], centre=3.0)],
    "negation and rotation": lambda: [Negation([2]), Rotation(5, (0, 1), centre=1.0)],
    "rotations": lambda: [Rotation(5), Rotation(3)],
    "shift and height": lambda: [LongitudeShift(5, coordinates="euclidean"), Negation(2)],
    "torus": lambda: [Translation(3, 0, 2.0), Translation(4, 1, 2.0), Translation(2, 0, 2.0)],
    "half period and negation": lambda: [Translation(2, 0, 2.0), Negation(0)],
    "principal": lambda: [PrincipalNegation(rows, 0.5) for rows in random_rows(4, 4)[:, None]],
    "own": lambda: [RollThree(), Negation()],
    "one": lambda: [Rotation(3)],
}

NOT_COMMUTING: dict[str, Pair] = {
    "flip and rotation": lambda: [ImageFlip(SHAPE, 0), ImageRotation90(SHAPE)],
    "rotations with a common column": lambda: [Rotation(3), Rotation(3, (1, 2))],
    "principal": lambda: [PrincipalNegation(random_rows(1, 3, seed=seed), 0.0) for seed in (0, 1)],
    "own": lambda: [RollThree(), Negation(0)],
}

DEPENDENT: dict[str, tuple[Pair, tuple[int, ...]]] = {
    "twice": (lambda: [Negation(), Negation()], (1, 1)),
    "power": (lambda: [Rotation(6), Rotation(3)], (2, 2)),
    "half turns": (lambda: [Rotation(4), Rotation(6)], (2, 3)),
    "the rotation and its square": (lambda: [ImageRotation90(SHAPE), both_flips()], (2, 1)),
    "fixed columns": (lambda: [Orthogonal(-np.eye(2)), Negation()], (1, 1)),
}


def both_flips() -> CyclicTransform:
    return Permutation(np.arange(16)[::-1])


@pytest.mark.parametrize("name", COMMUTING)
def test_orbit_against_nested_loops(name: str) -> None:
    axes = COMMUTING[name]()
    product = Product(axes)
    assert product.axes == tuple(axes)
    assert product.orders == tuple(axis.order for axis in axes)
    assert product.order == np.prod(product.orders)
    columns = product.input_dim or product.min_input_dim + 1
    X = product.probes(3, columns, seed=5).reshape(3, 1, columns)
    orbit = product.orbit(X)
    np.testing.assert_array_equal(orbit[0], X)
    for position, exponents in enumerate(itertools.product(*map(range, product.orders))):
        expected = X
        for axis, exponent in zip(axes, exponents, strict=True):
            for _ in range(exponent):
                expected = axis(expected)
        assert product.distance(orbit[position], expected) < 1e-12
        assert product.distance(product.power(X, exponents), expected) < 1e-12
        backwards = tuple(s - t for s, t in zip(exponents, product.orders, strict=True))
        assert product.distance(product.power(X, backwards), expected) < 1e-12
    once = product.power(X, (1,) * len(axes))
    np.testing.assert_array_equal(product(X), once)
    for first, second in itertools.combinations(orbit, 2):
        assert product.distance(first, second) > 1e-3


@pytest.mark.parametrize("name", NOT_COMMUTING)
def test_what_does_not_commute_is_named(name: str) -> None:
    first, second = NOT_COMMUTING[name]()
    # A third that commutes with both, so that the positions in the message are not always 0 and 1.
    bystander = [Negation(7)] if first.input_dim is None and second.input_dim is None else []
    offset = len(bystander)
    message = f"those at {offset} and {offset + 1}, {first!r} and {second!r}, give points"
    with pytest.raises(ValueError, match=re.escape(message)):
        Product([*bystander, first, second])


@pytest.mark.parametrize("name", DEPENDENT)
def test_elements_that_coincide(name: str) -> None:
    factory, exponents = DEPENDENT[name]
    message = re.escape(f"the exponents {exponents} is the identity")
    with pytest.raises(ValueError, match=f"transforms must be independent.* {message}.*leave out"):
        Product(factory())


def test_columns_of_the_factors() -> None:
    assert_refused([(lambda: Product([]), "transforms must be one or more, found none")])
    product = Product([Negation(), Negation([0, 3])])
    assert (product.input_dim, product.min_input_dim) == (None, 4)
    # With the four columns alone nothing is lost, but one column would make these the same:
    product = Product([Negation(), Negation(0)])
    assert (product.input_dim, product.min_input_dim) == (None, 2)
    product = Product([Negation(), Permutation([1, 0, 2])])
    assert (product.input_dim, product.min_input_dim) == (3, 3)


def test_nested_products_are_flattened() -> None:
    a, b, c = Negation(0), Rotation(3, (1, 2)), Negation(3)
    nested = Product([a, Product([b, Product([c])])])
    assert nested.axes == (a, b, c)
    X = nested.probes(3)
    np.testing.assert_array_equal(nested.orbit(X), Product([a, b, c]).orbit(X))


class Wrong(RollThree):
    """Of another order than it says."""

    def __init__(self, order: int) -> None:
        self.order = order


# Every error names the argument, the value found, and what to pass instead.

ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: Negation([0, -1]), r"dims must be different columns, .* found \[0, -1\]; pass each"),
    (lambda: Orthogonal(2 * np.eye(2)), "have orthonormal .*error of 3.*np.linalg.qr"),
    (lambda: Orthogonal([[0.6, -0.8], [0.8, 0.6]]), "matrix has no power up to 65536.* pass a"),
    (lambda: Permutation([0, 1, 2]), r"Permutation\(.*\[0, 1, 2\]\).*is the identity.*leave"),
    (lambda: ImageRotation90((3, 4)), r"must be square.*found \(3, 4\).*cropped or padded"),
    (
        lambda: Product([Permutation([1, 0, 2]), Negation(3)]),
        r"act on the same number of columns, found: .*\) needs .*Negation\(.*\) needs ",
    ),
    (lambda: Product([Wrong(6), Negation()]), r"Wrong\(order=6\).*power 3 is the identity already"),
    (
        lambda: Negation([0, 1]).orbit(np.zeros((7, 1))),
        r"X must have at least 2 columns for Negation\(.*\), found 1 \(shape \(7, 1\)\)",
    ),
]


def test_errors() -> None:
    assert_refused(ERRORS)
