"""``save``: writes a model or posterior as a SavedModel that predicts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.likelihoods import Likelihood

from .._arguments import integer
from .._targets import targets_type
from .._tracing import compiled
from .predictors import (
    OF_TARGETS,
    columns_and_size,
    likelihood_of,
    prediction_functions,
    traced,
)


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    likelihood: Likelihood | None = None,
    num_columns: int | None = None,
) -> None:
    """Save a model for prediction, as a TensorFlow SavedModel.

    ``tf.saved_model.load(path)`` returns its functions, in any process that has TensorFlow:
    ``predict_f(Xnew)``, ``predict_f_mean(Xnew)`` and, if there is a likelihood that has them,
    ``predict_y(Xnew)`` and ``predict_log_density((Xnew, Y))``, for any number of rows ``[N, D]``.
    Each is also a signature for TensorFlow Serving, with inputs "Xnew" and "Y" and outputs "mean",
    "variance" and "log_density"; ``predict_f`` is the default signature.

    The folder holds the cache of the posterior and the parameters that predictions use, but no
    q(u), optimizer or (for models with inducing variables) data: training cannot be continued from
    it.

    :param model: A GPflow model, a posterior or a :class:`interdomain.deep.DeepGP`. A posterior
        with a cache is saved as it is.
    :param path: A new or empty folder.
    :param likelihood: The likelihood, if ``model`` is a posterior, which has none. Without it only
        predictions of f are saved.
    :param num_columns: The number D of columns of X, if the model does not know it, as with a
        kernel that selects its columns by ``active_dims``.
    :raises ValueError: If there is something at the path already, D is not known, or TensorFlow
        cannot compile the predictions for any number of rows, such as those of GPflow's Softmax.
    """
    target = Path(path)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ValueError(f"path must be a new folder, found {target}; pass another, or delete it.")
    functions = prediction_functions(model, likelihood, keep=True)
    likelihood = likelihood_of(model, likelihood)
    if num_columns is not None:
        integer("num_columns", num_columns, at_least=1)
    columns = columns_and_size(model)[0] or num_columns
    if columns is None or num_columns not in (None, columns):
        raise ValueError(
            f"num_columns must be {columns or 'the number of columns of X'}, found {num_columns}; "
            f"pass X.shape[1] of the rows that the {type(model).__name__} was trained on."
        )
    X = tf.TensorSpec([None, columns], gpflow.default_float(), "Xnew")
    width = getattr(likelihood, "observation_dim", None)
    Y = tf.TensorSpec([None, width], targets_type(likelihood), "Y")
    module, signatures = tf.Module(), {}
    variables: list[tf.Variable] = []
    for name, function in functions.items():
        specs = [X, Y] if name == OF_TARGETS else [X]
        try:
            found = traced(function, *specs)
        except NotImplementedError:  # a likelihood without this prediction
            continue
        except Exception as error:
            raise ValueError(
                f"model: {name} of a {type(model).__name__} cannot be compiled for any number of "
                f"rows ({str(error).strip().splitlines()[0]}); pass a posterior, with "
                "another likelihood or none, or the right num_columns."
            ) from error
        setattr(module, name, found.function)
        variables += found.concrete_function().graph.variables
        signatures[name] = _signature(found.function, specs)
    module.variables_used = variables  # SavedModel wants them in an attribute
    signatures["serving_default"] = signatures["predict_f"]
    tf.saved_model.save(module, str(target), signatures=signatures)


def _signature(function: Any, specs: list[tf.TensorSpec]) -> Any:
    """The function with named results, as TensorFlow Serving calls it."""

    def named(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        if len(inputs) == 2:
            return {"log_density": function(inputs)}
        return dict(zip(("mean", "variance"), tf.nest.flatten(function(*inputs)), strict=False))

    return compiled(named, input_signature=specs)
