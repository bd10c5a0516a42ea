"""Parameters as GPflow users handle them, and models that are copied, stored and restored."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from pathlib import Path

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.utilities import multiple_assign, parameter_dict, read_values, set_trainable

from .cases import Case
from .dense_twin import dense_twin
from .helpers import assert_close, make_data, make_inputs, make_svgp, value_and_gradients
from .selection import each_class, every_case_quick_each_class


def change(model: gpflow.models.SVGP) -> None:
    """Move each parameter."""
    for parameter in model.parameters:
        parameter.unconstrained_variable.assign_add(
            0.1 * tf.ones_like(parameter.unconstrained_variable)
        )


@each_class
def test_each_parameter_is_shown_once(case: Case, capsys) -> None:  # noqa: ANN001
    model = make_svgp(case)
    model.elbo(make_data(case))
    posterior = model.posterior()
    posterior.predict_f(make_inputs(case, 3))
    parameters = parameter_dict(model)
    assert max(Counter(id(p) for p in parameters.values()).values()) == 1
    assert len(parameters) == len(model.parameters)
    gpflow.utilities.print_summary(model, fmt="plain")
    # Values of several rows take several lines; those that go on begin with blanks.
    lines = [line for line in capsys.readouterr().out.splitlines()[1:] if line[:1].strip()]
    shown = [line.split()[0].split(".", 1)[1] for line in lines]
    assert sorted(shown) == sorted(path.removeprefix(".") for path in parameters)


@each_class
def test_set_trainable(case: Case) -> None:
    model = make_svgp(case)
    data = make_data(case)
    for parameter in model.parameters:
        set_trainable(parameter, False)
    assert model.trainable_variables == ()
    set_trainable(model.kernel, True)
    variables = model.kernel.trainable_variables
    assert model.trainable_variables == variables and variables
    _, gradients = value_and_gradients(lambda: model.elbo(data), variables)
    _, expected = value_and_gradients(lambda: dense_twin(model).elbo(data), variables)
    assert all(gradient is not None for gradient in gradients)
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        assert_close(gradient, expected_gradient)


@each_class
def test_copies_are_equal_and_independent(case: Case, tmp_path: Path) -> None:
    """deepcopy, pickle, freeze, multiple_assign, checkpoints."""
    model, data, X = make_svgp(case), make_data(case), make_inputs(case, 4)
    before, bound = model.predict_f(X), model.elbo(data)
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    values = read_values(model)
    clones = {
        "deepcopy": copy.deepcopy(model),
        "pickle": pickle.loads(pickle.dumps(model)),
    }
    frozen = gpflow.utilities.freeze(model)
    assert frozen.trainable_variables == () and model.trainable_variables
    for name, clone in clones.items():
        assert_close(clone.predict_f(X), before, rtol=1e-14, message=name)
        assert len(clone.trainable_variables) == len(model.trainable_variables)
    assert_close(clones["pickle"].elbo(data), bound, rtol=1e-14)

    change(clones["deepcopy"])
    moved = clones["deepcopy"].predict_f(X)
    assert np.max(np.abs(moved[0] - before[0])) > 1e-3
    assert_close(model.predict_f(X), before, rtol=1e-14, message="a copy was changed")
    change(model)
    assert_close(model.predict_f(X), moved, rtol=1e-12)
    for name, other in (("frozen", frozen), ("pickle", clones["pickle"])):
        assert_close(other.predict_f(X), before, rtol=1e-14, message=f"{name}, model changed")

    other = make_svgp(case)
    change(other)
    assert_close(other.predict_f(X), moved, rtol=1e-12)
    multiple_assign(other, values)
    assert_close(other.predict_f(X), before, rtol=1e-12, message="assigned")
    change(other)
    status = tf.train.Checkpoint(model=other).restore(path)
    status.assert_existing_objects_matched()
    assert_close(other.predict_f(X), before, rtol=1e-14, message="checkpoint")


@every_case_quick_each_class
def test_float32(case: Case) -> None:
    """Built and used with float32 as the default: near the float64 model, in float32."""
    data, X = make_data(case), make_inputs(case, 5)
    model = make_svgp(case)
    expected = model.elbo(data), *model.predict_f(X), *model.predict_f(X, full_cov=True)
    _, expected_gradients = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=0.0)):
        data, X = make_data(case), make_inputs(case, 5)
        assert X.dtype == np.float32
        model = make_svgp(case)
        assert {p.dtype for p in model.parameters} == {tf.float32}
        actual = model.elbo(data), *model.predict_f(X), *model.predict_f(X, full_cov=True)
        cached = model.posterior().predict_f(X)
        _, gradients = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)
    assert {tensor.dtype for tensor in actual + cached} == {tf.float32}
    for tensor, expected_tensor in zip(actual, expected, strict=True):
        assert_close(tensor, expected_tensor, rtol=1e-3)
    assert_close(cached, expected[1:3], rtol=1e-3)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert gradient.dtype == tf.float32
        assert_close(gradient, expected_gradient, rtol=1e-3)
