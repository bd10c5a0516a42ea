"""Products of features: which are taken, their covariances, and bad input."""

import functools
import itertools
import operator

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import RBF, Kernel, Matern32, SquaredExponential

from interdomain.core.family import is_subset
from interdomain.core.pairs import Kuf_in_domain
from interdomain.covariances import Kuu_operator
from interdomain.functionals import Derivative, Mean
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
    VariationalFourierFeatures,
)
from interdomain.kernels import FiniteRank, Functional, Periodized, SphericalMatern52
from tests.conformance.helpers import assert_close, assert_refused, compiled, value_and_gradients

X = np.random.default_rng(0).uniform(-1, 1, size=[9, 3])
SPACE = SphericalMatern52(active_dims=[0, 1])
TIME = Periodized(Matern32(lengthscales=0.4), -1.2, 1.2, active_dims=[2])
HARMONICS = SphericalHarmonics.for_kernel(SPACE, 2, max_degree=3)
WAVES = BoxFourierFeatures.for_kernel(TIME, 7)
POINTS = InducingPoints(X[:4])


def test_the_order_and_number_of_all_products() -> None:
    features = ProductInducingVariables([POINTS, WAVES, POINTS])
    assert features.has_all and features.factors == [POINTS, WAVES]
    expected = list(itertools.product(range(4), range(7), range(4)))
    np.testing.assert_array_equal(features.members, expected)
    assert features.num_inducing == 4 * 7 * 4 and features.shape == (4 * 7 * 4, None, 1)
    assert len(features.parameters) == 1


def test_the_products_of_most_prior_variance() -> None:
    """By a loop over all; those that carry the same are taken together."""
    kernel = SPACE * TIME
    diagonals = [np.diag(Kuu(one, part)) for one, part in ((HARMONICS, SPACE), (WAVES, TIME))]
    share = {(a, b): 1 / (diagonals[0][a] * diagonals[1][b]) for a in range(16) for b in range(7)}
    for count in (1, 2, 10, 31, 111):
        features = ProductInducingVariables.for_kernel(kernel, [HARMONICS, WAVES], count)
        taken = list(map(tuple, features.members.tolist()))
        assert 1 <= len(taken) == len(set(taken)) <= count
        shares = [share[one] for one in taken]
        assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(shares))
        left = sorted((share[one] for one in set(share) - set(taken)), reverse=True)
        assert left[0] < shares[-1] * (1 - 1e-9)
        alike = sum(abs(one / left[0] - 1) < 1e-9 for one in left)
        assert len(taken) + alike > count
    for count in (112, 500):
        features = ProductInducingVariables.for_kernel(kernel, [HARMONICS, WAVES], count)
        assert features.has_all and features.num_inducing == 112


def test_wrong_arguments() -> None:
    make, pair, rbf = ProductInducingVariables, [HARMONICS, WAVES], RBF()
    few = "inducing_variables must have 3 entries, .* found 2; pass those of SphericalMatern52, Per"
    dense = (
        r"diagonal Kuu each .*found InducingPoints with SquaredExponential; pass ProductInd.*all"
    )
    assert_refused(
        [
            (lambda: make(pair, [[0, 0], [16, 0]]), r"below \[16, 7\], found .*16.* in "),
            (lambda: make.for_kernel(SPACE * TIME * rbf, pair, 3), few),
            (lambda: make.for_kernel(SPACE * rbf, [HARMONICS, POINTS], 3), dense),
        ]
    )


def test_points_whose_number_changes() -> None:
    Z = tf.Variable(X[:4], shape=[None, 3])
    features = ProductInducingVariables([InducingPoints(Z), WAVES])
    assert features.shape == (None, None, 1) and int(features.num_inducing) == 28
    Z.assign(X[:5])
    kernel = Matern32() * TIME
    assert Kuf(features, kernel, X).shape == (35, 9) and len(features.members) == 35
    np.testing.assert_allclose(
        Kuu(features, kernel), np.kron(Matern32()(X[:5]), Kuu(WAVES, TIME)), rtol=1e-12
    )


# Covariances: against loops, Kronecker products, and points.

INPUTS = np.random.default_rng(0).uniform(-1, 1, size=[7, 4])
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
    rows = [Kuf(*pair, INPUTS).numpy() for pair in pairs]
    matrices = [Kuu(*pair).numpy() for pair in pairs]
    members = features.members
    expected = np.zeros([len(members), len(INPUTS)])
    for m, member in enumerate(members):
        for n in range(len(INPUTS)):
            expected[m, n] = np.prod([own[a, n] for own, a in zip(rows, member, strict=True)])
    places = np.ravel_multi_index(tuple(members.T), [len(own) for own in rows])
    covariance = functools.reduce(np.kron, matrices)[np.ix_(places, places)]
    assert_close(Kuf(features, kernel, INPUTS), expected, rtol=1e-14)
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
    assert_close(Kuf(equal, kernel, INPUTS), Kuf(at, kernel, INPUTS), rtol=1e-14)
    assert_close(Kuu(equal, kernel), Kuu(at, kernel), rtol=1e-14)
    every = ProductInducingVariables([points, points])
    rows, matrix = Kuf(every, kernel, INPUTS).numpy(), Kuu(every, kernel).numpy()
    joint = np.block([[matrix, rows], [rows.T, kernel(INPUTS).numpy()]])
    assert np.linalg.eigvalsh(joint).min() > -1e-12
    if not same:
        grid = np.concatenate([np.repeat(Z[:, :2], 3, axis=0), np.tile(Z[:, 2:], [3, 1])], axis=1)
        assert_close(rows, kernel(grid, INPUTS), rtol=1e-14)
        assert_close(matrix, kernel(grid), rtol=1e-14)


@pytest.mark.parametrize("chosen", [False, True], ids=["all", "chosen"])
def test_features_inside_of_their_boxes_know_no_parameter_of_them(chosen: bool) -> None:
    kernel, features = make("hwi", chosen=chosen)
    assert_close(Kuf_in_domain(features, kernel, INPUTS), Kuf(features, kernel, INPUTS), rtol=1e-14)
    graph = compiled(lambda rows: Kuf_in_domain(features, kernel, rows), [None, 4])
    found = graph.get_concrete_function().graph.variables
    space = kernel.kernels[0]
    expected = [space.weight_variances, space.bias_variance]
    assert {id(v) for v in found} == {id(p.unconstrained_variable) for p in expected}


def test_functionals_inside_of_boxes_know_no_parameter_of_them() -> None:
    """One pass over the rows of means serves all lengthscales."""
    intervals = [VariationalFourierFeatures(0, 1, num_frequencies=count) for count in (3, 2)]
    features = ProductInducingVariables(intervals)
    kernel = Matern32(active_dims=[0]) * Matern32(active_dims=[1])
    acted = Functional(FiniteRank(kernel, features), [Mean([0.1, 0.0]), Derivative(1)])
    rows = np.array([[0.2, 0.7, 0.0], [0.4, 0.1, 1.0], [0.6, 0.3, 0.0]])
    inside = Kuf_in_domain(features, acted, rows)
    assert_close(inside, Kuf(features, acted, rows), rtol=1e-10)
    graph = compiled(lambda X: Kuf_in_domain(features, acted, X), [None, 3])
    assert not graph.get_concrete_function().graph.variables


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
    assert_close(Kuf(some, prior, INPUTS), Kuf(some, prior.kernel, INPUTS), rtol=1e-15)


def test_variances_that_underflow_leave_numbers() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        kernels = [
            Periodized(SquaredExponential(lengthscales=0.9), 0, 1, active_dims=[k])
            for k in range(3)
        ]
        kernel = functools.reduce(operator.mul, kernels)
        waves = BoxFourierFeatures(0, 1, np.arange(6)[:, None])
        features = ProductInducingVariables([waves] * 3)
        values = value_and_gradients(
            lambda: 1 / Kuu_operator(features, kernel).diag_part(), kernel.trainable_variables
        )
        assert all(np.all(np.isfinite(value)) for value in tf.nest.flatten(values))
