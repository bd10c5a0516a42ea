"""Arguments of zonal kernels: what is refused, and how columns are selected."""

from __future__ import annotations

import re
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Sum

from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalMatern32,
    SphericalSquaredExponential,
)

STATIONARY = [SphericalMatern12, SphericalSquaredExponential, ChordalSquaredExponential]
X = np.random.default_rng(0).normal(size=(5, 4))


@pytest.mark.parametrize("kernel_class", [ArcCosine, *STATIONARY])
@pytest.mark.parametrize("name", ["variance", "weight_variances", "bias_variance"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_parameters_are_finite_and_positive(kernel_class: type, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be finite and positive, found {value}"):
        kernel_class(**{name: value})


@pytest.mark.parametrize("kernel_class", STATIONARY)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lengthscale": 0.0}, "lengthscale must be finite and positive, found 0.0"),
        ({"lengthscale": np.nan}, "lengthscale must be finite and positive, found nan"),
        (
            {"lengthscale": [1.0, 2.0]},
            r"lengthscale must be a scalar, found shape \(2,\); .*w",
        ),
        ({"radial_power": -1.0}, "radial_power must be 0 or more, found -1.0"),
        ({"radial_power": np.inf}, "radial_power must be finite, found inf"),
        ({"weight_variances": [1.0, -2.0]}, r"weight_variances must be .*\[1.0, -2.0\]"),
        (
            {"weight_variances": [[1.0]]},
            r"weight_variances must be a scalar or a vec.*\(1, 1\)",
        ),
    ],
)
def test_bad_arguments(kernel_class: type, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel_class(**arguments)


@pytest.mark.parametrize("kernel_class", [ArcCosine, *STATIONARY])
@pytest.mark.parametrize(
    ("name", "form", "remedy"),
    [
        ("variance", "a scalar", "pass one number"),
        ("bias_variance", "a scalar", "scale the columns with weight_variances"),
        (
            "weight_variances",
            r"a scalar or a vector \[D\]",
            "pass a number, or one for each col",
        ),
    ],
)
def test_parameters_have_their_shapes(
    kernel_class: type, name: str, form: str, remedy: str
) -> None:
    """As numbers, arrays or parameters."""
    shapes = [(5, 5), (1, 1), (0,)]
    if name != "weight_variances":
        shapes += [(5,), (1,)]
    for shape in shapes:
        found = rf"{re.escape(str(shape))}; {remedy}"
        for value in (np.ones(shape), gpflow.Parameter(np.ones(shape))):
            with pytest.raises(ValueError, match=f"^{name} must be {form}, found shape {found}"):
                kernel_class(**{name: value})
    with pytest.raises(
        ValueError, match=f"^{name} must be made of real numbers, found 'x'; {remedy}"
    ):
        kernel_class(**{name: "x"})


@pytest.mark.parametrize("kernel_class", STATIONARY)
def test_numbers_are_numbers(kernel_class: type) -> None:
    with pytest.raises(ValueError, match=r"^radial_power must be .*, found shape \(2,\)"):
        kernel_class(radial_power=[1, 2])


@pytest.mark.parametrize("name", ["order", "depth"])
def test_numbers_of_the_arc_cosine(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be .*, found \\[1, 2\\]"):
        ArcCosine(**{name: [1, 2]})


@pytest.mark.parametrize("order", [-1, 3, 0.5, "relu"])
def test_bad_order(order: Any) -> None:
    with pytest.raises(ValueError, match=f"order must be 0, 1 or 2, found {order!r}"):
        ArcCosine(order)


@pytest.mark.parametrize("depth", [0, -1, 1.5])
def test_bad_depth(depth: Any) -> None:
    with pytest.raises(ValueError, match=f"depth must be an integer of 1 or more, found {depth}"):
        ArcCosine(1, depth)


@pytest.mark.parametrize("number", [3, 5])
def test_as_many_weights_as_columns(number: int) -> None:
    kernel = ArcCosine(weight_variances=np.ones(number))
    message = f"X must have {number} columns, one for each entry of weight_variances, found 4; pass"
    for call in (lambda: kernel(X), lambda: kernel(X, full_cov=False), lambda: kernel(X[:2], X)):
        with pytest.raises(ValueError, match=message):
            call()


def test_as_many_weights_as_active_dims() -> None:
    with pytest.raises(ValueError, match="active_dims"):
        ArcCosine(weight_variances=np.ones(3), active_dims=[0, 1])


def test_unknown_number_of_columns() -> None:
    kernel = SphericalMatern32()

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float64)], autograph=False)
    def covariances(inputs: tf.Tensor) -> tf.Tensor:
        return kernel(inputs)

    with pytest.raises(ValueError, match="X must have a known number of columns"):
        covariances(X)


@pytest.mark.parametrize("active_dims", [[0, 2], [3, 1], slice(1, 3), slice(0, 4, 2), [2]])
def test_columns_are_selected_once(active_dims: Any) -> None:
    """By kernel(X), and by K and K_diag, which GPflow also calls with all columns."""
    kernel = ArcCosine(variance=1.3, active_dims=active_dims)
    columns = X[:, active_dims]
    plain = ArcCosine(variance=1.3)
    for actual in (kernel(X), kernel.K(X), kernel.K(columns), kernel(columns, presliced=True)):
        np.testing.assert_allclose(actual, plain(columns), rtol=1e-12)
    for actual in (kernel(X[:2], X), kernel.K(X[:2], X)):
        np.testing.assert_allclose(actual, plain(columns[:2], columns), rtol=1e-12)
    for actual in (kernel(X, full_cov=False), kernel.K_diag(X), kernel.K_diag(columns)):
        np.testing.assert_allclose(actual, plain(columns, full_cov=False), rtol=1e-12)


def test_k_of_a_sum_selects_columns() -> None:
    """GPflow's Sum.K hands all columns to the K of each summand."""
    kernel = Sum([ArcCosine(active_dims=[0, 1]), SphericalMatern12(active_dims=[2])])
    np.testing.assert_allclose(kernel.K(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(kernel.K_diag(X), kernel(X, full_cov=False), rtol=1e-12)
