"""What inducing variables are of functions of the prior: against covariances, and exactly where
functions are combinations of the features."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

import interdomain as idm
from interdomain.sampling.base import Draws, PriorSample
from interdomain.sampling.priors import prior_sample
from tests.conformance.cases import CASES, Case
from tests.conformance.helpers import make_inputs

from .moments import NUM_SAMPLES, assert_mean

PROJECTED = {
    "harmonics-chosen",
    "activation-softplus",
    "sum-with-points",
    "harmonic-negations",
    "harmonic-shared",
    "harmonic-complete",
    "patches",
    "channels",
    "orbits",
}
"""One case for each way to compute inducing variables of functions of the prior."""


def drawn(kernel: Kernel, num_columns: int, num_samples: int, num_features: int) -> PriorSample:
    rng = np.random.default_rng(5)
    return prior_sample(kernel, Draws(rng, num_samples, num_features, num_columns))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in PROJECTED], ids=lambda case: case.name
)
def test_covariances_with_f_and_of_u(case: Case) -> None:
    """Those of Kuf and Kuu, to within the error of as many functions."""
    kernel, inducing_variable = case.build()
    X = make_inputs(case, 4)
    sample = drawn(kernel, case.input_dim, NUM_SAMPLES, 6)
    values = sample(tf.constant(X)).numpy()
    u = np.asarray(sample.project(inducing_variable))
    u = u / np.sqrt(np.diag(Kuu(inducing_variable, kernel)))  # their scale is any
    scales = np.sqrt(np.diag(Kuu(inducing_variable, kernel)))
    whole = Kuu(inducing_variable, kernel) / scales / scales[:, None]
    assert_mean(u[:, :, None] * u[:, None, :], whole, 2.0)
    cross = Kuf(inducing_variable, kernel, X) / scales[:, None]
    assert_mean(u[:, :, None] * values[:, None, :], cross, 2.0)


def harmonics() -> tuple[Kernel, InducingVariables, int]:
    smooth = idm.kernels.SphericalMatern52(weight_variances=[0.6, 1.7])
    kernel = idm.kernels.FreeSpectrum.from_kernel(smooth, input_dim=2, max_degree=4)
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=4)
    return kernel, features, 2


def activations() -> tuple[Kernel, InducingVariables, int]:
    """As many as the harmonics that they are made of: they span the same."""
    first = idm.kernels.ArcCosine(1)
    kernel = idm.kernels.FreeSpectrum.from_kernel(first, input_dim=1, max_degree=4)
    features = idm.inducing_variables.ActivationFeatures.random(1, 7, "relu", 4, seed=1)
    return kernel, features, 1


@pytest.mark.parametrize("build", [harmonics, activations])
def test_features_that_are_all_of_the_prior_leave_nothing(build: object) -> None:
    """``f' = Kfu Kuu^{-1} u'``, function by function."""
    kernel, inducing_variable, num_columns = build()  # type: ignore[operator]
    sample = drawn(kernel, num_columns, 5, 20)
    X = np.random.default_rng(0).uniform(-1.5, 1.5, size=(9, num_columns))
    u = sample.project(inducing_variable)
    solved = np.linalg.solve(Kuu(inducing_variable, kernel), np.transpose(u))
    explained = np.transpose(solved) @ Kuf(inducing_variable, kernel, X)
    values = sample(tf.constant(X))
    np.testing.assert_allclose(explained, values, rtol=0, atol=1e-6 * np.max(np.abs(values)))
