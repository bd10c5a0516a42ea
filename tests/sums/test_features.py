"""What features depend on is read from their graph, family by family."""

import json
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential, White

import interdomain as idm
from interdomain.core.family import gram_of
from interdomain.core.pairs import feature_sums
from interdomain.sums.features import Features

POINTS = np.random.default_rng(0).normal(size=(4, 2))
ivs, kernels = idm.inducing_variables, idm.kernels


def finite_rank() -> tuple[Any, Any]:
    features = ivs.SphericalHarmonics(3, [0, 1])
    return kernels.FiniteRank(kernels.SphericalMatern32(), features), features


def sum_of_harmonics() -> tuple[Any, Any]:
    kernel = kernels.ArcCosine() + kernels.SphericalMatern52(active_dims=[0])
    blocks = [ivs.SphericalHarmonics(3, [0, 1]), ivs.SphericalHarmonics(2, [0, 1])]
    return kernel, ivs.SumInducingVariables(blocks)


def intervals_and_points() -> tuple[Any, Any]:
    """An interval for each column."""
    kernel = Matern12(active_dims=[0]) + Matern32(active_dims=[1]) + SquaredExponential() + White()
    intervals = [ivs.VariationalFourierFeatures(-9, 9, 3), ivs.VariationalFourierFeatures(-8, 8, 2)]
    points = InducingPoints(POINTS)
    return kernel, ivs.SumInducingVariables([*intervals, points, None])


def patches() -> tuple[Any, Any]:
    kernel = kernels.Convolutional(Matern32(), (1, 2), (1, 1))
    return kernel, ivs.InducingPatches(POINTS[:, :1])


SCALES, STATIONARY = ("weight_variances", "bias_variance"), ("variance", "lengthscales")
Z = "inducing_variable.Z"


def of(owner: str, names: tuple[str, ...]) -> set[str]:
    return {f"{owner}.{name}" for name in names}


ZONAL = kernels.SphericalMatern32
OF_SUM = of("kernel.kernels[0]", SCALES) | of("kernel.kernels[1]", SCALES)
OF_POINTS = of("kernel.kernels[2]", STATIONARY) | {"inducing_variable.blocks[2].Z"}
INTERVAL = Matern52(active_dims=[1]), ivs.VariationalFourierFeatures(-9, 9, 3)
UNITS = ivs.ActivationFeatures(np.eye(3), "softplus", 4)
CASES: dict[str, tuple[Callable[[], tuple[Any, Any]], set[str]]] = {
    "harmonics": (lambda: (ZONAL(), ivs.SphericalHarmonics(3, [0, 1])), of("kernel", SCALES)),
    "harmonics of a kernel of finite rank": (finite_rank, of("kernel.kernel", SCALES)),
    "harmonics of a sum": (sum_of_harmonics, OF_SUM),
    "an interval": (lambda: INTERVAL, set()),
    "intervals and points": (intervals_and_points, OF_POINTS),
    "activations": (lambda: (ZONAL(), UNITS), of("kernel", SCALES) | {Z}),
    "points": (lambda: (Matern32(), InducingPoints(POINTS)), of("kernel", STATIONARY) | {Z}),
    "patches": (patches, of("kernel.base_kernel", STATIONARY) | {"kernel.weights", Z}),
}


@pytest.mark.parametrize("name", CASES)
def test_parameters_of_the_features(name: str) -> None:
    kernel, inducing_variable = CASES[name][0]()
    mean = gpflow.mean_functions.Constant(1.0)
    features = Features(kernel, inducing_variable, mean, 2, 1)
    assert set(features.parameters) == CASES[name][1]
    description = features.description()
    assert features.num_inducing == inducing_variable.num_inducing
    # The diagonal is the sum over terms of factors and what rows bring.
    *_, terms = features.row_features(tf.constant(POINTS))
    diagonal = features.diagonal_factors().numpy() @ terms.numpy()
    if np.any(features.incomplete):
        np.testing.assert_allclose(diagonal, kernel(POINTS, full_cov=False), rtol=1e-12)
    else:  # nothing is left out, so that nothing is summed
        assert terms.shape == (0, 4) and name == "harmonics of a kernel of finite rank"
    # Descriptions are in JSON's types, whatever has been computed, and those of a second model.
    assert json.loads(json.dumps(features.description())) == description
    again = Features(*CASES[name][0](), mean, 2, 1)
    assert again.description() == description and again.checksum() == features.checksum()
    for part in ("kernel", "inducing_variable"):
        assert any(name.startswith(part) for name in description)


class Stretched(idm.kernels.SphericalMatern32):
    """A kernel of a user's own, whose map to the sphere has a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stretch = gpflow.Parameter(2.0)

    def to_sphere(self, X: Any) -> Any:
        return super().to_sphere(X * self.stretch)


class Scaled(idm.kernels.SphericalMatern32):
    """One with a diagonal of its own."""

    def K_diag(self, X: Any) -> Any:
        return 3.0 * super().K_diag(X)


def test_parameters_of_a_users_own_kernel_are_found() -> None:
    harmonics, mean = ivs.SphericalHarmonics(3, [0, 1]), gpflow.mean_functions.Zero()
    features = Features(Stretched(), harmonics, mean, 2, 1)
    assert "kernel.stretch" in features.parameters
    assert "kernel.variance" not in features.parameters
    # A diagonal of an unknown form depends on all that it is computed from.
    features = Features(Scaled(), harmonics, mean, 2, 1)
    assert "kernel.variance" in features.parameters


@pytest.mark.parametrize("name", CASES)
def test_sums_with_weights_are_those_of_loops(name: str) -> None:
    """Values and gradients to the inputs, of the verb that families may answer in their own way."""
    kernel, inducing_variable = CASES[name][0]()
    rng = np.random.default_rng(1)
    weights, targets = rng.uniform(size=(4, 2)), rng.normal(size=(4, 3))
    kuf = gpflow.covariances.Kuf(inducing_variable, kernel, POINTS).numpy()
    found = feature_sums(inducing_variable, kernel, POINTS, weights, targets)
    expected = [sum(w[n] * np.outer(kuf[:, n], kuf[:, n]) for n in range(4)) for w in weights.T]
    np.testing.assert_allclose(found.gram, expected, atol=1e-12)
    products = sum(np.outer(kuf[:, n], targets[n]) for n in range(4))
    np.testing.assert_allclose(found.products, products, atol=1e-12)
    plain = feature_sums(inducing_variable, kernel, POINTS, None, targets)
    np.testing.assert_allclose(plain.gram, kuf @ kuf.T, atol=1e-12)


@pytest.mark.parametrize("large", [1, 400])
def test_the_gradient_of_a_gram_is_that_of_its_products(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interdomain.core.family._LARGE", large)
    features, upstream = tf.Variable(POINTS), np.random.default_rng(2).normal(size=(4, 4))
    with tf.GradientTape(persistent=True) as tape:
        found = tf.reduce_sum(upstream * gram_of(features))
        expected = tf.reduce_sum(upstream * tf.matmul(features, features, transpose_b=True))
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    one, other = (tape.gradient(value, features) for value in (found, expected))
    np.testing.assert_allclose(one, other, rtol=1e-12)
