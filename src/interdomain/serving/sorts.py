"""Finds the prediction functions of a model, a posterior, or a loaded model."""

from __future__ import annotations

from typing import Any

import gpflow
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from gpflow.models import BayesianModel, GPModel
from gpflow.posteriors import AbstractPosterior

from .._arguments import instance, short
from .predictors import Predictor, predictor_of


def any_predictor(model: Any, method: str, likelihood: Likelihood | None) -> Predictor:
    """The functions of anything that predicts.

    :raises ValueError: If it does not, or not by this method.
    """
    if isinstance(model, (GPModel, AbstractPosterior)):
        return predictor_of(model, likelihood)
    own = getattr(model, "predictor", None)
    if isinstance(own, Predictor):
        predictor = own
    elif callable(getattr(model, method, None)):
        predictor = _of_functions(model, method)
    else:
        raise ValueError(
            f"model must be a GPflow model or posterior, or what was loaded with a function "
            f"{method!r}, found {short(model)}; interdomain.serving.save writes such."
        )
    return _with_its_own(predictor, likelihood)


def saved_predictor(model: Any, likelihood: Likelihood | None) -> Predictor:
    """The functions of what :func:`interdomain.serving.save` writes.

    :raises ValueError: If it is neither a model nor a posterior.
    """
    own = getattr(model, "predictor", None)
    if isinstance(model, BayesianModel) and isinstance(own, Predictor):
        return _with_its_own(own, likelihood)
    instance("model", model, (GPModel, AbstractPosterior), "a GPflow model or posterior")
    return predictor_of(model, likelihood, keep=True)


def _with_its_own(predictor: Predictor, likelihood: Likelihood | None) -> Predictor:
    """:raises ValueError: If a likelihood was passed as well."""
    if likelihood is None:
        return predictor
    what, remedy = f"a {predictor.kind}, which has its own", "leave it out"
    if predictor.is_compiled:
        what, remedy = "what was loaded", "save it with a likelihood"
    raise ValueError(
        f"likelihood must be None for {what}, found {type(likelihood).__name__}; {remedy}."
    )


def _of_functions(model: Any, method: str) -> Predictor:
    """Of what ``tf.saved_model.load`` returns; a signature says what X is, if there is one."""
    function = getattr(model, method)
    found = getattr(function, "concrete_functions", None) or ()
    specs = tf.nest.flatten([one.structured_input_signature[0] for one in found])
    dtypes = [spec.dtype for spec in specs if isinstance(spec, tf.TensorSpec)]
    shapes = [spec.shape for spec in specs if isinstance(spec, tf.TensorSpec)]
    known = bool(shapes) and shapes[0].rank == 2
    return Predictor(
        kind=type(model).__name__,
        functions={method: function},
        dtype=dtypes[0] if dtypes else tf.as_dtype(gpflow.default_float()),
        num_columns=shapes[0][1] if known else None,
        is_compiled=True,
        targets_dtype=dtypes[1] if len(dtypes) > 1 and len(found) == 1 else None,
    )
