"""Merged rows and noise weights, against GPR and dense algebra."""

from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from interdomain.kernels import FiniteRank
from interdomain.models import VecchiaSGPR
from interdomain.tables import GroupFeatures, GroupIntercepts
from tests.models.vecchia_sgpr.test_vecchia_sgpr import FAMILIES, value_and_gradients

NOISE = 0.07


def repeated(readings: int = 4, places: int = 15) -> tuple[np.ndarray, np.ndarray]:
    """Several readings at each place, in a random order."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-1, 1, (places, 2)), readings, axis=0)
    order = rng.permutation(len(X))
    Y = np.stack([np.sin(3 * X[:, 0]), X[:, 1]], axis=1) + 0.3 * rng.normal(size=(len(X), 2))
    return X[order], Y[order]


def model_of(data: Any, *block: Any, **arguments: Any) -> VecchiaSGPR:
    local = gpflow.kernels.Matern32(variance=0.8, lengthscales=[0.4, 0.7])
    settings = {"local_kernel": local, "num_neighbours": 60, "noise_variance": NOISE}
    return VecchiaSGPR(data, *block, **(settings | arguments), progress=False)


@pytest.mark.parametrize("family", ["nothing", "harmonics"])
def test_repeated_rows_are_the_exact_gp(family: str) -> None:
    """Evidence, gradients, predictions and joint covariances, also after rows at places that are
    known and at new ones were added."""
    block, (X, Y) = FAMILIES[family](), repeated()
    X, Y = np.r_[X, X[:3] + 0.3], np.r_[Y, Y[:3]]
    model = model_of((X[:40], Y[:40]), *block, merge="exact")
    assert model.ordered.merged.within.rows > 20
    kernel = model.local_kernel + block[0] if block else model.local_kernel
    for rows in (slice(0, 40), slice(40, 45), slice(45, 63)):
        if rows.start:
            model.extend((X[rows], Y[rows]))
        data = X[: rows.stop], Y[: rows.stop]
        exact = gpflow.models.GPR(data, kernel, likelihood=model.likelihood)
        variables = exact.trainable_variables
        value, gradients = value_and_gradients(model.elbo, variables)
        expected, slopes = value_and_gradients(exact.log_marginal_likelihood, variables)
        np.testing.assert_allclose(value, expected, rtol=1e-8)
        for gradient, slope in zip(gradients, slopes, strict=True):
            np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-7)
        for full_cov in (False, True):
            new = X[:5] + 0.05
            moments = (each.predict_f(new, full_cov=full_cov) for each in (model, exact))
            for mine, theirs in zip(*moments, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("merge", ["off", "exact"])
def test_noise_weights_are_those_of_a_dense_covariance(merge: str) -> None:
    X, Y = repeated()
    weights = np.random.default_rng(1).uniform(0.2, 5, len(X))
    block = FAMILIES["harmonics"]()
    model = model_of((X, Y), *block, merge=merge, noise_weights=weights)
    kernel = model.local_kernel + block[0]

    def exact() -> tf.Tensor:
        noise = tf.linalg.diag(model.likelihood.variance / weights)
        root = tf.linalg.cholesky(kernel(X) + noise)
        scores = tf.linalg.triangular_solve(root, Y)
        logs = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)))
        return -tf.reduce_sum(scores**2) / 2 - 2 * logs - Y.size / 2 * np.log(2 * np.pi)

    covariance = np.asarray(kernel(X)) + np.diag(NOISE / weights)
    normal = scipy.stats.multivariate_normal(cov=covariance)
    np.testing.assert_allclose(exact(), normal.logpdf(Y.T).sum())
    variables = model.local_kernel.trainable_variables + model.likelihood.trainable_variables
    value, gradients = value_and_gradients(model.elbo, variables)
    expected, slopes = value_and_gradients(exact, variables)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    for gradient, slope in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(gradient, slope, rtol=1e-7)
    new = X[:5] + 0.05
    across = np.asarray(kernel(X, new))
    solved = np.linalg.solve(covariance, across)
    mean, variance = model.predict_f(new)
    np.testing.assert_allclose(mean, solved.T @ Y, rtol=1e-8, atol=1e-9)
    left = np.diag(np.asarray(kernel(new)) - across.T @ solved)
    np.testing.assert_allclose(variance[:, 0], left, rtol=1e-7)
    model.use("features")
    assert np.isfinite(model.elbo())
    with pytest.raises(ValueError, match="noise_weights must be positive"):
        model.extend((X[:2], Y[:2]), noise_weights=[1.0, -1.0])


def test_nearby_rows() -> None:
    """Stations known to 1e-4: nearby readings become one row of each station, and the evidence and
    predictions stay those of the exact GP, nearly. Other columns keep rows apart."""
    X, Y = repeated(readings=12)
    near = X + 1e-4 * np.random.default_rng(2).normal(size=X.shape)
    model = model_of((near, Y))
    assert len(model.ordered.merged.X) == 15
    exact = gpflow.models.GPR((near, Y), model.local_kernel, likelihood=model.likelihood)
    np.testing.assert_allclose(model.elbo(), exact.log_marginal_likelihood(), rtol=1e-3)
    new = np.random.default_rng(3).uniform(-1, 1, (20, 2))
    deviations = np.sqrt(exact.predict_f(new)[1])
    difference = np.abs(model.predict_f(new)[0] - exact.predict_f(new)[0])
    assert np.max(difference / deviations) < 0.02
    sizes = {m: len(model_of((near, Y), merge=m).ordered.merged.X) for m in ("off", 1e-2, 0, 10.0)}
    assert sizes["off"] == sizes[0] == len(X) and sizes[1e-2] == 15 and sizes[10.0] == 1
    local = gpflow.kernels.Matern32(lengthscales=[0.4, 0.7], active_dims=[0, 1])
    other = np.c_[near, np.arange(len(X)) % 2]
    split = model_of((other, Y), local_kernel=local)
    assert set(split.ordered.merged.X[:, 2]) == {0.0, 1.0}


def test_features_and_means_keep_nearby_rows_apart() -> None:
    """If g is nearly constant, rows are merged only where the rest of f varies as little: not under
    features or a mean of the same columns, but under an intercept for each group of rows."""
    rng = np.random.default_rng(0)
    X, group = rng.uniform(-1, 1, (300, 2)), np.arange(300) % 3
    Y = 2 * X[:, :1] + 0.1 * rng.normal(size=(300, 1))
    flat = gpflow.kernels.Matern32(variance=1e-6, lengthscales=[1.0, 1.0], active_dims=[0, 1])
    settings = {"local_kernel": flat, "num_neighbours": 20}
    assert len(model_of((X, Y), **settings).ordered.merged.X) < 100
    linear = gpflow.mean_functions.Linear(np.array([[2.0], [0.0]]))
    for block, mean in ((FAMILIES["harmonics"](), None), ((), linear)):
        model = model_of((X, Y), *block, mean_function=mean, **settings)
        kernel = flat + block[0] if block else flat
        exact = gpflow.models.GPR((X, Y), kernel, mean, likelihood=model.likelihood)
        np.testing.assert_allclose(model.elbo(), exact.log_marginal_likelihood(), rtol=1e-3)
        assert len(model.ordered.merged.X) == 300
        by_radius = model_of((X, Y), *block, mean_function=mean, **settings, merge=9.0)
        assert len(by_radius.ordered.merged.X) == 1
    model = model_of((X, Y), *FAMILIES["harmonics"](), **settings)
    model.use("neighbours")
    model.search()
    assert len(model.ordered.merged.X) < 100
    model.use("both")
    assert len(model.ordered.merged.X) == 300
    intercepts = GroupIntercepts(np.arange(3), active_dims=[2])
    features = GroupFeatures(intercepts)
    rows = np.c_[X, group], Y
    model = model_of(rows, FiniteRank(intercepts, features), features, **settings)
    assert 3 <= len(model.ordered.merged.X) < 100


def test_wrong_merges() -> None:
    for merge, message in {-1.0: "0 or more", "all": "'exact', 'auto'", np.nan: "finite"}.items():
        with pytest.raises(ValueError, match=f"merge must be .*{message}"):
            model_of(repeated(), merge=merge)
    for weights in (0.0, -1.0, np.nan):
        wrong = np.ones(60)
        wrong[7] = weights
        with pytest.raises(ValueError, match=r"noise_weights must be positive and finite.* row 7"):
            model_of(repeated(), noise_weights=wrong)
    with pytest.raises(ValueError, match="noise_weights must be one number a row"):
        model_of(repeated(), noise_weights=np.ones(3))
