"""Functions of the posterior, for every inducing variable of the registry."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.sampling import sample_functions
from tests.conformance.cases import REPRESENTATIVES, Case
from tests.conformance.helpers import make_inputs, make_svgp
from tests.conformance.selection import cases, every_case_quick_each_class

from .moments import NUM_SAMPLES, assert_moments


@every_case_quick_each_class
def test_moments_are_those_of_the_posterior(case: Case) -> None:
    """The covariance would be another one by the order of the prior's, were u' not what the
    inducing variables are of the function of the prior."""
    model, X = make_svgp(case), make_inputs(case, 4)
    functions = sample_functions(model, NUM_SAMPLES, num_features=6, seed=3)
    assert_moments(functions, X, *model.predict_f(X, full_cov=True))


@pytest.mark.full
@cases(REPRESENTATIVES, quick=())
def test_moments_where_q_is_not_whitened_and_diagonal(case: Case) -> None:
    model, X = make_svgp(case, whiten=False, q_diag=True), make_inputs(case, 4)
    functions = sample_functions(model, NUM_SAMPLES, num_features=6, seed=4)
    assert_moments(functions, X, *model.predict_f(X, full_cov=True))


@cases(REPRESENTATIVES, quick=REPRESENTATIVES[::4])
def test_gradients_are_those_of_finite_differences(case: Case) -> None:
    functions = sample_functions(make_svgp(case), 3, num_features=8, seed=1)
    X = tf.constant(0.9 * make_inputs(case, 2))
    direction = np.random.default_rng(0).normal(size=[2, case.input_dim])
    weights = np.random.default_rng(1).normal(size=[3, 2, 1])
    with tf.GradientTape() as tape:
        tape.watch(X)
        value = tf.reduce_sum(weights * functions(X))
    gradient = tape.gradient(value, X)
    step = 1e-6
    up, down = (functions(X + sign * step * direction) for sign in (1, -1))
    difference = np.sum(weights * (up - down)) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient * direction), difference, rtol=2e-5, atol=1e-7)


@cases(REPRESENTATIVES, quick=REPRESENTATIVES[1::4])
def test_a_function_has_one_value_at_a_place(case: Case) -> None:
    """In any batch, and in compiled functions, of which the number of rows is not known."""
    functions = sample_functions(make_svgp(case), 3, num_features=8, seed=2)
    X = make_inputs(case, 7)
    values = functions(X)
    np.testing.assert_array_equal(values, functions(X))
    np.testing.assert_allclose(values[:, 2:5], functions(X[2:5]), rtol=1e-8, atol=1e-8)
    signature = [tf.TensorSpec([None, case.input_dim], gpflow.default_float())]
    compiled = tf.function(functions, input_signature=signature, autograph=False)
    np.testing.assert_allclose(values, compiled(X), rtol=1e-8, atol=1e-8)
