"""The hand-written gradient of the spherical harmonics."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
import tensorflow as tf

from interdomain.sphere import num_harmonics, spherical_harmonics
from tests.sphere.references import unit_vectors

pytestmark = pytest.mark.usefixtures("eager")


def special_points(dimension: int) -> np.ndarray:
    """The poles of every axis, points with zero sub-vectors, the origin, and ordinary points."""
    ordinary = unit_vectors(2, dimension)
    leading, trailing = ordinary.copy(), ordinary.copy()
    leading[:, : dimension // 2] = 0
    trailing[:, (dimension + 1) // 2 :] = 0
    poles, origin = np.eye(dimension), np.zeros((1, dimension))
    return np.concatenate([ordinary, poles, -poles, leading, trailing, origin])


def weighted_gradient(X: tf.Tensor, max_degree: int, weights: np.ndarray) -> tf.Tensor:
    """The gradient of a weighted sum over all harmonics and points."""
    points = tf.convert_to_tensor(X)
    with tf.GradientTape() as tape:
        tape.watch(points)
        total = tf.reduce_sum(weights * spherical_harmonics(points, range(max_degree + 1)))
    return tape.gradient(total, points)


@pytest.mark.parametrize("dimension, max_degree", [(2, 6), (3, 5), (6, 3)])
def test_gradient_is_finite_and_that_of_finite_differences(dimension: int, max_degree: int) -> None:
    X, degrees, step = special_points(dimension), range(max_degree + 1), 1e-5
    size = sum(num_harmonics(dimension, degree) for degree in degrees)
    weights = np.random.default_rng(0).normal(size=(size, len(X)))
    gradient = weighted_gradient(X, max_degree, weights)
    assert np.all(np.isfinite(gradient))
    differences = [
        weights
        * (
            spherical_harmonics(X + step * axis, degrees).numpy()
            - spherical_harmonics(X - step * axis, degrees).numpy()
        )
        / (2 * step)
        for axis in np.eye(dimension)
    ]
    np.testing.assert_allclose(gradient, np.sum(differences, axis=1).T, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("dimension, degree", [(9, 3), (50, 1)])
def test_gradient_in_high_dimensions_at_the_poles(dimension: int, degree: int) -> None:
    """grad |Y|^2 sums over the harmonics of a degree to that of the homogeneous N |x|^(2l)."""
    X = special_points(dimension)[:-1]
    points = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(points)
        total = tf.reduce_sum(spherical_harmonics(points, [degree]) ** 2)
    squared = np.sum(X**2, axis=1, keepdims=True)
    size = num_harmonics(dimension, degree)
    expected = 2 * degree * size * squared ** (degree - 1) * X
    np.testing.assert_allclose(tape.gradient(total, points), expected, rtol=1e-11, atol=1e-9)


def reference_harmonics(X: tf.Tensor, degree: int) -> tf.Tensor:
    """The real solid harmonics of R^3 by the associated Legendre polynomials, as explicit sums.

    r^l P_l^m(z / r) (x^2 + y^2)^(-m/2) is a polynomial in z and r^2; times Re and Im (x + iy)^m.
    """
    x, y, z = tf.unstack(X, axis=-1)
    r2 = x**2 + y**2 + z**2
    z_to = [tf.ones_like(z)]  # tf.pow's gradient at 0^0 is NaN
    r2_to = [tf.ones_like(z)]
    for _ in range(degree):
        z_to.append(z_to[-1] * z)
        r2_to.append(r2_to[-1] * r2)
    rows = []
    re, im = tf.ones_like(x), tf.zeros_like(x)
    for m in range(degree + 1):
        polynomial = tf.zeros_like(z)
        for k in range((degree - m) // 2 + 1):
            coefficient = (-1) ** k * factorial(2 * degree - 2 * k) / 2**degree
            coefficient /= factorial(k) * factorial(degree - k) * factorial(degree - 2 * k - m)
            polynomial += coefficient * r2_to[k] * z_to[degree - 2 * k - m]
        norm = np.sqrt((2 * degree + 1) * factorial(degree - m) / factorial(degree + m))
        norm *= np.sqrt(2) if m else 1
        rows.append(norm * polynomial * re)
        if m:
            rows.append(norm * polynomial * im)
        re, im = re * x - im * y, re * y + im * x
    return tf.stack(rows)


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_gradient_is_autodiff_of_the_associated_legendre_harmonics(degree: int) -> None:
    """Both bases span the same space: one is a constant orthogonal matrix times the other."""
    X, size = unit_vectors(40, 3), 2 * degree + 1
    weights = np.random.default_rng(3).normal(size=(size, 10))
    ours = spherical_harmonics(X, [degree]).numpy()
    rotation = np.linalg.lstsq(reference_harmonics(X, degree).numpy().T, ours.T, rcond=None)[0]
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(size), atol=1e-12)

    points, gradients = tf.constant(special_points(3)[:10]), []
    for basis in (
        lambda points: spherical_harmonics(points, [degree]),
        lambda points: tf.matmul(rotation, reference_harmonics(points, degree), transpose_a=True),
    ):
        with tf.GradientTape() as tape:
            tape.watch(points)
            total = tf.reduce_sum(weights * basis(points))
        gradients.append(tape.gradient(total, points).numpy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dimension, max_degree", [(2, 4), (5, 2)])
def test_second_derivatives(dimension: int, max_degree: int) -> None:
    """Hessian times a direction; points do not interact."""
    X = special_points(dimension)
    size = sum(num_harmonics(dimension, degree) for degree in range(max_degree + 1))
    weights = np.random.default_rng(4).normal(size=(size, len(X)))
    direction = np.random.default_rng(5).normal(size=X.shape)
    points, step = tf.constant(X), 1e-5
    with tf.GradientTape() as tape:
        tape.watch(points)
        slope = tf.reduce_sum(direction * weighted_gradient(points, max_degree, weights))
    forward, backward = (
        weighted_gradient(X + sign * step * direction, max_degree, weights) for sign in (1, -1)
    )
    np.testing.assert_allclose(
        tape.gradient(slope, points), (forward - backward) / (2 * step), rtol=1e-6, atol=1e-6
    )
