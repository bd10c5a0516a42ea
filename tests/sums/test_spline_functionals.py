"""Sparse sums of splines under functionals of rows, against models with dense matrices."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32, Matern52

import interdomain as idm
from interdomain.functionals import Areas, Blur, Derivative, Mean, Value
from interdomain.inducing_variables import (
    SplineFeatures,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import FiniteRank, Functional
from interdomain.linalg.spline_grid import SplineGrid
from interdomain.models import DualSVGP, StructuredSGPR
from interdomain.sums.dense import DenseSums
from interdomain.sums.spline_sums import SplineSums
from interdomain.sums.splines import Splines
from tests.conformance.helpers import assert_refused
from tests.parts import frozen

pytestmark = [
    pytest.mark.usefixtures("no_jitter"),
    pytest.mark.filterwarnings("ignore:inducing_variable. the splines leave"),
]
FUNCTIONALS = {
    1: [Value(), Mean([0.1]), Blur([1e-4]), Derivative(0, 2), Mean([0.17]) - 0.5 * Value()],
    2: [Value(), Mean([0.05, 0.1]), Derivative(1), Mean([0.0, 0.13]) - 0.5 * Value()],
}


def rows(columns: int, count: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows with the numbers of their functionals, and targets."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(0.1, 0.9, size=[count, columns])
    numbers = rng.integers(0, len(FUNCTIONALS[columns]), size=count)
    Y = np.sin(5 * inputs[:, :1]) + 0.3 * rng.normal(size=[count, 2])
    return np.column_stack([inputs, numbers]), Y


def one_column() -> tuple[Any, Any]:
    kernel, splines = Matern52(variance=1.2, lengthscales=0.3), SplineFeatures(0.0, 1.0, 40, 3)
    return Functional(FiniteRank(kernel, splines), FUNCTIONALS[1]), splines


def with_others() -> tuple[Any, Any]:
    """Splines of two columns in the middle of three blocks, which see other columns."""
    splines = SplineFeatures([0.0, 0.0], [1.0, 1.0], [18, 15], 2)
    waves = VariationalFourierFeatures(-0.2, 1.3, 4)
    points = InducingPoints(np.linspace(0, 1, 4)[:, None] * np.ones(2))
    kernel = Matern32(lengthscales=0.8, active_dims=[1]) * Matern32(active_dims=[0])
    first = FiniteRank(Matern32(active_dims=[1]), waves)
    third = FiniteRank(Matern32(variance=0.6, active_dims=[0]), points)
    frozen(points, third)
    prior = first + FiniteRank(kernel, splines) + third
    return Functional(prior, FUNCTIONALS[2]), SumInducingVariables([waves, splines, points])


CASES = {1: one_column, 2: with_others}


@pytest.fixture
def dense(monkeypatch: Any) -> Any:
    """A context in which sums of splines are dense."""

    def made(make: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(Splines, "sums", lambda *_: None)
            model = make()
            assert isinstance(model._features.sums, DenseSums)
        return model

    return made


def assert_alike(some: Any, others: Any, **tolerances: float) -> None:
    for one, other in zip(some, others, strict=True):
        np.testing.assert_allclose(one, other, **{"rtol": 1e-7, "atol": 1e-8} | tolerances)


@pytest.mark.parametrize("by_functional", [False, True], ids=["one noise", "noises"])
@pytest.mark.parametrize("columns", CASES)
def test_as_dense(columns: int, by_functional: bool, dense: Any) -> None:
    kernel, features = CASES[columns]()
    mean = gpflow.functions.Linear(np.full([columns, 2], 0.1), np.full(2, 0.2))
    X, Y = rows(columns, 150)
    noise = 0.1 + 0.1 * np.arange(len(kernel.functionals)) if by_functional else 0.1

    def make() -> Any:
        parts = {"noise_variance": noise, "mean_function": mean}
        return StructuredSGPR((X, Y), kernel, features, **parts)

    model = make()
    assert isinstance(model._features.sums, SplineSums)
    new, _ = rows(columns, 9, seed=1)
    results = []
    for each in (model, dense(make)):
        variables = [*kernel.trainable_variables, *mean.trainable_variables]
        variables += each.likelihood.trainable_variables
        with tf.GradientTape() as tape:
            bound = each.maximum_log_likelihood_objective()
        gradients = tape.gradient(bound, variables)
        assert None not in gradients
        predictions = [*each.predict_f(new), *each.predict_f(new, full_cov=True)]
        results.append([bound, *gradients, *predictions, *each.posterior().predict_f(new)])
    assert_alike(*results)
    np.testing.assert_allclose(tf.function(model.elbo, autograph=False)(), results[0][0])
    kinds = np.unique(X[:, -1]).astype(int)
    assert len(kinds) == len(kernel.functionals)


@pytest.mark.parametrize("columns", CASES)
def test_as_stock_model_and_compiled(columns: int) -> None:
    kernel, features = CASES[columns]()
    X, Y = rows(columns, 80)
    new, _ = rows(columns, 9, seed=1)
    mean = gpflow.functions.Constant(0.4)
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1, mean_function=mean)
    parts = {"noise_variance": 0.1, "mean_function": kernel.mean_function(mean)}
    stock = gpflow.models.SGPR((X, Y), kernel, features, **parts)
    np.testing.assert_allclose(model.elbo(), stock.elbo(), rtol=1e-8)

    def predict(model: Any, X: Any) -> list[Any]:
        return [*model.predict_f(X), *model.predict_f(X, full_cov=True)]

    # In units of the prior, whose variance is 3,100 for the second derivative: the stock model
    # subtracts from it, with a rounding of this size.
    unit = np.sqrt(kernel(new, full_cov=False))[:, None]
    units = unit, unit**2, unit, unit * unit.T
    one, other = ([*map(np.divide, predict(m, new), units)] for m in (model, stock))
    assert_alike(one, other)
    function = model.predict_f if columns == 2 else lambda X: predict(model, X)
    compiled = tf.function(
        function, autograph=False, input_signature=[tf.TensorSpec([None, columns + 1], tf.float64)]
    )
    assert_alike(compiled(new), function(new))
    # The entries of Kuu's inverse that a prior with an unexplained part needs.
    sums, (collapsed, *_) = model._features.sums, model._collapsed()
    incomplete = np.ones(sums.features.num_inducing, np.bool_)
    kuf = gpflow.covariances.Kuf(features, kernel, X)
    kuu = gpflow.covariances.Kuu(features, kernel)
    trace = np.trace(np.linalg.solve(kuu, kuf @ tf.transpose(kuf)))
    np.testing.assert_allclose(collapsed.explained_variance(incomplete), trace, rtol=1e-8)


@pytest.mark.parametrize("columns", CASES)
def test_counts_as_dense(columns: int, dense: Any) -> None:
    """The passes, bound, KL divergence and predictions of DualSVGP with Poisson counts."""
    kernel, features = CASES[columns]()
    X, Y = rows(columns, 120)
    slopes = [isinstance(part, Derivative) for part in FUNCTIONALS[columns]]
    X[:, -1] *= ~np.array(slopes)[X[:, -1].astype(int)]  # their rates would be huge
    counts = np.random.default_rng(2).poisson(np.exp(Y))[:, :1].astype(float)
    new, _ = rows(columns, 9, seed=1)

    def make() -> Any:
        return DualSVGP((X, counts), kernel, gpflow.likelihoods.Poisson(), features)

    results = []
    for model in (make(), dense(make)):
        model.assign_sites(model.pass_over_data().clipped)
        found = model.pass_over_data()
        with tf.GradientTape() as tape:
            value = model.maximum_log_likelihood_objective()
        gradients = tape.gradient(value, kernel.trainable_variables)
        q = model._features.sums.q(model.latents())
        numbers = [found.elbo, found.sites.shifts, value, q.kl()]
        results.append([*numbers, *gradients, *model.predict_f(new, full_cov=True)])
    assert_alike(*results)


def test_functions() -> None:
    """Functionals of draws have the means and covariances of the posterior."""
    kernel, features = with_others()
    model = StructuredSGPR(rows(2, 80), kernel, features, noise_variance=0.1)
    new, _ = rows(2, 5, seed=1)
    functions = idm.sample_functions(model, 10_000, seed=1)
    values, (mean, covariance) = functions(new).numpy(), model.predict_f(new, full_cov=True)
    for output in range(2):
        scales = np.sqrt(np.diag(covariance[output]))
        found = np.cov(values[:, :, output].T) / np.outer(scales, scales)
        expected = covariance[output] / np.outer(scales, scales)
        np.testing.assert_allclose(found, expected, atol=0.06)
        error = np.mean(values[:, :, output], axis=0) - mean[:, output]
        assert np.all(np.abs(error) < 0.04 * scales)
    np.testing.assert_allclose(functions(new[1:3]), values[:, 1:3], atol=1e-12)


def test_nothing_of_the_size_of_the_square(monkeypatch: Any) -> None:
    """Hourly values from daily means, with splines of which a dense matrix would have 20 GB."""
    splines = SplineFeatures(0.0, 10_000.0, 50_000, 2)
    prior = FiniteRank(Matern32(lengthscales=3.0), splines)
    days = np.arange(0.5, 10_000.0)[::10]
    X = np.column_stack([days, np.ones_like(days)])
    kernel = Functional(prior, [Value(), Mean([1.0])])
    model = StructuredSGPR((X, np.sin(days)[:, None]), kernel, splines, noise_variance=0.01)
    hours = np.column_stack([np.linspace(4, 5, 24), np.zeros(24)])
    assert model.statistics.num_rows == 1_000
    with monkeypatch.context() as patch:
        patch.delattr(SplineGrid, "dense")
        assert np.isfinite(model.elbo())
        mean, _ = model.predict_f(np.concatenate([hours, X[:1]]))
        hourly, _ = idm.predict_in_batches(model, hours, progress=False)
    np.testing.assert_allclose(hourly, mean[:24])


def test_sparse_or_dense_or_refused() -> None:
    few, many = SplineFeatures(0.0, 1.0, 200, 2), SplineFeatures(0.0, 1.0, 5_000, 2)
    plane = SplineFeatures([0.0, 0.0], [1.0, 1.0], [1_000, 1_000], 2)
    district, own = Areas(np.array([[0.2], [0.4]])), Mean(width_columns=[1])

    def structure(splines: Any, *functionals: Any) -> Any:
        kernel = Matern32(lengthscales=0.1)
        if splines is plane:
            kernel = Matern32(active_dims=[0]) * Matern32(active_dims=[1])
        rows_of = Functional(FiniteRank(kernel, splines), functionals)
        return idm.core.pairs.structure_of(splines, rows_of)

    assert structure(few, Value(), Mean([0.1])).grid.reach == 22
    assert structure(few, Mean([0.6])) is None  # a dense matrix is smaller
    assert structure(few, Value(), district) is None and structure(few, own) is None
    assert structure(many, Mean([0.6])).grid.reach > 3_000
    assert_refused(
        [
            (lambda: structure(many, district), "functionals must be sparse .* found Areas with"),
            (lambda: structure(many, own), "found width_columns with .* pass a list of Means"),
            (lambda: structure(plane, Mean([0.2, 0.2])), "widths or variances of functionals: the"),
        ]
    )


def test_full_prior() -> None:
    """The prior variance of rows that the splines do not explain is a part of the bound."""
    prior, splines = Matern52(lengthscales=0.3), SplineFeatures(0.0, 1.0, 40, 3)
    kernel = Functional(prior, [Value(), Mean([0.1]), Derivative(0)])
    X, Y = rows(1, 60)
    X[:, 1] %= 3
    model = StructuredSGPR((X, Y), kernel, splines, noise_variance=0.1, charge="trace")
    with pytest.raises(ValueError, match="or make the prior of Functional of finite rank"):
        model.elbo()
    gpflow.set_trainable(kernel, False)
    assert isinstance(model._features.sums, SplineSums)
    stock = gpflow.models.SGPR((X, Y), kernel, splines, noise_variance=0.1)
    np.testing.assert_allclose(model.elbo(), stock.elbo(), rtol=1e-8)
    assert_alike(model.predict_f(X, full_cov=True), stock.predict_f(X, full_cov=True))
