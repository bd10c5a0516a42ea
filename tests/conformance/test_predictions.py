"""Samples, predicted outputs, densities."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from .cases import ONE_OF_EACH_KIND, REPRESENTATIVES, Case
from .dense_twin import DenseTwin, dense_twin
from .helpers import assert_close, make_data, make_inputs, make_svgp
from .selection import each_class_quick_each_kind, in_turn, param


@pytest.mark.parametrize(
    ("case", "full_cov"),
    [
        param(case, full_cov, id=f"{name}-{case.name}", quick=quick)
        for case, (name, full_cov), quick in in_turn(
            REPRESENTATIVES, (("marginal", False), ("joint", True)), ONE_OF_EACH_KIND
        )
    ],
)
def test_predict_f_samples(case: Case, full_cov: bool) -> None:
    """The same random numbers make the same samples; they have the predicted moments."""
    model = make_svgp(case, num_latent_gps=2)
    twin = dense_twin(model)
    # A joint covariance of close points is singular to rounding; few points, far apart, are not.
    X = 2 * make_inputs(case, 3)
    if full_cov:
        # What is not explained keeps the joint covariance well away from singular.
        eigenvalues = np.linalg.eigvalsh(twin.predict_f(X, full_cov=True)[1])
        assert eigenvalues.min() > 1e-5
    num_samples = 4000
    tf.random.set_seed(3)
    samples = model.predict_f_samples(X, num_samples, full_cov=full_cov)
    tf.random.set_seed(3)
    reference = twin.predict_f_samples(X, num_samples, full_cov=full_cov)
    assert samples.shape == (num_samples, 3, 2)
    assert_close(samples, reference, rtol=1e-6)
    mean, cov = twin.predict_f(X, full_cov=True)
    deviations = np.sqrt(np.array([np.diag(c) for c in cov.numpy()])).T
    errors = (np.mean(samples, axis=0) - mean) / deviations
    assert np.max(np.abs(errors)) < 5 / np.sqrt(num_samples)
    if full_cov:
        sampled = np.stack([np.cov(samples.numpy()[:, :, p].T) for p in range(2)])
        assert np.max(np.abs(sampled - cov)) < 0.15 * np.max(cov)


@each_class_quick_each_kind
def test_predict_y_and_log_density(case: Case) -> None:
    for likelihood in (gpflow.likelihoods.Gaussian(0.2), gpflow.likelihoods.StudentT()):
        model = make_svgp(case, whiten=False, likelihood=likelihood)
        twin = dense_twin(model)
        X, Y = make_data(case)
        assert_close(model.predict_y(X), twin.predict_y(X))
        density = model.predict_log_density((X, Y))
        assert density.shape == (len(X),)
        assert_close(density, twin.predict_log_density((X, Y)))


@each_class_quick_each_kind
def test_sample_conditional(case: Case) -> None:
    """Marginal; joint over inputs, and many; joint over outputs."""
    model = make_svgp(case, num_latent_gps=2)
    kernel, inducing_variable = model.kernel, model.inducing_variable
    X = 2 * make_inputs(case, 3)
    for options in ({}, {"full_cov": True, "num_samples": 5}, {"full_output_cov": True}):
        results = []
        for u in (inducing_variable, DenseTwin(inducing_variable)):
            tf.random.set_seed(3)
            results.append(
                gpflow.conditionals.sample_conditional(
                    X, u, kernel, model.q_mu, q_sqrt=model.q_sqrt, white=True, **options
                )
            )
        samples, mean, cov = results[0]
        assert samples.shape[-2:] == (3, 2)
        assert samples.shape[:-2] == ((5,) if "num_samples" in options else ())
        assert np.max(np.abs(samples - mean)) > 0.01
        assert_close(samples, results[1][0], rtol=1e-6, message=str(options))
        assert_close((mean, cov), results[1][1:], message=str(options))
