"""Predicts for many rows in batches, and saves models for prediction in other processes."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.likelihoods import Likelihood
from gpflow.models import GPModel
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from ._arguments import choice, instance, integer, numeric, short
from ._progress import bar_of_rows
from ._targets import check_number_of_targets, check_targets, takes_missing, targets_type
from ._tracing import Traced, compiled
from .core.inputs import num_columns_of_latents
from .core.latents import latent_gps
from .families.scaled_parts import validate_rows
from .regression.rows import InvalidRowsError, named
from .regression.rows_model import RowsModel

__all__ = ["predict_in_batches", "save"]

_OF_TARGETS = "predict_log_density"
_METHODS = ("predict_f", "predict_y", _OF_TARGETS)
_BATCH_SIZE = 1_024
_RULE = "a matrix with one row per observation"


def predict_in_batches(
    model: Any,
    X: Any,
    *,
    Y: Any = None,
    method: str = "predict_f",
    likelihood: Likelihood | None = None,
    batch_size: int | None = None,
    progress: bool = True,
) -> Any:
    """Predict for many rows, a batch at a time.

    What does not depend on the rows (the cache of the posterior, the compiled function) is computed
    once, and only a batch and the result are in memory.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=4)
    >>> model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
    >>> mean, variance = idm.predict_in_batches(model, np.ones((100_000, 2)))
    >>> mean.shape, variance.shape
    ((100000, 1), (100000, 1))

    :param model: A GPflow model or posterior, a ``DeepGP``, or what ``tf.saved_model.load`` returns
        for a saved one. A posterior with a cache is used as it is. What TensorFlow cannot compile
        for any number of rows, such as predictions with GPflow's Softmax, is called eagerly.
    :param X: Rows ``[N, D]``: an array, a memory-mapped array, or anything with a shape whose rows
        can be sliced.
    :param Y: Targets ``[N, P]`` for "predict_log_density".
    :param method: "predict_f" or "predict_y" for mean and variance, ``[N, P]`` each; or
        "predict_log_density", ``[N]``.
    :param likelihood: The likelihood for "predict_y" and "predict_log_density" if ``model`` is a
        posterior, which has none.
    :param batch_size: The number of rows in a batch; 1,024 by default, divided by the number of
        samples of a ``DeepGP``. Each batch takes a few times the memory of its covariances with
        all inducing variables (or the rows of an exact GP).
    :param progress: Show a progress bar on stderr, if the predictions take more than a second.
    :return: The predictions as arrays.
    :raises InvalidRowsError: For rows with NaN or infinite numbers, which are listed.
    :raises ValueError: For X with another number of columns than the model's, for rows that cannot
        be inputs of the kernel, and for arguments that are wrong or do not go together.
    """
    choice("method", method, _METHODS)
    batch_size = _rows_of_a_batch(model) if batch_size is None else batch_size
    integer("batch_size", batch_size, at_least=1)
    functions, likelihood = _prediction_functions(model, likelihood)
    if method not in functions:
        raise ValueError(
            f"method must be one that a {type(model).__name__} has, found {method!r}; pass a "
            "model, or a posterior and likelihood=model.likelihood."
        )
    given = _rows(X, Y, with_targets=method == _OF_TARGETS)
    dtypes = [tf.as_dtype(gpflow.default_float())]
    if method == _OF_TARGETS:
        dtypes.append(targets_type(likelihood, getattr(given["Y"], "dtype", None)))
        if likelihood is not None:
            check_number_of_targets(likelihood, None, int(given["Y"].shape[1]))
    # Of a loaded SavedModel: its functions say what they take.
    concrete = getattr(functions[method], "concrete_functions", None)
    specs = tf.nest.flatten(concrete[0].structured_input_signature) if concrete else []
    columns = specs[0].shape[1] if specs else _columns_of(model)
    dtypes = [spec.dtype for spec in specs] or dtypes
    num_rows, num_columns = map(int, given["X"].shape)
    if columns not in (None, num_columns):
        raise ValueError(
            f"X must have {columns} columns, as many as the {type(model).__name__} was made for, "
            f"found {num_columns}; pass the columns that it was trained on, in their order."
        )
    pairs = zip(given.values(), dtypes, strict=True)
    specs = [tf.TensorSpec([None, part.shape[1]], dtype) for part, dtype in pairs]
    function = functions[method]
    with contextlib.suppress(Exception):  # called as it is, it says what is wrong, if it is
        function = _traced(function, *specs)
    kernel = getattr(getattr(model, "layer_of_inputs", model), "kernel", None)
    results: list[np.ndarray[Any, Any]] = []
    invalid: list[int] = []
    with bar_of_rows(method, num_rows, progress=progress) as bar:
        for start in range(0, max(num_rows, 1), batch_size):  # without rows, a batch without any
            rows = slice(start, start + batch_size)
            batch = [numeric(name, part[rows], _RULE) for name, part in given.items()]
            bar.update(len(batch[0]))
            wrong = [~np.isfinite(part) for part in batch]
            if method == _OF_TARGETS and takes_missing(likelihood):
                wrong[1] = np.isinf(batch[1])
            invalid += list(start + np.flatnonzero(np.any(np.concatenate(wrong, axis=1), axis=1)))
            if invalid:  # the rest is read for more of them
                continue
            if kernel is not None:
                validate_rows("X", kernel, batch[0])
            if method == _OF_TARGETS and likelihood is not None:
                check_targets(likelihood, batch[1])
            inputs = [tf.cast(part, dtype) for part, dtype in zip(batch, dtypes, strict=True)]
            returned = function(inputs[0] if len(inputs) == 1 else tuple(inputs))
            values = [part.numpy() for part in tf.nest.flatten(returned)]
            if not results:
                results = [np.empty([num_rows, *part.shape[1:]], part.dtype) for part in values]
            for result, part in zip(results, values, strict=True):
                result[rows] = part
    if invalid:
        raise InvalidRowsError(
            f"{len(invalid)} rows have NaN or infinite numbers: {named(invalid)} (counted from "
            "zero); mend them, or leave them out.",
            np.array(invalid),
            argument="X",
        )
    return results[0] if len(results) == 1 else tuple(results)


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    likelihood: Likelihood | None = None,
    num_columns: int | None = None,
) -> None:
    """Save a model for prediction, as a TensorFlow SavedModel.

    ``tf.saved_model.load(path)`` returns its functions, in any process that has TensorFlow:
    ``predict_f(Xnew)`` and, if there is a likelihood that has them, ``predict_y(Xnew)`` and
    ``predict_log_density((Xnew, Y))``, for any number of rows ``[N, D]``. Each is also a signature
    for TensorFlow Serving, with inputs "Xnew" and "Y" and outputs "mean", "variance" and
    "log_density"; ``predict_f`` is the default signature.

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
    functions, likelihood = _prediction_functions(model, likelihood, keep=True)
    columns = _columns_of(model) or num_columns
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
        specs = [X, Y] if name == _OF_TARGETS else [X]
        try:
            traced = _traced(function, *specs)
        except NotImplementedError:  # a likelihood without this prediction
            continue
        except Exception as error:
            raise ValueError(
                f"model: {name} of a {type(model).__name__} cannot be compiled for any number of "
                f"rows ({str(error).strip().splitlines()[0]}); pass a posterior, with "
                "another likelihood or none, or the right num_columns."
            ) from error
        setattr(module, name, traced.function)
        variables += traced.concrete_function().graph.variables
        signatures[name] = _signature(traced.function, specs)
    module.variables_used = variables  # SavedModel wants them in an attribute
    signatures["serving_default"] = signatures["predict_f"]
    tf.saved_model.save(module, str(target), signatures=signatures)


def _rows_of_a_batch(model: Any) -> int:
    """By default; predictions of a deep GP hold all of its samples at once."""
    return max(_BATCH_SIZE // int(getattr(model, "num_prediction_samples", 1)), 1)


def _signature(function: Any, specs: list[tf.TensorSpec]) -> Any:
    """The function with named results, as TensorFlow Serving calls it."""

    def with_names(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        if len(inputs) == 2:
            return {"log_density": function(inputs)}
        return dict(zip(("mean", "variance"), function(*inputs), strict=True))

    return compiled(with_names, input_signature=specs)


def _traced(function: Callable[..., Any], *specs: tf.TensorSpec) -> Traced:
    """The function, traced for X of such a kind; or for a pair (X, Y), if there are two."""

    def of_rows(rows: Any) -> Any:  # without options, which the signature would have to name
        return function(rows)

    traced = Traced(of_rows, input_signature=[specs] if len(specs) == 2 else list(specs))
    traced.concrete_function()
    return traced


def _rows(X: Any, Y: Any, *, with_targets: bool) -> dict[str, Any]:
    """What can be sliced, by name."""
    if (Y is not None) != with_targets:
        raise ValueError(
            f"Y must be the targets for {_OF_TARGETS!r}, and None for others, found {short(Y)}."
        )
    given = {"X": X} if Y is None else {"X": X, "Y": Y}
    for name, part in given.items():
        if hasattr(part, "iloc") or not hasattr(part, "shape"):  # a DataFrame, a list
            given[name] = part = numeric(name, part, _RULE)
        if len(part.shape) != 2:
            raise ValueError(
                f"{name} must be {_RULE}, found shape {tuple(part.shape)}; for one column pass "
                f"{name}[:, None]."
            )
    sizes = [int(part.shape[0]) for part in given.values()]
    if len(set(sizes)) > 1:
        raise ValueError(f"Y must have as many rows as X, {sizes[0]}, found {sizes[1]}.")
    return given


def _prediction_functions(
    model: Any, likelihood: Likelihood | None, *, keep: bool = False
) -> tuple[dict[str, Callable[..., Any]], Likelihood | None]:
    """The functions of a model or posterior, by the names of its methods, and its likelihood. The
    cache of the posterior, which does not depend on the rows, is computed here.

    :param keep: Whether the cache is kept in variables, which a SavedModel writes to files of any
        size. Otherwise it is kept in tensors, which become a part of the graph.
    :raises ValueError: If it cannot predict, or a likelihood is given that is not used.
    """
    own = {name: getattr(model, name) for name in _METHODS if hasattr(model, name)}
    if isinstance(model, AbstractPosterior):
        if likelihood is not None:
            instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
        own = {"predict_f": _predict_f(model, keep)}
    elif likelihood is not None:
        raise ValueError(
            f"likelihood must be None for a {type(model).__name__}, which has its own, found "
            f"{type(likelihood).__name__}; leave it out, or pass model.posterior()."
        )
    elif not own:
        raise ValueError(f"model must be a GPflow model or posterior, found {short(model)}.")
    else:
        held = getattr(model, "likelihood", None)
        likelihood = held if isinstance(held, Likelihood) else None
        if not isinstance(model, GPModel):  # a deep GP, or a loaded SavedModel
            return own, likelihood
        names = [name for name in (*own, "posterior") if hasattr(model, name)]
        mro = type(model).__mro__
        classes = {name: next(kind for kind in mro if name in vars(kind)) for name in names}
        # A subclass may have predictions of its own, which are not those of its posterior.
        kind = classes.get("posterior")
        if kind and (classes["predict_f"] is kind or not issubclass(classes["predict_f"], kind)):
            own["predict_f"] = _predict_f(model.posterior(PrecomputeCacheType.TENSOR), keep)
        # What a class has of GPflow's own goes by predict_f.
        inherited = [name for name in _METHODS[1:] if classes[name] in (GPModel, RowsModel)]
        own = {name: function for name, function in own.items() if name not in inherited}
    if likelihood is None:
        return own, None
    predict_f = own["predict_f"]

    # No lambdas: AutoGraph, which a user's likelihood may need, cannot tell them apart.
    def predict_y(X: tf.Tensor) -> Any:
        return likelihood.predict_mean_and_var(X, *predict_f(X))

    def predict_log_density(data: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        X, Y = data
        mean, variance = predict_f(X)
        return likelihood.predict_log_density(X, mean, variance, Y)

    return {"predict_y": predict_y, _OF_TARGETS: predict_log_density} | own, likelihood


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


def _columns_of(model: Any) -> int | None:
    """The number of columns of X; None if the model does not know it."""
    layer = getattr(model, "f_layers", [model])[0]  # of a deep GP, the first
    columns = getattr(layer, "num_columns", getattr(layer, "input_dim", None))
    if columns is not None:
        return int(columns)
    held = getattr(layer, "inducing_variable", getattr(layer, "X_data", None))
    data = getattr(layer, "data", None)
    if held is None and isinstance(data, (tuple, list)):
        held = data[0]
    if not isinstance(held, InducingVariables):
        return None if held is None else int(held.shape[1])
    with contextlib.suppress(ValueError):  # a kernel of another kind: its latent GPs are not known
        return num_columns_of_latents(latent_gps(layer.kernel, held))
    return None
