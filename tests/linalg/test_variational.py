"""Sums over blocks against loops in NumPy, and gradients in closed form against autodiff's."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from interdomain.linalg import diagonal_operator, full_operator, square_root, variational
from interdomain.linalg.diagonal import DiagonalRoot
from interdomain.linalg.full import FullRoot
from interdomain.linalg.variational import (
    Variational,
    Whitened,
    feature_terms,
    joint_feature_terms,
    kl_divergence,
    marginal_terms,
    whitened,
)

SIZE, NUM_DATA = 5, 7
RTOL = 1e-9


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


# One block and one latent GP are multiplied without batch axes, one latent GP without its own.
EACH_SIZE = pytest.mark.parametrize("forms", [(1, 1), (4, 1), (4, 3)], ids=str, indirect=True)


@pytest.fixture
def forms(request: pytest.FixtureRequest) -> Forms:
    return Forms(*request.param)


@EACH_SIZE
@pytest.mark.parametrize("q_diag", [True, False], ids=["diagonal", "full"])
def test_changes(forms: Forms, q_diag: bool) -> None:
    """Of one set of points, and of several, one behind the other, which are as each alone."""
    q = Whitened(tf.constant(forms.q_mu), tf.constant(forms.q_sqrt(q_diag)))
    sets = [forms.columns * scale for scale in (1.0, -0.7, 2.0)]
    for some in (sets[:1], sets):
        A = tf.concat(some, axis=-1)
        mean, changes = joint_feature_terms(A, A, q, tf.constant(len(some)))
        for change, columns in zip(changes, some, strict=True):
            expected = forms.covariance_by_loop(columns, q_diag)
            tolerance = 1e-12 * np.max(np.abs(expected))
            np.testing.assert_allclose(change, expected, rtol=0, atol=tolerance)
        by_loop = np.concatenate([forms.mean_by_loop(columns) for columns in some])
        np.testing.assert_allclose(mean, by_loop, rtol=1e-12)
    A, expected = sets[0], forms.covariance_by_loop(sets[0], q_diag)
    terms = feature_terms(tf.constant(A), tf.constant(A), q)
    desired = np.diagonal(expected, axis1=1, axis2=2).T
    tolerance = 1e-12 * np.max(np.abs(expected))
    np.testing.assert_allclose(terms.change, desired, rtol=0, atol=tolerance)
    np.testing.assert_allclose(terms.mean, forms.mean_by_loop(A), rtol=1e-12)
    explained = sum(np.sum(features**2, axis=0) for features in A)
    np.testing.assert_allclose(terms.explained, explained, rtol=1e-12)


@EACH_SIZE
@pytest.mark.parametrize("prior", ["diagonal", "full"])
@pytest.mark.parametrize("q_diag", [True, False], ids=["diagonal q", "full q"])
def test_whitening(forms: Forms, prior: str, q_diag: bool) -> None:
    """Marginals and KL divergence of q(u) against dense algebra in u itself."""
    if prior == "diagonal":
        kuu = np.stack([np.diag(row) for row in np.square(forms.diagonal[:, :, 0]) + 0.1])
        root = square_root(diagonal_operator(tf.linalg.diag_part(kuu)))
    else:
        kuu = forms.root @ np.swapaxes(forms.root, 1, 2)
        root = square_root(full_operator(tf.constant(kuu)))
    q = whitened(root, Variational(tf.constant(forms.q_mu), tf.constant(forms.q_sqrt(q_diag))))
    terms = marginal_terms(root, tf.constant(forms.columns), q)
    latent = forms.q_mu.shape[-1]
    mean, change = np.zeros((NUM_DATA, latent)), np.zeros((NUM_DATA, latent))
    kl = 0.0
    for t, columns in enumerate(forms.columns):
        projection = np.linalg.solve(kuu[t], columns)
        mean += projection.T @ forms.q_mu[t]
        for p in range(latent):
            S, m = forms.covariance_of_q(t, p, q_diag), forms.q_mu[t, :, p]
            change[:, p] += np.diag(projection.T @ (S - kuu[t]) @ projection)
            ratio = np.linalg.solve(kuu[t], S)
            log_ratio = np.linalg.slogdet(ratio)[1]
            kl += (np.trace(ratio) + m @ np.linalg.solve(kuu[t], m) - SIZE - log_ratio) / 2
    np.testing.assert_allclose(terms.mean, mean, rtol=0, atol=1e-10 * np.max(np.abs(mean)))
    np.testing.assert_allclose(terms.change, change, rtol=0, atol=1e-10 * np.max(np.abs(change)))
    np.testing.assert_allclose(kl_divergence(q), kl, rtol=1e-10)


def plain(
    root: tf.Tensor, columns: tf.Tensor, q_mu: tf.Tensor, q_sqrt: tf.Tensor, *, whole: bool
) -> tuple:
    """What TensorFlow differentiates by itself; only lower triangles are read."""
    root = tf.linalg.band_part(root, -1, 0)
    q_sqrt = tf.linalg.band_part(q_sqrt, -1, 0)
    A = tf.linalg.solve(root, columns)
    mean = tf.einsum("tmn,tmp->np", A, q_mu)
    projected = tf.einsum("tpij,tin->tpjn", q_sqrt, A)
    change = tf.einsum("tpjn,tpjn->np", projected, projected)
    return mean, change if whole else change - tf.einsum("tmn,tmn->n", A, A)[:, None]


@EACH_SIZE
@pytest.mark.parametrize("prior", ["diagonal", "full"])
@pytest.mark.parametrize("q_sqrt", ["none", "diagonal", "dense", "dense in four panels"])
@pytest.mark.parametrize("whole", [False, True], ids=["part", "whole"])
def test_marginals(
    forms: Forms, prior: str, q_sqrt: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and gradients in closed form, against autodiff with matrices for all of L and S; of
    variables that explain all the change is the variance itself, ``diag(A^T S A)``."""
    if q_sqrt == "dense in four panels":
        monkeypatch.setattr(variational, "_PANEL", 1)
    roots = {"none": [], "diagonal": [forms.diagonal]}.get(q_sqrt, [forms.dense])
    L = forms.root * np.eye(SIZE) if prior == "diagonal" else forms.root
    inputs = [tf.constant(v) for v in (L, forms.columns, forms.q_mu, *roots)]
    A = np.linalg.solve(L, forms.columns)
    explained = np.zeros(NUM_DATA) if whole else np.sum(A**2, axis=(0, 1))

    def ours(L: tf.Tensor, columns: tf.Tensor, mean: tf.Tensor, *q_root: tf.Tensor) -> tuple:
        root = DiagonalRoot(tf.linalg.diag_part(L)) if prior == "diagonal" else FullRoot(L)
        lower = [r if r.shape.rank == 3 else tf.linalg.band_part(r, -1, 0) for r in q_root]
        terms = marginal_terms(root, columns, Whitened(mean, *(lower or [None])), whole=whole)
        np.testing.assert_allclose(terms.explained, explained, rtol=1e-11)
        return terms.mean, terms.change

    def reference(L: tf.Tensor, columns: tf.Tensor, mean: tf.Tensor, *root: tf.Tensor) -> tuple:
        L = tf.linalg.diag(tf.linalg.diag_part(L)) if prior == "diagonal" else L
        dense = [
            tf.linalg.diag(tf.transpose(r, [0, 2, 1])) if r.shape.rank == 3 else r for r in root
        ]
        dense = dense or [tf.zeros([*L.shape[:1], mean.shape[-1], SIZE, SIZE], L.dtype)]
        return plain(L, columns, mean, *dense, whole=whole)

    def gradients(function) -> list[tf.Tensor]:  # noqa: ANN001
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            mean, change = function(*inputs)
            value = tf.reduce_sum(forms.to_mean * mean) + tf.reduce_sum(forms.to_change * change)
        return [mean, tf.broadcast_to(change, mean.shape), *tape.gradient(value, inputs)]

    for value, expected in zip(gradients(ours), gradients(reference), strict=True):
        scale = np.max(np.abs(expected))
        assert scale > 0.1 or (whole and q_sqrt == "none")
        np.testing.assert_allclose(value, expected, rtol=0, atol=RTOL * max(scale, 1e-3))


@pytest.mark.parametrize("blocks", [1, 4])
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
        return square_root(full_operator(matrix)).to_dense()

    actual, expected = gradients(ours), gradients(tf.linalg.cholesky)
    np.testing.assert_allclose(
        actual[0], np.linalg.cholesky(value @ tf.linalg.adjoint(value) + np.eye(SIZE)), atol=1e-12
    )
    for gradient, reference in zip(actual[1:], expected[1:], strict=True):
        scale = np.max(np.abs(reference))
        assert scale > 0.1
        np.testing.assert_allclose(gradient, reference, rtol=0, atol=RTOL * scale)
