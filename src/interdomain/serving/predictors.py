"""The prediction functions of models, posteriors and loaded models, as functions of tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import gpflow
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, MultioutputKernel
from gpflow.likelihoods import Likelihood
from gpflow.models import GPModel
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from .._arguments import instance
from .._tracing import Traced
from ..covariances.columns import num_columns_of_any
from ..covariances.latents import latent_gps
from ..inducing_variables.multioutput import num_inducing
from ..models.rows_model import RowsModel

Function: TypeAlias = Callable[..., Any]

METHODS = ("predict_f", "predict_f_mean", "predict_y", "predict_log_density")
"""``predict_f_mean`` is the first result of ``predict_f``; the others are GPflow's methods."""

FULL_COV = "predict_f_full_cov"
"""``predict_f`` with ``full_cov=True``."""

OF_TARGETS = "predict_log_density"
"""The method that takes a pair (X, Y)."""


@dataclass(frozen=True)
class Predictor:
    """Functions that predict, and what is known about their inputs.

    :ivar kind: The class of the object that predicts, for messages.
    :ivar functions: The functions by name. They take X ``[N, D]`` in ``dtype``; that of the log
        density takes a pair (X, Y).
    :ivar dtype: The type of X.
    :ivar num_columns: The number D of columns of X; None if it is not known.
    :ivar row_entries: The numbers in the covariances of one row: M times the number of latent GPs.
    :ivar kernel: Checks rows, where there is one.
    :ivar is_compiled: Whether the functions are graphs already.
    :ivar targets_dtype: That of Y, where it is fixed.
    :ivar likelihood: Says which targets there are; None if it is not at hand.
    """

    kind: str
    functions: Mapping[str, Function]
    dtype: tf.DType
    num_columns: int | None = None
    row_entries: int | None = None
    kernel: Kernel | None = None
    is_compiled: bool = False
    targets_dtype: tf.DType | None = None
    likelihood: Likelihood | None = None

    def function(self, method: str) -> Function:
        """:raises ValueError: If there is none of this name."""
        if method in self.functions:
            return self.functions[method]
        remedy = (
            "save it with likelihood=model.likelihood"
            if self.is_compiled
            else "pass the model, or likelihood=model.likelihood"
        )
        raise ValueError(
            f"method must be one that a {self.kind} has without a likelihood, found {method!r}; "
            f"{remedy}."
        )

    def traced(self, method: str, *specs: tf.TensorSpec) -> Traced:
        """The compiled function.

        :param specs: Of X; for the log density those of X and Y.
        """
        signature = [specs] if method == OF_TARGETS else list(specs)
        return Traced(lambda function: function, self.function(method), input_signature=signature)


def predictor_of(
    model: GPModel | AbstractPosterior, likelihood: Likelihood | None = None, *, keep: bool = False
) -> Predictor:
    """The functions of a model or posterior. The cache of the posterior is computed here.

    :param likelihood: The likelihood for a posterior, which has none.
    :param keep: Whether the cache is kept in variables, which a SavedModel writes to files of any
        size. Otherwise it is kept in tensors, which become a part of the graph.
    :raises ValueError: If a likelihood is given for a model, which has its own.
    """
    if likelihood is not None:
        instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
    if isinstance(model, AbstractPosterior):
        predict_f = _cached(model, keep).predict_f
        functions = _functions(predict_f, likelihood)
        return _predictor(model, model.X_data, functions, likelihood)
    if likelihood is not None:
        raise ValueError(
            f"likelihood must be None for a {type(model).__name__}, which has its own, found "
            f"{type(likelihood).__name__}; leave it out, or pass model.posterior()."
        )
    predict_f = model.predict_f
    if _posterior_predicts(model):
        predict_f = _cached(model.posterior(PrecomputeCacheType.TENSOR), keep).predict_f
    functions = dict(_functions(predict_f, model.likelihood))
    for method in ("predict_y", "predict_log_density"):
        if _defining(model, method) not in (GPModel, RowsModel):  # these go by predict_f
            functions[method] = getattr(model, method)
    held = getattr(model, "inducing_variable", None)
    data = getattr(model, "data", None)
    if held is None and isinstance(data, (tuple, list)):
        held = data[0]
    return _predictor(model, held, functions, model.likelihood)


def _posterior_predicts(model: GPModel) -> bool:
    """Whether ``predict_f`` is that of the posterior: a subclass may have one of its own, as
    GPflow's CGLB has."""
    if not hasattr(model, "posterior"):
        return False
    of_posterior, of_prediction = (_defining(model, name) for name in ("posterior", "predict_f"))
    return of_prediction is of_posterior or not issubclass(of_prediction, of_posterior)


def _defining(model: GPModel, method: str) -> type:
    return next(kind for kind in type(model).__mro__ if method in vars(kind))


def _cached(posterior: AbstractPosterior, keep: bool) -> AbstractPosterior:
    """The posterior with its cache; a copy, if the cache is not there or has to be in variables."""
    if posterior.cache is None:
        posterior = copy.copy(posterior)
        posterior.update_cache(PrecomputeCacheType.TENSOR)
    if keep:
        values = posterior.cache or ()
        posterior = copy.copy(posterior)
        posterior.cache = tuple(tf.Variable(value, trainable=False) for value in values)
    return posterior


def _functions(predict_f: Function, likelihood: Likelihood | None) -> Mapping[str, Function]:
    # No lambdas: AutoGraph, which a user's likelihood may need, cannot tell them apart.
    def mean_and_variance(X: tf.Tensor) -> Any:
        return predict_f(X)

    def mean(X: tf.Tensor) -> tf.Tensor:
        return predict_f(X)[0]

    def mean_and_covariance(X: tf.Tensor) -> Any:
        return predict_f(X, full_cov=True)

    functions: dict[str, Function] = {
        "predict_f": mean_and_variance,
        "predict_f_mean": mean,
        FULL_COV: mean_and_covariance,
    }
    if likelihood is None:
        return functions

    def predict_y(X: tf.Tensor) -> Any:
        mean, variance = predict_f(X)
        return likelihood.predict_mean_and_var(X, mean, variance)

    def predict_log_density(data: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        X, Y = data
        mean, variance = predict_f(X)
        return likelihood.predict_log_density(X, mean, variance, Y)

    return functions | {"predict_y": predict_y, OF_TARGETS: predict_log_density}


def _predictor(
    model: GPModel | AbstractPosterior,
    held: Any,
    functions: Mapping[str, Function],
    likelihood: Likelihood | None,
) -> Predictor:
    """
    :param held: What the model predicts from: inducing variables, or rows ``[N, D]``.
    """
    kernel = model.kernel
    size, num_columns = None, getattr(model, "num_columns", None)
    if isinstance(held, InducingVariables):
        size = num_inducing(held)
        if num_columns is None:
            num_columns = _columns_of(held, kernel)
    elif held is not None and len(held.shape) == 2:
        size, num_columns = held.shape
    latents = kernel.num_latent_gps if isinstance(kernel, MultioutputKernel) else 1
    return Predictor(
        kind=type(model).__name__,
        functions=functions,
        dtype=tf.as_dtype(gpflow.default_float()),
        num_columns=None if num_columns is None else int(num_columns),
        row_entries=None if size is None else int(size) * int(latents),
        kernel=kernel,
        likelihood=likelihood,
    )


def _columns_of(inducing_variable: InducingVariables, kernel: Kernel) -> int | None:
    try:
        groups = latent_gps(kernel, inducing_variable)
    except ValueError:  # a kernel of another kind: it is not said which latent GPs it is made of
        return None
    return num_columns_of_any(
        (block, group.kernel) for group in groups for block in group.inducing_variables
    )
