"""Models of rows that are functionals of f, with tables of waves, against GPflow's with dense
matrices."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern12, Matern32

import interdomain as idm
from interdomain.functionals import Areas, Blur, ByDegree, Derivative, Mean, Value
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import FiniteRank, Functional, GlobeMatern32, Periodized
from interdomain.models import DualSVGP, StructuredSGPR
from interdomain.sums import waves as wave_sums
from interdomain.sums.waves import WaveSums
from tests.functional_oracles import with_numbers

pytestmark = pytest.mark.usefixtures("no_jitter")

RNG = np.random.default_rng(0)
Parts = tuple[Any, Any, np.ndarray]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Tables of few features, too."""
    monkeypatch.setattr(wave_sums, "FEWEST", (1, 1, 1))
    return monkeypatch


def box(columns: list[int], count: int, base: Any = Matern32) -> tuple[Any, Any]:
    kernel = base(variance=1.3, lengthscales=np.full(len(columns), 0.8))
    kernel = Periodized(kernel, [-2.0] * len(columns), [2.1] * len(columns), active_dims=columns)
    features = BoxFourierFeatures.for_kernel(kernel, count)
    return FiniteRank(kernel, features), features


def hours() -> Parts:
    """One functional: there is no column of numbers."""
    prior, features = box([0], 21)
    return Functional(prior, Mean([0.2])), features, RNG.uniform(-1.5, 1.5, size=(60, 1))


def mixed() -> Parts:
    """In permuted columns of X, with regions, for a sum of a product and of waves."""
    (first, waves), (second, others), (third, more) = (
        box([2], 5),
        box([0], 5),
        box([2], 9, Matern12),
    )
    product = ProductInducingVariables([waves, others])
    prior = FiniteRank(first.kernel * second.kernel, product) + third
    features = SumInducingVariables([product, more])
    regions = Areas(RNG.uniform(-1, 1, size=(30, 3)), None, np.arange(30) % 5)
    functionals = [Value(), Derivative(2), Mean([0.3, 0.0, 0.1]) - Value(), Blur(0.03), 2 * regions]
    parts = [RNG.uniform(-1.5, 1.5, size=(14, 3)) for _ in functionals]
    parts[-1][:, 0] = RNG.integers(0, 5, 14)
    rows = np.insert(with_numbers(parts), 0, 7.0, axis=1)
    kernel = Functional(prior, functionals, active_dims=[3, 2, 1, 4])
    return kernel, features, rows[:, [0, 3, 2, 1, 4]]


def one_box() -> Parts:
    """A sum of waves of one box: tables for both."""
    (first, waves), (second, others) = box([1, 0], 15), box([1, 0], 25, Matern12)
    functionals = [Derivative(0), Mean([0.4, 0.2]), Value()]
    rows = with_numbers([RNG.uniform(-1.5, 1.5, size=(20, 2)) for _ in functionals])
    return Functional(first + second, functionals), SumInducingVariables([waves, others]), rows


def globe() -> Parts:
    kernel, harmonics = GlobeMatern32(lengthscale=0.6), SphericalHarmonics(3, range(6))
    factors = ByDegree(1.2 ** -np.arange(6.0))
    functionals = [factors, Derivative(0), Mean([10.0, 20.0]), Value()]
    places = [RNG.uniform([-90, -180], [90, 180], size=(15, 2)) for _ in functionals]
    places[1][:2] = [[90.0, 3.0], [-90.0, 100.0]]
    places[2][:2] = [[89.0, 180.0], [-88.0, -180.0]]
    rows = with_numbers(places)
    return Functional(FiniteRank(kernel, harmonics), functionals), harmonics, rows


CASES = {"hours": hours, "mixed": mixed, "one box": one_box, "globe": globe}
TABLES = {"hours", "one box", "globe"}
LINEAR = gpflow.functions.Linear


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("linear", [False, True])
def test_as_sgpr(case: str, linear: bool) -> None:
    if linear and case == "globe":
        pytest.skip("a plane has no degrees")
    kernel, features, X = CASES[case]()
    Y = np.stack([np.sin(3 * X.sum(axis=1)), np.cos(X[:, -1] + 2 * X[:, -2:].sum(axis=1))], axis=1)
    Y += 0.1 * RNG.normal(size=Y.shape)
    mean = gpflow.functions.Constant(np.array([0.3, -0.2]))
    if linear:
        mean = LINEAR(np.full([kernel.rows.seen_inputs(X.shape[1]).size, 2], 0.1), np.full(2, 0.2))
    noise = gpflow.likelihoods.Gaussian(0.1)
    model = StructuredSGPR(
        (X, Y), kernel, features, mean_function=mean, likelihood=noise, charge="trace"
    )
    assert isinstance(model._features.sums, WaveSums) == (case in TABLES)
    parts = {"mean_function": kernel.mean_function(mean), "likelihood": noise}
    dense = gpflow.models.SGPR((X, Y), kernel, features, **parts)
    values, gradients = [], []
    for each in (model, dense):
        with tf.GradientTape() as tape:
            values.append(each.maximum_log_likelihood_objective())
        gradients.append(tape.gradient(values[-1], dense.trainable_variables))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-9)
    if not linear:  # the prior ends with its features
        exact = gpflow.models.GPR((X, Y), kernel, **parts)
        np.testing.assert_allclose(values[0], exact.log_marginal_likelihood(), rtol=1e-7)
    for found, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    new = X[::5][::-1]
    for options in ({}, {"full_cov": True}):
        right = dense.predict_f(new, **options)
        for found, expected in zip(model.predict_f(new, **options), right, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    many = idm.predict_in_batches(model, np.concatenate([X, X]), batch_size=50, progress=False)
    for found, expected in zip(many, dense.predict_f(X), strict=True):
        np.testing.assert_allclose(found[: len(X)], expected, rtol=1e-7, atol=1e-8)
    half = model.accumulate((X[:20], Y[:20])) + model.accumulate((X[20:], Y[20:]))
    for name, total in model.statistics.sums.items():
        np.testing.assert_allclose(half.sums[name], total, atol=1e-8, err_msg=name)


def counts() -> Parts:
    """Counts of districts, and of places: a box of two columns, with a table of regions."""
    prior, features = box([1, 0], 30)
    regions = Areas(RNG.uniform(-1, 1, size=(40, 2)), None, np.arange(40) % 8)
    rows = with_numbers([RNG.uniform(-1, 1, size=(30, 2)), RNG.integers(0, 8, size=(30, 2)) * 1.0])
    return Functional(prior, [Value(), regions]), features, rows


@pytest.mark.parametrize("case", ["hours", "counts", "one box", "globe"])
@pytest.mark.parametrize("linear", [False, True])
def test_sites(few: pytest.MonkeyPatch, case: str, linear: bool) -> None:
    """A pass, and predictions, of counts: by tables and by dense sums."""
    if linear and case == "globe":
        pytest.skip("a plane has no degrees")
    kernel, features, X = (CASES | {"counts": counts})[case]()
    Y = RNG.poisson(2.0, size=(len(X), 1)) * 1.0
    mean = gpflow.functions.Constant(0.4)
    if linear:
        mean = LINEAR(np.full([kernel.rows.seen_inputs(X.shape[1]).size, 1], 1e-3), [0.2])
    results = []
    for fewest in (1, 1_000):
        few.setattr(wave_sums, "FEWEST", (fewest,) * 3)
        model = DualSVGP(
            (X, Y),
            kernel,
            gpflow.likelihoods.Poisson(),
            features,
            mean_function=mean,
            batch_size=17,
        )
        assert isinstance(model._features.sums, WaveSums) == (fewest == 1)
        model.start()
        for _ in range(2):
            passed = model.pass_over_data()
            model.assign_sites(passed.clipped)
        many = idm.predict_in_batches(model, np.concatenate([X, X]), progress=False)
        results.append([passed.elbo, *passed.sites, *passed.slopes, *many, *model.predict_f(X)])
    for found, expected in zip(*results, strict=True):
        scale = np.max(np.abs(expected), initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * scale)


@pytest.mark.parametrize("case", ["hours", "globe"])
def test_single_precision(case: str) -> None:
    bounds, X = [], CASES[case]()[2].astype(np.float32)
    for dtype in (np.float32, np.float64):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            kernel, features, _ = CASES[case]()
            data = X.astype(dtype), np.sin(3 * X[:, :1]).astype(dtype)
            model = StructuredSGPR(data, kernel, features, noise_variance=0.1)
            assert isinstance(model._features.sums, WaveSums)
            bounds.append(float(model.elbo()))
            assert model.predict_f(data[0])[0].dtype == dtype
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-4)
