"""Functions of the posterior, for every kind of inducing variable."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.sampling import sample_functions
from tests.conformance.cases import CASES, Case
from tests.conformance.helpers import make_inputs, make_svgp

from .moments import NUM_SAMPLES, assert_moments

OF_KINDS = (
    "harmonics-free-spectrum",
    "orbits",
    "sum-with-points",
    "interval-matern52",
    "interval-additive",
)
"""One case for each kind of operator, with few features of the prior."""
OF_PRIORS = {
    "activation-softplus",
    "harmonic-complete",
    "patches",
    "interval-additive",
}
"""One case for each way to compute a function of the prior."""


@pytest.mark.parametrize(
    ("name", "q"),
    [(name, {}) for name in OF_KINDS]
    + [(name, {"whiten": False, "q_diag": True}) for name in (OF_KINDS[0], OF_KINDS[-1])],
)
def test_moments_are_those_of_the_posterior(name: str, q: dict[str, bool]) -> None:
    """The covariance would be another one by the order of the prior's, were u' not what the
    inducing variables are of the function of the prior."""
    (case,) = (case for case in CASES if case.name == name)
    model, X = make_svgp(case, **q), make_inputs(case, 4)
    functions = sample_functions(model, NUM_SAMPLES, num_features=6, seed=3)
    assert_moments(functions, X, *model.predict_f(X, full_cov=True))


def test_of_other_priors_there_are_functions_of_the_features() -> None:
    """As the message says."""
    names = {"box-two-columns", "effects", "fourier-features", "product-of-features"}
    cases = [case for case in CASES if case.name in names]
    assert len(cases) == len(names)
    for case in cases:
        (kernel, features), likelihood = case.build(), gpflow.likelihoods.Gaussian()
        with pytest.raises(ValueError, match="kernel must be .*wrap it with its features in a Fin"):
            sample_functions(gpflow.models.SVGP(kernel, likelihood, features), 2)
        model = gpflow.models.SVGP(idm.kernels.FiniteRank(kernel, features), likelihood, features)
        values = sample_functions(model, 3, seed=1)(make_inputs(case, 4))
        assert values.shape == (3, 4, 1) and np.all(np.isfinite(values))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in OF_PRIORS], ids=lambda case: case.name
)
def test_a_function_has_one_value_and_one_slope_at_a_place(case: Case) -> None:
    """In any batch, and in compiled functions, of which the number of rows is not known; slopes
    are those of finite differences."""
    functions = sample_functions(make_svgp(case), 3, num_features=8, seed=2)
    X = tf.constant(0.9 * make_inputs(case, 5))
    direction = np.random.default_rng(0).normal(size=[5, case.input_dim])
    weights = np.random.default_rng(1).normal(size=[3, 5, 1])
    with tf.GradientTape() as tape:
        tape.watch(X)
        values = functions(X)
        total = tf.reduce_sum(weights * values)
    gradient = tape.gradient(total, X)
    step = 1e-6
    up, down = (functions(X + sign * step * direction) for sign in (1, -1))
    difference = np.sum(weights * (up - down)) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient * direction), difference, rtol=2e-5, atol=1e-7)
    np.testing.assert_array_equal(values, functions(X))
    np.testing.assert_allclose(values[:, 2:4], functions(X[2:4]), rtol=1e-8, atol=1e-8)
    signature = [tf.TensorSpec([None, case.input_dim], gpflow.default_float())]
    compiled = tf.function(functions, input_signature=signature)  # AutoGraph stops at the door
    np.testing.assert_allclose(values, compiled(X), rtol=1e-8, atol=1e-8)
