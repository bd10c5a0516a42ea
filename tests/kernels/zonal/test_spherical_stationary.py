from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from interdomain.kernels import (
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    ZonalKernel,
)
from tests.kernels.cases import inputs
from tests.sphere.test_laplace_beltrami import wrapped_matern


def test_default_lengthscale_follows_the_dimension() -> None:
    def lengthscale(**settings: Any) -> float:
        return float(SphericalMatern52(**settings).lengthscale.numpy())

    np.testing.assert_allclose(lengthscale(weight_variances=np.ones(8)), 0.5)
    np.testing.assert_allclose(lengthscale(weight_variances=np.ones(2)), 1.0)
    np.testing.assert_allclose(lengthscale(active_dims=[1, 2, 5, 7, 9, 10, 11, 12]), 0.5)
    np.testing.assert_allclose(lengthscale(active_dims=[1, 3]), 1.0)
    np.testing.assert_allclose(lengthscale(), 0.5)
    np.testing.assert_allclose(lengthscale(active_dims=slice(0, 2)), 0.5)
    np.testing.assert_allclose(lengthscale(lengthscale=0.3, active_dims=[1, 3]), 0.3)


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
