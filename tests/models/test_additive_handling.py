"""What users do with a model besides training: parameters, copies, compilation, export."""

from __future__ import annotations

from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from tests.conformance.helpers import assert_close, value_and_gradients

from .cases import BY_NAME, Case, make_additive, make_data, points
from .handling import (
    assert_copies_are_equal_and_independent,
    assert_exports,
    assert_parameters_are_shown_once,
)


@pytest.fixture(params=["mixed", pytest.param("shared", marks=pytest.mark.full)])
def case(request: pytest.FixtureRequest) -> Case:
    return BY_NAME[request.param]


def test_each_parameter_is_shown_once(case: Case, capsys) -> None:  # noqa: ANN001
    blocks = range(len(case.sizes))
    names = [f".{q}[{t}]" for q in ("q_mu", "q_sqrt") for t in blocks]
    assert_parameters_are_shown_once(make_additive(case), names, capsys)


def test_set_trainable(case: Case) -> None:
    model = make_additive(case)
    gpflow.set_trainable(model, False)
    assert model.trainable_variables == ()
    gpflow.set_trainable(model.q_mu[1], True)
    (variable,) = model.trainable_variables
    assert variable is model.q_mu[1].unconstrained_variable
    _, (gradient,) = value_and_gradients(lambda: model.elbo(make_data()), (variable,))
    assert np.max(np.abs(gradient)) > 1e-3


def test_copies(case: Case, tmp_path: Path) -> None:
    assert_copies_are_equal_and_independent(
        make_additive(case), lambda: make_additive(case), tmp_path
    )


def test_unknown_number_of_rows_and_export(case: Case, tmp_path: Path) -> None:
    assert_exports(make_additive(case, num_latent_gps=2), tmp_path)


@pytest.mark.full
def test_xla(case: Case) -> None:
    """Objective with gradients and a prediction, unwhitened with a full q: it has most to do."""
    model = make_additive(case, whiten=False)
    data, X = make_data(), points(6, seed=8)

    @tf.function(jit_compile=True, autograph=False)
    def compiled() -> tuple:
        value, gradients = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)
        return value, gradients, model.predict_f(X)

    value, gradients, prediction = compiled()
    expected = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)
    assert_close(value, expected[0])
    for gradient, expected_gradient in zip(gradients, expected[1], strict=True):
        assert_close(gradient, expected_gradient, rtol=1e-7)
    assert_close(prediction, model.predict_f(X))


def test_posterior_inside_a_function(case: Case) -> None:
    """Made outside and used inside, its VARIABLE cache follows the parameters when updated."""
    model, X = make_additive(case), points(4, seed=8)
    posterior = model.posterior(gpflow.posteriors.PrecomputeCacheType.VARIABLE)
    predict = tf.function(posterior.predict_f, autograph=False)
    before = predict(X)
    assert_close(before, model.predict_f(X))
    model.q_mu[1].assign(model.q_mu[1] + 0.5)
    assert np.max(np.abs(model.predict_f(X)[0] - before[0])) > 1e-3
    assert_close(predict(X), before, rtol=1e-12)
    posterior.update_cache()
    assert_close(predict(X), model.predict_f(X))
