"""Covariances of products of features: against loops, Kronecker products, and points."""

from __future__ import annotations

import functools
import operator

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Matern32, SquaredExponential

from interdomain.core.family import is_subset
from interdomain.core.pairs import Kuf_in_domain
from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
    VariationalFourierFeatures,
)
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from tests.conformance.helpers import assert_close

X = np.random.default_rng(0).uniform(-1, 1, size=[7, 4])
Z = np.random.default_rng(1).uniform(-1, 1, size=[3, 4])
MEMBERS = {2: [[3, 2], [0, 1], [3, 0], [8, 2]], 3: [[3, 2, 1], [0, 1, 0], [3, 2, 2]]}


@functools.cache
def parts(names: str) -> tuple[Kernel, list[InducingVariables]]:
    """A factor for each letter: harmonics, waves, an interval, points."""
    space = SphericalMatern52(variance=0.9, weight_variances=[0.7, 1.3], active_dims=[2, 0])
    time = Periodized(SquaredExponential(lengthscales=0.6), -1.3, 1.2, active_dims=[1])
    height = Matern32(variance=1.4, lengthscales=0.7, active_dims=[3])
    known: dict[str, tuple[Kernel, InducingVariables]] = {
        "h": (space, SphericalHarmonics.for_kernel(space, 2, max_degree=2)),
        "w": (time, BoxFourierFeatures.for_kernel(time, 5)),
        "i": (height, VariationalFourierFeatures(-1.4, 1.5, 2)),
        "p": (Matern32(lengthscales=0.8, active_dims=[3]), InducingPoints(Z)),
    }
    chosen = [known[name] for name in names]
    return functools.reduce(operator.mul, [part for part, _ in chosen]), [u for _, u in chosen]


def make(names: str, *, chosen: bool = False) -> tuple[Kernel, ProductInducingVariables]:
    kernel, factors = parts(names)
    members = MEMBERS[len(factors)] if chosen else None
    return kernel, ProductInducingVariables(factors, members)


@pytest.mark.parametrize("chosen", [False, True], ids=["all", "chosen"])
@pytest.mark.parametrize("names", ["hw", "hwp"])
def test_loops_over_the_factors(names: str, chosen: bool) -> None:
    kernel, features = make(names, chosen=chosen)
    pairs = list(zip(features.inducing_variables, kernel.kernels, strict=True))
    rows = [Kuf(*pair, X).numpy() for pair in pairs]
    matrices = [Kuu(*pair).numpy() for pair in pairs]
    members = features.members
    expected = np.zeros([len(members), len(X)])
    for m, member in enumerate(members):
        for n in range(len(X)):
            expected[m, n] = np.prod([own[a, n] for own, a in zip(rows, member, strict=True)])
    places = np.ravel_multi_index(tuple(members.T), [len(own) for own in rows])
    covariance = functools.reduce(np.kron, matrices)[np.ix_(places, places)]
    assert_close(Kuf(features, kernel, X), expected, rtol=1e-14)
    assert_close(Kuu(features, kernel), covariance, rtol=1e-14)
    assert_close(Kuu_operator(features, kernel).to_dense(), covariance, rtol=1e-14)
    with_jitter = Kuu_operator(features, kernel, jitter=0.5).to_dense() - covariance
    added = 0.0 if names == "hw" else 0.5 * np.diag(np.diag(covariance))
    assert_close(with_jitter + covariance, added + covariance, rtol=1e-14)


@pytest.mark.parametrize("same", [False, True], ids=["other columns", "the same columns"])
def test_products_of_points_are_points(same: bool) -> None:
    """In factors on columns of their own, and in such as share them: there the products of a point
    with itself are those of the kernel, and all others belong to f as well."""
    first = Matern32(lengthscales=0.8, active_dims=[0, 1])
    second = SquaredExponential(lengthscales=0.6, active_dims=[0, 1] if same else [2, 3])
    kernel, points = first * second, InducingPoints(Z)
    equal = ProductInducingVariables([points, points], [[2, 2], [0, 0], [1, 1]])
    at = InducingPoints(Z[[2, 0, 1]])
    assert_close(Kuf(equal, kernel, X), Kuf(at, kernel, X), rtol=1e-14)
    assert_close(Kuu(equal, kernel), Kuu(at, kernel), rtol=1e-14)
    every = ProductInducingVariables([points, points])
    rows, matrix = Kuf(every, kernel, X).numpy(), Kuu(every, kernel).numpy()
    joint = np.block([[matrix, rows], [rows.T, kernel(X).numpy()]])
    assert np.linalg.eigvalsh(joint).min() > -1e-12
    if not same:
        grid = np.concatenate([np.repeat(Z[:, :2], 3, axis=0), np.tile(Z[:, 2:], [3, 1])], axis=1)
        assert_close(rows, kernel(grid, X), rtol=1e-14)
        assert_close(matrix, kernel(grid), rtol=1e-14)


@pytest.mark.parametrize("chosen", [False, True], ids=["all", "chosen"])
def test_features_inside_of_their_boxes_know_no_parameter_of_them(chosen: bool) -> None:
    kernel, features = make("hwi", chosen=chosen)
    assert_close(Kuf_in_domain(features, kernel, X), Kuf(features, kernel, X), rtol=1e-14)
    graph = tf.function(lambda rows: Kuf_in_domain(features, kernel, rows), autograph=False)
    found = graph.get_concrete_function(tf.TensorSpec([None, 4], tf.float64)).graph.variables
    space = kernel.kernels[0]
    expected = [space.weight_variances, space.bias_variance]
    assert {id(v) for v in found} == {id(p.unconstrained_variable) for p in expected}


def test_which_are_subsets() -> None:
    _, features = make("hw")
    harmonics, waves = features.inducing_variables
    few = BoxFourierFeatures(waves.lower, waves.upper, [[1]])

    product = ProductInducingVariables
    some, others = (product([harmonics, waves], [[0, 1], [2, k]]) for k in (2, 1))
    assert is_subset(some, features) and not is_subset(features, some)
    assert is_subset(product([harmonics, waves], [[2, 2]]), some) and not is_subset(others, some)
    assert is_subset(product([harmonics, few]), features)
    assert not is_subset(features, product([harmonics, few]))
    prior = FiniteRank(parts("hw")[0], features)
    assert_close(Kuf(some, prior, X), Kuf(some, prior.kernel, X), rtol=1e-15)


def test_variances_that_underflow_leave_numbers() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        kernels = [
            Periodized(SquaredExponential(lengthscales=0.9), 0, 1, active_dims=[k])
            for k in range(3)
        ]
        kernel = functools.reduce(operator.mul, kernels)
        waves = BoxFourierFeatures(0, 1, np.arange(6)[:, None])
        features = ProductInducingVariables([waves] * 3)
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(1 / Kuu_operator(features, kernel).diag_part())
        gradients = tape.gradient(total, kernel.trainable_variables)
        assert all(np.all(np.isfinite(value)) for value in (total, *gradients))
