"""Matern features on an interval: RKHS inner products computed apart, structure against dense."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

from interdomain.core.pairs import block_batches
from interdomain.inducing_variables import SumInducingVariables, VariationalFourierFeatures
from interdomain.models import StructuredSGPR
from tests.conformance.helpers import (
    assert_close,
    assert_gradients,
    assert_refused,
    assert_same_objective,
    value_and_gradients,
)

from .interval_cases import (
    LOWER,
    MATERNS,
    UPPER,
    by_quadrature,
    data,
    features,
    kernel,
    on_grids,
    phi,
)

EACH = pytest.mark.parametrize("order", [0, 1, 2], ids=["matern12", "matern32", "matern52"])
BEYOND = np.array([-1.5, -0.4, 2.0, 2.7, 4.0])[:, None]


def scaled(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))


@EACH
@pytest.mark.parametrize("count", [0, 1, 6])
def test_inner_products_by_quadrature(order: int, count: int) -> None:
    k = kernel(order)
    for degree in (0, 1, 2, 3):
        iv = features(count, degree)
        expected = by_quadrature(iv, order, k)
        assert_close(scaled(Kuu(iv, k).numpy()), scaled(expected), rtol=1e-12)
        np.testing.assert_allclose(np.diag(Kuu(iv, k)), np.diag(expected), rtol=1e-12)


@EACH
def test_inner_products_on_grids(order: int) -> None:
    """Inner products ``phi^T K^-1 phi`` from values on finer and finer grids, and covariances with
    f outside of the interval."""
    k, iv = kernel(order), features()
    inner, cross = on_grids(iv, k, BEYOND)
    assert_close(Kuu(iv, k), inner, rtol=2e-4)
    assert_close(Kuf(iv, k, BEYOND), cross, rtol=2e-3 if order else 1e-10)


@EACH
def test_features_inside(order: int) -> None:
    """Whatever the kernel's parameters."""
    k, iv, x = kernel(order), features(5, 2), np.linspace(LOWER, UPPER, 9)
    assert_close(Kuf(iv, k, x[:, None]), phi(iv, x), rtol=1e-13)
    gradients = value_and_gradients(
        lambda: tf.sin(Kuf(iv, k, x[1:-1, None])), k.trainable_variables
    )[1]
    assert not any(np.any(gradient) for gradient in gradients if gradient is not None)


@EACH
def test_derivatives_are_continued_at_the_ends(order: int) -> None:
    """p of them: the process is Markov in its value and these."""
    k, iv, step = kernel(order), features(), 1e-3
    for end in (LOWER, UPPER):
        x = end + step * np.arange(-4, 5)
        values = Kuf(iv, k, x[:, None]).numpy()
        assert_close(values[:, 4], phi(iv, np.array([end]))[:, 0], rtol=1e-12)
        for n in range(1, order + 1):
            left, right = _one_sided(x - end, values, n)
            assert_close(left, right, rtol=1e-5)


def _one_sided(x: np.ndarray, values: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives at zero of the polynomials through the points on either side."""
    return tuple(
        np.array(
            [np.polynomial.Polynomial.fit(x[s], row[s], 4).deriv(order)(0.0) for row in values]
        )
        for s in (slice(0, 5), slice(4, 9))
    )


@EACH
def test_gradients(order: int) -> None:
    """To the kernel's parameters and X, within and beyond."""
    k, iv = kernel(order), features(2)
    X = tf.Variable(np.array([[-1.1], [-0.5], [0.3], [1.1], [2.2]]))
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(8, 5)), rng.normal(size=(8, 8))

    def sums() -> tf.Tensor:
        return tf.stack([tf.reduce_sum(A * Kuf(iv, k, X)), tf.reduce_sum(B * Kuu(iv, k)) / 100])

    assert_gradients(sums, (*k.trainable_variables, X))


def test_root_of_a_batch_of_two_ranks() -> None:
    """Values and gradients of what posteriors ask of it, against dense algebra."""
    total = kernel(0, active_dims=[0]) + kernel(2, active_dims=[1])
    blocks = SumInducingVariables([features(), VariationalFourierFeatures(-2.0, 3.0, 3)])
    (batch,) = block_batches(blocks, total)
    rng = np.random.default_rng(0)
    B, weights = rng.normal(size=(2, 2, 10, 4))
    dense = batch.operator(0.0).to_dense().numpy()
    for matrix, pair in zip(dense, zip(blocks.blocks, total.kernels, strict=True), strict=True):
        assert_close(matrix, Kuu(*pair), rtol=1e-14)
    assert_close(batch.features(BEYOND * [1, 1])[1], Kuf(blocks.blocks[1], kernel(2), BEYOND))

    def by_root() -> tf.Tensor:
        root = batch.operator(0.0).root()
        solved = tf.reduce_sum(tf.square(root.solve(B)))
        back = tf.reduce_sum(weights * root.solve(root.solve(B), adjoint=True))
        return solved + back + tf.reduce_sum(root.log_determinant())

    def by_dense() -> tf.Tensor:
        dense = batch.operator(0.0).to_dense()
        solved = tf.linalg.solve(dense, tf.constant(B))
        log_determinant = tf.reduce_sum(tf.linalg.slogdet(dense)[1]) / 2
        return tf.reduce_sum((B + weights) * solved) + log_determinant

    assert_same_objective(by_root, by_dense, total.trainable_variables, rtol=1e-9)


@EACH
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_lengths_of_any_unit_in_float32(order: int, unit: float) -> None:
    """Powers of 1/lengthscale and of frequencies would leave the range of float32."""

    def covariances(dtype: type) -> tuple[np.ndarray, np.ndarray]:
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            k = MATERNS[order](variance=800.0, lengthscales=0.2 * unit)
            iv = VariationalFourierFeatures(-unit, 1.5 * unit, 20)
            X = unit * np.array([[-1.3], [-0.9], [0.4], [1.6]]).astype(dtype)
            return Kuu(iv, k).numpy(), Kuf(iv, k, X).numpy()

    for single, double in zip(covariances(np.float32), covariances(np.float64), strict=True):
        np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-4 * np.max(np.abs(double)))


def test_interval_around_data() -> None:
    for X in (np.array([[1.0], [3.0], [2.0]]), np.array([1.0, 3.0, 2.0])):
        features = VariationalFourierFeatures.from_data(X, 4, margin=0.25)
        assert (features.lower, features.upper, features.num_frequencies) == (0.5, 3.5, 4)
    tight = VariationalFourierFeatures.from_data(X, 4, polynomial_degree=2)
    assert (tight.lower, tight.upper, tight.num_inducing) == (1.0, 3.0, 11)


@EACH
def test_polynomials_reach_the_ends(order: int) -> None:
    """On the data's own range: a bound that waves alone are far from, and rows there."""
    k, (X, Y) = kernel(order), data(60)
    k.lengthscales.assign(0.5)
    exact = gpflow.models.GPR((X, Y), k, noise_variance=0.05).log_marginal_likelihood()
    gaps = []
    for degree in (0, order + 1, 3):
        iv = VariationalFourierFeatures.from_data(X, 20, polynomial_degree=degree)
        model = StructuredSGPR((X, Y), k, iv, noise_variance=0.05, progress=False)
        gaps.append(float(exact - model.elbo()))
    assert 0 < gaps[2] <= gaps[1] + 1e-9 and gaps[1] < gaps[0] / (10 if order else 1.3)


def test_errors() -> None:
    make = VariationalFourierFeatures
    assert_refused(
        [
            (lambda: make(1.0, -1.0, 3), "upper must be above lower = 1.0, found -1"),
            (lambda: make(0.0, 1.0, 3, polynomial_degree=4), "polynomial_degree must be at most 3"),
            (lambda: make(0.0, 1.0, 3, polynomial_degree=-1), "polynomial_degree must be"),
            (lambda: make.from_data(np.zeros([3, 2]), 3), r"one column \[N, 1\], found shape"),
        ]
    )
