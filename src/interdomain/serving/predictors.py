"""The prediction functions of models and posteriors, as functions of tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import MultioutputKernel
from gpflow.likelihoods import Likelihood
from gpflow.models import GPModel
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from .._arguments import instance, short
from .._tracing import Traced
from ..covariances.columns import num_columns_of_any
from ..covariances.latents import latent_gps
from ..inducing_variables.multioutput import num_inducing
from ..models.rows_model import RowsModel

METHODS = ("predict_f", "predict_f_mean", "predict_y", "predict_log_density")
"""``predict_f_mean`` is the first result of ``predict_f``; the others are GPflow's methods."""

OF_TARGETS = "predict_log_density"
"""The method that takes a pair (X, Y)."""


def prediction_functions(
    model: Any, likelihood: Likelihood | None = None, *, keep: bool = False
) -> dict[str, Callable[..., Any]]:
    """The functions of a model or posterior, by the names of its methods.

    What does not depend on the rows, the cache of the posterior, is computed here.

    :param likelihood: The likelihood for a posterior, which has none.
    :param keep: Whether the cache is kept in variables, which a SavedModel writes to files of any
        size. Otherwise it is kept in tensors, which become a part of the graph.
    :raises ValueError: If it cannot predict, or a likelihood is given that is not used.
    """
    if isinstance(model, AbstractPosterior):
        if likelihood is not None:
            instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
        return _functions(_predict_f(model, keep), likelihood)
    if likelihood is not None:
        raise ValueError(
            f"likelihood must be None for a {type(model).__name__}, which has its own, found "
            f"{type(likelihood).__name__}; leave it out, or pass model.posterior()."
        )
    own = {name: _of_rows(getattr(model, name)) for name in METHODS if hasattr(model, name)}
    if isinstance(model, GPModel):
        predict_f = own["predict_f"]
        if _posterior_predicts(model):
            predict_f = _predict_f(model.posterior(PrecomputeCacheType.TENSOR), keep)
        # What a class has of GPflow's own goes by predict_f; what a subclass has of its own stays.
        names = [name for name in METHODS[2:] if _defining(model, name) not in (GPModel, RowsModel)]
        return _functions(predict_f, model.likelihood) | {name: own[name] for name in names}
    if not own:  # of a deep GP, or of a loaded SavedModel
        raise ValueError(f"model must be a GPflow model or posterior, found {short(model)}.")
    if "predict_f" in own:
        own.setdefault("predict_f_mean", lambda X: own["predict_f"](X)[0])
    return own


def _of_rows(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method without its options, which a signature of TensorFlow would have to name."""

    def of_rows(rows: Any) -> Any:
        return method(rows)

    return of_rows


def _posterior_predicts(model: GPModel) -> bool:
    """Whether ``predict_f`` is that of the posterior: a subclass may have one of its own, as
    GPflow's CGLB has."""
    if not hasattr(model, "posterior"):
        return False
    of_posterior, of_prediction = (_defining(model, name) for name in ("posterior", "predict_f"))
    return of_prediction is of_posterior or not issubclass(of_prediction, of_posterior)


def _defining(model: GPModel, method: str) -> type:
    return next(kind for kind in type(model).__mro__ if method in vars(kind))


def _predict_f(posterior: AbstractPosterior, keep: bool) -> Callable[..., Any]:
    """The predictions of a copy of the posterior with its cache, which is kept if it is there."""
    posterior = copy.copy(posterior)
    if posterior.cache is None:
        posterior.update_cache(PrecomputeCacheType.TENSOR)
    if keep:
        values = posterior.cache or ()
        posterior.cache = tuple(tf.Variable(value, trainable=False) for value in values)
    predict_f: Callable[..., Any] = posterior.predict_f
    return predict_f


def _functions(
    predict_f: Callable[..., Any], likelihood: Likelihood | None
) -> dict[str, Callable[..., Any]]:
    # No lambdas: AutoGraph, which a user's likelihood may need, cannot tell them apart.
    def mean(X: tf.Tensor) -> tf.Tensor:
        return predict_f(X)[0]

    functions: dict[str, Callable[..., Any]]
    functions = {"predict_f": _of_rows(predict_f), "predict_f_mean": mean}
    if likelihood is None:
        return functions

    def predict_y(X: tf.Tensor) -> Any:
        return likelihood.predict_mean_and_var(X, *predict_f(X))

    def predict_log_density(data: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        X, Y = data
        mean, variance = predict_f(X)
        return likelihood.predict_log_density(X, mean, variance, Y)

    return functions | {"predict_y": predict_y, OF_TARGETS: predict_log_density}


def traced(function: Callable[..., Any], *specs: tf.TensorSpec) -> Traced:
    """The function, traced for such arguments.

    :param specs: Those of X; for the log density, which takes a pair, those of X and Y.
    """
    signature = [specs] if len(specs) == 2 else list(specs)
    found = Traced(function, input_signature=signature)
    found.concrete_function()
    return found


def loaded_specs(model: Any, method: str) -> list[tf.TensorSpec]:
    """The arguments of a method of a loaded SavedModel; none for other models."""
    concrete = getattr(getattr(model, method, None), "concrete_functions", None)
    return tf.nest.flatten(concrete[0].structured_input_signature) if concrete else []


def likelihood_of(model: Any, likelihood: Likelihood | None) -> Likelihood | None:
    """The model's own likelihood, or the one that is passed for a posterior."""
    own = getattr(model, "likelihood", None)
    return own if isinstance(own, Likelihood) else likelihood


def columns_and_size(model: Any) -> tuple[int | None, int | None]:
    """The number of columns of X, and the numbers in the covariances of one row: M times the number
    of latent GPs. None for what the model does not know."""
    if hasattr(model, "f_layers"):  # a deep GP, whose predictions hold all samples at once
        sizes = [columns_and_size(layer)[1] or 0 for layer in model.f_layers]
        samples = int(getattr(model, "num_prediction_samples", 1))
        return model.f_layers[0].input_dim, samples * max(sizes) or None
    held = getattr(model, "inducing_variable", getattr(model, "X_data", None))
    data = getattr(model, "data", None)
    if held is None and isinstance(data, (tuple, list)):
        held = data[0]
    columns = getattr(model, "num_columns", getattr(model, "input_dim", None))
    if isinstance(held, InducingVariables):
        size = int(num_inducing(held))
        columns = _columns_of(model, held) if columns is None else columns
    elif held is not None and len(held.shape) == 2:
        size, columns = (int(length) for length in held.shape)
    else:
        return columns, None
    kernel = model.kernel
    latents = kernel.num_latent_gps if isinstance(kernel, MultioutputKernel) else 1
    return columns, size * int(latents)


def _columns_of(model: Any, inducing_variable: InducingVariables) -> int | None:
    try:
        groups = latent_gps(model.kernel, inducing_variable)
    except ValueError:  # a kernel of another kind: it is not said which latent GPs it is made of
        return None
    return num_columns_of_any(
        (block, group.kernel) for group in groups for block in group.inducing_variables
    )
