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
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
)
from tests.conformance.helpers import assert_refused
from tests.conformance.kernel_cases import ZONAL_CASES, KernelCase, inputs

each_case = pytest.mark.parametrize("case", ZONAL_CASES, ids=str)


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
    """Order 0 would make 1e-8 of the rounding of a cosine."""
    K = ArcCosine(0, variance=1.3)(inputs(6, 3)).numpy()
    np.testing.assert_allclose(np.diag(K), 1.3, rtol=1e-13)


X = inputs(5, 4)
AS_MANY = "X must have 3 columns, one for each entry of weight_variances, found 4; pass X with"
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: SphericalMatern12(lengthscale=-1.0), "^lengthscale must be finite and positive"),
    (lambda: ArcCosine(3), "order must be an integer from 0 to 2, found 3"),
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
