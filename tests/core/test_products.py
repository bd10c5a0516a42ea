"""Which products of features are taken, and bad input to ProductInducingVariables."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import RBF, Matern32

from interdomain.inducing_variables import (
    BoxFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
)
from interdomain.kernels import Periodized, SphericalMatern52
from tests.conformance.helpers import assert_refused

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


PRODUCTS = ProductInducingVariables
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: PRODUCTS([HARMONICS, WAVES], [[0, 0], [16, 0]]), r"below \[16, 7\], found .*16.* in "),
    (
        lambda: PRODUCTS.for_kernel(SPACE * TIME * RBF(), [HARMONICS, WAVES], 3),
        "inducing_variables must have 3 entries, .* found 2; pass those of SphericalMatern52, Per",
    ),
    (
        lambda: PRODUCTS.for_kernel(SPACE * RBF(), [HARMONICS, POINTS], 3),
        r"diagonal Kuu each .*found InducingPoints with SquaredExponential; pass ProductInd.*all",
    ),
]


def test_wrong_arguments() -> None:
    assert_refused(WRONG)


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
