"""Models of space and time: products of features in StructuredSGPR, against GPflow's SGPR."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, Matern32, Product

from interdomain.inducing_variables import (
    IntervalFourierFeatures,
    PeriodicFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from interdomain.models import StructuredSGPR
from interdomain.models.scales import warn_of_data
from interdomain.models.trained import complaints
from interdomain.regression import InvalidRowsError
from interdomain.training import fit_sgpr
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
        return space * time, [harmonics, IntervalFourierFeatures(-1.5, 1.5, 2)]
    time = Periodized(Matern32(lengthscales=0.7), -1.3, 1.3, active_dims=[2])
    return space * time, [harmonics, PeriodicFourierFeatures.for_kernel(time, 7)]


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


def assert_equals_sgpr(kernel: Kernel, features: Any) -> StructuredSGPR:
    sgpr = gpflow.models.SGPR((X, Y), kernel, features, noise_variance=0.1)
    model = StructuredSGPR(
        (X, Y), kernel, features, likelihood=sgpr.likelihood, batch_size=25, progress=False
    )
    assert_same_objective(
        model.training_loss, sgpr.training_loss, sgpr.trainable_variables, rtol=1e-7
    )
    assert_close(model.predict_f(X[:5] / 2), sgpr.predict_f(X[:5] / 2), rtol=1e-7)
    return model


@pytest.mark.parametrize("build", [with_another, of_finite_rank, of_an_interval])
def test_equal_to_the_dense_model(build: Any) -> None:
    """Bound, gradients and predictions."""
    assert_equals_sgpr(*build())


def test_one_pass_serves_all_that_is_trained() -> None:
    kernel, features = chosen()
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1, progress=False)
    assert not any(one.trainable for one in model.feature_parameters.values())
    before = model.statistics
    start = float(model.elbo())
    fitted = fit_sgpr(model, steps=2, progress=False)
    assert fitted.frozen == () and fitted.subset is None
    assert model.statistics is before and model.elbo() > start
    same = StructuredSGPR((X, Y), kernel, features, likelihood=model.likelihood, progress=False)
    assert_close(model.elbo(), same.elbo(), rtol=1e-10)


def svgp(kernel: Kernel, features: Any) -> gpflow.models.SVGP:
    return gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.1), features)


def test_rows_outside_of_a_factor() -> None:
    beyond = np.concatenate([X, [[5.0, 5.0, 1.4]]]), np.concatenate([Y, [[0.0]]])
    message = r"1 of 61 rows of X is outside of the interval .* of PeriodicFourier.*: column 2 goes"
    model = StructuredSGPR(beyond, *of_finite_rank(), progress=False)
    with pytest.raises(InvalidRowsError, match=message):
        model.elbo()
    with pytest.raises(ValueError, match=rf"^data: {message}.*the prior repeats"):
        warn_of_data(svgp(*of_finite_rank()), *beyond)
    beyond[0][-1, 2] = 1.6
    with pytest.warns(UserWarning, match="of IntervalFourierFeatures: column 2 goes .* say little"):
        warn_of_data(svgp(*of_an_interval()), *beyond)


def test_what_is_said_after_training() -> None:
    """What the factors say."""
    kernel, features = chosen()
    assert complaints(features, kernel, False) == complaints(features, kernel, True) == []
    kernel.kernels[1].base_kernel.lengthscales.assign(0.05)
    (message,) = complaints(features, kernel, True)
    assert "is now in frequencies that it lacks" in message
    assert complaints(features, kernel, False) == []
    assert complaints(features, FiniteRank(kernel, features), False) == [message]
