"""Sums over blocks against loops in NumPy, and gradients in closed form against autodiff's."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from interdomain.posteriors.gaussian import square_root
from interdomain.posteriors.quadratic_forms import (
    covariance_change,
    dense_marginals,
    mean_of_blocks,
    variance_change,
)

SIZE, NUM_DATA = 5, 7
RTOL = 1e-9
SIZES = pytest.mark.parametrize("latent", [1, 3], ids="P={}".format)
BLOCKS = pytest.mark.parametrize("blocks", [1, 4], ids="T={}".format)


class Forms:
    """Random blocks: L lower triangular with entries above the diagonal zero, as for q_sqrt."""

    def __init__(self, blocks: int, latent: int) -> None:
        rng = np.random.default_rng(10 * blocks + latent)
        self.root = np.tril(rng.normal(size=(blocks, SIZE, SIZE))) / 2 + 2 * np.eye(SIZE)
        self.columns = rng.normal(size=(blocks, SIZE, NUM_DATA))
        self.q_mu = rng.normal(size=(blocks, SIZE, latent))
        self.dense = np.tril(rng.normal(size=(blocks, latent, SIZE, SIZE)))
        self.diagonal = rng.uniform(0.3, 1.5, size=(blocks, SIZE, latent))
        self.to_mean = rng.normal(size=(NUM_DATA, latent))
        self.to_change = rng.normal(size=(NUM_DATA, latent))

    def q_sqrt(self, q_diag: bool) -> np.ndarray:
        return self.diagonal if q_diag else self.dense

    def covariance_of_q(self, t: int, p: int, q_diag: bool) -> np.ndarray:
        if q_diag:
            return np.diag(self.diagonal[t, :, p] ** 2)
        return self.dense[t, p] @ self.dense[t, p].T

    def mean_by_loop(self, features: np.ndarray) -> np.ndarray:
        return sum(A.T @ mean for A, mean in zip(features, self.q_mu, strict=True))

    def covariance_by_loop(self, features: np.ndarray, q_diag: bool) -> np.ndarray:
        """``[P, N, N]``"""
        latent = self.q_mu.shape[-1]
        result = np.zeros((latent, NUM_DATA, NUM_DATA))
        for p in range(latent):
            for t, A in enumerate(features):
                result[p] += A.T @ (self.covariance_of_q(t, p, q_diag) - np.eye(SIZE)) @ A
        return result


@pytest.fixture
def forms(blocks: int, latent: int) -> Forms:
    return Forms(blocks, latent)


@BLOCKS
@SIZES
def test_mean(forms: Forms) -> None:
    np.testing.assert_allclose(
        mean_of_blocks(forms.columns, forms.q_mu), forms.mean_by_loop(forms.columns), rtol=1e-12
    )


@BLOCKS
@SIZES
@pytest.mark.parametrize("q_diag", [True, False], ids=["diagonal", "full"])
def test_changes(forms: Forms, q_diag: bool) -> None:
    expected = forms.covariance_by_loop(forms.columns, q_diag)
    q_sqrt = tf.constant(forms.q_sqrt(q_diag))
    tolerance = 1e-12 * np.max(np.abs(expected))
    np.testing.assert_allclose(
        covariance_change(tf.constant(forms.columns), q_sqrt), expected, rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(
        variance_change(tf.constant(forms.columns), q_sqrt),
        np.diagonal(expected, axis1=1, axis2=2).T,
        rtol=0,
        atol=tolerance,
    )


@BLOCKS
@SIZES
def test_dense_marginals(forms: Forms) -> None:
    features = np.stack(
        [np.linalg.solve(L, c) for L, c in zip(forms.root, forms.columns, strict=True)]
    )
    expected = np.diagonal(forms.covariance_by_loop(features, False), axis1=1, axis2=2).T
    mean, change = dense_marginals(forms.root, forms.columns, forms.q_mu, forms.dense)
    np.testing.assert_allclose(mean, forms.mean_by_loop(features), rtol=1e-11)
    np.testing.assert_allclose(change, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


def plain(root: tf.Tensor, columns: tf.Tensor, q_mu: tf.Tensor, q_sqrt: tf.Tensor) -> tuple:
    """What TensorFlow differentiates by itself; only lower triangles are read."""
    root = tf.linalg.band_part(root, -1, 0)
    q_sqrt = tf.linalg.band_part(q_sqrt, -1, 0)
    A = tf.linalg.solve(root, columns)
    mean = tf.einsum("tmn,tmp->np", A, q_mu)
    projected = tf.einsum("tpij,tin->tpjn", q_sqrt, A)
    change = tf.einsum("tpjn,tpjn->np", projected, projected)
    return mean, change - tf.einsum("tmn,tmn->n", A, A)[:, None]


@BLOCKS
@SIZES
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("upstream", ["both", "mean", "change"])
def test_gradients_of_dense_marginals(forms: Forms, compiled: bool, upstream: str) -> None:
    inputs = [tf.constant(v) for v in (forms.root, forms.columns, forms.q_mu, forms.dense)]

    def gradients(function) -> list[tf.Tensor]:  # noqa: ANN001
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            mean, change = function(*inputs)
            value = tf.constant(0.0, tf.float64)
            if upstream != "change":
                value += tf.reduce_sum(forms.to_mean * mean)
            if upstream != "mean":
                value += tf.reduce_sum(forms.to_change * change)
        zero = tf.UnconnectedGradients.ZERO
        return tape.gradient(value, inputs, unconnected_gradients=zero)

    actual = (tf.function(gradients) if compiled else gradients)(dense_marginals)
    expected = gradients(plain)
    for k, (gradient, reference) in enumerate(zip(actual, expected, strict=True)):
        scale = np.max(np.abs(reference))
        assert scale > 0 or (upstream, k) in (("mean", 3), ("change", 2))
        np.testing.assert_allclose(gradient, reference, rtol=0, atol=RTOL * scale)


@BLOCKS
def test_gradient_of_square_root(blocks: int) -> None:
    """To a matrix that is symmetric for any value of what it is a function of; the upstream
    gradient has entries above the diagonal, which do not count."""
    rng = np.random.default_rng(blocks)
    value = tf.constant(rng.normal(size=(blocks, SIZE, SIZE)))
    weights = tf.constant(rng.normal(size=(blocks, SIZE, SIZE)))

    def gradients(factor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:  # noqa: ANN001
        with tf.GradientTape() as tape:
            tape.watch(value)
            matrix = tf.matmul(value, value, transpose_b=True) + tf.eye(SIZE, dtype=value.dtype)
            tape.watch(matrix)
            root = factor(matrix)
            objective = tf.reduce_sum(weights * tf.sin(root))
        return root, *tape.gradient(objective, [matrix, value])

    def ours(matrix: tf.Tensor) -> tf.Tensor:
        operator = tf.linalg.LinearOperatorFullMatrix(
            matrix, is_self_adjoint=True, is_positive_definite=True
        )
        return square_root(operator).to_dense()

    actual, expected = gradients(ours), gradients(tf.linalg.cholesky)
    np.testing.assert_allclose(
        actual[0], np.linalg.cholesky(value @ tf.linalg.adjoint(value) + np.eye(SIZE)), atol=1e-12
    )
    for gradient, reference in zip(actual[1:], expected[1:], strict=True):
        scale = np.max(np.abs(reference))
        assert scale > 0.1
        np.testing.assert_allclose(gradient, reference, rtol=0, atol=RTOL * scale)
