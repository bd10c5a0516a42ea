"""Tests of each class of inducing variable.

Each class has one case here, unwhitened and with a full q, which has most to do. How q is given
matters to the kind of operator alone (test_kinds.py), and what stock models do with Kuu and Kuf,
which they see as dense tensors, to nobody (test_kinds.py, too).
"""

import copy
from collections import Counter
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.posteriors import PrecomputeCacheType
from gpflow.utilities import parameter_dict

from interdomain.core.descriptions import describe

from .cases import REPRESENTATIVES, Case
from .dense_twin import dense_twin
from .helpers import (
    assert_close,
    assert_same_objective,
    change,
    compiled,
    make_data,
    make_inputs,
    make_svgp,
    value_and_gradients,
)

pytestmark = pytest.mark.usefixtures("no_jitter")
each_class = pytest.mark.parametrize("case", REPRESENTATIVES, ids=lambda case: case.name)
ONE_SUM = [case for case in REPRESENTATIVES if case.kind != "low-rank blocks"]
"""Another sum has nothing new to compile: one has blocks, and one of its blocks is a case."""


@pytest.mark.parametrize("case", ONE_SUM, ids=lambda case: case.name)
def test_step_is_the_dense_twins(case: Case) -> None:
    """The elbo and its gradients, compiled before the number of rows or columns is known."""
    model = make_svgp(case, whiten=False)
    twin, variables = dense_twin(model), model.trainable_variables

    def step(*data: tf.Tensor, model: gpflow.models.SVGP = model) -> tuple[tf.Tensor, Any]:
        return value_and_gradients(lambda: model.elbo(data), variables)

    graph = compiled(step, [None, None], [None, None])
    for data in (make_data(case, num_data=9), make_data(case, num_data=4)):
        assert_close(graph(*data), step(*data, model=twin))


@each_class
def test_joint_prediction_from_a_cache(case: Case) -> None:
    """... and without one, of two latent GPs, with gradients of both as to the inputs and q."""
    model = make_svgp(case, whiten=False, num_latent_gps=2)
    described: list[dict[str, object]] = [{}, {}]
    describe("", model, described[0], set(), parts_only=True)
    twin = dense_twin(model)
    X = tf.Variable(make_inputs(case, 5))

    def summary(prediction: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        mean, cov = prediction
        return tf.reduce_sum(tf.sin(mean)) + tf.reduce_sum(tf.sin(cov))

    def both() -> tf.Tensor:
        cached = model.posterior(PrecomputeCacheType.TENSOR).predict_f(X, full_cov=True)
        return summary(cached) + 2 * summary(model.predict_f(X))

    def reference() -> tf.Tensor:
        mean, cov = twin.predict_f(X, full_cov=True)
        var = tf.transpose(tf.linalg.diag_part(cov))
        return summary((mean, cov)) + 2 * summary((mean, var))

    prediction = model.posterior().predict_f(X, full_cov=True)
    assert_close(prediction, twin.predict_f(X, full_cov=True))
    likelihood = model.likelihood.variance.unconstrained_variable
    variables = tuple(v for v in model.trainable_variables if v is not likelihood)
    assert_same_objective(both, reference, (*variables, X), rtol=max(1e-8, case.kernel_rtol))
    describe("", model, described[1], set(), parts_only=True)
    assert described[0] == described[1], "a fit of a used model would not be resumed"


@each_class
def test_float32(case: Case) -> None:
    """Built and used with float32 as the default: near the float64 model, in float32."""
    data, X = make_data(case), make_inputs(case, 5)
    model = make_svgp(case)
    expected = model.elbo(data), *model.predict_f(X)
    _, expected_gradients = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=0.0)):
        data, X = make_data(case), make_inputs(case, 5)
        assert X.dtype == np.float32
        model = make_svgp(case)
        assert {p.dtype for p in model.parameters} == {tf.float32}
        value, gradients = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)
        actual = value, *model.posterior().predict_f(X)
    assert {tensor.dtype for tensor in (*actual, *gradients)} == {tf.float32}
    assert_close((actual, gradients), (expected, expected_gradients), rtol=1e-3)


@each_class
def test_a_deep_copy_is_equal_and_independent(case: Case) -> None:
    """... and a model shows each parameter once, whatever has used it."""
    model, X = make_svgp(case), make_inputs(case, 4)
    before = model.predict_f(X)
    clone = copy.deepcopy(model)
    assert_close(clone.predict_f(X), before, rtol=1e-14)
    parameters = parameter_dict(clone)
    assert list(parameters) == list(parameter_dict(model))
    assert max(Counter(id(p) for p in parameters.values()).values()) == 1
    assert len(parameters) == len(clone.parameters)
    change(clone)
    assert np.max(np.abs(clone.predict_f(X)[0] - before[0])) > 1e-3
    assert_close(model.predict_f(X), before, rtol=1e-14)
