"""Effects of a fitted model against averages of its joint posterior over a grid."""

import itertools
import pickle
import re
import warnings
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import RBF

from interdomain import predict_in_batches
from interdomain.core.columns import parts_that_warn
from interdomain.inducing_variables import SumInducingVariables
from interdomain.kernels import FiniteRank
from interdomain.models import AdditiveSVGP, StructuredSGPR
from interdomain.tables import Additive, AdditiveFeatures, CategoricalColumn, NumericColumn, effects
from interdomain.tables.report import Effects

rng = np.random.default_rng(0)
LEVELS = np.repeat([1.0, 2.0, 5.0], [5, 3, 2])
MEASURE = np.column_stack([rng.gamma(2.0, size=10), rng.normal(size=10), rng.permutation(LEVELS)])
X = np.column_stack(
    [rng.uniform(0, 6, 60), rng.uniform(-3, 3, 60), rng.choice([1.0, 2.0, 5.0], 60)]
)
Y = np.column_stack([np.sin(X[:, 0]) * X[:, 1] + X[:, 2], np.cos(X[:, 0]) * (X[:, 2] == 2)])
EFFECTS = ["a", "b", ("a", "b"), ("a", "site"), ("b", "site")]  # none of `site` alone
SUBSETS = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))


def table() -> Additive:
    columns = [
        NumericColumn([0.0, 1.0, 8.0], [0.0, 0.4, 1.0], label="a"),
        NumericColumn([-3.0, 3.0], label="b"),
        CategoricalColumn([1.0, 2.0, 5.0], label="site"),
    ]
    return Additive(columns, EFFECTS, variances=[1.0, 0.5, 0.8, 0.3, 0.6], constant_variance=2.0)


KERNEL = table()
WAVES = {effect: 3 if len(effect) == 1 else 2 for effect in KERNEL.effects}
FEATURES = AdditiveFeatures(KERNEL, WAVES)
PRIOR = FiniteRank(KERNEL, FEATURES)
GAUSSIAN = gpflow.likelihoods.Gaussian(0.1)


@pytest.fixture(scope="module")
def model() -> StructuredSGPR:
    return StructuredSGPR((X, Y), PRIOR, FEATURES, noise_variance=0.1)


@pytest.fixture(scope="module")
def report(model: StructuredSGPR) -> Effects:
    return effects(model, MEASURE, num_draws=3_000)


def svgp(q: tuple[Any, Any], **arguments: Any) -> gpflow.models.SVGP:
    parts = {"kernel": PRIOR, "inducing_variable": FEATURES, "likelihood": GAUSSIAN}
    own = {"q_mu": q[0], "q_sqrt": q[1], "num_latent_gps": q[0].shape[1]}
    return gpflow.models.SVGP(**(parts | own | arguments))


def random_q(size: int, outputs: int = 1) -> tuple[np.ndarray, np.ndarray]:
    root = np.tril(rng.normal(size=(outputs, size, size))) / size
    return rng.normal(size=(size, outputs)), root + 0.3 * np.eye(size)


def averages(counts: tuple[int, ...], subset: tuple[int, ...]) -> np.ndarray:
    """The matrix that takes f on a grid to its effect of a set of columns."""
    matrix = np.ones([1, 1])
    for column, count in enumerate(counts):
        mean = np.full([count, count], 1 / count)
        matrix = np.kron(matrix, np.eye(count) - mean if column in subset else mean)
    return matrix


def test_effects_are_averages_of_the_joint_posterior(model: StructuredSGPR) -> None:
    measure = MEASURE[:8]  # with levels of unequal weights
    found = effects(model, measure, num_draws=3_000)
    assert found.effects == SUBSETS
    grid = np.array(list(itertools.product(*measure.T)))
    mean, cov = (np.asarray(part) for part in model.predict_f(grid, full_cov=True))
    mean, cov = mean[:, 0], cov[0]
    means, variances = found.at(grid)
    for k, subset in enumerate(SUBSETS):
        project = averages((8, 8, 8), subset)
        effect_mean, effect_cov = project @ mean, project @ cov @ project.T
        np.testing.assert_allclose(means[:, k], effect_mean, atol=1e-8)
        np.testing.assert_allclose(variances[:, k], np.diag(effect_cov), atol=1e-8)
        np.testing.assert_allclose(found.variances_of_mean[k], np.mean(effect_mean**2), rtol=1e-8)
        draws = found.variance_draws[:, k]
        expected = np.mean(effect_mean**2) + np.mean(np.diag(effect_cov))
        error = np.std(draws) / np.sqrt(len(draws))
        assert abs(np.mean(draws) - expected) < 4 * error, subset
        # The variance of a quadratic form of a Gaussian.
        spread = 2 * np.sum(effect_cov**2) + 4 * effect_mean @ effect_cov @ effect_mean
        np.testing.assert_allclose(np.std(draws), np.sqrt(spread) / len(grid), rtol=0.1)
    weights = np.full(len(grid), 1 / len(grid))
    np.testing.assert_allclose(found.constant[0], weights @ mean, rtol=1e-8)
    np.testing.assert_allclose(found.constant[1] ** 2, weights @ cov @ weights, rtol=1e-8)


def test_levels_of_unequal_weight_by_hand() -> None:
    level = np.repeat([3.0, 4.0, 9.0], [50, 30, 20])
    other = rng.uniform(size=100)
    f = {3.0: 1.0, 4.0: 2.0, 9.0: 4.0}
    data = np.column_stack([other, level])
    target = np.array([[f[value]] for value in level])
    kernel = Additive.from_data(data, names=["noise", "level"], categorical=["level"])
    features = AdditiveFeatures.for_kernel(kernel, 10)
    fitted = StructuredSGPR((data, target), FiniteRank(kernel, features), features)
    fitted.likelihood.variance.assign(2e-6)
    found = effects(fitted, data)
    mean = 0.5 * 1 + 0.3 * 2 + 0.2 * 4  # 1.9
    values, variances = found.of("level", [3.0, 4.0, 9.0])
    np.testing.assert_allclose(values, [1 - mean, 2 - mean, 4 - mean], atol=1e-3)
    assert np.all(variances < 1e-5)
    np.testing.assert_allclose(found.constant[0], mean, atol=1e-3)
    variance = 0.5 * 0.9**2 + 0.3 * 0.1**2 + 0.2 * 2.1**2
    np.testing.assert_allclose(np.mean(found.variance_draws[:, 1]), variance, rtol=1e-3)
    # If levels have equal weights, their mean is 7 / 3.
    equal = effects(fitted, data[[0, 60, 90]])
    np.testing.assert_allclose(equal.of("level", [9.0])[0], 4 - 7 / 3, atol=1e-3)
    # A value that is no level is one of which nothing is known.
    unknown, variance_there = found.of("level", [7.0])
    assert variance_there[0] > 0.5 * float(kernel.variances[1])


def same(one: Effects, other: Effects, atol: float = 1e-7) -> None:
    for first, second in zip(one.at(X), other.at(X), strict=True):
        np.testing.assert_allclose(first, second, atol=atol)
    np.testing.assert_allclose(one.constant, other.constant, atol=atol)
    np.testing.assert_allclose(one.variances_of_mean, other.variances_of_mean, atol=atol)


def test_models_of_the_same_q_agree(model: StructuredSGPR) -> None:
    """... and their effects add up to the posterior mean."""
    expected = effects(model, MEASURE, output=1)
    total = expected.constant[0] + np.sum(expected.at(X)[0], axis=1)
    np.testing.assert_allclose(total, model.predict_f(X)[0][:, 1], atol=1e-8)
    trained = model.to_svgp()
    same(effects(trained, MEASURE, output=1), expected)
    mean, cov = (np.asarray(part) for part in model.compute_qu())
    plain = svgp((mean, np.tile(np.linalg.cholesky(cov), [2, 1, 1])), whiten=False)
    same(effects(plain, MEASURE, output=1), expected)


def test_what_features_leave_of_a_prior_is_added_to_variances() -> None:
    q = random_q(FEATURES.num_inducing)
    whole, finite = effects(svgp(q, kernel=KERNEL), MEASURE), effects(svgp(q), MEASURE)
    (mean, variance), (same_mean, less) = whole.at(X), finite.at(X)
    np.testing.assert_allclose(mean, same_mean, atol=1e-12)
    np.testing.assert_allclose(whole.shares, finite.shares)
    left_over = variance - less
    np.testing.assert_allclose(left_over, np.tile(left_over[0], [len(X), 1]), atol=1e-12)
    expected = KERNEL(X[:1], full_cov=False) - PRIOR(X[:1], full_cov=False)
    np.testing.assert_allclose(np.sum(left_over[0]), expected[0], rtol=1e-8)
    scaled = effects(svgp(q, kernel=KERNEL), MEASURE, scale=5.0)
    np.testing.assert_allclose(scaled.at(X), [5 * mean, 25 * variance], rtol=1e-12)
    np.testing.assert_allclose(scaled.shares, whole.shares)
    np.testing.assert_allclose(scaled.constant, 5 * np.array(whole.constant))
    assert left_over[0, 2] == 0 and np.all(np.delete(left_over[0], 2) > 0)  # `site` is no effect


def test_a_summand_of_a_kernel() -> None:
    """A summand of a kernel, with a joint q, and with a q for each summand."""
    points = InducingPoints(rng.normal(size=(4, 3)))
    features = SumInducingVariables([points, FEATURES])
    kernel = RBF() + PRIOR
    q = random_q(4 + FEATURES.num_inducing)
    model = svgp(q, kernel=kernel, inducing_variable=features)
    found = effects(model, MEASURE)
    q[0][:4] = 0  # f is linear in the mean of q
    alone = svgp(q, kernel=kernel, inducing_variable=features).predict_f(X)[0][:, 0]
    np.testing.assert_allclose(found.constant[0] + np.sum(found.at(X)[0], 1), alone, atol=1e-8)
    cov = (q[1][0] @ q[1][0].T)[4:, 4:]
    marginal = q[0][4:], np.linalg.cholesky(cov)[None]
    same(found, effects(svgp(marginal), MEASURE))
    by_summand = AdditiveSVGP(kernel, GAUSSIAN, features)
    for parameter, value in zip(by_summand.variational_parameters[1], marginal, strict=True):
        parameter.assign(value)
    same(found, effects(by_summand, MEASURE))


def test_columns_that_the_kernel_does_not_see() -> None:
    kernel = Additive(KERNEL.columns, EFFECTS, active_dims=[4, 0, 2])
    features = AdditiveFeatures(kernel, WAVES)
    wide = rng.normal(size=(60, 5))
    wide[:, [4, 0, 2]] = X
    model = StructuredSGPR((wide, Y[:, :1]), FiniteRank(kernel, features), features)
    found = effects(model, wide)
    total = found.constant[0] + np.sum(found.at(wide)[0], axis=1)
    np.testing.assert_allclose(total, model.predict_f(wide)[0][:, 0], atol=1e-8)


def test_values_for_which_there_are_no_data(model: StructuredSGPR, report: Effects) -> None:
    """Each prediction and each effect warns of them once, by the name of the column; compiled
    predictions of batches, too; rows of the data pass without a word."""
    far = X[:5].copy()
    far[1, 0], far[3, 1], far[2, 2] = 1e4, -70.0, 9.0
    messages = [
        "a: 1 of 5 values are far outside of the range of its data, from 0 to 8, such as 10000",
        "b: 1 of 5 values are far outside of the range of its data, from -3 to 3, such as -70",
        r"site: \[9.\] are none of its 3 levels",
    ]
    assert parts_that_warn(model.kernel + gpflow.kernels.Constant()) == [KERNEL]
    for predict in (
        lambda rows: model.predict_f(rows),
        lambda rows: model.posterior().predict_f(rows),
        lambda rows: predict_in_batches(model, rows, progress=False),
        report.at,
        lambda rows: effects(model, rows, num_draws=2),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            predict(far)
        found = [str(warning.message) for warning in caught]
        for message in messages:
            assert [bool(re.match(message, text)) for text in found].count(True) == 1, found
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            predict(X[:5])
    with pytest.warns(UserWarning, match=messages[1].replace("of 5", "of 2")):
        report.of("b", [0.0, -70.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report.of("b", [3.7, -3.7])  # within a quarter of the margin, functions go on
        tf.function(model.kernel, autograph=False)(tf.constant(far))  # a graph cannot warn
    many = np.repeat(far, 3, axis=0)  # the warning comes with the first batch that has any
    with pytest.warns(UserWarning, match="a: 1 of 2 values") as caught:
        predict_in_batches(model, many, batch_size=2, progress=False)
    assert len(caught) == 1


def test_report(report: Effects) -> None:
    assert report.names == ("a", "b", "site", "a x b", "a x site", "b x site")
    draws = report.variance_draws
    totals = (draws / np.sum(draws, axis=1, keepdims=True))[:, [0, 3, 4]].sum(axis=1)
    np.testing.assert_allclose(report.total_shares[0], np.mean(totals))
    np.testing.assert_allclose(report.total_share_deviations[0], np.std(totals))
    lines, largest = str(report).splitlines(), report.order[0]
    assert lines[0] == "6 effects over the values of each column in 10 rows"
    assert lines[4].startswith(report.names[largest])
    assert lines[4].split()[-2:] == [
        f"{values[largest]:.1%}" for values in (report.shares, report.share_deviations)
    ]


def test_one_effect_by_its_name_its_columns_or_their_numbers(report: Effects) -> None:
    means, variances = report.at(X)
    for effect in ("a x site", ("a", "site"), (0, 2), [0, "site"]):
        mean, variance = report.of(effect, X[:, [0, 2]])
        np.testing.assert_allclose(mean, means[:, 4], rtol=1e-12)
        np.testing.assert_allclose(variance, variances[:, 4], rtol=1e-12)
    mean, _ = report.of(("site", "a"), X[:, [2, 0]])
    np.testing.assert_allclose(mean, means[:, 4], rtol=1e-12)
    for effect in ("b", 1, (1,), ["b"]):
        np.testing.assert_allclose(report.of(effect, X[:, 1])[0], means[:, 1], rtol=1e-12)


def test_names_of_levels_that_are_not_counted_from_zero() -> None:
    site = CategoricalColumn([20.0, 10.0], label="site", level_names=["north", "south"])
    kernel = Additive([NumericColumn([0.0, 1.0], label="a"), site])
    named = np.array([[0.1, "north"], [0.4, "south"], [0.9, "north"], [0.7, "south"]], object)
    rows = kernel.encode(named)
    assert rows[:, 1].tolist() == [20, 10, 20, 10]
    with pytest.warns(UserWarning, match="site: .*'west'"):
        assert kernel.encode(np.array([[0.1, "west"]], object))[0, 1] not in site.levels
    features = AdditiveFeatures.for_kernel(kernel, 20)
    prior = FiniteRank(kernel, features)
    model = StructuredSGPR((rows, rows[:, 1:]), prior, features, noise_variance=0.1)
    found = effects(model, rows)
    by_name, by_number = found.of("site", ["south", "north"]), found.of("site", [10.0, 20.0])
    np.testing.assert_array_equal(by_name, by_number)


def test_draws_have_a_seed_and_a_report_can_be_kept(model: StructuredSGPR) -> None:
    first, second = (effects(model, MEASURE, num_draws=7, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.shares, second.shares)
    assert np.any(effects(model, MEASURE, num_draws=7).shares != first.shares)
    assert first.variance_draws.shape == (7, 6)
    kept = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(kept.at(X), first.at(X))


def test_errors(model: StructuredSGPR, report: Effects) -> None:
    def svgp_report(kernel: Any, features: Any) -> Any:
        model = gpflow.models.SVGP(kernel, GAUSSIAN, features, num_latent_gps=2)
        return lambda: effects(model, X)

    points = InducingPoints(X[:4])
    for call, message in [
        (
            lambda: effects(gpflow.models.GPR((X, Y), RBF()), X),
            "must have a Gaussian q of features of effects alone, found GPR; pass an interdomain",
        ),
        (svgp_report(KERNEL, points), "found none in Additive with InducingPoints"),
        (lambda: effects(model, X, output="first"), "output must be an integer of 0 or more"),
        (lambda: effects(model, X, num_draws=0), "num_draws must be an integer of 1 or more"),
        (lambda: effects(model, X, seed=-1), "seed must be an integer of 0 or more"),
        (lambda: effects(model, X, output=2), "output must be from 0 to 1, found 2; pass the"),
        (lambda: report.plot(0), "num must be an integer of 1 or more"),
        (lambda: report.of((0, 1, 2), X), r"found \(0, 1, 2\); pass one of a"),
        (lambda: report.of("a x b", X), r"each of 'a x b', found shape \(60, 3\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
