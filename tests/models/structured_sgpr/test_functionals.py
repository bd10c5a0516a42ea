"""StructuredSGPR of rows that are linear functionals of f, against dense GPs with their kernel."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.functions import Constant, Linear, MeanFunction

import interdomain as idm
from interdomain.functionals import Derivative, Mean, Value
from interdomain.models import StructuredSGPR
from interdomain.regression import SufficientStatistics
from tests.functional_parts import (
    FUNCTIONALS,
    KINDS,
    NEW,
    NOISE,
    RNG,
    Parts,
    X,
    Y,
    harmonics,
    points,
    rows_of,
    splines,
    waves,
)


def log_density(covariance: Any, residual: Any) -> float:
    L = np.linalg.cholesky(covariance)
    white = np.linalg.solve(L, residual)
    return float(np.sum(-(white**2) / 2 - np.log(2 * np.pi) / 2) - np.log(np.diag(L)).sum())


@pytest.mark.parametrize("build", [waves, points, harmonics])
def test_a_noise_variance_for_each_functional(build: Callable[[], Parts]) -> None:
    """Evidence, predictions and gradients, with a level of Y that slopes do not have."""
    kernel, features = rows_of(build)
    data = X, Y + 50.0 * (X[:, 1:] != 2)
    ones = np.where(NEW[:, 1:] == 2, 0.0, 48.0)
    model = StructuredSGPR(
        data, kernel, features, noise_variance=NOISE, mean_function=Constant(48.0)
    )
    residual = data[1] - np.where(X[:, 1:] == 2, 0.0, 48.0)
    covariance = kernel(X).numpy() + np.diag(NOISE[KINDS])
    np.testing.assert_allclose(model.elbo(), log_density(covariance, residual), rtol=1e-8)
    cross = kernel(NEW, X).numpy()
    mean = ones + cross @ np.linalg.solve(covariance, residual)
    left = kernel(NEW).numpy() - cross @ np.linalg.solve(covariance, cross.T)
    found, full = model.predict_f(NEW, full_cov=True)
    np.testing.assert_allclose(found, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(full[0], left, rtol=1e-6, atol=1e-9)
    noise = model.predict_y(NEW)[1] - model.predict_f(NEW)[1]
    np.testing.assert_allclose(noise[:, 0], NOISE, rtol=1e-8)

    with tf.GradientTape() as tape:
        value = model.elbo()
    gradients = tape.gradient(value, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        start, step = variable.numpy(), 1e-5 * RNG.normal(size=variable.shape)
        variable.assign(start + step)
        above = float(model.elbo())
        variable.assign(start - step)
        expected = (above - float(model.elbo())) / 2
        variable.assign(start)
        actual = float(np.sum(tf.convert_to_tensor(gradient) * step))
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-9)


def test_splines_and_their_gradients_to_the_noise() -> None:
    kernel, features = rows_of(splines, FUNCTIONALS[:3])
    few = X[KINDS < 3]
    model = StructuredSGPR((few, Y[KINDS < 3]), kernel, features, noise_variance=NOISE[:3])
    covariance = kernel(few).numpy() + np.diag(NOISE[KINDS[KINDS < 3]])
    expected = log_density(covariance, Y[KINDS < 3])
    np.testing.assert_allclose(model.elbo(), expected, rtol=1e-8)
    variable = model.likelihood.variance.variances.unconstrained_variable
    with tf.GradientTape() as tape:
        value = model.elbo()
    gradient, start = tape.gradient(value, variable), variable.numpy()
    for entry in range(3):
        values = []
        for sign in (1, -1):
            variable.assign(start + sign * 1e-5 * np.eye(3)[entry])
            values.append(float(model.elbo()))
        np.testing.assert_allclose(gradient[entry], (values[0] - values[1]) / 2e-5, rtol=1e-5)
    variable.assign(start)


class Sine(MeanFunction):
    """A mean function that is neither constant nor linear."""

    def __call__(self, X: Any) -> tf.Tensor:
        return tf.sin(X)


def test_mean_functions_are_acted_on() -> None:
    """The mean of each functional, from formulas by hand."""
    x, ends = X[:, 0], np.where(X[:, 0] == 0, 0.15, 0.9)
    linear = np.select([KINDS < 2, KINDS == 2], [2 * x + 1, 2.0 + 0 * x], 2 * ends + 1)
    means = (np.cos(x - 0.1) - np.cos(x + 0.1)) / 0.2
    regions = np.where(x == 0, np.sin([0.1, 0.2]).mean(), np.sin(0.9))
    sines = np.select([KINDS == 0, KINDS == 1, KINDS == 2], [np.sin(x), means, np.cos(x)], regions)
    pairs = ((Linear(A=[[2.0]], b=[1.0]), linear), (Sine(), sines))
    for mean_function, expected in pairs:
        for noise in (0.1, np.full(4, 0.1)):
            kernel, features = rows_of(waves)
            how = {"noise_variance": noise, "mean_function": mean_function}
            model = StructuredSGPR((X, Y), kernel, features, **how)
            np.testing.assert_allclose(model.mean_function(X)[:, 0], expected, rtol=1e-10)
            covariance = kernel(X).numpy() + 0.1 * np.eye(60)
            evidence = log_density(covariance, Y - expected[:, None])
            np.testing.assert_allclose(model.elbo(), evidence, rtol=1e-9)


def test_sums_of_each_functional(tmp_path: Any) -> None:
    """Rows from files, added, subtracted, saved and loaded; several outputs; weights; no rows of a
    functional in a batch."""
    kernel, features = rows_of(waves)
    both = np.concatenate([Y, 2 * Y + 30 * (X[:, 1:] != 2)], axis=1)
    order = np.argsort(KINDS, kind="stable")  # the first batch has values only

    def batches() -> Any:
        for start in range(0, 60, 7):
            yield X[order][start : start + 7], both[order][start : start + 7]

    how = {"noise_variance": NOISE}
    model = StructuredSGPR(batches, kernel, features, **how)
    whole = StructuredSGPR((X, both), kernel, features, **how)
    np.testing.assert_allclose(model.elbo(), whole.elbo(), rtol=1e-8)
    some = StructuredSGPR((X[:40], both[:40]), kernel, features, **how)
    total = some.statistics + some.accumulate((X[40:], both[40:]))
    total.save(tmp_path / "sums.npz")
    loaded = SufficientStatistics.load(tmp_path / "sums.npz")
    added = StructuredSGPR(loaded, kernel, features, **how)
    np.testing.assert_allclose(added.elbo(), whole.elbo(), rtol=1e-8)
    rest = total - some.accumulate((X[40:], both[40:]))
    fewer = StructuredSGPR(rest, kernel, features, **how)
    np.testing.assert_allclose(fewer.elbo(), some.elbo(), rtol=1e-8)
    np.testing.assert_allclose(added.predict_f(NEW), whole.predict_f(NEW), rtol=1e-8)

    far = np.concatenate([both, both + 900])  # sums with another level of Y
    twice = StructuredSGPR((np.concatenate([X, X]), far), kernel, features, **how)
    levels = whole.statistics + whole.accumulate((X, far[60:]))
    summed = StructuredSGPR(levels, kernel, features, **how)
    np.testing.assert_allclose(summed.elbo(), twice.elbo(), rtol=1e-8)

    wider = [Value(), Mean([0.3]), *FUNCTIONALS[2:]]
    other = StructuredSGPR((X, both), *rows_of(waves, wider), **how)
    with pytest.raises(ValueError, match=r"widths is \[0\.2\] in one and \[0\.3\] in the other"):
        _ = whole.statistics + other.statistics

    weights = RNG.uniform(0.5, 2, 60)
    weighted = StructuredSGPR((X, Y), kernel, features, noise_weights=weights, **how)
    covariance = kernel(X).numpy() + np.diag(NOISE[KINDS] / weights)
    np.testing.assert_allclose(weighted.elbo(), log_density(covariance, Y), rtol=1e-8)
    density = weighted.predict_log_density((X, Y, weights))
    mean, variance = weighted.predict_f(X)
    variance = variance[:, 0] + NOISE[KINDS] / weights
    expected = -((Y[:, 0] - mean[:, 0]) ** 2) / variance / 2 - np.log(2 * np.pi * variance) / 2
    np.testing.assert_allclose(density, expected, rtol=1e-8)


def test_training_takes_one_pass_and_finds_the_noise() -> None:
    rng = np.random.default_rng(0)
    prior, features = waves()
    kernel = idm.kernels.Functional(prior, [Value(), Mean([0.1]), Derivative(0)])
    places = np.stack([rng.uniform(0.1, 0.9, 3_000), np.arange(3_000) % 3], axis=1)
    x = places[:, :1]
    clean = np.where(places[:, 1:] == 2, 6 * np.cos(6 * x), np.sin(6 * x))
    clean[1::3] *= np.sinc(0.6 / 2 / np.pi)
    deviations = np.array([0.3, 0.1, 2.0])
    noisy = clean + deviations[np.arange(3_000) % 3][:, None] * rng.normal(size=[3_000, 1])
    passes = []

    def rows() -> Any:
        passes.append(1)
        yield places, noisy

    model = StructuredSGPR(rows, kernel, features, noise_variance=[0.5, 0.5, 0.5], progress=False)
    count = len(passes)
    idm.fit(model, progress=False)
    assert len(passes) <= count + 1
    found = np.sqrt(model.likelihood.variance.variances.numpy())
    np.testing.assert_allclose(found, deviations, rtol=0.1)


@pytest.mark.parametrize("build", [waves, pytest.param(harmonics, marks=pytest.mark.slow)])
def test_chosen_features_and_a_subset(build: Callable[[], Parts]) -> None:
    kernel, features = rows_of(build, FUNCTIONALS[:3])
    few = X[KINDS < 3], Y[KINDS < 3]
    model = StructuredSGPR(few, kernel, features, noise_variance=NOISE[:3])
    before = float(model.elbo())
    idm.fit(model, num_inducing=7, progress=False)
    assert isinstance(model.kernel, idm.kernels.Functional)
    assert int(model.inducing_variable.num_inducing) <= 7
    assert float(model.elbo()) > before


def test_single_precision() -> None:
    expected = StructuredSGPR((X, Y), *rows_of(waves), noise_variance=NOISE).elbo()
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-4)):
        data = X.astype(np.float32), Y.astype(np.float32)
        model = StructuredSGPR(data, *rows_of(waves), noise_variance=NOISE)
        np.testing.assert_allclose(model.elbo(), expected, rtol=1e-3)
        assert model.predict_y(data[0])[0].dtype == tf.float32


def test_bad_input() -> None:
    kernel, features = rows_of(waves)
    wrong = X.copy()
    wrong[5, 1] = 4
    with pytest.raises(ValueError, match="0 to 3, in the last column, found 4"):
        StructuredSGPR((wrong, Y), kernel, features).elbo()
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="last column"):
        tf.function(lambda rows: kernel(rows, full_cov=False))(wrong)
    wrong = X.copy()
    wrong[3, 0] = 2
    with pytest.raises(ValueError, match="number of a region, 0 to 1"):
        idm.predict_in_batches(StructuredSGPR((X, Y), kernel, features), wrong, progress=False)
    with pytest.raises(ValueError, match="noise_variance must be .* here 4"):
        StructuredSGPR((X, Y), kernel, features, noise_variance=[0.1, 0.2])
    with pytest.raises(ValueError, match="noise_variance must be"):
        StructuredSGPR((X[:, :1], Y), *waves(), noise_variance=[0.1, 0.2])
    with pytest.raises(ValueError, match=r"noise_variance must be .* found \[0"):
        StructuredSGPR((X, Y), kernel, features, noise_variance=[0.1, 0.2, 0.0, 1.0])
    wide = rows_of(waves, [Value(), Mean([4.0])])
    rows = np.stack([X[:, 0], np.ones(60)], axis=1)
    with pytest.raises(ValueError, match="outside of the interval"):
        StructuredSGPR((rows, Y), *wide).elbo()
    with pytest.raises(ValueError, match="kernel must be a kernel of values"):
        idm.models.VecchiaSGPR((X, Y), kernel, features)
    with pytest.raises(ValueError, match="local_kernel must be a kernel of values"):
        idm.models.VecchiaSGPR((X, Y), local_kernel=kernel)
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    stock = gpflow.models.SVGP(kernel, likelihood, features, mean_function=Constant(1.0))
    with pytest.raises(ValueError, match="mean_function must be that of functionals"):
        idm.fit(stock, (X, Y), steps=1, progress=False)
    with pytest.raises(ValueError, match="Functional"):
        idm.kernels.FiniteRank(kernel, features)
    with pytest.raises(ValueError, match="prior must be"):
        idm.kernels.Functional(kernel, Value())
    for functionals in ([], [1.0], ["value"]):
        with pytest.raises(ValueError, match="functionals must"):
            idm.kernels.Functional(waves()[0], functionals)
