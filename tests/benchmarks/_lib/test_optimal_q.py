"""The bound with the q that is optimal, for each kind of model it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

import interdomain as idm
from benchmarks._lib.optimal_q import OptimalQ

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(30, 2))
DATA = (X, np.stack([np.sin(2 * X[:, 0]), X[:, 1]], axis=1) + 0.1 * rng.normal(size=(30, 2)))
NOISE = 0.3


def points(**options: Any) -> gpflow.models.SVGP:
    likelihood = gpflow.likelihoods.Gaussian(NOISE)
    return gpflow.models.SVGP(
        gpflow.kernels.Matern32(), likelihood, X[:5].copy(), num_latent_gps=2, **options
    )


def orthogonal(**options: Any) -> gpflow.models.SVGP:
    kernel = idm.kernels.SphericalMatern32()
    harmonics = idm.inducing_variables.SphericalHarmonics(3, [0, 1])
    return idm.models.OrthogonalSVGP(
        kernel,
        gpflow.likelihoods.Gaussian(NOISE),
        harmonics,
        InducingPoints(X[:4].copy()),
        num_latent_gps=2,
        **options,
    )


def blocks() -> gpflow.models.SVGP:
    kernel = idm.kernels.HarmonicKernel(gpflow.kernels.Matern32(), idm.transforms.Rotation(3))
    harmonic = idm.inducing_variables.HarmonicInducingPoints.for_kernel(kernel, X[:4])
    likelihood = gpflow.likelihoods.Gaussian(NOISE)
    return idm.models.AdditiveSVGP(kernel, likelihood, harmonic, num_latent_gps=2)


@pytest.mark.parametrize("build", [points, orthogonal, blocks])
def test_no_q_is_better(build: Callable[[], Any]) -> None:
    """The bound is the model's own there, its gradient for q is zero, and another q is worse."""
    model = build()
    optimal = OptimalQ(model, DATA)
    bound = optimal.maximum_log_likelihood_objective()
    assert model.elbo(DATA) < bound
    optimal.assign_q()
    np.testing.assert_allclose(model.elbo(DATA), bound, rtol=1e-9)
    pairs = getattr(model, "variational_parameters", [(model.q_mu, model.q_sqrt)])
    q = [parameter for pair in pairs for parameter in pair]
    gpflow.set_trainable(q, True)
    with tf.GradientTape() as tape:
        elbo = model.elbo(DATA)
    for gradient in tape.gradient(elbo, [part.unconstrained_variable for part in q]):
        np.testing.assert_allclose(gradient, np.zeros(gradient.shape), atol=1e-7)
