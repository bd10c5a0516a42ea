"""Fitting and judging regression models."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest

from benchmarks._lib.regression import fit_by_lbfgs, inducing_points, start_at_optimal_q
from benchmarks._lib.regression import test_errors as errors_on_test_rows
from benchmarks._lib.splits import NormalisedSplit, Split, normalise


@pytest.fixture
def split() -> NormalisedSplit:
    generator = np.random.default_rng(0)
    X = generator.uniform(-2.0, 2.0, size=(60, 2))
    Y = np.sin(X[:, :1]) + X[:, 1:] + 0.1 * generator.normal(size=(60, 1))
    return normalise(Split(X[:50], Y[:50], X[50:], Y[50:]))


def test_optimal_q_makes_the_svgp_bound_the_collapsed_one(split: NormalisedSplit) -> None:
    data = (split.X_train, split.Y_train)
    kernel = gpflow.kernels.Matern32(lengthscales=[1.0, 2.0])
    Z = inducing_points(split.X_train, 7, seed=0)
    collapsed = gpflow.models.SGPR(data, kernel, Z.copy(), noise_variance=0.1)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.1), Z.copy(), num_data=50)
    start_at_optimal_q(model, data)
    np.testing.assert_allclose(model.elbo(data), collapsed.elbo(), rtol=1e-6)


def test_fit_and_errors(split: NormalisedSplit) -> None:
    data = (split.X_train, split.Y_train)
    model = gpflow.models.GPR(data, gpflow.kernels.Matern32(), noise_variance=0.1)
    before = float(model.log_marginal_likelihood())
    outcome = fit_by_lbfgs(model, None, max_iterations=100)
    assert outcome["converged"] and outcome["objective"] > before
    assert outcome["objective"] == pytest.approx(float(model.log_marginal_likelihood()))

    errors = errors_on_test_rows(model, split, batch_size=3)
    mean, variance = (np.asarray(value) for value in model.predict_y(split.X_test))
    squared = np.square(mean - split.Y_test)
    assert errors["mse"] == pytest.approx(float(squared.mean()))
    density = 0.5 * (np.log(2 * np.pi * variance) + squared / variance)
    assert errors["nlpd"] == pytest.approx(float(density.mean()))
