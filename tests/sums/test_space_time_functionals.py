"""Space and time: rows that are functionals, against models with dense matrices."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern12, Matern32, Matern52
from numpy.polynomial.legendre import leggauss

import interdomain as idm
from interdomain.functionals import Blur, ByDegree, Derivative, Mean, Value
from interdomain.inducing_variables import (
    SumInducingVariables,
)
from interdomain.kernels import FiniteRank, Functional
from interdomain.models import DualSVGP, StructuredSGPR
from interdomain.sums.chain.structure import SpaceTime
from interdomain.sums.chain.sums import ChainSums
from interdomain.sums.dense import DenseSums
from tests.parts import frozen, with_harmonics
from tests.sums import test_space_time as data
from tests.sums.test_space_time import Y, splines, term, time, waves
from tests.sums.test_space_time_gradients import points

pytestmark = [
    pytest.mark.usefixtures("no_jitter"),
    pytest.mark.filterwarnings("ignore:inducing_variable. the splines"),
]

HOUR, DAY = Mean([0, 0, 0.4, 0]), Mean([0, 0, 1.5, 0])


def rows(count: int, X: Any = data.X, margin: float = 0.8) -> Any:
    """Rows with the numbers of functionals, so that means are over times within the box."""
    numbers = np.random.default_rng(3).integers(count, size=len(X))
    inside = X.copy()
    inside[:, 2] = margin + X[:, 2] * (10 - 2 * margin) / 10
    return np.column_stack([inside, numbers])


def with_stations() -> Any:
    kernel, features = data.with_stations()
    return kernel, features, [Value(), HOUR, Derivative(2), DAY - 0.5 * Value()]


def with_waves() -> Any:
    kernel, features = term(waves(), time(Matern52), splines(3), time_first=True)
    box = Mean([0.2, 0.3, 0.8, 0])
    return kernel, features, [Value(), box, Derivative(0), Blur([0, 0, 0.02, 0]) - Derivative(1)]


def with_points() -> Any:
    """Features of space with trained parameters, under a prior that they do not end."""
    kernel, features = term(points(), time(), splines())
    return kernel.kernel, features, [Value(), HOUR, Derivative(2)]


def several() -> Any:
    one, kernels = splines(2, 8), []
    kernels.append(term(waves(), time(), one))
    kernels.append(term(data.stations(), time(Matern12, 5.0), one, time_first=True))
    slow = time(Matern32, 4.0)
    kernels.append((FiniteRank(slow, one), one))
    kernel, features = waves()
    kernels.append((FiniteRank(kernel, features), features))
    priors, blocks = zip(*kernels, strict=True)
    kernel, features = gpflow.kernels.Sum(list(priors)), SumInducingVariables(list(blocks))
    return kernel, features, [HOUR, Value(), DAY - 2.0 * HOUR]


def meters() -> Any:
    """Slopes of products of splines and cycles, both in the column of time: two parts."""
    kernel, features = data.meters()
    return kernel, features, [Value(), Derivative(2)]


def on_the_globe() -> Any:
    kernel = idm.kernels.GlobeMatern32(lengthscale=0.5, active_dims=[0, 1])
    kernel, features = term(with_harmonics(kernel, 4), time(), splines())
    return kernel, features, [Value(), ByDegree(0.5 ** np.arange(5)), HOUR]


MAKERS = [with_stations, with_waves, with_points, several, meters, on_the_globe]


def parts_of(make: Any) -> Any:
    prior, features, functionals = make()
    return Functional(prior, functionals), features, rows(len(functionals))


@pytest.fixture
def dense(monkeypatch: Any) -> Any:
    """A function that makes a model with dense sums."""

    def made(make: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(SpaceTime, "sums", lambda *_: None)
            model = make()
            assert isinstance(model._features.sums, DenseSums)
        return model

    return made


def assert_alike(some: Any, others: Any, **tolerances: float) -> None:
    for one, other in zip(some, others, strict=True):
        np.testing.assert_allclose(one, other, **{"rtol": 1e-8, "atol": 1e-9} | tolerances)


@pytest.mark.parametrize("make", MAKERS)
def test_as_sgpr(make: Any) -> None:
    kernel, features, X = parts_of(make)
    mean = gpflow.functions.Linear(np.full([4, 2], 0.1), np.full(2, 0.2))
    if make is on_the_globe:
        mean = gpflow.functions.Constant(np.full(2, 0.2))
    model = StructuredSGPR(
        (X, Y), kernel, features, mean_function=mean, noise_variance=0.1, charge="trace"
    )
    assert isinstance(model._features.sums, ChainSums)
    parts = {"mean_function": kernel.mean_function(mean), "noise_variance": 0.1}
    stock = gpflow.models.SGPR((X, Y), kernel, features, **parts)
    variables = [*kernel.trainable_variables, *mean.trainable_variables]
    variables += features.trainable_variables
    results = []
    for each in (model, stock):
        with tf.GradientTape() as tape:
            bound = each.maximum_log_likelihood_objective()
        results.append([bound, tape.gradient(bound, variables)])
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-8)
    for one, other in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
    new = X[:9].copy()
    if make is not with_stations:
        new[:, :2] += 0.05
    for options in ({}, {"full_cov": True}):
        found = model.predict_f(new, **options)
        assert_alike(found, stock.predict_f(new, **options))
        assert_alike(model.posterior().predict_f(new, **options), found)
    if make is with_waves:
        signature = [tf.TensorSpec([None, 5], tf.float64)]
        compiled = tf.function(model.predict_f, autograph=False, input_signature=signature)
        assert_alike(compiled(new), model.predict_f(new))
        assert_alike([tf.function(model.elbo, autograph=False)()], [model.elbo()])
    if make in (with_stations, with_waves):
        assert not model.feature_parameters
    if isinstance(kernel.prior, FiniteRank):
        features_at = gpflow.covariances.Kuf(features, kernel, new)
        explained = np.linalg.solve(gpflow.covariances.Kuu(features, kernel), features_at)
        variances = np.sum(features_at * explained, axis=0)
        assert_alike([kernel(new, full_cov=False)], [variances], rtol=1e-7)


@pytest.mark.parametrize("make", [with_stations, with_points])
def test_noise_by_functional(make: Any, dense: Any) -> None:
    prior, features, functionals = make()
    kernel, X, noise = Functional(prior, functionals[:2]), rows(2), [0.1, 0.2]
    weights = np.random.default_rng(4).uniform(0.5, 2.0, size=len(X))

    def model() -> Any:
        return StructuredSGPR((X, Y), kernel, features, noise_variance=noise, noise_weights=weights)

    results = []
    for each in (model(), dense(model)):
        variables = [*kernel.trainable_variables, *each.likelihood.trainable_variables]
        with tf.GradientTape() as tape:
            bound = each.elbo()
        slopes = tape.gradient(bound, variables)
        results.append([bound, *slopes, *each.predict_y(X[:9])])
    assert_alike(*results, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-8)


@pytest.mark.parametrize("make", [with_waves, several])
def test_counts_as_dense(make: Any, dense: Any) -> None:
    """A pass, bound, KL divergence and predictions of DualSVGP with Poisson counts."""
    prior, features, functionals = make()
    kernel = Functional(prior, functionals)
    if make is several:
        frozen(kernel)  # dense features of stations depend on its parameters
    X = rows(2)  # values and means
    counts = np.random.default_rng(2).poisson(np.exp(Y[:, :1])).astype(float)

    def model() -> Any:
        return DualSVGP((X, counts), kernel, gpflow.likelihoods.Poisson(), features)

    results = []
    for each in (model(), dense(model)):
        each.assign_sites(each.pass_over_data().clipped)
        found = each.pass_over_data()
        with tf.GradientTape() as tape:
            value = each.maximum_log_likelihood_objective()
        slopes = tape.gradient(value, kernel.trainable_variables)
        numbers = [found.elbo, value, each._features.sums.q(each.latents()).kl()]
        results.append([*numbers, *slopes, *each.predict_f(X[:9], full_cov=True)])
    assert_alike(*results, rtol=1e-7, atol=1e-8)


def test_functions() -> None:
    """Functionals of draws have the means and covariances of the posterior."""
    kernel, features, X = parts_of(with_waves)
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    new = X[:6]
    functions = idm.sample_functions(model, 10_000, seed=1)
    values, (mean, covariance) = functions(new).numpy(), model.predict_f(new, full_cov=True)
    for output in range(2):
        scales = np.sqrt(np.diag(covariance[output]))
        found = np.cov(values[:, :, output].T) / np.outer(scales, scales)
        expected = covariance[output] / np.outer(scales, scales)
        np.testing.assert_allclose(found, expected, atol=0.06)
        error = np.mean(values[:, :, output], axis=0) - mean[:, output]
        assert np.all(np.abs(error) < 0.04 * scales)


def test_quadrature() -> None:
    """The posterior of an hourly mean and of a slope, from the posterior of values."""
    kernel, features, X = parts_of(with_stations)
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    nodes, weights = leggauss(40)
    cells = np.linspace(-0.1, 10.2, 13)
    at, h = X[3, :4], 1e-4
    ends = np.unique(np.clip(cells, at[2] - 0.2, at[2] + 0.2))
    widths = np.diff(ends)[:, None]
    parts = ends[:-1, None] + widths * (nodes + 1) / 2, weights * widths / 2
    times, masses = map(np.ravel, parts)
    times = np.concatenate([times, at[2] + [-h, h]])
    values = np.column_stack([np.tile(at, [len(times), 1]), np.zeros(len(times))])
    values[:, 2] = times
    functionals = np.zeros([2, len(times)])
    functionals[0, :-2], functionals[1, -2:] = masses / 0.4, [-0.5 / h, 0.5 / h]
    mean, covariance = model.predict_f(values, full_cov=True)
    new = np.array([[*at, 1.0], [*at, 2.0]])
    found = model.predict_f(new, full_cov=True)
    np.testing.assert_allclose(found[0], functionals @ mean, rtol=1e-6, atol=1e-7)
    expected = functionals @ covariance @ functionals.T
    np.testing.assert_allclose(found[1], expected, rtol=1e-5, atol=1e-6)


def test_float32() -> None:
    results = []
    for dtype in (np.float64, np.float32):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype, jitter=1e-6)):
            prior, features, functionals = with_waves()
            X = rows(4).astype(dtype)
            kernel = Functional(prior, functionals)
            model = StructuredSGPR((X, Y.astype(dtype)), kernel, features, noise_variance=0.1)
            results.append([model.elbo(), *model.predict_f(X[:9], full_cov=True)])
            assert all(part.dtype == dtype for part in results[-1])
    assert_alike(*results, rtol=1e-3, atol=1e-3)
