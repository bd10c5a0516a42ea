"""Values, shapes and graphs of the spherical harmonics."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.sphere import num_harmonics, spherical_harmonics
from interdomain.sphere.harmonics import _compiled
from tests.sphere.references import legendre_in, multiplicity, unit_vectors

eager = pytest.mark.usefixtures("eager")


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


@eager
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


@eager
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


@eager
@pytest.mark.parametrize("dimension", [2, 6])
def test_homogeneous_off_the_sphere(dimension: int) -> None:
    X = unit_vectors(5, dimension)
    for degree in range(5):
        on, off = (spherical_harmonics(scale * X, [degree]).numpy() for scale in (1.0, 1.7))
        np.testing.assert_allclose(off, 1.7**degree * on, rtol=1e-12, atol=1e-13)


@eager
@pytest.mark.parametrize("dimension", [2, 7])
def test_a_subset_of_degrees_is_the_rows_of_all(dimension: int) -> None:
    X = unit_vectors(4, dimension)
    everything = spherical_harmonics(X, range(6)).numpy()
    starts = np.cumsum([0] + [num_harmonics(dimension, degree) for degree in range(6)])
    rows = np.concatenate([np.arange(starts[n], starts[n + 1]) for n in (1, 2, 5)])
    np.testing.assert_allclose(
        spherical_harmonics(X, [1, 2, 5]).numpy(), everything[rows], rtol=1e-14, atol=1e-15
    )


@eager
def test_a_subset_of_degrees_has_its_part_of_the_gradient() -> None:
    X = tf.constant(unit_vectors(4, 4))
    upstream = np.random.default_rng(1).normal(size=(9 + 25, 4))
    zeros = [np.zeros((num_harmonics(4, degree), 4)) for degree in (0, 1, 3)]
    padded = np.concatenate([zeros[0], zeros[1], upstream[:9], zeros[2], upstream[9:]])
    gradients = []
    for degrees, weights in (((2, 4), upstream), (tuple(range(5)), padded)):
        with tf.GradientTape() as tape:
            tape.watch(X)
            total = tf.reduce_sum(weights * spherical_harmonics(X, degrees))
        gradients.append(tape.gradient(total, X).numpy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-12, atol=1e-12)


@eager
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 1, 3, 4), (0, 4), (2, 0, 4)])
def test_batch_dimensions(shape: tuple[int, ...]) -> None:
    X = np.random.default_rng(2).normal(size=shape)
    harmonics = spherical_harmonics(X, range(4)).numpy()
    assert harmonics.shape == (30, *shape[:-1])
    flat = spherical_harmonics(X.reshape(-1, 4), range(4)).numpy()
    np.testing.assert_array_equal(harmonics.reshape(30, -1), flat)


def test_compiled_by_xla_equals_eager() -> None:
    X = tf.constant(unit_vectors(6, 4))

    def values_and_gradient(X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(X)
            harmonics = spherical_harmonics(X, range(3))
            total = tf.reduce_sum(harmonics**3)
        return harmonics, tape.gradient(total, X)

    compiled = tf.function(values_and_gradient, jit_compile=True, autograph=False)(X)
    for actual, expected in zip(compiled, values_and_gradient(X), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-11)


def test_traced_once_whatever_the_number_of_points() -> None:
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
    @tf.function(input_signature=[tf.TensorSpec([None, 10], tf.float64)], autograph=False)
    def gradient(X: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(X)
            total = tf.reduce_sum(spherical_harmonics(X, range(4)))
        return tape.gradient(total, X)

    graph = gradient.get_concrete_function().graph.as_graph_def()
    functions = {f.signature.name: len(f.node_def) for f in graph.library.function}
    assert max(functions.values()) > 220  # the harmonics are in there, so the counts mean something
    # One block a coordinate and degree, 8 * 3, each about 25 operations forward, 40 backward.
    assert all(count <= 1_340 for count in functions.values()), functions
    assert len(graph.node) <= 100
