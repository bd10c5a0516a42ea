"""Products of features, and summands without any, against dense and simpler models."""

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, Linear, Matern32, White

from interdomain.inducing_variables import (
    BoxFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern32, SphericalMatern52
from interdomain.models import AdditiveSVGP, StructuredSGPR
from tests.conformance.helpers import assert_close, assert_same_objective
from tests.models.structured_sgpr.test_structured_sgpr import make_pair

X = np.random.default_rng(0).uniform(-1, 1, size=[60, 3])
Y = np.sin(3 * X[:, :1] + X[:, 1:2]) * np.cos(2 * X[:, 2:])


def in_space() -> tuple[Kernel, Any]:
    """The columns that harmonics need are as the kernel has them, and stay so."""
    space = SphericalMatern52(weight_variances=[1.2, 0.8], active_dims=[0, 1])
    gpflow.set_trainable(space.weight_variances, False)
    gpflow.set_trainable(space.bias_variance, False)
    return space, SphericalHarmonics.for_kernel(space, 2, max_degree=3)


def chosen() -> tuple[Kernel, ProductInducingVariables]:
    space, harmonics = in_space()
    time = Periodized(Matern32(lengthscales=0.7), -1.3, 1.3, active_dims=[2])
    factors = [harmonics, BoxFourierFeatures.for_kernel(time, 7)]
    return space * time, ProductInducingVariables.for_kernel(space * time, factors, 40)


def with_another() -> tuple[Kernel, Any]:
    """A trend that the time alone has, and an effect at points."""
    kernel, features = chosen()
    trend = Matern32(lengthscales=2.0, active_dims=[2])
    return kernel + trend, SumInducingVariables([features, InducingPoints(X[::12])])


def finite_rank() -> tuple[Kernel, Any]:
    kernel, features = chosen()
    return FiniteRank(kernel, features), features


def with_interval() -> tuple[Kernel, Any]:
    space, harmonics = in_space()
    kernel = space * Matern32(lengthscales=0.7, active_dims=[2])
    return kernel, ProductInducingVariables([harmonics, VariationalFourierFeatures(-1.5, 1.5, 2)])


@pytest.mark.parametrize("build", [with_another, finite_rank, with_interval])
def test_equal_to_the_dense_model(build: Any) -> None:
    """Bound, gradients and predictions."""
    sgpr, model = make_pair(build(), (X, Y), batch_size=25)
    assert_same_objective(
        model.training_loss, sgpr.training_loss, sgpr.trainable_variables, rtol=1e-7
    )
    assert_close(model.predict_f(X[:5] / 2), sgpr.predict_f(X[:5] / 2), rtol=1e-7)


def test_rows_outside_of_a_factor() -> None:
    beyond = np.concatenate([X, [[5.0, 5.0, 1.4]]]), np.concatenate([Y, [[0.0]]])
    message = r"1 of 61 rows of .*X is outside of the interval .* of BoxFourier.*: column 2 goes"
    model = StructuredSGPR(beyond, *finite_rank(), progress=False)
    with pytest.raises(ValueError, match=message):
        model.elbo()


# None in SumInducingVariables: a summand's variance stays in the prior of f.

RNG = np.random.default_rng(0)
FEW, NEW = RNG.normal(size=(8, 2)), RNG.normal(size=(5, 2))
TARGETS = np.sin(FEW[:, :1])


def kernel() -> SphericalMatern32:
    return SphericalMatern32(weight_variances=np.ones(2))


def harmonics() -> SphericalHarmonics:
    return SphericalHarmonics.for_kernel(kernel(), 2, max_degree=2)


@pytest.mark.parametrize("full_cov", [False, True], ids=["marginal", "joint"])
def test_predictions(full_cov: bool) -> None:
    """Those of the other summand, with the rest's variance added."""
    own, rest = kernel(), Linear(0.4)
    alone = gpflow.models.SVGP(own, gpflow.likelihoods.Gaussian(), harmonics())
    alone.q_mu.assign(RNG.normal(size=alone.q_mu.shape))
    alone.q_sqrt.assign(0.4 * alone.q_sqrt)
    mean, cov = alone.predict_f(NEW, full_cov=full_cov)
    added = rest(NEW, full_cov=full_cov)
    expected = (mean, cov + (added[None] if full_cov else added[:, None]))
    blocks = SumInducingVariables([harmonics(), None])
    assert blocks.num_inducing == harmonics().num_inducing
    assert blocks.inducing_variables[1] is None
    for build in (gpflow.models.SVGP, AdditiveSVGP):
        model = build(own + rest, gpflow.likelihoods.Gaussian(), blocks)
        single = isinstance(model.q_mu, gpflow.Parameter)
        (model.q_mu if single else model.q_mu[0]).assign(alone.q_mu)
        (model.q_sqrt if single else model.q_sqrt[0]).assign(alone.q_sqrt)
        assert_close(model.predict_f(NEW, full_cov=full_cov), expected)
        assert_close(model.posterior().predict_f(NEW, full_cov=full_cov), expected)
        assert_close(model.prior_kl(), alone.prior_kl())


def test_white_noise_is_noise() -> None:
    """The collapsed bound with White in the kernel is Titsias' for the sum of both noises less what
    the trace term takes for the variance that nothing explains."""
    own, white, noise = kernel(), White(0.3), 0.2
    blocks = SumInducingVariables([harmonics(), None])
    arguments: dict[str, Any] = {"noise_variance": noise, "charge": "trace", "progress": False}
    with_rest = StructuredSGPR((FEW, TARGETS), own + white, blocks, **arguments)
    without = StructuredSGPR((FEW, TARGETS), own, harmonics(), **arguments)
    trace = len(FEW) * 0.3 / (2 * noise)
    assert_close(with_rest.elbo(), without.elbo() - trace)
    assert_close(with_rest.predict_f(NEW)[0], without.predict_f(NEW)[0])
    assert_close(with_rest.predict_f(NEW)[1], without.predict_f(NEW)[1] + 0.3)
