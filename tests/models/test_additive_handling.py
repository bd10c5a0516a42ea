"""What users do with a model besides training: parameters, copies, compilation."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from pathlib import Path

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.utilities import multiple_assign, parameter_dict, read_values

from interdomain.models import AdditiveSVGP
from tests.conformance.helpers import assert_close, value_and_gradients

from .cases import BY_NAME, make_additive, make_data, points


def make() -> AdditiveSVGP:
    return make_additive(BY_NAME["mixed"])


def test_each_parameter_is_shown_once(capsys) -> None:  # noqa: ANN001
    """In ``parameter_dict`` and in ``print_summary``; also after the model was used."""
    model = make()
    model.elbo(make_data())
    model.posterior().predict_f(points(2))
    parameters = parameter_dict(model)
    assert max(Counter(id(p) for p in parameters.values()).values()) == 1
    assert len(parameters) == len(model.parameters)
    names = {f".{q}[{t}]" for q in ("q_mu", "q_sqrt") for t in range(3)}
    assert {path for path in parameters if path.startswith(".q_")} == names
    gpflow.utilities.print_summary(model, fmt="plain")
    lines = capsys.readouterr().out.splitlines()  # values take several
    shown = [line.split()[0] for line in lines if line.startswith("AdditiveSVGP.")]
    assert sorted(shown) == sorted(f"AdditiveSVGP{path}" for path in parameters)


def change(model: AdditiveSVGP) -> None:
    for parameter in model.parameters:
        variable = parameter.unconstrained_variable
        variable.assign_add(0.1 * tf.ones_like(variable))


def test_copies(tmp_path: Path) -> None:
    """deepcopy, pickle, freeze, multiple_assign, checkpoints: the same, and independent."""
    model, X = make(), points(4, seed=8)
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
    for name in ("assigned", "restored"):
        other = copies[name] = make()
        change(other)
        if name == "assigned":
            multiple_assign(other, values)
        else:
            status = tf.train.Checkpoint(model=other).restore(saved)
            status.assert_existing_objects_matched()
    for name, other in copies.items():
        assert_close(other.predict_f(X), before, rtol=1e-12, message=name)


def test_xla() -> None:
    """Objective with gradients, unwhitened with a full q: it has most to do."""
    model, data = make_additive(BY_NAME["stock"], whiten=False), make_data()

    @tf.function(jit_compile=True, autograph=False)
    def compiled() -> tuple:
        return value_and_gradients(lambda: model.elbo(data), model.trainable_variables)

    value, gradients = compiled()
    expected = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)
    assert_close(value, expected[0])
    for gradient, expected_gradient in zip(gradients, expected[1], strict=True):
        assert_close(gradient, expected_gradient, rtol=1e-7)


def test_posterior_inside_a_function() -> None:
    """Made outside and used inside of a function for any number of rows, its VARIABLE cache follows
    the parameters when updated."""
    model = make_additive(BY_NAME["mixed"], num_latent_gps=2)
    rows = [tf.TensorSpec([None, 3], gpflow.default_float())]
    X = points(4, seed=8)
    posterior = model.posterior(gpflow.posteriors.PrecomputeCacheType.VARIABLE)
    predict = tf.function(posterior.predict_f, input_signature=rows, autograph=False)
    before = predict(X)
    assert_close(before, model.predict_f(X))
    assert_close(predict(X[:1]), model.predict_f(X[:1]))
    model.q_mu[1].assign(model.q_mu[1] + 0.5)
    assert np.max(np.abs(model.predict_f(X)[0] - before[0])) > 1e-3
    assert_close(predict(X), before, rtol=1e-12)
    posterior.update_cache()
    assert_close(predict(X), model.predict_f(X))
    compiled = tf.function(model.predict_f, input_signature=rows, autograph=False)
    assert_close(compiled(X), model.predict_f(X))
