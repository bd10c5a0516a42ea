"""Intercepts of groups: against the exact GP, dense sums and a loop; unknown levels; arguments."""

from collections.abc import Iterator
from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

import interdomain as idm
from interdomain.models import StructuredSGPR, VecchiaSGPR
from interdomain.sums import groups
from interdomain.sums.group_sums import GroupSums
from interdomain.sums.whitened import WhitenedSums
from interdomain.sums.whitened_groups import WhitenedGroupSums
from interdomain.tables import GroupFeatures, GroupIntercepts
from tests.conformance.helpers import assert_refused
from tests.parts import finite_rank, with_harmonics

NUM_ROWS, NOISE = 40, 0.07
SHOPS, BRANDS = [-3, 0, 1, 4, 7, 9], [2, 5, 6]
NEW = np.array([[0.2, 4, 6, 0.3], [-0.5, 99, 6, 0.1], [0.7, 7, 1, -0.9], [0.1, -1, 3, 0.4]])
"""Levels of which the first row has known ones, and the last two of no column."""


@pytest.fixture(autouse=True)
def sparse_from_the_first_group_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(groups, "FEWEST", 1)
    yield


def rows(num_outputs: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates in the first and the last column, and groups in between."""
    rng = np.random.default_rng(3)
    places = rng.uniform(-1, 1, size=(NUM_ROWS, 2))
    shops, brands = rng.choice(SHOPS, NUM_ROWS), rng.choice(BRANDS, NUM_ROWS)
    X = np.column_stack([places[:, 0], shops, brands, places[:, 1]])
    Y = (
        np.sin(5 * places @ rng.normal(size=(2, num_outputs)))
        + rng.normal(size=(10, num_outputs))[shops]
    )
    return X, Y + 0.2 * rng.normal(size=Y.shape)


def intercepts(levels: Any, column: int, variance: float) -> tuple[Any, Any]:
    kernel = GroupIntercepts(levels, variance=variance, active_dims=[column])
    return finite_rank(kernel, GroupFeatures(kernel))


def blocks(number: int) -> tuple[Any, Any]:
    """Shops; beside them brands; and harmonics."""
    harmonics = idm.kernels.SphericalMatern52(
        weight_variances=np.ones(2), variance=0.7, active_dims=[0, 3]
    )
    pairs = [
        intercepts(SHOPS, 1, 0.6),
        finite_rank(*with_harmonics(harmonics, 2)),
        intercepts(BRANDS, 2, 0.3),
    ]
    kernels, features = zip(*pairs[:number], strict=True)
    if number == 1:
        return kernels[0], features[0]
    return gpflow.kernels.Sum(kernels), idm.inducing_variables.SumInducingVariables(features)


def local() -> gpflow.kernels.Kernel:
    return gpflow.kernels.Matern32(variance=0.8, lengthscales=[0.4, 0.7], active_dims=[0, 3])


def make(number: int, num_neighbours: int = NUM_ROWS, **arguments: Any) -> VecchiaSGPR:
    kernel, features = blocks(number)
    options = {"local_kernel": local(), "num_neighbours": num_neighbours, "batch_size": 17}
    options |= {"noise_variance": NOISE, "progress": False} | arguments
    return VecchiaSGPR(options.pop("data", rows()), kernel, features, **options)


def value_and_gradients(function: Any, variables: Any) -> tuple[float, list[Any]]:
    with tf.GradientTape() as tape:
        value = function()
    zero = tf.UnconnectedGradients.ZERO
    gradients = tape.gradient(value, variables, unconnected_gradients=zero)
    return float(value), [np.asarray(g) for g in gradients]


@pytest.mark.parametrize("number", [1, 3])
def test_with_all_rows_as_neighbours_it_is_the_exact_gp(number: int) -> None:
    """Evidence, its gradients, and predictions of levels with data and without."""
    model = make(number)
    kernel = model.local_kernel + model.kernel
    exact = gpflow.models.GPR(rows(), kernel, likelihood=model.likelihood)
    variables = exact.trainable_variables
    value, gradients = value_and_gradients(model.elbo, variables)
    expected, slopes = value_and_gradients(exact.log_marginal_likelihood, variables)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    for gradient, slope in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-7)
    for full_cov in (False, True):
        for mine, theirs in zip(
            model.predict_f(NEW, full_cov=full_cov),
            exact.predict_f(NEW, full_cov=full_cov),
            strict=True,
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def test_unknown_levels_have_the_prior() -> None:
    """Far away from all rows, the mean is zero and the variance that of the kernels."""
    model = make(1)
    far = np.array([[99.0, 3.0, 2.0, 99.0]])
    mean, variance = model.predict_f(far)
    np.testing.assert_allclose(mean, 0, atol=1e-9)
    np.testing.assert_allclose(variance, 0.8 + 0.6, rtol=1e-9)


@pytest.mark.parametrize("number", [1, 3])
def test_sparse_sums_of_whitened_rows_are_the_dense_ones(number: int) -> None:
    """Sums of batches, the bound from these with its gradients, and explained means."""
    model = make(number, 5, mean_function=gpflow.functions.Linear(np.ones([4, 2])))
    gpflow.set_trainable(list(model.feature_parameters.values()), False)
    assert type(model._features.sums) is WhitenedGroupSums
    sums = model.statistics.sums
    batch = model._rows().in_memory()
    expected = model._features.sums.tensors(*map(tf.constant, batch))
    assert set(sums) == set(expected)
    for name, array in sums.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-9, atol=1e-9)
    value, gradients = value_and_gradients(model.elbo, model.trainable_variables)
    X, Y = model.arrays
    explained = model.explained(X)
    model._features.sums = WhitenedSums(model._features, model._features.weights)
    found, slopes = value_and_gradients(model.elbo, model.trainable_variables)
    np.testing.assert_allclose(value, found, rtol=1e-10)
    for gradient, slope in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(explained, model.explained(X), rtol=1e-9, atol=1e-10)


def test_kernel_and_features_by_a_loop() -> None:
    """Also with leading dimensions; values that are no level are one level together."""
    levels = np.array([5, -2, 3])
    kernel = GroupIntercepts(levels, variance=0.6)
    features = GroupFeatures(kernel)
    X = np.array([3, 5, 3, 8, -2, 9, 3.5])[:, None]
    names = [0 + x if x in levels else "none" for x in X[:, 0]]
    expected = [[0.6 * (a == b) for b in names] for a in names]
    np.testing.assert_array_equal(kernel(X), expected)
    np.testing.assert_array_equal(kernel(X[:3], X), expected[:3])
    batches = np.stack([X, X[::-1]])
    np.testing.assert_array_equal(kernel(batches)[0], expected)
    np.testing.assert_array_equal(kernel(batches, X)[1], expected[::-1])
    np.testing.assert_array_equal(kernel(X, full_cov=False), np.full(7, 0.6))
    columns = [-2, 3, 5, "none"]
    np.testing.assert_array_equal(
        gpflow.covariances.Kuf(features, kernel, X),
        [[c == name for name in names] for c in columns],
    )


def test_levels_of_text() -> None:
    """Of text and of whole numbers; names that the data do not have are no level."""
    names = np.array(["oslo", "bern", "rome", "bern"])
    kernel = GroupIntercepts.from_data(names)
    assert kernel.level_names == ("bern", "oslo", "rome")
    np.testing.assert_array_equal(kernel.codes(["rome", "paris", "bern"]), [2, 3, 0])
    assert GroupFeatures(kernel).is_subset_of(GroupFeatures(GroupIntercepts([0, 1, 2])))
    numeric = GroupIntercepts.from_data(np.array([7, 2, 7, 9]), variance=2.0, active_dims=[1])
    np.testing.assert_array_equal(numeric.levels, [2, 7, 9])
    np.testing.assert_array_equal(numeric.codes([7, 1]), [7, 1])


@pytest.mark.parametrize("number", [1, 3])
def test_models_of_the_features_alone(number: int) -> None:
    """Regression, and the SVGP and the DualSVGP with its q, are the exact GP."""
    kernel, features = blocks(number)
    X, Y = rows(1)
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=NOISE)
    structured = StructuredSGPR((X, Y), kernel, features, noise_variance=NOISE)
    dual = idm.models.DualSVGP((X, Y), kernel, gpflow.likelihoods.Gaussian(NOISE), features)
    dual.start()
    dual.assign_sites(dual.pass_over_data().sites)
    assert type(structured._features.sums) is type(dual._features.sums) is GroupSums
    svgp, without = structured.to_svgp(), make(number, 0, data=(X, Y))
    for bound in (structured.elbo(), svgp.elbo((X, Y)), dual.elbo(), without.elbo()):
        np.testing.assert_allclose(bound, exact.log_marginal_likelihood(), rtol=1e-8)
    for full_cov in (False, True):
        expected = exact.predict_f(NEW, full_cov=full_cov)
        for model in (structured, svgp, dual, without):
            for mine, theirs in zip(model.predict_f(NEW, full_cov=full_cov), expected, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)


def test_float32() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        data = tuple(part.astype(np.float32) for part in rows())
        model = make(3, 5, data=data)
        value, mean = model.elbo(), model.predict_f(NEW.astype(np.float32))[0]
        assert value.dtype == mean.dtype == tf.float32
    model = make(3, 5)
    np.testing.assert_allclose(value, model.elbo(), rtol=1e-4)
    np.testing.assert_allclose(mean, model.predict_f(NEW)[0], atol=1e-3)


def test_wrong_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = GroupIntercepts([0, 1, 2])
    features = GroupFeatures(kernel)

    def too_many() -> None:
        monkeypatch.setattr("interdomain._arguments.MAX_GIB", 0.5)
        many = intercepts(np.arange(5_000), 1, 0.6)
        VecchiaSGPR(rows(), *many, local_kernel=local())

    def in_float32() -> None:
        with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
            GroupIntercepts([2**24, 2**24 + 1])

    cases: list[Any] = [
        (lambda: GroupIntercepts([0, 1.5]), r"levels must be whole numbers, found \[1.5\]; pass"),
        (lambda: GroupIntercepts([4]), "levels must be two or more whole numbers, .* found 1"),
        (lambda: GroupIntercepts([4, 4]), "different in float64, found 1 different among 2"),
        (in_float32, "different in float32, found 1 different among 2"),
        (lambda: GroupIntercepts([[1, 2]]), r"levels must be a vector \[L\]"),
        (lambda: GroupIntercepts([1, 2], variance=-1.0), "variance must be positive"),
        (lambda: GroupIntercepts([1, 2], level_names="ab"), "level_names must be a name for each"),
        (lambda: GroupIntercepts.from_data([["a"]]), r"values must be a vector \[N\], found shape"),
        (lambda: GroupIntercepts.from_data([1, np.nan]), "column 'values' must not have missing"),
        (lambda: GroupFeatures(gpflow.kernels.Constant()), "kernel must be a GroupIntercepts ker"),
        (lambda: kernel(np.ones([2, 3])), "X must have one column, found 3; select it with act"),
        (
            lambda: gpflow.covariances.Kuf(features, GroupIntercepts([0, 1]), [[0.0]]),
            "kernel must have the 3 levels that the features were made for, found",
        ),
        (too_many, "the precision of 5,001 features and its factor would take .* GiB, more than"),
    ]
    assert_refused(cases)


def test_noise_weights() -> None:
    """Of rows without neighbours and with them all, against the dense normal density."""
    X, Y = rows(1)
    weights = np.random.default_rng(5).uniform(0.3, 3, size=NUM_ROWS)
    kernel, features = blocks(3)
    structured = StructuredSGPR(
        (X, Y), kernel, features, noise_variance=NOISE, noise_weights=weights
    )
    assert type(structured._features.sums) is GroupSums
    whitened = make(3, data=(X, Y), noise_weights=weights)
    for model, more in ((structured, 0.0), (whitened, whitened.local_kernel(X).numpy())):
        covariance = kernel(X).numpy() + more + np.diag(NOISE / weights)
        normal = scipy.stats.multivariate_normal(cov=covariance)
        gpflow.set_trainable(list(model.feature_parameters.values()), False)
        np.testing.assert_allclose(model.elbo(), normal.logpdf(Y[:, 0]), rtol=1e-9)
