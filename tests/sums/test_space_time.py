"""Space and time: bound, gradients, predictions and draws against GPflow's dense matrices."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern12, Matern32, Matern52

import interdomain as idm
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    FixedPlaces,
    ProductInducingVariables,
    SplineFeatures,
    SumInducingVariables,
)
from interdomain.kernels import FiniteRank, Periodized
from interdomain.models import StructuredSGPR
from interdomain.sums.chain.sums import ChainSums

pytestmark = pytest.mark.usefixtures("no_jitter")

RNG = np.random.default_rng(0)
STATIONS = RNG.uniform(-1, 1, size=[6, 2])
HOURS = np.sort(RNG.uniform(0, 10, size=180))
PLACE = RNG.integers(6, size=180)
X = np.column_stack([STATIONS[PLACE], HOURS, PLACE])  # with missing hours
SIGNAL = np.stack([np.sin(HOURS) + X[:, 0], X[:, 1] * HOURS / 5], axis=1)
Y = SIGNAL + 0.3 * RNG.normal(size=[180, 2])
NEW = np.column_stack([RNG.uniform([-1, -1, 0], [1, 1, 10], size=[7, 3]), RNG.integers(6, size=7)])


def time(kind: Any = Matern32, lengthscale: float = 2.0) -> Any:
    return kind(lengthscales=lengthscale, active_dims=[2])


def splines(degree: int = 2, num: int = 14) -> SplineFeatures:
    return SplineFeatures(-0.1, 10.2, num, degree)


def stations() -> tuple[Any, Any]:
    kernel = Matern52(variance=1.3, lengthscales=[0.8, 1.1], active_dims=[0, 1])
    return kernel, FixedPlaces.from_data(X, [0, 1])


def waves() -> tuple[Any, Any]:
    base = Matern32(lengthscales=[0.7, 0.9])
    kernel = Periodized.from_data(base, X[:, :2], active_dims=[0, 1])
    return kernel, BoxFourierFeatures.for_kernel(kernel, 8)


def term(space: Any, kernel: Any, features: SplineFeatures, *, time_first: bool = False) -> Any:
    """A prior of finite rank and its features."""
    of_space, places = space
    parts = [(of_space, places), (kernel, features)][:: -1 if time_first else 1]
    product = parts[0][0] * parts[1][0]
    products = ProductInducingVariables([part for _, part in parts])
    return FiniteRank(product, products), products


def with_stations() -> tuple[Any, Any]:
    return term(stations(), time(), splines())


def with_places_left_out() -> tuple[Any, Any]:
    """A prior that is truncated in time alone: it is exact at rows, and not at other places."""
    (space, places), features = stations(), splines()
    kernel = space * FiniteRank(time(), features)
    return kernel, ProductInducingVariables([places, features])


def with_waves() -> tuple[Any, Any]:
    return term(waves(), time(Matern12), splines(1), time_first=True)


def with_waves_p3() -> tuple[Any, Any]:
    prior, features = term(waves(), time(Matern52), splines(3))
    return prior.kernel, features  # features leave out a part of the kernel


def several() -> tuple[Any, Any]:
    """Two terms, a function of time alone, and a border of waves in space."""
    one, many = splines(2), []
    many.append(term(waves(), time(), one))
    many.append(term(stations(), time(Matern12, 5.0), one, time_first=True))
    slow = time(Matern32, 4.0)
    many.append((slow, one))
    kernel, features = waves()
    many.append((FiniteRank(kernel, features), features))
    kernels, blocks = zip(*many, strict=True)
    return gpflow.kernels.Sum(list(kernels)), SumInducingVariables(list(blocks))


def meters() -> tuple[Any, Any]:
    """A series of each group, which share only parameters, with a cycle."""
    groups = idm.tables.GroupIntercepts.from_data(PLACE, active_dims=[3])
    cycle = Periodized(Matern32(lengthscales=1.0), -0.5, 10.5, active_dims=[2])
    waves = BoxFourierFeatures.for_kernel(cycle, 3)
    parts = idm.tables.GroupFeatures(groups), splines(2), waves
    product = groups * time() * cycle
    features = ProductInducingVariables(list(parts))
    return FiniteRank(product, features), features


CASES = [with_stations, with_places_left_out, with_waves, with_waves_p3, several, meters]


@pytest.mark.parametrize("make", CASES)
def test_as_sgpr(make: Any) -> None:
    kernel, inducing_variable = make()
    mean = gpflow.functions.Linear(np.full([4, 2], 0.1), np.full(2, 0.2))
    noise = gpflow.likelihoods.Gaussian(0.1)
    parts = {"mean_function": mean, "likelihood": noise}
    model = StructuredSGPR((X, Y), kernel, inducing_variable, charge="trace", **parts)
    assert isinstance(model._features.sums, ChainSums)
    dense = gpflow.models.SGPR((X, Y), kernel, inducing_variable, **parts)
    variables = dense.trainable_variables
    values, gradients = [], []
    for each in (model, dense):
        with tf.GradientTape() as tape:
            values.append(each.maximum_log_likelihood_objective())
        gradients.append(tape.gradient(values[-1], variables))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-8)
    for variable, found, expected in zip(variables, *gradients, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7, err_msg=variable.name)
    compiled = tf.function(model.elbo, autograph=False)
    np.testing.assert_allclose(compiled(), values[0], rtol=1e-12)

    posterior = model.posterior()
    for options in ({}, {"full_cov": True}):
        right = dense.predict_f(NEW, **options)
        for predict in (model.predict_f, posterior.predict_f):
            for found, expected in zip(predict(NEW, **options), right, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    for found, expected in zip(model.compute_qu(), dense.compute_qu(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    svgp = model.to_svgp()
    np.testing.assert_allclose(svgp.elbo((X, Y)), values[0], rtol=1e-8)


def test_splines_of_another_column() -> None:
    """They are dense features beside the terms of time."""
    altitude, column = Matern32(active_dims=[0]), SplineFeatures(-1.1, 1.1, 6, 2)
    prior, products = with_waves()
    kernel = prior + FiniteRank(altitude, column)
    features = SumInducingVariables([products, column])
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    assert model._features.sums.structure.chain.others == 6
    dense = gpflow.models.SGPR((X, Y), kernel, features, noise_variance=0.1)
    for found, expected in zip(model.predict_f(NEW), dense.predict_f(NEW), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_no_pass_for_kernels_of_places() -> None:
    """Sums at fixed places depend on no parameter, also if the kernel of space is not truncated."""
    model = StructuredSGPR((X, Y), *with_places_left_out(), noise_variance=0.1)
    assert not model.feature_parameters
    assert "diagonal" in model.statistics.sums and not model.statistics.sums["diagonal"].size
    _, variance = model.predict_f(np.array([[5.0, 5.0, 3.0, 0.0]]))
    np.testing.assert_allclose(variance, 1.3, rtol=0.02)  # the prior's, far from all places
