"""What holds of every model with several q's in the hands of a user."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.utilities import multiple_assign, parameter_dict, read_values

from interdomain.models.one_pass import OnePassSVGP
from tests.conformance.helpers import assert_close

from .cases import make_data, points


def change(model: OnePassSVGP) -> None:
    for parameter in model.parameters:
        variable = parameter.unconstrained_variable
        variable.assign_add(0.1 * tf.ones_like(variable))


def assert_parameters_are_shown_once(
    model: OnePassSVGP, q_names: Sequence[str], capsys: Any
) -> None:
    """In ``parameter_dict`` and in ``print_summary``; exactly these belong to the q's."""
    model.elbo(make_data(model.num_latent_gps))
    model.posterior().predict_f(points(2))
    parameters = parameter_dict(model)
    assert max(Counter(id(p) for p in parameters.values()).values()) == 1
    assert len(parameters) == len(model.parameters)
    assert {path for path in parameters if path.startswith(".q_")} == set(q_names)
    gpflow.utilities.print_summary(model, fmt="plain")
    lines = capsys.readouterr().out.splitlines()  # values take several
    name = type(model).__name__
    shown = [line.split()[0] for line in lines if line.startswith(f"{name}.")]
    assert sorted(shown) == sorted(name + path for path in parameters)


def assert_copies_are_equal_and_independent(
    model: OnePassSVGP, fresh: Callable[[], OnePassSVGP], folder: Path
) -> None:
    """deepcopy, pickle, freeze, multiple_assign, checkpoints: the same, and independent.

    :param fresh: Makes a model of the same structure.
    """
    X = points(4, seed=8)
    before = model.predict_f(X)
    saved = tf.train.Checkpoint(model=model).save(str(folder / "checkpoint"))
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
        other = fresh()
        change(other)
        if name == "assigned":
            multiple_assign(other, values)
        else:
            status = tf.train.Checkpoint(model=other).restore(saved)
            status.assert_existing_objects_matched()
        assert_close(other.predict_f(X), before, rtol=1e-12, message=name)


def assert_a_compiled_posterior_follows(model: OnePassSVGP, mean: gpflow.Parameter) -> None:
    """Made outside and used inside of a function for any number of rows, its VARIABLE cache follows
    the parameters when updated.

    :param mean: Of one q.
    """
    rows = [tf.TensorSpec([None, 3], gpflow.default_float())]
    X = points(4, seed=8)
    posterior = model.posterior(gpflow.posteriors.PrecomputeCacheType.VARIABLE)
    predict = tf.function(posterior.predict_f, input_signature=rows, autograph=False)
    before = predict(X)
    assert_close(before, model.predict_f(X))
    assert_close(predict(X[:1]), model.predict_f(X[:1]))
    mean.assign(mean + 0.5)
    assert np.max(np.abs(model.predict_f(X)[0] - before[0])) > 1e-3
    assert_close(predict(X), before, rtol=1e-12)
    posterior.update_cache()
    assert_close(predict(X), model.predict_f(X))
    compiled = tf.function(model.predict_f, input_signature=rows, autograph=False)
    assert_close(compiled(X), model.predict_f(X))
