"""The optimum that the q's of an AdditiveSVGP have, and that optimisers find."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import SumInducingVariables
from interdomain.models import AdditiveSVGP
from tests.conformance.dense_twin import DenseTwin
from tests.conformance.helpers import value_and_gradients

from .bounds import mean_field_optimum

NUM_DATA = 25


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(NUM_DATA, 2))
    return X, np.sin(2 * X[:, :1]) + 0.5 * X[:, 1:] + 0.1 * rng.normal(size=(NUM_DATA, 1))


def stock() -> AdditiveSVGP:
    kernel = gpflow.kernels.Matern32(active_dims=[0]) + gpflow.kernels.Matern52(active_dims=[1])
    Z = np.random.default_rng(1).uniform(-2, 2, size=(6, 2))
    blocks = SumInducingVariables([InducingPoints(Z), InducingPoints(Z[:3])])
    return AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(0.1), blocks, whiten=False)


def test_optimum(data: tuple) -> None:
    """The mean-field optimum is below that of a joint q(u), which is an SGPR's, and that is below
    the evidence."""
    model = stock()
    twin = DenseTwin(model.inducing_variable)
    for (q_mu, q_sqrt), mean, covariance in zip(
        model.variational_parameters, *mean_field_optimum(model, twin, (6, 3), data), strict=True
    ):
        q_mu.assign(mean)
        q_sqrt.assign(np.linalg.cholesky(covariance)[None])
    variables = [p.unconstrained_variable for pair in model.variational_parameters for p in pair]
    best, gradients = value_and_gradients(lambda: model.elbo(data), variables)
    assert max(float(np.max(np.abs(g))) for g in gradients) < 1e-8
    noise = float(model.likelihood.variance.numpy())
    joint = gpflow.models.SGPR(data, model.kernel, twin, noise_variance=noise).elbo()
    exact = gpflow.models.GPR(data, model.kernel, noise_variance=noise).log_marginal_likelihood()
    assert best < joint - 1e-3
    assert joint < exact


def test_one_block_at_a_time(data: tuple) -> None:
    """A step of size one for one block is its exact optimum given the others: coordinate ascent.
    For all blocks at once it is too far, as they explain the same data."""
    model = stock()
    natural = gpflow.optimizers.NaturalGradient(gamma=1.0)
    elbos = [float(model.elbo(data))]
    for pair in model.variational_parameters:
        natural.minimize(model.training_loss_closure(data, compile=False), [pair])
        variables = [p.unconstrained_variable for p in pair]
        value, gradients = value_and_gradients(lambda: model.elbo(data), variables)
        elbos.append(float(value))
        assert max(float(np.max(np.abs(g))) for g in gradients) < 1e-5
    assert np.all(np.diff(elbos) > -1e-8), elbos
