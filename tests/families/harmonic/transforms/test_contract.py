"""What holds for every transformation."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest
import tensorflow as tf

import interdomain.transforms
from interdomain.transforms import CyclicTransform, Negation, Product
from tests.conformance.helpers import assert_refused
from tests.families.harmonic.transforms.cases import CASES, SINGLE, make

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
            compiled = tf.function(
                lambda X: (transform(X), transform.orbit(X)),
                input_signature=[tf.TensorSpec(shape, tf.float64)],
                autograph=False,
            )
            found.append(compiled(X))
            _, orbit = compiled.get_concrete_function().structured_outputs
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
    """Of an orbit and of a power; affine up to periods, which the difference leaves out."""
    transform, order, num_columns = make(name)
    exponent = tuple(range(1, 1 + len(transform.orders)))
    X, rng, step = transform.probes(3, num_columns, seed=3), np.random.default_rng(4), 1e-6
    direction = rng.normal(size=X.shape)
    for function, shape in (
        (transform.orbit, (order, *X.shape)),
        (lambda Y: transform.power(Y, exponent), X.shape),
    ):
        weights, variable = rng.normal(size=shape), tf.Variable(X)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * function(variable))
        slope = np.sum(tape.gradient(loss, variable).numpy() * direction)
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
    signature = [tf.TensorSpec([None, num_columns], tf.float64)]
    orbit = tf.function(transform.orbit, input_signature=signature, autograph=False)
    operations = orbit.get_concrete_function().graph.get_operations()
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


def test_made_within_a_compiled_function() -> None:
    function = tf.function(lambda X: Product([Scaled(-1.0, 2), Negation(0)]).orbit(X))
    assert function(tf.ones([3, 2], tf.float64)).shape == (4, 3, 2)
