"""Values, shapes and graphs of the spherical harmonics."""

from math import factorial

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp
from scipy.special import eval_gegenbauer, roots_gegenbauer

from interdomain.families.sphere.mathematics.dimensions import chains_of_degrees
from interdomain.families.sphere.mathematics.harmonic_products import chosen_harmonics
from interdomain.families.sphere.mathematics.harmonics import _compiled, spherical_harmonics
from interdomain.sphere import num_harmonics
from tests.conformance.helpers import compiled, value_and_gradients
from tests.families.sphere.mathematics.references import (
    count_monomials_free_of_r2,
    legendre_in,
    multiplicity,
    unit_vectors,
)

pytestmark = pytest.mark.usefixtures("eager")


def addition_theorem_error(dimension: int, max_degree: int, dtype: tf.DType) -> float:
    """The largest |sum_j Y_lj(x) Y_lj(x') - N P_l(x . x')| / N over pairs and degrees."""
    x = unit_vectors(3, dimension)
    x = np.concatenate([x, -x[:1], np.eye(dimension)[-1:]]).astype(dtype.as_numpy_dtype)
    harmonics = spherical_harmonics(tf.constant(x), range(max_degree + 1)).numpy()
    assert harmonics.dtype == dtype.as_numpy_dtype
    harmonics = harmonics.astype(float)
    # The polynomials at the given points, not at the points on the sphere that they round.
    exact = [[mp.mpf(float(v)) for v in row] for row in x]
    norms = [mp.sqrt(mp.fdot(a, a)) for a in exact]
    error, start = 0.0, 0
    for degree in range(max_degree + 1):
        size = multiplicity(dimension, degree)
        rows = harmonics[start : start + size]
        start += size
        for i in range(len(x)):
            for j in range(i + 1):
                scale = norms[i] * norms[j]
                t = mp.fdot(exact[i], exact[j]) / scale
                expected = float(legendre_in(dimension, degree, t) * scale**degree)
                error = max(error, abs(rows[:, i] @ rows[:, j] / size - expected))
    assert start == len(harmonics)
    return error


@pytest.mark.parametrize(
    "dimension, max_degree, dtype",
    [
        *((d, degree, tf.float64) for d, degree in [(2, 60), (3, 62), (5, 13), (20, 4), (100, 2)]),
        *((d, degree, tf.float32) for d, degree in [(3, 34), (9, 6)]),
    ],
)
def test_addition_theorem(dimension: int, max_degree: int, dtype: tf.DType) -> None:
    bound = 1e-11 if dtype == tf.float64 else 1e-4
    assert addition_theorem_error(dimension, max_degree, dtype) <= bound


def test_orthonormal_on_the_sphere() -> None:
    max_degree = 12
    height, weights = np.polynomial.legendre.leggauss(max_degree + 1)
    angles = 2 * np.pi * np.arange(2 * max_degree + 1) / (2 * max_degree + 1)
    z, phi = (a.ravel() for a in np.meshgrid(height, angles, indexing="ij"))
    X = np.stack([np.sqrt(1 - z**2) * np.cos(phi), np.sqrt(1 - z**2) * np.sin(phi), z], axis=1)
    mass = np.repeat(weights / 2, len(angles)) / len(angles)
    harmonics = spherical_harmonics(X, range(max_degree + 1)).numpy()
    assert len(harmonics) == (max_degree + 1) ** 2
    np.testing.assert_allclose((harmonics * mass) @ harmonics.T, np.eye(len(harmonics)), atol=1e-13)


@pytest.mark.parametrize("dimension", [2, 6])
def test_homogeneous_off_the_sphere(dimension: int) -> None:
    X = unit_vectors(5, dimension)
    for degree in range(5):
        on, off = (spherical_harmonics(scale * X, [degree]).numpy() for scale in (1.0, 1.7))
        np.testing.assert_allclose(off, 1.7**degree * on, rtol=1e-12, atol=1e-13)


def test_traced_once_whatever_the_number_of_points() -> None:
    tf.config.run_functions_eagerly(False)
    degrees = (0, 1, 4)
    before = _compiled.cache_info()
    for num in (1, 2, 7):
        spherical_harmonics(tf.constant(unit_vectors(num, 6)), degrees)
        spherical_harmonics(tf.constant(unit_vectors(2 * num, 6).reshape(2, num, 6)), list(degrees))
    after = _compiled.cache_info()
    assert after.misses <= before.misses + 1
    assert after.hits >= before.hits + 5
    assert _compiled(6, degrees, tf.float64).experimental_get_tracing_count() == 1


def test_size_of_the_graph() -> None:
    tf.config.run_functions_eagerly(False)

    gradient = compiled(
        lambda X: value_and_gradients(lambda: spherical_harmonics(X, range(4)), X)[1], [None, 10]
    )
    graph = gradient.get_concrete_function().graph.as_graph_def()
    functions = {f.signature.name: len(f.node_def) for f in graph.library.function}
    assert max(functions.values()) > 220  # the harmonics are in there, so the counts mean something
    # One block a coordinate and degree, 8 * 3, each about 25 operations forward, 40 backward.
    assert all(count <= 1_340 for count in functions.values()), functions
    assert len(graph.node) <= 100


# The hand-written gradient of the spherical harmonics.


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
    return value_and_gradients(
        lambda: weights * spherical_harmonics(points, range(max_degree + 1)), points
    )[1]


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
    _, gradient = value_and_gradients(lambda: spherical_harmonics(points, [degree]) ** 2, points)
    squared = np.sum(X**2, axis=1, keepdims=True)
    size = num_harmonics(dimension, degree)
    expected = 2 * degree * size * squared ** (degree - 1) * X
    np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-9)


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

    points = tf.constant(special_points(3)[:10])
    gradients = (
        value_and_gradients(lambda basis=basis: weights * basis(), points)[1]
        for basis in (
            lambda: spherical_harmonics(points, [degree]),
            lambda: tf.matmul(rotation, reference_harmonics(points, degree), transpose_a=True),
        )
    )
    np.testing.assert_allclose(*gradients, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dimension, max_degree", [(2, 4), (5, 2)])
def test_second_derivatives(dimension: int, max_degree: int) -> None:
    """Hessian times a direction; points do not interact."""
    X = special_points(dimension)
    size = sum(num_harmonics(dimension, degree) for degree in range(max_degree + 1))
    weights = np.random.default_rng(4).normal(size=(size, len(X)))
    direction = np.random.default_rng(5).normal(size=X.shape)
    points, step = tf.constant(X), 1e-5
    _, second = value_and_gradients(
        lambda: direction * weighted_gradient(points, max_degree, weights), points
    )
    forward, backward = (
        weighted_gradient(X + sign * step * direction, max_degree, weights) for sign in (1, -1)
    )
    difference = (forward - backward) / (2 * step)
    np.testing.assert_allclose(second, difference, rtol=1e-6, atol=1e-6)


# Chosen harmonics are harmonics of whole degrees, and the labels that choose them.


@pytest.mark.parametrize(("dimension", "max_degree"), [(2, 9), (4, 6), (30, 2)])
def test_values_and_gradients_of_all_and_of_some(dimension: int, max_degree: int) -> None:
    """Some: in any order, and without those of lower degree that they are multiples of."""
    rng = np.random.default_rng(dimension)
    X, scale = tf.constant(unit_vectors(5, dimension)), tf.constant(rng.uniform(0.5, 2.0, size=5))
    chains = chains_of_degrees(dimension, range(max_degree + 1))
    for rows in (np.arange(len(chains)), rng.permutation(len(chains))[: len(chains) // 3]):
        weights, results = rng.normal(size=(len(rows), 5)), []
        for evaluate in (
            lambda rows=rows, **scale: chosen_harmonics(X, chains[rows], **scale),
            lambda rows=rows, **scale: tf.gather(
                spherical_harmonics(X, range(max_degree + 1), **scale), rows
            ),
        ):
            values, gradients = value_and_gradients(
                lambda f=evaluate: f(scale=scale), (X, scale), weights
            )
            results.append((evaluate(), values, *gradients))
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("dimension", "degree"), [(3, 40), (12, 4)])
def test_addition_theorem_of_chosen_harmonics(dimension: int, degree: int) -> None:
    X = unit_vectors(8, dimension)
    Y = chosen_harmonics(X, chains_of_degrees(dimension, [degree])).numpy()
    half = dimension / 2 - 1
    cosines = np.clip(X @ X.T, -1, 1)
    legendre = eval_gegenbauer(degree, half, cosines) / eval_gegenbauer(degree, half, 1.0)
    count = num_harmonics(dimension, degree)
    np.testing.assert_allclose(Y.T @ Y / count, legendre, atol=1e-11)


def test_orthonormal_at_high_degree() -> None:
    """By Gauss quadrature, of some of 90,000 harmonics that are no multiples of each other."""
    degree = 30
    chains = np.array(
        [[0, 0, 0], [3, 7, 30], [-3, 7, 30], [0, 0, 30], [30, 30, 30], [-1, 29, 29], [3, 30, 30]]
    )
    angles = 2 * np.pi * np.arange(2 * degree + 1) / (2 * degree + 1)
    X, mass = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.ones(len(angles))
    for dimension in (3, 4):
        t, weights = roots_gegenbauer(degree + 1, dimension / 2 - 1)
        rest = np.sqrt(1 - t**2)[:, None, None] * X
        heights = np.broadcast_to(t[:, None, None], [*rest.shape[:2], 1])
        X = np.concatenate([rest, heights], axis=2).reshape(-1, dimension)
        mass = np.outer(weights, mass).ravel()
    Y = chosen_harmonics(X, chains).numpy()
    gram = (Y * (mass / np.sum(mass))) @ Y.T
    np.testing.assert_allclose(gram, np.eye(len(chains)), atol=1e-11)


def test_num_harmonics_is_the_dimension_of_harmonic_polynomials() -> None:
    for dimension in range(2, 7):
        for degree in range(7):
            expected = count_monomials_free_of_r2(dimension, degree)
            assert num_harmonics(dimension, degree) == expected
    known = {(2, 60): 2, (3, 62): 125, (9, 4): 450, (20, 3): 1520}
    assert {case: num_harmonics(*case) for case in known} == known
