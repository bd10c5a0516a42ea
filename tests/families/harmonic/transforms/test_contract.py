"""Tests of every transformation, and of products of them."""

import copy
import inspect
import itertools
import pickle
import re
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

import interdomain.transforms
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
from tests.conformance.helpers import assert_refused, compiled, value_and_gradients
from tests.families.harmonic.transforms.cases import CASES, SINGLE, RollThree, make, random_rows

ALL = pytest.mark.parametrize("name", list(CASES))
ONE = pytest.mark.parametrize("name", SINGLE)


def equal(transform: CyclicTransform, X: object, Y: object, tolerance: float = 1e-12) -> bool:
    return transform.distance(X, Y) <= tolerance * max(1.0, np.abs(np.asarray(X)).max())


def test_every_transformation_has_a_case() -> None:
    exported = {getattr(interdomain.transforms, name) for name in interdomain.transforms.__all__}
    assert {type(make(name)[0]) for name in CASES} - exported == {type(make("own")[0])}
    assert {c for c in exported if not inspect.isabstract(c)} <= {type(make(n)[0]) for n in CASES}


@ONE
def test_order_orbit_and_powers(name: str) -> None:
    """Against repeated application."""
    transform, order, num_columns = make(name)
    X = transform.probes(5, num_columns)
    assert transform.order == order
    iterates = [X]
    for _ in range(order):
        iterates.append(transform(iterates[-1]).numpy())
    assert [k for k in range(1, order + 1) if equal(transform, iterates[k], X)] == [order]
    orbit = transform.orbit(X)
    assert orbit.shape == (order, 5, num_columns)
    np.testing.assert_array_equal(orbit[0], X)
    for k in range(order):
        assert equal(transform, orbit[k], iterates[k])
    for k in (-order, -1, 0, 1, order - 1, order, order + 1):
        assert equal(transform, transform.power(X, k), iterates[k % order])
    np.testing.assert_array_equal(transform.power(X, -3 * order), X)
    np.testing.assert_array_equal(transform.power(X, (1,)), transform.power(X, np.int64(1)))


@ALL
def test_leading_dimensions(name: str) -> None:
    """Also of unknown sizes in a compiled function."""
    transform, order, D = make(name)
    for batch in ((), (3,), (2, 1, 3), (0,), (0, 2)):
        rows = transform.probes(int(np.prod(batch)), D)
        X, shape = rows.reshape(*batch, D), [*(None for _ in batch), D]
        expected = transform(rows), transform.orbit(rows)
        found = [(transform(X), transform.orbit(X))]
        if np.prod(batch) > 1:
            graph = compiled(lambda X: (transform(X), transform.orbit(X)), shape)
            found.append(graph(X))
            _, orbit = graph.get_concrete_function().structured_outputs
            assert orbit.shape.as_list() == [order, *shape]
        for one, orbit in found:
            assert (one.shape, orbit.shape) == (X.shape, (order, *X.shape)), batch
            for actual, desired in zip((one, orbit), expected, strict=True):
                flat = actual.numpy().reshape(desired.shape)
                np.testing.assert_allclose(
                    flat, desired, rtol=1e-14, atol=1e-14, err_msg=f"{batch}"
                )


@ALL
def test_float32(name: str) -> None:
    transform, order, num_columns = make(name)
    X = transform.probes(5, num_columns)
    orbit = transform.orbit(X.astype(np.float32))
    assert orbit.dtype == tf.float32
    assert transform(X.astype(np.float32)).dtype == tf.float32
    assert transform.power(X.astype(np.float32), (2,) * len(transform.orders)).dtype == tf.float32
    assert equal(transform, orbit, transform.orbit(X), 1e-5)


@ALL
def test_gradients_by_finite_differences(name: str) -> None:
    """Gradients of an orbit and a power; affine up to periods, which differences leave out."""
    transform, order, num_columns = make(name)
    exponent = tuple(range(1, 1 + len(transform.orders)))
    X, rng, step = transform.probes(3, num_columns, seed=3), np.random.default_rng(4), 1e-6
    direction = rng.normal(size=X.shape)
    for function, shape in (
        (transform.orbit, (order, *X.shape)),
        (lambda Y: transform.power(Y, exponent), X.shape),
    ):
        weights, variable = rng.normal(size=shape), tf.Variable(X)
        _, slopes = value_and_gradients(
            lambda X=variable, f=function, w=weights: w * f(X), variable
        )
        slope = np.sum(slopes * direction)
        later, before = (function(X + s * step * direction).numpy() for s in (1, -1))
        difference = np.sum(weights * transform.wrap(later - before)) / (2 * step)
        assert slope == pytest.approx(difference, rel=1e-6, abs=1e-7)


@ALL
def test_copies_and_representation(name: str) -> None:
    transform, _, num_columns = make(name)
    X = transform.probes(7, num_columns)
    assert len(transform.axes) * 100 >= len(repr(transform))
    orbit = transform.orbit(X)  # may be remembered: it must not stand in the way
    for twin in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        np.testing.assert_array_equal(twin.orbit(X), orbit)


@pytest.mark.parametrize("name", [n for n in SINGLE if n != "own"])
def test_the_graph_of_an_orbit_does_not_grow_with_the_order(name: str) -> None:
    """At most some thirty operations, whatever the order is."""
    transform, _, num_columns = make(name)
    orbit = compiled(transform.orbit, [None, num_columns]).get_concrete_function()
    operations = orbit.graph.get_operations()
    computing = [op for op in operations if op.type not in ("Const", "Identity")]
    assert len(computing) < 30


# A transformation of the user's own.


class Scaled(CyclicTransform):
    """A map ``x -> factor x`` that claims an order."""

    def __init__(self, factor: float, order: int) -> None:
        self.factor = factor
        self.order = order
        self.verify_order()

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self.factor * X


class Sum(Scaled):
    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(X, axis=0)


def test_order_and_shape_are_verified() -> None:
    assert Scaled(-1.0, 2).order == 2
    within = tf.function(lambda X: Product([Scaled(-1.0, 2), Negation(0)]).orbit(X))
    assert within(tf.ones([3, 2], tf.float64)).shape == (4, 3, 2)
    assert_refused(
        (lambda kind=kind, factor=factor, order=order: kind(factor, order), message)
        for kind, factor, order, message in (
            (Scaled, -1.0, 4, r"Scaled\(order=4\).*power 2.*pass order=2"),
            (Scaled, -2.0, 3, r"Scaled\(order=3\) is not of order 3.*moves a point"),
            (Scaled, 1.0, 5, r"Scaled\(order=5\) is the identity, which decomposes nothing; leave"),
            (Scaled, -1.0, 1, "order must be an integer from 2 to 65536, found 1"),
            (Sum, 1.0, 2, r"Sum\(order=2\) maps.*must return the shape"),
        )
    )


# Products of transformations: their orbits against loops, and wrong arguments.

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
    # Nested products are flattened.
    a, b, c = Negation(0), Rotation(3, (1, 2)), Negation(3)
    nested = Product([a, Product([b, Product([c])])])
    assert nested.axes == (a, b, c)
    X = nested.probes(3)
    np.testing.assert_array_equal(nested.orbit(X), Product([a, b, c]).orbit(X))


class Wrong(RollThree):
    """A transformation whose order is not the order that it declares."""

    def __init__(self, order: int) -> None:
        self.order = order


# Every error names the argument, the value found, and what to pass instead.


def test_errors() -> None:
    dims = r"dims must be different columns, .* found \[0, -1\]; pass each"
    other = r"act on the same number of columns, found: .*\) needs .*Negation\(.*\) needs "
    few = r"X must have at least 2 columns for Negation\(.*\), found 1 \(shape \(7, 1\)\)"
    turn, two, both = [[0.6, -0.8], [0.8, 0.6]], Negation([0, 1]), [Wrong(6), Negation()]
    identity = r"Permutation\(.*\[0, 1, 2\]\).*is the identity.*leave"
    assert_refused(
        [
            (lambda: Negation([0, -1]), dims),
            (lambda: Orthogonal(2 * np.eye(2)), "have orthonormal .*error of 3.*np.linalg.qr"),
            (lambda: Orthogonal(turn), "matrix has no power up to 65536.* pass a"),
            (lambda: Permutation([0, 1, 2]), identity),
            (lambda: ImageRotation90((3, 4)), r"must be square.*found \(3, 4\).*cropped or padded"),
            (lambda: Product([Permutation([1, 0, 2]), Negation(3)]), other),
            (lambda: Product(both), r"Wrong\(order=6\).*power 3 is the identity already"),
            (lambda: two.orbit(np.zeros((7, 1))), few),
        ]
    )
