"""Functions of which functionals can be asked, from priors and posteriors, against covariances."""

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Matern52, SquaredExponential

import interdomain as idm
from interdomain.functionals import Derivative, Mean, Value
from interdomain.kernels import FiniteRank, Functional
from interdomain.sampling import sample_functions

from .moments import NUM_SAMPLES, assert_moments

FUNCTIONALS = [Value(), Mean([0.6]), Derivative(0)]
X = np.array([[0.1, 0.0], [0.3, 1.0], [-0.4, 2.0], [0.5, 1.0], [0.6, 0.0]])
AT = np.array([[0.0, 0.0], [0.2, 1.0], [0.2, 2.0], [-0.8, 1.0]])
Y = np.sin(3 * X[:, :1])


@pytest.mark.parametrize("prior", [SquaredExponential(0.9, 0.5), Matern52(0.9, 0.8)])
def test_prior_and_exact_regression(prior: gpflow.kernels.Kernel) -> None:
    kernel = Functional(prior, FUNCTIONALS)
    functions = sample_functions(kernel, NUM_SAMPLES, num_features=10, input_dim=2)
    assert_moments(functions, AT, np.zeros([4, 1]), kernel(AT).numpy()[None])
    model = gpflow.models.GPR((X, Y), kernel, noise_variance=0.02)
    functions = sample_functions(model, NUM_SAMPLES, num_features=10, seed=1)
    mean, cov = model.predict_f(AT, full_cov=True)
    assert_moments(functions, AT, mean.numpy(), cov.numpy())


def test_points_and_finite_rank() -> None:
    points = gpflow.inducing_variables.InducingPoints(np.linspace(-1, 1, 6)[:, None])
    full = SquaredExponential(0.9, 0.5)
    for prior in (full, FiniteRank(full, points)):
        kernel = Functional(prior, FUNCTIONALS)
        model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.1), points)
        model.q_mu.assign(np.random.default_rng(0).normal(size=[6, 1]))
        model.q_sqrt.assign(0.4 * model.q_sqrt.numpy())
        functions = sample_functions(model, NUM_SAMPLES, num_features=10, seed=2)
        mean, cov = model.predict_f(AT, full_cov=True)
        assert_moments(functions, AT, mean.numpy(), cov.numpy())
        whole = idm.predict_in_batches(model, AT, batch_size=2)
        np.testing.assert_allclose(whole[0], mean, rtol=1e-7)
