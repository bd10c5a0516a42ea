"""Products of features, alone and beside other summands, against dense models."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, Matern32, Product

from interdomain.inducing_variables import (
    BoxFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from interdomain.models import StructuredSGPR
from tests.conformance.helpers import assert_close, assert_same_objective

X = np.random.default_rng(0).uniform(-1, 1, size=[60, 3])
Y = np.sin(3 * X[:, :1] + X[:, 1:2]) * np.cos(2 * X[:, 2:])


def space_and_time(*, interval: bool = False) -> tuple[Product, list[Any]]:
    """The columns that harmonics need are as the kernel has them, and stay so."""
    space = SphericalMatern52(weight_variances=[1.2, 0.8], active_dims=[0, 1])
    gpflow.set_trainable(space.weight_variances, False)
    gpflow.set_trainable(space.bias_variance, False)
    harmonics = SphericalHarmonics.for_kernel(space, 2, max_degree=3)
    if interval:
        time: Kernel = Matern32(lengthscales=0.7, active_dims=[2])
        return space * time, [harmonics, VariationalFourierFeatures(-1.5, 1.5, 2)]
    time = Periodized(Matern32(lengthscales=0.7), -1.3, 1.3, active_dims=[2])
    return space * time, [harmonics, BoxFourierFeatures.for_kernel(time, 7)]


def chosen(num_inducing: int = 40) -> tuple[Product, ProductInducingVariables]:
    kernel, factors = space_and_time()
    return kernel, ProductInducingVariables.for_kernel(kernel, factors, num_inducing)


def with_another() -> tuple[Kernel, Any]:
    """A trend that the time alone has, and an effect at points."""
    kernel, features = chosen()
    trend = Matern32(lengthscales=2.0, active_dims=[2])
    blocks = [features, InducingPoints(X[::12])]
    return kernel + trend, SumInducingVariables(blocks)


def of_finite_rank() -> tuple[Kernel, Any]:
    kernel, features = chosen()
    return FiniteRank(kernel, features), features


def of_an_interval() -> tuple[Kernel, Any]:
    kernel, factors = space_and_time(interval=True)
    return kernel, ProductInducingVariables(factors)


def assert_equals_sgpr(kernel: Kernel, features: Any, data: Any = (X, Y)) -> None:
    sgpr = gpflow.models.SGPR(data, kernel, features, noise_variance=0.1)
    model = StructuredSGPR(
        data, kernel, features, likelihood=sgpr.likelihood, batch_size=25, progress=False
    )
    assert_same_objective(
        model.training_loss, sgpr.training_loss, sgpr.trainable_variables, rtol=1e-7
    )
    new = data[0][:5] / 2
    assert_close(model.predict_f(new), sgpr.predict_f(new), rtol=1e-7)


@pytest.mark.parametrize("build", [with_another, of_finite_rank, of_an_interval])
def test_equal_to_the_dense_model(build: Any) -> None:
    """Bound, gradients and predictions."""
    assert_equals_sgpr(*build())


def test_rows_outside_of_a_factor() -> None:
    beyond = np.concatenate([X, [[5.0, 5.0, 1.4]]]), np.concatenate([Y, [[0.0]]])
    message = r"1 of 61 rows of .*X is outside of the interval .* of BoxFourier.*: column 2 goes"
    model = StructuredSGPR(beyond, *of_finite_rank(), progress=False)
    with pytest.raises(ValueError, match=message):
        model.elbo()
