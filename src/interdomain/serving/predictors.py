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
from ..covariances.columns import num_columns_of_any
from ..covariances.latents import latent_gps
from ..inducing_variables.multioutput import num_inducing

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
        return _functions(_cached(model, keep), likelihood)
    if likelihood is not None:
        raise ValueError(
            f"likelihood must be None for a {type(model).__name__}, which has its own, found "
            f"{type(likelihood).__name__}; leave it out, or pass model.posterior()."
        )
    # Of a deep GP, a loaded SavedModel, or a model whose own methods do not use its posterior.
    own = {
        name: _of_rows(getattr(model, name))
        for name in METHODS
        if callable(getattr(model, name, None))
    }
    if not own:
        raise ValueError(f"model must be a GPflow model or posterior, found {short(model)}.")
    functions: dict[str, Callable[..., Any]] = {}
    if "predict_f" in own:
        functions["predict_f_mean"] = lambda X: own["predict_f"](X)[0]
    if isinstance(model, GPModel) and hasattr(model, "posterior"):
        own = {name: call for name, call in own.items() if _replaces_posterior(model, name)}
        if "predict_f" not in own:
            posterior = model.posterior(PrecomputeCacheType.TENSOR)
            functions = _functions(_cached(posterior, keep), model.likelihood)
    return functions | own


def _of_rows(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method without its options, which a signature of TensorFlow would have to name."""

    def of_rows(rows: Any) -> Any:
        return method(rows)

    return of_rows


def _replaces_posterior(model: GPModel, method: str) -> bool:
    """Whether a subclass has a method of its own beside an inherited posterior, as CGLB has."""
    of_method, of_posterior = (
        next(kind for kind in type(model).__mro__ if name in vars(kind))
        for name in (method, "posterior")
    )
    return of_method is not of_posterior and issubclass(of_method, of_posterior)


def _cached(posterior: AbstractPosterior, keep: bool) -> AbstractPosterior:
    """A copy of the posterior with its cache; a cache that is there already stays as it is."""
    posterior = copy.copy(posterior)
    if posterior.cache is None:
        posterior.update_cache(PrecomputeCacheType.TENSOR)
    if keep:
        values = posterior.cache or ()
        posterior.cache = tuple(tf.Variable(value, trainable=False) for value in values)
    return posterior


def _functions(
    posterior: AbstractPosterior, likelihood: Likelihood | None
) -> dict[str, Callable[..., Any]]:
    # AutoGraph, which the code of a user's likelihood may need, has nothing to rewrite in here.
    predict_f = tf.autograph.experimental.do_not_convert(posterior.predict_f)

    def predict_f_mean(X: tf.Tensor) -> tf.Tensor:
        return predict_f(X)[0]

    functions = {"predict_f": predict_f, "predict_f_mean": predict_f_mean}
    if likelihood is None:
        return functions

    def predict_y(X: tf.Tensor) -> Any:
        return likelihood.predict_mean_and_var(X, *predict_f(X))

    def predict_log_density(data: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        X, Y = data
        mean, variance = predict_f(X)
        return likelihood.predict_log_density(X, mean, variance, Y)

    return functions | {"predict_y": predict_y, OF_TARGETS: predict_log_density}


def likelihood_of(model: Any, likelihood: Likelihood | None) -> Likelihood | None:
    """The model's own likelihood, or the one that is passed for a posterior."""
    own = getattr(model, "likelihood", None)
    return own if isinstance(own, Likelihood) else likelihood


def columns_and_size(model: Any) -> tuple[int | None, int | None]:
    """The number of columns of X, and the numbers in the covariances of one row: M times the number
    of latent GPs. None for what the model does not know."""
    if hasattr(model, "f_layers"):
        model = model.f_layers[0]
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
