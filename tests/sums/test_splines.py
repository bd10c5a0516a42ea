"""Models of splines: bound, gradients and predictions against GPflow's with dense matrices."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern12, Matern32

import interdomain as idm
from interdomain.inducing_variables import SplineFeatures, SumInducingVariables
from interdomain.kernels import FiniteRank
from interdomain.linalg.spline_grid import SplineGrid
from interdomain.models import StructuredSGPR
from tests.parts import finite_rank, frozen

pytestmark = pytest.mark.usefixtures("no_jitter")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=[150, 3])
Y = np.hstack([np.sin(5 * X[:, :1]) * X[:, 1:2], X[:, 2:]]) + 0.3 * RNG.normal(size=[150, 2])
BOX = [-1.05] * 3, [1.1] * 3


def product(*columns: int) -> gpflow.kernels.Kernel:
    kernel = Matern32(variance=1.2, lengthscales=0.5, active_dims=[columns[0]])
    for column in columns[1:]:
        kernel = kernel * Matern12(lengthscales=0.8 + column, active_dims=[column])
    return kernel


def features(*num: int, degree: int = 2) -> SplineFeatures:
    return SplineFeatures(*(end[: len(num)] for end in BOX), num, degree)


def one_column() -> tuple[Any, Any]:
    return product(1), features(9, degree=3)


def two_columns() -> tuple[Any, Any]:
    """A prior that ends with its features."""
    return finite_rank(product(2, 0), features(7, 6))


def three_columns() -> tuple[Any, Any]:
    return product(2, 0, 1), features(4, 5, 3)


def with_others() -> tuple[Any, Any]:
    """The largest of three blocks is sparse, and stands in the middle."""
    points = InducingPoints(np.linspace(-1, 1, 4)[:, None] * np.ones(3))
    first, second, third = Matern12(active_dims=[0]), product(2, 0), product(1)
    frozen(points, first)
    splines = features(6, 5)
    kernel = first + FiniteRank(second, splines) + third
    return kernel, SumInducingVariables([points, splines, features(5)])


@pytest.mark.parametrize("make", [one_column, two_columns, three_columns, with_others])
def test_as_sgpr(make: Any) -> None:
    kernel, inducing_variable = make()
    mean = gpflow.functions.Linear(np.full([3, 2], 0.1), np.full(2, 0.2))
    noise = gpflow.likelihoods.Gaussian(0.1)
    parts = {"mean_function": mean, "likelihood": noise}
    model = StructuredSGPR((X, Y), kernel, inducing_variable, charge="trace", **parts)
    dense = gpflow.models.SGPR((X, Y), kernel, inducing_variable, **parts)
    variables = dense.trainable_variables
    values, gradients = [], []
    for each in (model, dense):
        with tf.GradientTape() as tape:
            values.append(each.maximum_log_likelihood_objective())
        gradients.append(tape.gradient(values[-1], variables))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-9)
    for found, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    compiled = tf.function(model.elbo, autograph=False)
    np.testing.assert_allclose(compiled(), values[0], rtol=1e-12)

    new = RNG.uniform(-1, 1, size=[6, 3])
    posterior = model.posterior()
    for options in ({}, {"full_cov": True}):
        right = dense.predict_f(new, **options)
        for predict in (model.predict_f, posterior.predict_f):
            for found, expected in zip(predict(new, **options), right, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    for found, expected in zip(model.compute_qu(), dense.compute_qu(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    svgp = model.to_svgp()
    np.testing.assert_allclose(svgp.elbo((X, Y)), values[0], rtol=1e-8)
    both = model.statistics + model.accumulate((X[:20], Y[:20])) - model.accumulate((X, Y))
    np.testing.assert_allclose(both.sums["gram"], model.accumulate((X[:20], Y[:20])).sums["gram"])


@pytest.mark.parametrize("make", [two_columns, with_others])
def test_sets_of_rows(make: Any) -> None:
    """Rows with leading axes, as in GPflow's posteriors."""
    model = StructuredSGPR((X, Y), *make(), noise_variance=0.1)
    posterior, sets = model.posterior(), RNG.uniform(-1, 1, size=[2, 3, 5, 3])
    for options in ({}, {"full_cov": True}, {"full_output_cov": True}):
        for predict in (model.predict_f, posterior.predict_f):
            for number, found in enumerate(predict(sets, **options)):
                each = [
                    posterior.predict_f(rows, **options)[number] for rows in sets.reshape(6, 5, 3)
                ]
                expected = np.reshape(each, [2, 3, *each[0].shape])
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
        assert posterior.predict_f(X[:0], **options)[0].shape == (0, 2)


def test_covariances_are_of_the_cache() -> None:
    """Neither later parameters nor graphs change them, until the cache is updated."""
    model = StructuredSGPR((X, Y), *two_columns(), noise_variance=0.1)
    cached, variables = model.posterior(), model.posterior("variable")
    compiled = tf.function(variables.predict_f, autograph=False)
    before = cached.predict_f(X[:4], full_cov=True)
    compiled(tf.constant(X[:4]), full_cov=True)
    model.likelihood.variance.assign(3.0)
    cached.fused_predict_f(X[:4])
    tf.function(cached.fused_predict_f, autograph=False)(tf.constant(X[:4]))
    tf.function(variables.update_cache, autograph=False)()
    after = model.predict_f(X[:4], full_cov=True)
    for found, expected in (
        (cached.predict_f(X[:4], full_cov=True), before),
        (variables.predict_f(X[:4], full_cov=True), after),
        (compiled(tf.constant(X[:4]), full_cov=True), after),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_many_splines_as_gpr() -> None:
    kernel = product(1)
    model = StructuredSGPR((X, Y), kernel, features(400, degree=3), noise_variance=0.1)
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=0.1)
    bound, evidence = float(model.elbo()), float(exact.log_marginal_likelihood())
    assert 0 < evidence - bound < 1e-2
    for found, expected in zip(model.predict_f(X[:9]), exact.predict_f(X[:9]), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_nothing_of_the_size_of_the_square(monkeypatch: Any) -> None:
    """A dense matrix of these features has 20 GB; nor are predictions made of dense features."""
    kernel, splines = Matern12(lengthscales=0.5, active_dims=[1]), features(50_000, degree=1)
    model = StructuredSGPR((X, Y), FiniteRank(kernel, splines), splines, noise_variance=0.1)
    assert model.statistics.num_rows == len(X)
    with monkeypatch.context() as patch:
        patch.delattr(SplineGrid, "dense")
        mean, variance = idm.predict_in_batches(model, X, progress=False)
        for found, expected in zip(model.predict_f(X), (mean, variance), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-12)
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=0.1).predict_f(X)
    np.testing.assert_allclose(mean, exact[0], atol=1e-3)
    np.testing.assert_allclose(variance, exact[1], atol=1e-3)
    for function in (model.to_svgp, model.compute_qu):
        with pytest.raises(ValueError, match="a dense q of 50,000 features is asked for, which"):
            function()


def test_functions() -> None:
    """Their means and covariances are those of the posterior."""
    kernel, inducing_variable = with_others()
    with pytest.raises(ValueError, match=r"does not end with its splines; make the kernel as Fin"):
        idm.sample_functions(StructuredSGPR((X, Y), kernel, inducing_variable), 2)
    splines, few = features(6, 5), features(5)
    kernel = FiniteRank(product(2, 0), splines) + FiniteRank(product(1), few)
    model = StructuredSGPR((X, Y), kernel, SumInducingVariables([splines, few]), noise_variance=0.1)
    functions = idm.sample_functions(model, 20_000, seed=1)
    values, (mean, covariance) = functions(X[:4]).numpy(), model.predict_f(X[:4], full_cov=True)
    np.testing.assert_allclose(np.mean(values, axis=0), mean, atol=0.01)
    for output in range(2):
        found = np.cov(values[:, :, output].T)
        np.testing.assert_allclose(found, covariance[output], atol=0.05 * np.max(covariance))
    np.testing.assert_array_equal(functions(X[1:3]), values[:, 1:3])


def test_single_precision_and_saved_statistics(tmp_path: Any) -> None:
    kernel, splines = product(2, 0), features(7, 6)
    expected = StructuredSGPR((X, Y), kernel, splines, noise_variance=0.1)
    expected.statistics.save(tmp_path / "sums.npz")
    loaded = idm.regression.SufficientStatistics.load(tmp_path / "sums.npz")
    again = StructuredSGPR(loaded, kernel, splines, noise_variance=0.1)
    np.testing.assert_allclose(again.elbo(), expected.elbo(), rtol=1e-12)
    with gpflow.config.as_context():
        gpflow.config.set_default_float(np.float32)
        kernel, splines = product(2, 0), features(7, 6)
        model = StructuredSGPR((X, Y), kernel, splines, noise_variance=0.1)
        assert model.elbo().dtype == model.predict_f(X[:3])[1].dtype == tf.float32
        np.testing.assert_allclose(model.elbo(), expected.elbo(), rtol=1e-5)
        svgp = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), splines)
        assert svgp.elbo((X[:3].astype("f4"), Y[:3, :1].astype("f4"))).dtype == tf.float32


def test_warnings_and_errors() -> None:
    kernel = Matern32(lengthscales=0.02, active_dims=[0])
    model = StructuredSGPR((X, Y), kernel, features(6), noise_variance=0.1)
    gpflow.set_trainable(kernel, False)
    message = r"leave \d\d% of the prior .* about num=\d+, which leave 5%"
    with pytest.warns(UserWarning, match=message):
        idm.fit(model, progress=False, steps=2)
    kernel.lengthscales.assign(3.0)
    model = StructuredSGPR((X, Y), kernel, features(60), noise_variance=0.1)
    with pytest.warns(UserWarning, match=r"so narrow .* or make the kernel as FiniteRank"):
        idm.fit(model, progress=False, steps=2)
    kernel, inducing_variable = with_others()
    gpflow.set_trainable(inducing_variable, True)
    model = StructuredSGPR((X, Y), kernel, inducing_variable)
    with pytest.raises(ValueError, match=r"found splines beside features that depend on .*Z, tr"):
        model.elbo()
    gpflow.set_trainable(inducing_variable, False)
    with pytest.raises(ValueError, match="Xnew: 1 rows are outside of the box"):
        model.predict_f(np.array([[0.0, 2.0, 0.0]]))
    with pytest.raises(ValueError, match="X must have 3 columns, as the training rows, found 1"):
        model.predict_f(np.zeros((1, 1)))


def test_narrow_splines_are_told_what_is_enough() -> None:
    """Fewer splines, which leave no more than is said; no share that is rounding."""
    for lengthscale, num, degree, ends in (
        (3.0, (60,), 2, False),
        (1e4, (50,), 3, False),  # its share is not a number
        (3e6, (50,), 3, True),  # and here 1.0
        (30.0, (60, 9), 2, False),
    ):
        kernel, splines = product(*range(len(num))), features(*num, degree=degree)
        parts = kernel.kernels if len(num) > 1 else [kernel]
        parts[0].lengthscales.assign(lengthscale)
        prior = FiniteRank(kernel, splines) if ends else kernel
        model = StructuredSGPR((X, Y), prior, splines, noise_variance=0.1)
        with pytest.warns(UserWarning, match="are so narrow") as caught:
            model.check_spacing()
        text, enough = str(caught[0].message), splines.enough(kernel, 0.01)
        assert enough[0] < num[0] and "-" not in text and "(" not in text.split("FiniteRank")[0]
        wanted = enough[0] if len(num) == 1 else list(enough)
        assert f"num={wanted} leave at most 1%" in text and ("FiniteRank" in text) != ends
        if lengthscale < 1e4:
            assert 0 < features(*enough, degree=degree).unexplained_share(kernel) < 0.01


def test_predictions_compile() -> None:
    """Predictions compile for known and unknown numbers of rows, and follow later training."""
    new, targets = RNG.uniform(-1, 1, size=[4, 3]), RNG.poisson(1.0, size=[4, 2]).astype(float)
    counts = RNG.poisson(np.exp(np.tanh(Y))).astype(float)
    kernel, splines = two_columns()
    dual = idm.models.DualSVGP((X, counts), kernel, gpflow.likelihoods.Poisson(), splines)
    idm.fit(dual, steps=1, progress=False)

    def predict(model: Any, X: Any, Y: Any) -> list[tf.Tensor]:
        parts = [model.predict_f(X, full_cov=True), model.predict_y(X)]
        return [*tf.nest.flatten(parts), model.predict_log_density((X, Y))]

    for model, rows in (
        (StructuredSGPR((X, Y), *with_others(), noise_variance=0.1), None),
        (dual, 4),
    ):
        compiled = tf.function(
            lambda X, Y, model=model: predict(model, X, Y),
            autograph=False,
            input_signature=[tf.TensorSpec([rows, width], tf.float64) for width in (3, 2)],
        )
        compiled.get_concrete_function()  # before anything is computed outside of graphs
        cached = model.posterior()
        for factor in (1.0, 1.3):
            parameter = model.kernel.trainable_parameters[0]
            parameter.assign(factor * parameter)
            pairs = zip(compiled(new, targets), predict(model, new, targets), strict=True)
            for part, right in pairs:
                np.testing.assert_allclose(part, right, rtol=1e-9, atol=1e-12)
        with_cache = cached.predict_f(new, full_cov=True)[1]  # of the parameters before
        variances = np.diagonal(with_cache, axis1=1, axis2=2).T
        np.testing.assert_allclose(variances, cached.predict_f(new)[1], rtol=1e-9)
