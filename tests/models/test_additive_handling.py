"""What users do with a model besides training: parameters, copies, compilation, export."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.utilities import multiple_assign, parameter_dict, read_values

from interdomain.models import AdditiveSVGP
from tests.conformance.helpers import assert_close, value_and_gradients

from .cases import BY_NAME, Case, make_additive, make_data, points


@pytest.fixture(params=["shared", "mixed"])
def case(request: pytest.FixtureRequest) -> Case:
    return BY_NAME[request.param]


def change(model: AdditiveSVGP) -> None:
    for parameter in model.parameters:
        variable = parameter.unconstrained_variable
        variable.assign_add(0.1 * tf.ones_like(variable))


def test_each_parameter_is_shown_once(case: Case, capsys) -> None:  # noqa: ANN001
    model = make_additive(case)
    model.elbo(make_data())
    model.posterior().predict_f(points(2))
    parameters = parameter_dict(model)
    assert max(Counter(id(p) for p in parameters.values()).values()) == 1
    assert len(parameters) == len(model.parameters)
    assert {f".q_mu[{t}]" for t in range(model.num_blocks)} <= set(parameters)
    gpflow.utilities.print_summary(model, fmt="plain")
    lines = capsys.readouterr().out.splitlines()  # values take several
    shown = [line.split()[0] for line in lines if line.startswith("AdditiveSVGP.")]
    assert sorted(shown) == sorted("AdditiveSVGP" + path for path in parameters)


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
    """deepcopy, pickle, freeze, multiple_assign, checkpoints: the same, and independent."""
    model, X = make_additive(case), points(4, seed=8)
    before = model.predict_f(X)
    saved = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    values = read_values(model)
    copies = {
        "deepcopy": copy.deepcopy(model),
        "pickle": pickle.loads(pickle.dumps(model)),
        "freeze": gpflow.utilities.freeze(model),
    }
    assert copies["freeze"].trainable_variables == ()
    change(model)
    assert np.max(np.abs(model.predict_f(X)[0] - before[0])) > 1e-3
    for name, other in copies.items():
        assert_close(other.predict_f(X), before, rtol=1e-12, message=name)
    for name in ("assigned", "restored"):
        other = make_additive(case)
        change(other)
        if name == "assigned":
            multiple_assign(other, values)
        else:
            status = tf.train.Checkpoint(model=other).restore(saved)
            status.assert_existing_objects_matched()
        assert_close(other.predict_f(X), before, rtol=1e-12, message=name)


def test_unknown_number_of_rows_and_export(case: Case, tmp_path: Path) -> None:
    """Compiled predictions, direct and from a posterior; and reloaded without our classes."""
    model = make_additive(case, num_latent_gps=2)
    rows = [tf.TensorSpec([None, 3], gpflow.default_float())]
    posterior = model.posterior(gpflow.posteriors.PrecomputeCacheType.VARIABLE)
    model.predict = tf.function(model.predict_f, input_signature=rows)
    posterior.predict = tf.function(posterior.predict_f, input_signature=rows)
    expected = {n: model.predict_f(points(n, seed=8)) for n in (1, 6)}
    for name, module in (("model", model), ("posterior", posterior)):
        tf.saved_model.save(module, str(tmp_path / name))
        loaded = tf.saved_model.load(str(tmp_path / name))
        for n, prediction in expected.items():
            assert_close(module.predict(points(n, seed=8)), prediction, message=name)
            assert_close(loaded.predict(points(n, seed=8)), prediction, message=name)


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
