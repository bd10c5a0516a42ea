"""The lift to the sphere and the construction of zonal kernels."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.kernels import ArcCosine, SphericalMatern32, SphericalSquaredExponential
from tests.kernels.cases import ZONAL_CASES, KernelCase, first_of_each_kind, inputs
from tests.tiers import in_tiers

each_case = pytest.mark.parametrize(
    "case", in_tiers(ZONAL_CASES, quick=first_of_each_kind(ZONAL_CASES)), ids=str
)


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
    for i, x in enumerate(X):
        for j, y in enumerate(X2):
            a, b = (np.append(np.sqrt(weights) * z, np.sqrt(bias)) for z in (x, y))
            norms = np.sqrt(a @ a) * np.sqrt(b @ b)
            zonal = kernel.shape_in_dimension(tf.constant([a @ b / norms]), 4).numpy()[0]
            expected = 1.3 * norms**kernel.radial_power * zonal
            np.testing.assert_allclose(K[i, j], expected, rtol=1e-12)


@each_case
def test_radial_power(case: KernelCase) -> None:
    kernel, X = case.build(2), inputs(5, 2)
    radius = np.sqrt(np.sum(kernel.weight_variances.numpy() * X**2, axis=1) + 0.8)
    np.testing.assert_allclose(
        kernel(X, full_cov=False), 1.3 * radius ** (2 * kernel.radial_power), rtol=1e-13
    )
    for power in (0, 0.5, 1, 2):
        factor = kernel.radial_factor(tf.constant(radius), power)
        np.testing.assert_allclose(factor, radius**power, rtol=1e-14)


@pytest.mark.parametrize("name", ["variance", "weight_variances", "bias_variance", "lengthscale"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), [1.0, -2.0]])
def test_parameters_must_be_finite_and_positive(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be finite and positive, found"):
        SphericalMatern32(**{name: value})


def test_parameters_may_be_given_as_parameters() -> None:
    given = gpflow.Parameter(2.5, transform=gpflow.utilities.positive())
    kernel = SphericalMatern32(variance=given, lengthscale=tf.Variable(0.7, dtype=tf.float64))
    np.testing.assert_allclose(kernel.variance, 2.5)
    np.testing.assert_allclose(kernel.lengthscale, 0.7)


def test_weight_variances_must_be_a_scalar_or_a_vector() -> None:
    with pytest.raises(ValueError, match=r"weight_variances must be .*, found shape \(2, 2\)"):
        ArcCosine(weight_variances=np.ones((2, 2)))


def test_weight_variances_must_fit_active_dims() -> None:
    with pytest.raises(ValueError, match="active_dims"):
        ArcCosine(weight_variances=[1.0, 2.0, 3.0], active_dims=[0, 4])


@pytest.mark.parametrize("call", ["K", "K_diag", "to_sphere"])
def test_weight_variances_must_fit_the_data(call: str) -> None:
    kernel = ArcCosine(weight_variances=[1.0, 2.0, 3.0])
    with pytest.raises(
        ValueError,
        match="X must have 3 columns, one for each entry of weight_variances, found 2; pass",
    ):
        getattr(kernel, call)(inputs(4, 2))


def test_the_number_of_columns_must_be_known() -> None:
    """By a kernel that depends on it; see also tests/kernels/test_unknown_columns.py."""
    kernel = SphericalMatern32()
    signature = [tf.TensorSpec([None, None], tf.float64)]
    with pytest.raises(ValueError, match="X must have a known number of columns"):
        tf.function(kernel.K, input_signature=signature, autograph=False)(inputs(4, 2))


def test_ard() -> None:
    assert not ArcCosine().ard
    assert ArcCosine(weight_variances=[1.0, 2.0]).ard
    X = inputs(4, 2)
    stretched = ArcCosine()(X * np.sqrt([0.5, 3.0]))
    np.testing.assert_allclose(ArcCosine(weight_variances=[0.5, 3.0])(X), stretched, rtol=1e-13)


def test_columns_may_be_a_slice() -> None:
    X = inputs(4, 5)
    kernel = ArcCosine(weight_variances=[1.0, 2.0], active_dims=slice(1, 3))
    np.testing.assert_allclose(
        kernel(X), ArcCosine(weight_variances=[1.0, 2.0])(X[:, 1:3]), rtol=1e-13
    )


def test_sums_with_other_kernels() -> None:
    X, ours, stock = inputs(4, 2), SphericalSquaredExponential(), gpflow.kernels.Linear()
    np.testing.assert_allclose((ours + stock)(X), ours(X) + stock(X), rtol=1e-13)
    np.testing.assert_allclose((ours * stock)(X), ours(X) * stock(X), rtol=1e-13)
