"""Predicts for many rows in batches, and saves models for prediction in other processes."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from gpflow.models import GPModel
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from ._arguments import check_squares, choice, integer, short, sliceable, warn
from ._progress import bar_of_rows
from ._targets import check_number_of_targets, check_targets, takes_missing, targets_type
from ._tracing import compiled
from .core.columns import parts_that_warn, validate_rows
from .core.descriptions import KEPT
from .core.inputs import num_columns_of_model
from .core.kept import Values, build_once
from .models.rows_model import RowsModel
from .models.vecchia_sgpr.posterior import NeighbourPosterior
from .sums.row_batches import check_shapes_of_rows, not_finite

__all__ = ["predict_in_batches", "save"]

_OF_TARGETS = "predict_log_density"
_METHODS = ("predict_f", "predict_y", _OF_TARGETS)
_BATCH_SIZE = 1_024

Functions: TypeAlias = tuple[Callable[..., Any], Callable[..., Any]]
"""A function of predictions, compiled if it can be, and the same function as it is."""


def predict_in_batches(
    model: Any,
    X: Any,
    *,
    Y: Any = None,
    method: str = "predict_f",
    batch_size: int | None = None,
    progress: bool = True,
) -> Any:
    """Predict for many rows, a batch at a time.

    What does not depend on the rows (the cache of the posterior, the compiled function) is computed
    once, and only a batch and the result are in memory. Models of GPflow and of this library keep
    it for the next call, until a parameter or anything else of the model changes.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=4)
    >>> model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
    >>> mean, variance = idm.predict_in_batches(model, np.ones((100_000, 2)))
    >>> mean.shape, variance.shape
    ((100000, 1), (100000, 1))

    :param model: A GPflow model or posterior, a ``DeepGP``, or what ``tf.saved_model.load`` returns
        for a saved one. A posterior with a cache is used as it is. What TensorFlow cannot compile
        for any number of rows, such as predictions with GPflow's Softmax, is called eagerly. Of a
        model class of your own its own methods are called, which compute their posterior anew.
    :param X: Rows ``[N, D]``: an array, a memory-mapped array, or anything with a shape whose rows
        can be sliced.
    :param Y: Targets ``[N, P]`` for "predict_log_density".
    :param method: "predict_f" or "predict_y" for mean and variance, ``[N, P]`` each; or
        "predict_log_density", ``[N]``.
    :param batch_size: The number of rows in a batch; 1,024 by default, divided by the number of
        samples of a ``DeepGP``. Each batch takes a few times the memory of its covariances with
        all inducing variables (or the rows of an exact GP).
    :param progress: Show a progress bar on stderr, if the predictions take more than a second.
    :return: The predictions as arrays.
    :raises ValueError: For rows with NaN or infinite numbers, of which those of a batch are listed;
        for rows that cannot be inputs of the kernel, and for arguments that are wrong or do not go
        together.
    """
    choice("method", method, _METHODS)
    if hasattr(X, "predict_f") and not hasattr(model, "predict_f"):
        raise ValueError(
            f"model must come before X, found a {type(X).__name__} as X; pass "
            "predict_in_batches(model, X)."
        )
    if batch_size is None:  # predictions of a deep GP hold all of its samples at once
        batch_size = max(_BATCH_SIZE // int(getattr(model, "num_prediction_samples", 1)), 1)
    integer("batch_size", batch_size, at_least=1)
    if (Y is not None) != (method == _OF_TARGETS):
        raise ValueError(
            f"Y must be the targets for {_OF_TARGETS!r}, and None for others, found {short(Y)}."
        )
    parts = {"X": X} if Y is None else {"X": X, "Y": Y}
    data = [sliceable(name, part, "rows") for name, part in parts.items()]
    check_shapes_of_rows(data[0], data[-1])
    num_rows = int(data[0].shape[0])
    likelihood, types = _likelihood_of(model), [tf.as_dtype(gpflow.default_float())]
    if Y is not None:
        types.append(targets_type(likelihood, getattr(data[1], "dtype", None)))
        if likelihood is not None:
            check_number_of_targets(likelihood, None, data[1].shape[1])
    specs = [tf.TensorSpec([None, part.shape[1]], t) for part, t in zip(data, types, strict=True)]
    function, as_it_is = _functions(model, method, specs, num_rows)
    kernel = getattr(getattr(model, "layer_of_inputs", model), "kernel", None)
    watchful = parts_that_warn(kernel)  # each warns of the first batch that it has to warn of
    check_rows = getattr(model, "check_rows", lambda X: None)
    results = []
    with bar_of_rows(method, num_rows, progress=progress) as bar:
        for start in range(0, num_rows, batch_size):
            slices = (part[start : start + batch_size] for part in data)
            batch = [np.asarray(sliceable(*p, "rows")) for p in zip(parts, slices, strict=True)]
            _check_batch(batch, start, likelihood, kernel)
            watchful = [part for part in watchful if not part.warn_of_rows(batch[0])]
            check_rows(batch[0])
            inputs = [tf.cast(part, dtype) for part, dtype in zip(batch, types, strict=True)]
            given = inputs[0] if Y is None else tuple(inputs)
            try:
                returned = function(given)
            except tf.errors.InvalidArgumentError:
                as_it_is(given)  # not in a graph, it may say what is wrong
                raise
            results.append([part.numpy() for part in tf.nest.flatten(returned)])
            bar.update(len(batch[0]))
    arrays = tuple(np.concatenate(parts) for parts in zip(*results, strict=True))
    return arrays[0] if len(arrays) == 1 else arrays


def _check_batch(
    batch: Sequence[Any], start: int, likelihood: Likelihood | None, kernel: Any
) -> None:
    """:raises ValueError: For rows (X, or X and Y) with values that predictions cannot take. The
    first of them is row ``start``."""
    X, *targets = batch
    missing = takes_missing(likelihood)
    filled = [np.where(np.isnan(Y), 0, Y) if missing else Y for Y in targets]
    wrong = np.any(~np.isfinite(np.hstack([X, *filled])), axis=1)
    if np.any(wrong):
        what = not_finite(start + np.flatnonzero(wrong))
        raise ValueError(f"X: {what}; mend them, or leave them out.")
    check_squares("X", X, gpflow.default_float())
    if kernel is not None:
        validate_rows("X", kernel, X)
    if likelihood is not None:
        for Y in targets:
            check_targets(likelihood, Y)


def _functions(model: Any, method: str, specs: list[tf.TensorSpec], num_rows: int) -> Functions:
    """The functions of a method, for such rows. With models of known classes they are kept, until a
    parameter or anything else of the model changes.

    :raises ValueError: If the model has no such method.
    """

    def build() -> Functions:
        functions = _prediction_functions(model, num_rows)
        if method not in functions:
            raise ValueError(
                f"method must be one that a {type(model).__name__} has, found {method!r}; pass a "
                "model."
            )
        function = functions[method]
        with contextlib.suppress(Exception):  # called as it is, it says what is wrong, if it is
            return _traced(function, *specs), function
        return function, function

    keeps = _is_known(model) and isinstance(model, tf.Module)
    if not keeps or isinstance(model, AbstractPosterior):
        return build()
    name = f"{method}, many rows" if _is_for_many(model, num_rows) else method
    found: Functions = build_once(model, name, (specs, Values(model)), build)
    return found


def save(model: Any, path: str | os.PathLike[str], *, num_columns: int | None = None) -> None:
    """Save a model for prediction, as a TensorFlow SavedModel.

    ``tf.saved_model.load(path)`` returns its functions, in any process that has TensorFlow:
    ``predict_f(Xnew)`` and, if there is a likelihood that has them, ``predict_y(Xnew)`` and
    ``predict_log_density((Xnew, Y))``, for any number of rows ``[N, D]``. Each is also a signature
    for TensorFlow Serving, with inputs "Xnew" and "Y" and outputs "mean", "variance" and
    "log_density"; ``predict_f`` is the default signature.

    The folder holds the cache of the posterior and the parameters that predictions use, but no
    q(u), optimizer or (for models with inducing variables) data: training cannot be continued from
    it.

    :param model: A GPflow model or a :class:`interdomain.deep.DeepGP`; or a posterior, which has no
        likelihood and predicts f alone. A posterior with a cache is saved as it is.
    :param path: A folder; what was saved in it before is replaced.
    :param num_columns: The number D of columns of X, if the model does not know it, as with a
        kernel that selects its columns by ``active_dims``.
    :raises ValueError: If D is not known.
    :warns UserWarning: If TensorFlow cannot compile ``predict_y`` or ``predict_log_density`` for
        any number of rows, as with GPflow's Softmax: these are left out.
    """
    if isinstance(model, NeighbourPosterior) or getattr(model, "has_neighbours", False):
        raise ValueError(
            f"model: a {type(model).__name__} looks up neighbours among its rows, which a "
            "SavedModel cannot; keep its data and its parameters "
            "(gpflow.utilities.parameter_dict), and build it again."
        )
    functions, likelihood = _prediction_functions(model), _likelihood_of(model)
    columns = num_columns or num_columns_of_model(model)
    if columns is None:
        raise ValueError(
            "num_columns must be the number of columns of X, found None; pass X.shape[1] of the "
            f"rows that the {type(model).__name__} was trained on."
        )
    X = tf.TensorSpec([None, columns], gpflow.default_float(), "Xnew")
    width = getattr(likelihood, "observation_dim", None)
    Y = tf.TensorSpec([None, width], targets_type(likelihood), "Y")
    module, signatures = tf.Module(), {}
    module.variables_used = []  # SavedModel wants them in an attribute
    for name, function in functions.items():
        specs = [X, Y] if name == _OF_TARGETS else [X]
        try:
            traced = _traced(function, *specs)
        except Exception as error:
            if name == "predict_f":
                raise
            warn(f"model: {name} is left out, as it cannot be compiled: {str(error).strip()[:200]}")
            continue
        setattr(module, name, traced)
        module.variables_used += traced.get_concrete_function().graph.variables
        signatures[name] = compiled(partial(_with_names, traced), input_signature=specs)
    signatures["serving_default"] = signatures["predict_f"]
    tf.saved_model.save(module, os.fspath(path), signatures=signatures)


def _with_names(function: Any, *inputs: tf.Tensor) -> dict[str, tf.Tensor]:
    """The results of a function by their names, as TensorFlow Serving calls it."""
    if len(inputs) == 2:
        return {"log_density": function(inputs)}
    return dict(zip(("mean", "variance"), function(*inputs), strict=True))


def _traced(function: Callable[..., Any], *specs: tf.TensorSpec) -> Any:
    """The function, traced for X of such a kind; or for a pair (X, Y), if there are two."""
    signature = [specs] if len(specs) == 2 else list(specs)
    # Without the function's options, which the signature would have to name.
    traced = compiled(lambda rows: function(rows), input_signature=signature)
    traced.get_concrete_function()
    return traced


def _prediction_functions(model: Any, num_rows: int = 0) -> dict[str, Callable[..., Any]]:
    """The functions of a model or posterior, by the names of its methods. The cache of the
    posterior, which does not depend on the rows, is computed here.

    :param num_rows: Of how many rows the predictions are made, if that is known: there may be
        quicker ones for many.
    :raises ValueError: If it cannot predict.
    """
    # GPflow's CGLB has predictions that are not those of its posterior. A deep GP, and a loaded
    # SavedModel, have no posterior.
    by_f = isinstance(model, GPModel) and type(model).predict_y is GPModel.predict_y
    if isinstance(model, AbstractPosterior):
        return {"predict_f": _predict_f(model)}
    if _is_known(model) and by_f and hasattr(model, "posterior"):
        predict_f = model.predictions_of_many() if _is_for_many(model, num_rows) else None
        predict_f = predict_f or _predict_f(model.posterior(PrecomputeCacheType.TENSOR))
        model = copy.copy(model)
        vars(model).pop(KEPT, None)  # what was compiled for the other predict_f
        model.predict_f = predict_f  # which its other methods call
    functions = {name: getattr(model, name) for name in _METHODS if hasattr(model, name)}
    if not functions:
        raise ValueError(f"model must be a GPflow model or posterior, found {short(model)}.")
    return functions


def _likelihood_of(model: Any) -> Likelihood | None:
    likelihood = getattr(model, "likelihood", None)
    return likelihood if isinstance(likelihood, Likelihood) else None


def _is_known(model: Any) -> bool:
    """Whether the model's class is of GPflow or this library. The predictions of a user's class may
    differ from its posterior."""
    return type(model).__module__.split(".")[0] in ("gpflow", "interdomain")


def _is_for_many(model: Any, num_rows: int) -> bool:
    """Whether quicker predictions for many rows are worth their preparation."""
    return isinstance(model, RowsModel) and num_rows > model.inducing_variable.num_inducing


def _predict_f(posterior: AbstractPosterior) -> Callable[..., Any]:
    """The predictions of a copy of the posterior with its cache, which is kept if it is there: in
    variables, which a SavedModel writes to files of any size."""
    posterior = copy.copy(posterior)
    if posterior.cache is None:
        posterior.update_cache(PrecomputeCacheType.TENSOR)
    posterior.cache = tuple(tf.Variable(value, trainable=False) for value in posterior.cache or ())
    return posterior.predict_f
