"""Rows with weights: the noise variance of a row is s / w, for every structure of sums."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.functions import Constant, Linear
from gpflow.kernels import Matern12, Matern32
from scipy.stats import multivariate_normal, norm

import interdomain as idm
from interdomain.inducing_variables import SplineFeatures
from interdomain.kernels import SphericalMatern32
from interdomain.models import StructuredSGPR
from interdomain.regression import SufficientStatistics
from tests.conformance.helpers import assert_close
from tests.extension.chain_sums import ChainPoints
from tests.parts import finite_rank, with_harmonics, with_waves

RNG = np.random.default_rng(0)
N = 90
X = RNG.uniform(-1, 1, size=[N, 2])
W = RNG.uniform(0.2, 6.0, size=N)
Y = np.hstack([np.sin(4 * X[:, :1]), X[:, 1:]]) + RNG.normal(size=[N, 2]) / np.sqrt(9 * W[:, None])
NEW = RNG.uniform(-1, 1, size=[5, 2])
NOISE = 0.1


def harmonics() -> tuple[Any, Any]:
    return with_harmonics(SphericalMatern32(), 3, fixed=True)


def splines() -> tuple[Any, Any]:
    factors = [Matern32(lengthscales=0.6, active_dims=[d]) for d in (0, 1)]
    return factors[0] * factors[1], SplineFeatures([-1.0] * 2, [1.0] * 2, 6, 2)


def waves() -> tuple[Any, Any]:
    """So many that sums are looked up in tables."""
    return with_waves(Matern32(lengthscales=[0.5, 0.5]), X, 80)


def points() -> tuple[Any, Any]:
    """Whose gradients take all rows."""
    return Matern32(), X[:8].copy()


def chain() -> tuple[Any, Any]:
    """A structure from outside of the library."""
    return Matern12(lengthscales=0.7, active_dims=[0]), ChainPoints(np.linspace(-0.9, 0.9, 7))


FAMILIES = [harmonics, splines, waves, points, chain]


@pytest.fixture(autouse=True)
def exact(no_jitter: None) -> None:
    """The oracle adds no jitter to Kuu."""


def model_of(parts: Callable[[], Any], data: Any = (X, Y), weights: Any = W, **how: Any) -> Any:
    how = {"noise_variance": NOISE, "batch_size": 40, "progress": False} | how
    return StructuredSGPR(data, *parts(), noise_weights=weights, **how)


def linear() -> Any:
    return Linear(np.array([[0.2, 0.1], [-0.3, 0.5]]), np.array([0.3, -0.1]))


def evidence(function: Callable[[], Any], model: Any) -> list[tf.Tensor]:
    with tf.GradientTape() as tape:
        value = function()
    gradients = tape.gradient(value, model.trainable_variables, unconnected_gradients="zero")
    return [value, *map(tf.convert_to_tensor, gradients)]


def dense_bound(model: Any, X: Any, Y: Any, weights: Any, charge: str) -> Any:
    """The log density of the rows under ``Q + s diag(1 / w)``, less what is charged."""
    prior, features, noise = model.kernel, model.inducing_variable, model.likelihood.variance
    covariances, weights = Kuf(features, prior, X), tf.constant(weights)
    root = tf.linalg.triangular_solve(tf.linalg.cholesky(Kuu(features, prior)), covariances)
    Q = tf.matmul(root, root, transpose_a=True)
    factor = tf.linalg.cholesky(Q + tf.linalg.diag(noise / weights))
    z = tf.linalg.triangular_solve(factor, Y - model.mean_function(X))
    log_determinant = 2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
    left = tf.reduce_sum(weights * (prior(X, full_cov=False) - tf.linalg.diag_part(Q))) / noise
    number = len(X)
    charged = left if charge == "trace" else number * tf.math.log(1 + left / number)
    outputs = Y.shape[1]
    value = outputs * (number * np.log(2 * np.pi) + log_determinant + charged)
    return -(value + tf.reduce_sum(tf.square(z))) / 2


def dense_predictions(model: Any, X: Any, Y: Any, weights: Any) -> tuple[Any, Any]:
    """Mean and variance of f, from ``Q + s diag(1 / w)``, without the weights of features."""
    prior, features = model.kernel, model.inducing_variable
    noise = np.diag(model.likelihood.variance.numpy() / weights)
    old, new = (np.asarray(Kuf(features, prior, rows)) for rows in (X, NEW))
    kuu = np.asarray(tf.convert_to_tensor(Kuu(features, prior)))
    solved = np.linalg.solve(kuu, new)
    covariance, cross = old.T @ np.linalg.solve(kuu, old) + noise, old.T @ solved
    residual = Y - model.mean_function(X)
    mean = model.mean_function(NEW) + cross.T @ np.linalg.solve(covariance, residual)
    explained = np.sum(cross * np.linalg.solve(covariance, cross), axis=0)
    variance = prior(NEW, full_cov=False).numpy() - explained
    return mean, np.tile(variance[:, None], Y.shape[1])


@pytest.mark.parametrize("parts", FAMILIES)
def test_against_a_dense_noise_matrix(parts: Any) -> None:
    """Bound, gradients and predictions, eager and compiled, of each charge and mean function."""
    for charge, mean in (("trace", None), ("log", linear()), ("log", Constant(np.full(2, 0.4)))):
        model = model_of(parts, weights=W[:, None], charge=charge, mean_function=mean)
        expected = evidence(lambda m=model, c=charge: dense_bound(m, X, Y, W, c), model)
        assert_close(evidence(model.elbo, model), expected)
        predicted = dense_predictions(model, X, Y, W)
        assert_close(model.predict_f(NEW), predicted)
        many = np.tile(NEW, [20, 1])
        found = idm.predict_in_batches(model, many, progress=False)
        assert_close(found, [np.tile(part, [20, 1]) for part in predicted])
    compiled = tf.function(model.elbo, autograph=False)
    assert_close(compiled(), expected[0])
    assert_close(model.to_svgp().predict_f(NEW), predicted)


@pytest.mark.parametrize("parts", FAMILIES)
def test_integer_weights_are_repeated_rows(parts: Any) -> None:
    """The same q; a row with its weight is the mean of its repetitions, so that the evidence of
    repetitions has a constant less. The charge by the logarithm is less."""
    counts = RNG.integers(1, 5, size=N)
    again = np.repeat(np.arange(N), counts)
    extra = np.sum(counts - 1) * np.log(2 * np.pi * NOISE) + np.sum(np.log(counts))
    for charge in ("trace", "log"):
        model = model_of(parts, weights=counts, charge=charge)
        repeated = model_of(parts, (X[again], Y[again]), None, charge=charge)
        if charge == "trace":
            np.testing.assert_allclose(repeated.elbo(), model.elbo() - extra, rtol=1e-9)
        else:
            assert model.elbo() - extra > repeated.elbo() - 1e-8
    if parts is not splines:
        assert_close(model.compute_qu(), repeated.compute_qu())
    assert_close(model.predict_f(NEW), repeated.predict_f(NEW))


def test_both_charges_are_bounds() -> None:
    """Below the log density of the exact GP, and the logarithm is nearer, for all scales."""
    for weights, noise in ((W, 0.1), (W**4, 0.1), (1e-3 * W, 1e-4), (100 * W, 10.0)):
        how = {"data": (X, Y[:, :1]), "weights": weights, "noise_variance": noise}
        trace, log = (model_of(points, charge=c, **how) for c in ("trace", "log"))
        covariance = log.kernel(X).numpy() + np.diag(noise / weights)
        exact = multivariate_normal(np.zeros(N), covariance).logpdf(Y[:, 0])
        assert trace.elbo() < log.elbo() < exact


@pytest.mark.parametrize("parts", [harmonics, waves, splines])
def test_statistics(parts: Any, tmp_path: Path) -> None:
    """They add up, also with rows without weights, can be taken away, saved and loaded."""
    whole = model_of(parts, charge="log")
    first, second = slice(40), slice(40, None)
    one = model_of(parts, (X[first], Y[first]), W[first])
    two = one.accumulate((X[second], Y[second]), noise_weights=W[second])
    one.statistics.save(tmp_path / "one.npz")
    one_again = SufficientStatistics.load(tmp_path / "one.npz")
    sums = [one_again + two, whole.statistics + two - two, whole.statistics - two + two]
    sums.append(whole.statistics.all_reduce(tf.distribute.OneDeviceStrategy("CPU:0")))
    for total in sums:
        model = model_of(parts, total, None)
        assert model.num_data == N
        assert_close(evidence(model.elbo, model), evidence(whole.elbo, whole))
        assert_close(model.predict_f(NEW), whole.predict_f(NEW))
    plain = one.accumulate((X[second], Y[second]))
    mixed = model_of(parts, weights=np.r_[W[first], np.ones(N - 40)])
    for total in (one.statistics + plain, plain + one.statistics):
        assert_close(model_of(parts, total, None).elbo(), mixed.elbo())
    rest = model_of(parts, plain + one.statistics - one.statistics, None)
    assert_close(rest.elbo(), model_of(parts, (X[second], Y[second]), None).elbo())


def test_rows_from_anywhere(tmp_path: Path) -> None:
    """Files, datasets, functions of batches, tensors, lists; copies and pickles."""
    np.save(tmp_path / "w.npy", W)
    file = np.load(tmp_path / "w.npy", mmap_mode="r")
    dataset = tf.data.Dataset.from_tensor_slices((X, Y, W)).batch(7)

    def batches() -> Any:
        for start in range(0, N, 13):
            some = slice(start, start + 13)
            yield X[some], Y[some], W[some, None]

    for parts in (waves, splines, points):
        whole = model_of(parts)
        sources = [((X, Y), file), ((X, Y), tf.constant(W)), ((X, Y), list(W))]
        if parts is not points:
            sources = [((X, Y), file), (dataset, None), (batches, None)]
        models = [model_of(parts, *source) for source in sources]
        for model in (*models, copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
            assert_close(model.elbo(), whole.elbo())
            assert_close(model.predict_f(NEW), whole.predict_f(NEW))


def test_weights_follow_drawn_rows() -> None:
    """Into models of some rows; and checkpoints tell other weights from these."""
    model = model_of(points)
    rows = model.draw(30, seed=1)
    places = [int(np.flatnonzero(np.all(X == row, axis=1))[0]) for row in rows[0]]
    np.testing.assert_array_equal(rows[2][:, 0], W[places])
    some = model.model_of(rows)
    expected = model_of(points, (X[places], Y[places]), W[places])
    assert_close(evidence(some.elbo, some), evidence(expected.elbo, expected))
    densities = norm.logpdf(Y, *(np.asarray(part) for part in with_noise(model)))
    assert_close(model.predict_log_density((X, Y, W)), densities.sum(axis=1))
    described = [model_of(points, weights=w).described_rows() for w in (W, W.copy(), 2 * W, None)]
    assert described[0] == described[1] != described[2] != described[3]


def with_noise(model: Any) -> tuple[Any, Any]:
    """Mean and deviation of the targets of the rows."""
    mean, variance = model.predict_f(X)
    return mean, np.sqrt(variance + NOISE / W[:, None])


def test_fit_and_chosen_features() -> None:
    """The subset, the sums and the pursuit heed the weights: rows of little weight are noise."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, size=[600, 2])
    weights = np.where(rng.uniform(size=600) < 0.5, 100.0, 0.01)
    f = np.sin(3 * rows[:, :1]) * np.cos(2 * rows[:, 1:])
    targets = f + rng.normal(size=f.shape) / np.sqrt(weights[:, None])

    def error_of(prior: Any, features: Any, given: Any, **how: Any) -> float:
        settings = {"noise_weights": given, "noise_variance": 1.0, "progress": False}
        model = StructuredSGPR((rows, targets), prior, features, **settings)
        gpflow.set_trainable(model.likelihood.variance, given is None)
        result = idm.fit(model, options={"subset_size": 300}, progress=False, **how)
        assert (result.choice is None) == (result.subset is not None)
        return float(np.sqrt(np.mean((model.predict_f(rows)[0] - f) ** 2)))

    def harmonics_to(degree: int) -> tuple[Any, Any]:
        return finite_rank(*with_harmonics(SphericalMatern32(weight_variances=[1.0] * 2), degree))

    assert error_of(*harmonics_to(4), weights) < 0.1 < 0.3 < error_of(*harmonics_to(4), None)
    chosen = finite_rank(*with_waves(Matern32(lengthscales=[0.5] * 2), rows, 9))
    assert error_of(*chosen, weights, num_inducing=40) < 0.1


@pytest.mark.parametrize("parts", [harmonics, waves])
def test_residuals(parts: Any) -> None:
    """What a feature would add, as the bound of a model that has the feature says."""
    kernel, features = finite_rank(*parts())
    more = finite_rank(*with_harmonics(SphericalMatern32(), 1, fixed=True))
    model = StructuredSGPR(
        (X, Y), kernel, features, noise_weights=W, noise_variance=NOISE, progress=False
    )
    sums = model.residuals().compare((more[1], more[0]))
    covariance = dense_covariance(model)
    others = np.asarray(Kuf(more[1], more[0], X))
    scales = 1 / np.sqrt(np.diag(tf.convert_to_tensor(Kuu(more[1], more[0]))))
    a = others * scales[:, None]
    expected = np.eye(len(a)) + a @ np.linalg.solve(covariance, a.T)
    assert_close(sums.precisions[0], expected)
    assert_close(sums.products, a @ np.linalg.solve(covariance, Y))


def dense_covariance(model: Any) -> Any:
    """``Q + s diag(1 / w)``."""
    covariances = np.asarray(Kuf(model.inducing_variable, model.kernel, X))
    kuu = np.asarray(tf.convert_to_tensor(Kuu(model.inducing_variable, model.kernel)))
    return covariances.T @ np.linalg.solve(kuu, covariances) + np.diag(NOISE / W)


def test_single_precision_and_offsets() -> None:
    for parts in (harmonics, splines, waves, points):
        mean = Constant(np.full(2, 1e8))
        far = model_of(parts, (X, Y + 1e8), mean_function=mean)
        near = model_of(parts, (X, Y + 1e8 - 1e8))
        assert_close(far.elbo(), near.elbo(), rtol=1e-9)
        expected = model_of(parts).elbo()
        with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
            model = model_of(parts, (X.astype(np.float32), Y.astype(np.float32)))
            assert_close(model.elbo(), expected, rtol=1e-3)
            assert model.predict_f(NEW.astype(np.float32))[0].dtype == tf.float32
    # Weights of any size: the bound of the same model in other units of the noise.
    tiny = model_of(harmonics, weights=1e-12 * W, noise_variance=1e-12 * NOISE + 1e-6)
    huge = model_of(harmonics, weights=W, noise_variance=1e12 * tiny.likelihood.variance.numpy())
    assert_close(tiny.elbo(), huge.elbo())
