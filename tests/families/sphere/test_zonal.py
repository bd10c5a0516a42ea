"""The lift to the sphere, the construction of zonal kernels, and which columns they see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    ZonalKernel,
)
from tests.conformance.helpers import assert_refused
from tests.conformance.kernel_cases import ZONAL_CASES, KernelCase, inputs
from tests.families.sphere.mathematics.test_laplace_beltrami import wrapped_matern

each_case = pytest.mark.parametrize("case", ZONAL_CASES, ids=str)


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (0, 3)])
@pytest.mark.parametrize("weights", [0.7, [0.5, 1.0, 2.0]])
def test_to_sphere(shape: tuple[int, ...], weights: Any) -> None:
    kernel = ArcCosine(weight_variances=weights, bias_variance=0.3)
    X = np.random.default_rng(0).normal(size=shape)
    radius, unit = kernel.to_sphere(X)
    assert radius.shape == (*shape[:-1], 1)
    assert unit.shape == (*shape[:-1], 4)
    np.testing.assert_allclose(np.sum(unit**2, axis=-1), 1, rtol=1e-14)
    lifted = np.concatenate([X * np.sqrt(weights), np.full_like(X[..., :1], np.sqrt(0.3))], axis=-1)
    np.testing.assert_allclose(radius * unit, lifted, rtol=1e-13)


@each_case
def test_covariance_is_radial_times_zonal(case: KernelCase) -> None:
    """Pair by pair, from the definition."""
    kernel, X, X2 = case.build(3), inputs(3, 3), inputs(2, 3, seed=1)
    weights, bias = kernel.weight_variances.numpy(), float(kernel.bias_variance.numpy())
    K = kernel(X, X2).numpy()
    cosines, radial = np.zeros([3, 2]), np.zeros([3, 2])
    for i, x in enumerate(X):
        for j, y in enumerate(X2):
            a, b = (np.append(np.sqrt(weights) * z, np.sqrt(bias)) for z in (x, y))
            norms = np.sqrt(a @ a) * np.sqrt(b @ b)
            cosines[i, j], radial[i, j] = a @ b / norms, 1.3 * norms**kernel.radial_power
    zonal = kernel.shape_in_dimension(tf.constant(cosines), 4).numpy()
    np.testing.assert_allclose(K, radial * zonal, rtol=1e-12)


def test_a_direction_has_no_angle_with_itself() -> None:
    """Two layers of order 0 would make 1e-4 of the rounding of a cosine."""
    K = ArcCosine(0, 2, variance=1.3)(inputs(6, 3)).numpy()
    np.testing.assert_allclose(np.diag(K), 1.3, rtol=1e-13)


X = inputs(5, 4)
AS_MANY = "X must have 3 columns, one for each entry of weight_variances, found 4; pass X with"
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: SphericalMatern12(lengthscale=-1.0), "^lengthscale must be finite and positive"),
    (lambda: ArcCosine(3), "order must be 0, 1 or 2, found 3"),
    (lambda: ArcCosine(weight_variances=np.ones(3))(X), AS_MANY),
]


def test_errors() -> None:
    assert_refused(ERRORS)


@pytest.mark.parametrize("order, factor", [(0, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("weights", [0.6, [0.5, 1.5, 1.0]])
def test_equals_gpflow_s(order: int, factor: int, weights: Any) -> None:
    settings = {"variance": 1.4, "weight_variances": weights, "bias_variance": 0.7}
    ours, theirs = ArcCosine(order, **settings), gpflow.kernels.ArcCosine(order, **settings)
    X, X2 = inputs(6, 3), inputs(4, 3, seed=1)
    np.testing.assert_allclose(factor * ours(X, X2), theirs(X, X2), rtol=1e-12)
    np.testing.assert_allclose(factor * ours(X), theirs(X), rtol=5e-8)  # theirs shifts by 1e-15
    np.testing.assert_allclose(
        factor * ours(X, full_cov=False), theirs(X, full_cov=False), rtol=1e-12
    )


@pytest.mark.parametrize("order", [0, 1, 2])
def test_is_the_covariance_of_a_wide_network(order: int) -> None:
    """Against 400,000 random units of one hidden layer."""
    kernel = ArcCosine(order, weight_variances=0.6, bias_variance=0.7)
    X = 0.5 * inputs(4, 2)
    rng = np.random.default_rng(1)
    units = rng.normal(size=(400_000, 3)) * np.sqrt([0.6, 0.6, 0.7])
    hidden = units @ np.append(X, np.ones((4, 1)), axis=1).T
    hidden = (hidden > 0) * np.abs(hidden) ** order
    scale = {0: 2, 1: 2, 2: 2 / 3}[order]
    estimate = scale * hidden.T @ hidden / len(units)
    np.testing.assert_allclose(kernel(X), estimate, rtol=0.05 if order == 2 else 0.02)


def test_two_layers_are_one_of_one() -> None:
    """The second layer sees the features of the first, whose covariance is the first kernel."""
    first, X = ArcCosine(1, bias_variance=0.4), inputs(5, 2)
    K = first(X).numpy()
    norms = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    angles = np.arccos(np.clip(K / norms, -1, 1))
    expected = norms * (np.sin(angles) + (np.pi - angles) * np.cos(angles)) / np.pi
    np.testing.assert_allclose(ArcCosine(1, 2, bias_variance=0.4)(X), expected, rtol=1e-7)


@pytest.mark.parametrize(
    "order, depth, power", [(0, 1, 0), (0, 3, 0), (1, 1, 1), (1, 4, 1), (2, 1, 2), (2, 2, 4)]
)
def test_radial_power_is_that_of_the_network(order: int, depth: int, power: int) -> None:
    kernel = ArcCosine(order, depth)
    assert kernel.radial_power == power
    X = np.array([[1e6, 2e6]])  # the bias is negligible: twice the input, 2^(2 power) times K
    np.testing.assert_allclose(kernel(2 * X) / kernel(X), 4.0**power, rtol=1e-9)


def test_default_lengthscale_follows_the_dimension() -> None:
    settings: list[tuple[float, dict[str, Any]]] = [
        *((0.5, {"weight_variances": np.ones(8)}), (1.0, {"weight_variances": np.ones(2)})),
        *((0.5, {"active_dims": range(1, 9)}), (1.0, {"active_dims": [1, 3]})),
        *((0.5, {}), (0.5, {"active_dims": slice(0, 2)}), (0.3, {"lengthscale": 0.3})),
    ]
    for expected, options in settings:
        np.testing.assert_allclose(SphericalMatern52(**options).lengthscale, expected)


def test_the_shape_function_needs_the_dimension() -> None:
    kernel, t = SphericalMatern32(), tf.constant([0.2], tf.float64)
    with pytest.raises(ValueError, match="dimension must be given.*SphericalMatern32"):
        kernel.shape_function(t)
    in_three, in_nine = (kernel.shape_function(t, dimension).numpy() for dimension in (3, 9))
    assert abs(in_three - in_nine) > 1e-3
    np.testing.assert_array_equal(kernel.shape_in_dimension(t, 3), in_three)


@pytest.mark.parametrize(
    "kernel_class, nu",
    [(SphericalMatern12, 0.5), (SphericalMatern32, 1.5), (SphericalMatern52, 2.5)],
)
def test_matern_of_one_column_is_wrapped_around_the_circle(
    kernel_class: type[ZonalKernel], nu: float
) -> None:
    kernel, X = kernel_class(lengthscale=0.6, bias_variance=0.5, radial_power=0.0), inputs(7, 1)
    angles = np.arctan2(X[:, 0], np.sqrt(0.5))
    expected = wrapped_matern(nu, 0.6, (angles[:, None] - angles).ravel()).reshape(7, 7)
    np.testing.assert_allclose(kernel(X), expected, rtol=0, atol=1e-7)


def test_chordal_is_a_squared_exponential_of_the_chord() -> None:
    kernel, X = ChordalSquaredExponential(lengthscale=0.7, radial_power=0.0), inputs(6, 3)
    lifted = np.append(X, np.ones((6, 1)), axis=1)
    unit = lifted / np.linalg.norm(lifted, axis=1, keepdims=True)
    chords = np.linalg.norm(unit[:, None] - unit, axis=-1)
    np.testing.assert_allclose(kernel(X), np.exp(-(chords**2) / (2 * 0.7**2)), rtol=1e-12)
