"""Cycles: rows many periods away, against the same rows near the start."""

import warnings
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern32, Matern52

from interdomain import fit, predict_in_batches
from interdomain.functionals import Blur, Derivative, Mean, Value
from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import FiniteRank, Functional, Periodized
from interdomain.models import StructuredSGPR
from interdomain.sums.statistics import SufficientStatistics
from interdomain.sums.waves import WaveSums

pytestmark = pytest.mark.usefixtures("no_jitter")

RNG = np.random.default_rng(0)
PERIOD, START = 24.0, 5.0
HOURS = np.sort(RNG.uniform(-24.0 * 200, 24.0 * 1_000, size=300))
X = np.column_stack([RNG.uniform(size=300), HOURS])
Y = np.sin(2 * np.pi * HOURS / 24)[:, None] + 0.2 * RNG.normal(size=[300, 1])
NEW = np.column_stack([np.zeros(20), RNG.uniform(-5e4, 5e4, size=20)])


def near(rows: Any, period: float = PERIOD) -> np.ndarray:
    """The rows in the period from the start, by extended precision."""
    hours = rows[:, 1].astype(np.longdouble) - START
    moved = hours - np.floor(hours / np.longdouble(period)) * np.longdouble(period)
    return np.column_stack([rows[:, 0], (moved + START).astype(float), rows[:, 2:]])


def cycle(period: float = PERIOD, count: int = 41) -> Any:
    base = Matern52(variance=1.3, lengthscales=6.0)
    kernel = Periodized.cycle(base, period, start=START, active_dims=[1])
    return kernel, BoxFourierFeatures.for_kernel(kernel, count)


def box(count: int = 41) -> Any:
    base = Matern52(variance=1.3, lengthscales=6.0)
    kernel = Periodized(base, START, START + PERIOD, active_dims=[1])
    return kernel, BoxFourierFeatures.for_kernel(kernel, count)


@pytest.mark.parametrize("period", [24.0, 23.9344696, 365.2425])
def test_values_far_away(period: float) -> None:
    kernel, features = cycle(period)
    rows, moved = tf.constant(X), near(X, period)
    assert features.domain(kernel) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = gpflow.covariances.Kuf(features, kernel, rows)
    expected = gpflow.covariances.Kuf(features, kernel, moved)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    np.testing.assert_allclose(kernel(X, NEW), kernel(moved, near(NEW, period)), atol=1e-11)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        total = tf.reduce_sum(gpflow.covariances.Kuf(features, kernel, rows)[2])
    step = 1e-4 * np.array([0.0, 1.0])
    ends = (gpflow.covariances.Kuf(features, kernel, moved + s * step)[2] for s in (1, -1))
    difference = (next(ends) - next(ends)) / 2e-4
    np.testing.assert_allclose(tape.gradient(total, rows)[:, 1], difference, atol=1e-8)


def test_float32() -> None:
    """The rows are exact; only the waves are rounded."""
    kernel, features = cycle(23.9344696)
    rows = X.astype(np.float32)
    expected = gpflow.covariances.Kuf(features, kernel, near(rows.astype(float), 23.9344696))
    covariances = kernel(near(rows.astype(float), 23.9344696))
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        kernel, features = cycle(23.9344696)
        found = gpflow.covariances.Kuf(features, kernel, rows)
        assert found.dtype == tf.float32
        np.testing.assert_allclose(found, expected, atol=3e-5)
        np.testing.assert_allclose(kernel(rows), covariances, atol=3e-5)


@pytest.mark.parametrize("count", [5, 41])
def test_models(count: int) -> None:
    """Dense sums, and tables of nonuniform FFTs."""
    kernel, features = cycle(count=count)
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1, charge="trace")
    assert isinstance(model._features.sums, WaveSums) == (count == 41)
    other, dense_features = box(count)
    dense = gpflow.models.SGPR((near(X), Y), other, dense_features, noise_variance=0.1)
    np.testing.assert_allclose(model.elbo(), dense.elbo(), rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairs = zip(model.predict_f(NEW), dense.predict_f(near(NEW)), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
        mean, variance = predict_in_batches(model, NEW, batch_size=7)
        np.testing.assert_allclose(mean, dense.predict_f(near(NEW))[0], atol=1e-8)
        np.testing.assert_allclose(variance, dense.predict_f(near(NEW))[1], atol=1e-8)
        fit(model, steps=3, progress=False)
    svgp = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), features, num_data=len(X))
    moved = gpflow.models.SVGP(
        other, gpflow.likelihoods.Gaussian(), dense_features, num_data=len(X)
    )
    other.base_kernel.lengthscales.assign(kernel.base_kernel.lengthscales)
    other.base_kernel.variance.assign(kernel.base_kernel.variance)
    np.testing.assert_allclose(svgp.elbo((X, Y)), moved.elbo((near(X), Y)), rtol=1e-9)


@pytest.mark.parametrize("count", [7, 41])
def test_functionals(count: int) -> None:
    """Slopes, means and blurs, whose intervals may be longer than a period."""
    functionals = [Value(), Derivative(1), Derivative(1, 2), Mean([0.0, 30.0]), Blur([0.0, 4.0])]
    kinds = np.arange(len(X)) % 5
    bounds, predictions = [], []
    for make, move in ((cycle, np.asarray), (box, near)):
        kernel, features = make(count=count)
        acted = Functional(FiniteRank(kernel, features), functionals)
        rows = np.column_stack([move(X), kinds])
        model_class = gpflow.models.SGPR if make is box else StructuredSGPR
        model = model_class((rows, Y), acted, features, noise_variance=0.1)
        new = np.column_stack([move(NEW), np.arange(len(NEW)) % 5])
        bounds.append(model.elbo())
        predictions.append(model.predict_f(new))
    np.testing.assert_allclose(bounds[0], bounds[1], rtol=1e-8)
    for found, expected in zip(*predictions, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_saved_sums_are_those_of_a_cycle(tmp_path: Any) -> None:
    kernel, features = cycle()
    model = StructuredSGPR((X, Y), kernel, features)
    model.statistics.save(tmp_path / "sums.npz")
    loaded = SufficientStatistics.load(tmp_path / "sums.npz")
    assert loaded.description["kernel.is_cycle"]
    np.testing.assert_allclose(StructuredSGPR(loaded, kernel, features).elbo(), model.elbo())


def test_several_columns() -> None:
    base = Matern32(lengthscales=[6.0, 60.0])
    kernel = Periodized.cycle(base, [24.0, 365.0], start=[0.0, 2.0])
    features = BoxFourierFeatures.for_kernel(kernel, 30)
    moved = NEW + [24.0 * 1_000, -365.0 * 2_000]
    for function in (kernel, lambda rows: gpflow.covariances.Kuf(features, kernel, rows)):
        np.testing.assert_allclose(function(moved), function(NEW), atol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "period must be positive, found 0"),
        (([24.0, -1.0],), "period must be positive"),
        (("a day",), "period must be real numbers: a number or a vector"),
        ((24.0, [0.0, 1.0]), "start must have 1 numbers, found 2; pass a number"),
        (([24.0, 7.0],), "columns"),
    ],
)
def test_bad_arguments(arguments: Any, message: str) -> None:
    period, start = [*arguments, 0.0][:2]
    with pytest.raises(ValueError, match=message):
        Periodized.cycle(Matern32(lengthscales=[1.0]), period, start=start)
