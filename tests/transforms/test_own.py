"""A transformation of the user's own."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from interdomain.transforms import CyclicTransform, Negation, Product
from tests.transforms.cases import RollThree


class Scaled(CyclicTransform):
    """A map ``x -> factor x`` that claims an order."""

    def __init__(self, factor: float, order: int) -> None:
        self.factor = factor
        self.order = order
        self.verify_order()

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self.factor * X


class Swap(CyclicTransform):
    """The example of the documentation."""

    order = 2

    def __init__(self, input_dim: int) -> None:
        self.input_dim = input_dim
        self.verify_order()

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.roll(X, self.input_dim // 2, axis=-1)


def test_order_is_verified() -> None:
    assert Scaled(-1.0, 2).order == 2
    with pytest.raises(ValueError, match=r"Scaled\(order=4\).*power 2.*pass order=2"):
        Scaled(-1.0, 4)
    with pytest.raises(ValueError, match=r"Scaled\(order=3\) is not of order 3.*moves a point"):
        Scaled(-1.0, 3)
    with pytest.raises(
        ValueError,
        match=r"Scaled\(order=5\) is the identity, which decomposes nothing; leave it out",
    ):
        Scaled(1.0, 5)
    with pytest.raises(ValueError, match="order must be an integer from 2 to 65536, found 1"):
        Scaled(-1.0, 1)


def test_shape_is_verified() -> None:
    class Sum(Scaled):
        def __call__(self, X: tf.Tensor) -> tf.Tensor:
            return tf.reduce_sum(X, axis=0)

    with pytest.raises(ValueError, match=r"Sum\(order=2\) maps.*must return the shape"):
        Sum(1.0, 2)


def test_orbit_and_power_come_with_the_base_class() -> None:
    X = np.random.default_rng(0).normal(size=(3, 4))
    expected = np.stack([X, X[:, [2, 0, 1, 3]], X[:, [1, 2, 0, 3]]])
    np.testing.assert_array_equal(RollThree().orbit(X), expected)
    np.testing.assert_array_equal(RollThree().power(X, -1), expected[2])
    np.testing.assert_array_equal(Swap(4)(X), X[:, [2, 3, 0, 1]])
    assert Product([Swap(4), Negation()]).order == 4


def test_made_within_a_compiled_function() -> None:
    @tf.function
    def function(X: tf.Tensor) -> tf.Tensor:
        return Product([Scaled(-1.0, 2), Negation(0)]).orbit(X)

    X = tf.ones([3, 2], tf.float64)
    assert function(X).shape == (4, 3, 2)
