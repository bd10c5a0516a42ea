"""Space and time: gradients through features of space that depend on trained parameters."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern12, Matern32, Matern52

import interdomain as idm
from interdomain.inducing_variables import (
    ProductInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import FiniteRank, SphericalMatern52
from interdomain.models import StructuredSGPR
from interdomain.sums import current
from interdomain.sums.chain import row_gradients
from interdomain.sums.chain.sums import ChainSums
from tests.sums.test_space_time import (
    NEW,
    PLACE,
    X,
    Y,
    splines,
    stations,
    term,
    time,
)

pytestmark = pytest.mark.usefixtures("no_jitter")

RNG = np.random.default_rng(5)
SCATTERED = X + np.column_stack([RNG.normal(size=[180, 2]), np.zeros([180, 2])])
WEIGHTS = RNG.uniform(0.5, 2.0, size=180)


def points(count: int = 7) -> tuple[Any, Any]:
    """Points of space with all columns of X, off the stations."""
    kernel = Matern52(variance=1.3, lengthscales=[0.8, 1.1], active_dims=[0, 1])
    places = np.random.default_rng(7).uniform(-1, 1, size=[count, 2])
    return kernel, InducingPoints(np.column_stack([places, np.zeros([count, 2])]))


def harmonics() -> tuple[Any, Any]:
    kernel = SphericalMatern52(weight_variances=[0.7, 0.4], active_dims=[0, 1])
    return kernel, SphericalHarmonics.for_kernel(kernel, 2, 3)


def with_points() -> tuple[Any, Any]:
    return term(points(), time(), splines())


def with_few_points() -> tuple[Any, Any]:
    """So few points that sums are taken entry by entry; the prior has a part beyond them."""
    prior, features = term(points(4), time(Matern12), splines(1), time_first=True)
    return prior.kernel, features


def meters() -> tuple[Any, Any]:
    """A function of space and time for each of six groups, which share only parameters."""
    groups = idm.tables.GroupIntercepts.from_data(PLACE, active_dims=[3])
    kernel, places = points(6)
    parts = idm.tables.GroupFeatures(groups), splines(2), places
    features = ProductInducingVariables(list(parts))
    return FiniteRank(groups * time() * kernel, features), features


def several() -> tuple[Any, Any]:
    """Points, harmonics and fixed places times time, and points of space as a border."""
    one, many = splines(2, 12), []
    many.append(term(points(), time(), one))
    many.append(term(harmonics(), time(Matern32, 4.0), one, time_first=True))
    many.append(term(stations(), time(Matern12, 5.0), one))
    kernel, places = points(5)
    many.append((FiniteRank(kernel, places), places))
    kernels, blocks = zip(*many, strict=True)
    return gpflow.kernels.Sum(list(kernels)), SumInducingVariables(list(blocks))


def bound_and_slopes(model: Any) -> tuple[Any, Any]:
    with tf.GradientTape() as tape:
        value = model.maximum_log_likelihood_objective()
    variables = model.trainable_variables
    slopes = tape.gradient(value, variables)
    return value, {v.ref(): slope for v, slope in zip(variables, slopes, strict=True)}


CASES = {
    "places": (with_points, X),
    "windows": (with_points, SCATTERED),
    "entries": (with_few_points, SCATTERED),
    "groups": (meters, SCATTERED),
    "several": (several, X),
}


@pytest.mark.parametrize("case", CASES)
def test_as_sgpr(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, rows = CASES[case]
    methods, method_of = set(), row_gradients.method_of

    def spy(*arguments: Any) -> str:
        methods.add(method_of(*arguments))
        return method_of(*arguments)

    monkeypatch.setattr(row_gradients, "method_of", spy)
    kernel, features = make()
    mean = gpflow.functions.Linear(np.full([4, 2], 0.1), np.full(2, 0.2))
    parts = {"mean_function": mean, "noise_variance": 0.1}
    model = StructuredSGPR((rows, Y), kernel, features, charge="trace", **parts)
    assert isinstance(model._features.sums, ChainSums)
    dense = gpflow.models.SGPR((rows, Y), kernel, features, **parts)
    right, expected = bound_and_slopes(dense)
    value, found = bound_and_slopes(model)
    np.testing.assert_allclose(value, right, rtol=1e-8)
    assert methods == {case if case in ("places", "entries") else "windows"} or case == "several"
    trained = model._features.trainable().values()
    assert len(trained) > 2
    for variable in dense.trainable_variables:
        if variable is dense.likelihood.variance.unconstrained_variable:
            continue
        one, other = found[variable.ref()], expected[variable.ref()]
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7, err_msg=variable.name)

    @tf.function(autograph=False)
    def compiled() -> Any:
        with tf.GradientTape() as tape:
            bound = model.elbo()
        return bound, tape.gradient(bound, model.trainable_variables)

    bound, slopes = compiled()
    np.testing.assert_allclose(bound, value, rtol=1e-12)
    for variable, slope in zip(model.trainable_variables, slopes, strict=True):
        np.testing.assert_allclose(slope, found[variable.ref()], rtol=1e-8, atol=1e-9)
    for options in ({}, {"full_cov": True}):
        pairs = zip(model.predict_f(NEW, **options), dense.predict_f(NEW, **options), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)


def test_parameters() -> None:
    """Sums depend on the parameters of points and harmonics, and on none of fixed places."""
    kernel, features = term(stations(), time(), splines())
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    assert not model.feature_parameters
    kernel, features = several()
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    names = sorted(name.split(".")[-1] for name in model.feature_parameters)
    shared = ["Z", "Z", "lengthscales", "lengthscales", "variance", "variance"]
    assert names == [*shared[:2], "bias_variance", *shared[2:], "weight_variances"]


def test_weights_of_rows() -> None:
    """Rows with noise weights, against a model whose rows are repeated."""
    counts = RNG.integers(1, 4, size=180)
    some = StructuredSGPR(
        (SCATTERED, Y), *with_points(), noise_variance=0.1, noise_weights=counts.astype(float)
    )
    kernel, features = some.kernel, some.inducing_variable
    dense = gpflow.models.SGPR(
        (np.repeat(SCATTERED, counts, axis=0), np.repeat(Y, counts, axis=0)),
        kernel,
        features,
        noise_variance=0.1,
    )
    (_, found), (_, expected) = bound_and_slopes(some), bound_and_slopes(dense)
    for variable in kernel.trainable_variables:
        pair = found[variable.ref()], expected[variable.ref()]
        np.testing.assert_allclose(*pair, rtol=1e-6, atol=1e-7, err_msg=variable.name)


def test_residual_mean() -> None:
    """Parameters of a mean function without columns have gradients through the targets."""

    class Wave(gpflow.functions.MeanFunction):
        def __init__(self) -> None:
            super().__init__()
            self.rate = gpflow.Parameter(0.7)

        def __call__(self, X: Any) -> Any:
            return tf.sin(self.rate * X[..., 2:3]) * np.ones(2)

    mean = Wave()
    kernel, features = with_points()
    parts = {"mean_function": mean, "noise_variance": 0.1}
    model = StructuredSGPR((X, Y), kernel, features, **parts)
    dense = gpflow.models.SGPR((X, Y), kernel, features, **parts)
    (value, found), (right, expected) = bound_and_slopes(model), bound_and_slopes(dense)
    np.testing.assert_allclose(value, right, rtol=1e-8)
    one = mean.rate.unconstrained_variable.ref()
    np.testing.assert_allclose(found[one], expected[one], rtol=1e-6)


def test_fit() -> None:
    """Trained points fit better than points that stay, and a fit on a subset takes one pass."""
    kernel, features = term(points(3), time(), splines())
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    bounds = []
    for is_trained in (False, True):
        gpflow.set_trainable(features, is_trained)
        idm.fit(model, steps=15, progress=False, options={"subset_size": None})
        bounds.append(model.elbo())
    assert bounds[1] > bounds[0] + 1
    model = StructuredSGPR((X, Y), *with_points(), noise_variance=0.1)
    idm.fit(model, steps=5, progress=False, options={"subset_size": 90, "subset_steps": 5})
    assert not any(part.trainable for part in model.feature_parameters.values())
    assert np.isfinite(model.elbo())


def test_float32() -> None:
    values = []
    for dtype in (np.float64, np.float32):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype, jitter=1e-6)):
            data = SCATTERED.astype(dtype), Y.astype(dtype)
            model = StructuredSGPR(data, *with_points(), noise_variance=0.1)
            value, slopes = bound_and_slopes(model)
            assert value.dtype == dtype
            values.append([np.ravel(part) for part in (value, *slopes.values())])
    for one, other in zip(*values, strict=True):
        scale = np.max(np.abs(one))
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3 * scale)


def test_more_rows_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a gradient grows with features of space, not with all features."""
    model = StructuredSGPR((X, Y), *with_points(), noise_variance=0.1)
    numbers = model._features.numbers_per_row
    assert numbers < 15 < model._features.num_inducing
    monkeypatch.setattr(current, "MOST_NUMBERS", 180 * numbers - 1)
    assert np.isfinite(model.elbo())
    with pytest.raises(ValueError, match="their gradients need all rows in memory"):
        bound_and_slopes(model)


def test_rows_off_fixed_places() -> None:
    """Compiled sums refuse rows at no place, beside trained points."""
    one, many = splines(2, 12), []
    many.append(term(points(), time(), one))
    many.append(term(stations(), time(Matern12, 5.0), one))
    kernels, blocks = zip(*many, strict=True)
    prior, features = gpflow.kernels.Sum(list(kernels)), SumInducingVariables(list(blocks))
    model = StructuredSGPR((SCATTERED, Y), prior, features, noise_variance=0.1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at the places of FixedPlaces"):
        model.elbo()
