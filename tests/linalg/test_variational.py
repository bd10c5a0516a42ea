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
    mean_of_features,
    whitened,
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
        mean_of_features(tf.constant(forms.columns), tf.constant(forms.q_mu)),
        forms.mean_by_loop(forms.columns),
        rtol=1e-12,
    )


@BLOCKS
@SIZES
@pytest.mark.parametrize("q_diag", [True, False], ids=["diagonal", "full"])
def test_changes(forms: Forms, q_diag: bool) -> None:
    expected = forms.covariance_by_loop(forms.columns, q_diag)
    q = Whitened(tf.constant(forms.q_mu), tf.constant(forms.q_sqrt(q_diag)))
    A = tf.constant(forms.columns)
    tolerance = 1e-12 * np.max(np.abs(expected))
    mean, change = joint_feature_terms(A, A, q, tf.constant(1))
    np.testing.assert_allclose(change[0], expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(mean, forms.mean_by_loop(forms.columns), rtol=1e-12)
    terms = feature_terms(A, A, q)
    np.testing.assert_allclose(
        terms.change, np.diagonal(expected, axis1=1, axis2=2).T, rtol=0, atol=tolerance
    )
    explained = sum(np.sum(features**2, axis=0) for features in forms.columns)
    np.testing.assert_allclose(terms.explained, explained, rtol=1e-12)


@BLOCKS
@SIZES
@pytest.mark.parametrize("q_diag", [True, False], ids=["diagonal", "full"])
def test_sets_of_points(forms: Forms, q_diag: bool) -> None:
    """Several sets, one behind the other, are as each alone."""
    q = Whitened(tf.constant(forms.q_mu), tf.constant(forms.q_sqrt(q_diag)))
    sets = [forms.columns * scale for scale in (1.0, -0.7, 2.0)]
    joint = tf.concat(sets, axis=-1)
    _, changes = joint_feature_terms(joint, joint, q, tf.constant(3))
    for change, columns in zip(changes, sets, strict=True):
        expected = forms.covariance_by_loop(columns, q_diag)
        tolerance = 1e-12 * np.max(np.abs(expected))
        np.testing.assert_allclose(change, expected, rtol=0, atol=tolerance)


@BLOCKS
@SIZES
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


def dense_marginals(
    root: tf.Tensor, columns: tf.Tensor, q_mu: tf.Tensor, q_sqrt: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    terms = marginal_terms(FullRoot(root), columns, Whitened(q_mu, q_sqrt))
    return terms.mean, terms.change


@BLOCKS
@SIZES
def test_dense_marginals(forms: Forms) -> None:
    features = np.stack(
        [np.linalg.solve(L, c) for L, c in zip(forms.root, forms.columns, strict=True)]
    )
    expected = np.diagonal(forms.covariance_by_loop(features, False), axis1=1, axis2=2).T
    mean, change = dense_marginals(
        *(tf.constant(v) for v in (forms.root, forms.columns, forms.q_mu, forms.dense))
    )
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
@SIZES
@pytest.mark.parametrize("prior", ["diagonal", "full"])
@pytest.mark.parametrize("q_sqrt", ["none", "diagonal", "dense"])
def test_variables_that_explain_all(forms: Forms, prior: str, q_sqrt: str) -> None:
    """The change is the variance itself, ``diag(A^T S A)``; values, and gradients by autodiff."""
    roots = {"none": [], "diagonal": [forms.diagonal], "dense": [forms.dense]}[q_sqrt]
    L = forms.root * np.eye(SIZE) if prior == "diagonal" else forms.root
    inputs = [tf.constant(v) for v in (L, forms.columns, forms.q_mu, *roots)]

    def ours(L: tf.Tensor, columns: tf.Tensor, mean: tf.Tensor, *q_root: tf.Tensor) -> tuple:
        root = DiagonalRoot(tf.linalg.diag_part(L)) if prior == "diagonal" else FullRoot(L)
        lower = [r if r.shape.rank == 3 else tf.linalg.band_part(r, -1, 0) for r in q_root]
        terms = marginal_terms(root, columns, Whitened(mean, *(lower or [None])), whole=True)
        assert not np.any(terms.explained)
        return terms.mean, terms.change

    def reference(L: tf.Tensor, columns: tf.Tensor, mean: tf.Tensor, *root: tf.Tensor) -> tuple:
        L = tf.linalg.diag(tf.linalg.diag_part(L)) if prior == "diagonal" else L
        dense = [
            tf.linalg.diag(tf.transpose(r, [0, 2, 1])) if r.shape.rank == 3 else r for r in root
        ]
        dense = dense or [tf.zeros([*L.shape[:1], mean.shape[-1], SIZE, SIZE], L.dtype)]
        mean, change = plain(L, columns, mean, *dense)
        A = tf.linalg.solve(tf.linalg.band_part(L, -1, 0), columns)
        return mean, change + tf.einsum("tmn,tmn->n", A, A)[:, None]

    def gradients(function) -> list[tf.Tensor]:  # noqa: ANN001
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            mean, change = function(*inputs)
            value = tf.reduce_sum(forms.to_mean * mean) + tf.reduce_sum(forms.to_change * change)
        return [mean, tf.broadcast_to(change, mean.shape), *tape.gradient(value, inputs)]

    for value, expected in zip(gradients(ours), gradients(reference), strict=True):
        scale = max(1.0, np.max(np.abs(expected)))
        np.testing.assert_allclose(value, expected, rtol=0, atol=RTOL * scale)


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
        return square_root(full_operator(matrix)).to_dense()

    actual, expected = gradients(ours), gradients(tf.linalg.cholesky)
    np.testing.assert_allclose(
        actual[0], np.linalg.cholesky(value @ tf.linalg.adjoint(value) + np.eye(SIZE)), atol=1e-12
    )
    for gradient, reference in zip(actual[1:], expected[1:], strict=True):
        scale = np.max(np.abs(reference))
        assert scale > 0.1
        np.testing.assert_allclose(gradient, reference, rtol=0, atol=RTOL * scale)


@BLOCKS
@SIZES
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize(
    ("q_sqrt", "panel"),
    [("none", 128), ("diagonal", 128), ("dense", 128), ("dense", 2), ("dense", 1)],
    ids=["S=0", "diagonal S", "one panel", "two panels", "four panels"],
)
def test_diagonal_priors(
    forms: Forms, q_sqrt: str, panel: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and gradients where L is diagonal: as with the same L as a matrix, by autodiff."""
    monkeypatch.setattr(variational, "_PANEL", panel)
    roots = {"none": [], "diagonal": [forms.diagonal], "dense": [forms.dense]}[q_sqrt]
    L = tf.constant(np.diagonal(forms.root, axis1=1, axis2=2))
    inputs = [L, *(tf.constant(v) for v in (forms.columns, forms.q_mu, *roots))]

    def ours(L: tf.Tensor, columns: tf.Tensor, mean: tf.Tensor, *root: tf.Tensor) -> tuple:
        lower = [r if r.shape.rank == 3 else tf.linalg.band_part(r, -1, 0) for r in root]
        terms = marginal_terms(DiagonalRoot(L), columns, Whitened(mean, *(lower or [None])))
        return terms.mean, terms.change

    def reference(L: tf.Tensor, columns: tf.Tensor, mean: tf.Tensor, *root: tf.Tensor) -> tuple:
        dense = [
            tf.linalg.diag(tf.transpose(r, [0, 2, 1])) if r.shape.rank == 3 else r for r in root
        ]
        dense = dense or [tf.zeros([*L.shape[:1], mean.shape[-1], SIZE, SIZE], L.dtype)]
        return plain(tf.linalg.diag(L), columns, mean, *dense)

    def gradients(function) -> list[tf.Tensor]:  # noqa: ANN001
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            mean, change = function(*inputs)
            value = tf.reduce_sum(forms.to_mean * mean) + tf.reduce_sum(forms.to_change * change)
        return [mean, tf.broadcast_to(change, mean.shape), *tape.gradient(value, inputs)]

    actual = (tf.function(gradients) if compiled else gradients)(ours)
    for value, expected in zip(actual, gradients(reference), strict=True):
        scale = np.max(np.abs(expected))
        assert scale > 0.1
        np.testing.assert_allclose(value, expected, rtol=0, atol=RTOL * scale)
