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
    assert_a_compiled_posterior_follows,
    assert_copies_are_equal_and_independent,
    assert_parameters_are_shown_once,
)


@pytest.fixture
def case() -> Case:
    return BY_NAME["mixed"]


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


def test_xla() -> None:
    """Objective with gradients and a prediction, unwhitened with a full q: it has most to do."""
    model = make_additive(BY_NAME["stock"], whiten=False)
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
    model = make_additive(case, num_latent_gps=2)
    assert_a_compiled_posterior_follows(model, model.q_mu[1])
