"""Predictions for many rows in batches, and saved models for prediction in other processes."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

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
_FEW_BATCHES = 3
"""So many batches are predicted uncompiled, because compiling would take longer."""


class _Prediction:
    """A prediction function, which is compiled when more than a few batches have been asked for.

    :param specs: The specifications of the rows: X, or X and Y.
    """

    def __init__(self, function: Callable[..., Any], specs: Sequence[tf.TensorSpec]) -> None:
        self.uncompiled, self._specs, self._num_batches = function, specs, 0
        self._compiled: Callable[..., Any] | None = None

    def for_batches(self, number: int) -> Callable[..., Any]:
        """The function for so many more batches, compiled if possible and worthwhile."""
        self._num_batches += number
        if self._compiled is None and self._num_batches > _FEW_BATCHES:
            self._compiled = self.uncompiled  # uncompiled, a function raises its own error
            with contextlib.suppress(Exception):
                self._compiled = _traced(self.uncompiled, *self._specs)
        return self._compiled or self.uncompiled


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

    Results that do not depend on the rows (the cache of the posterior, the compiled function) are
    computed once. A few batches are predicted without compiling, which would take longer. Only a
    batch and the predictions are in memory. Models of GPflow and of this library keep the results
    for the next call, until a setting or a parameter changes.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=4)
    >>> model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
    >>> mean, variance = idm.predict_in_batches(model, np.ones((100_000, 2)))
    >>> mean.shape, variance.shape
    ((100000, 1), (100000, 1))

    :param model: A GPflow model or posterior, a ``DeepGP``, or the object that
        ``tf.saved_model.load`` returns for a saved model. A posterior with a cache is used
        unchanged. If TensorFlow cannot compile the predictions for any number of rows (as with
        Softmax), they run eagerly. The methods of your own model class are called as they are;
        they compute their posterior in every call.
    :param X: Rows ``[N, D]``: an array, a memory-mapped array, or any object with a shape whose
        rows can be sliced.
    :param Y: Targets ``[N, P]`` for "predict_log_density".
    :param method: "predict_f" or "predict_y" for mean and variance, ``[N, P]`` each; or
        "predict_log_density", ``[N]``.
    :param batch_size: The number of rows in a batch; 1,024 by default, divided by the number of
        samples of a ``DeepGP``. Models with sparse sums have a default of their own. Each batch
        needs a few times the memory of its covariances with all inducing variables (or with the
        rows of an exact GP).
    :param progress: Show a progress bar on stderr, if the predictions take more than a second.
    :return: The predictions as arrays.
    :raises ValueError: For rows that are not finite, which the message lists for the first batch
        that has any; for rows that cannot be inputs of the kernel; and for arguments that are wrong
        or do not fit together.
    """
    choice("method", method, _METHODS)
    if hasattr(X, "predict_f") and not hasattr(model, "predict_f"):
        raise ValueError(
            f"model must come before X, found a {type(X).__name__} as X; pass "
            "predict_in_batches(model, X)."
        )
    if batch_size is None:
        batch_size = getattr(model, "rows_of_a_prediction", None)
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
    prediction = _prediction_of(model, method, specs, num_rows)
    function = prediction.for_batches(-(-num_rows // batch_size))
    kernel = getattr(getattr(model, "layer_of_inputs", model), "kernel", None)
    # Uncompiled predictions warn themselves. Of compiled ones, each part warns once.
    watchful = [] if function is prediction.uncompiled else parts_that_warn(kernel)
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
                prediction.uncompiled(given)  # its error may be clearer
                raise
            results.append([part.numpy() for part in tf.nest.flatten(returned)])
            bar.update(len(batch[0]))
    arrays = tuple(np.concatenate(parts) for parts in zip(*results, strict=True))
    return arrays[0] if len(arrays) == 1 else arrays


def _check_batch(
    batch: Sequence[Any], start: int, likelihood: Likelihood | None, kernel: Any
) -> None:
    """Check that predictions can use the rows (X, or X and Y) of a batch, whose first row has the
    number ``start``; a ValueError otherwise."""
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


def _prediction_of(
    model: Any, method: str, specs: list[tf.TensorSpec], num_rows: int
) -> _Prediction:
    """The function of a method, for rows of these specifications. Models of known classes keep it,
    until anything in the model changes.

    :raises ValueError: If the model has no such method.
    """

    def build() -> _Prediction:
        functions = _prediction_functions(model, num_rows)
        if method not in functions:
            raise ValueError(
                f"method must be one that a {type(model).__name__} has, found {method!r}; pass a "
                "model."
            )
        return _Prediction(functions[method], specs)

    keeps = _is_known(model) and isinstance(model, tf.Module)
    if not keeps or isinstance(model, AbstractPosterior):
        return build()
    name = f"{method}, many rows" if _is_for_many(model, num_rows) else method
    found: _Prediction = build_once(model, name, (specs, Values(model)), build)
    return found


def save(model: Any, path: str | os.PathLike[str], *, num_columns: int | None = None) -> None:
    """Save a model for prediction, as a TensorFlow SavedModel.

    ``tf.saved_model.load(path)`` returns an object with functions, wherever TensorFlow runs:
    ``predict_f(Xnew)`` and, if there is a likelihood that has them, ``predict_y(Xnew)`` and
    ``predict_log_density((Xnew, Y))``, for any number of rows ``[N, D]``. Each is also a signature
    for TensorFlow Serving, with inputs "Xnew" and "Y" and outputs "mean", "variance" and
    "log_density"; ``predict_f`` is the default signature.

    The folder holds the cache of the posterior and the parameters that predictions use. It holds no
    q(u), no optimizer and (for models with inducing variables) no data, so training cannot resume
    from it.

    :param model: A GPflow model, a :class:`interdomain.deep.DeepGP`, or a posterior. A posterior
        has no likelihood and only predicts f; if it has a cache, it is saved unchanged.
    :param path: A folder; a previously saved model in it is replaced.
    :param num_columns: The number D of columns of X, if the model does not define it, such as with
        a kernel that selects its columns by ``active_dims``.
    :raises ValueError: If the model does not define D, and ``num_columns`` is None.
    :warns UserWarning: If TensorFlow cannot compile ``predict_y`` or ``predict_log_density`` for
        any number of rows, as with GPflow's Softmax; these functions are left out.
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
    module.variables_used = []  # a SavedModel saves only variables that are attributes
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
    """The results of a function in a dictionary by their names, which TensorFlow Serving needs."""
    if len(inputs) == 2:
        return {"log_density": function(inputs)}
    return dict(zip(("mean", "variance"), function(*inputs), strict=True))


def _traced(function: Callable[..., Any], *specs: tf.TensorSpec) -> Any:
    """The function, traced for X of one specification, or for a pair (X, Y) if there are two."""
    signature = [specs] if len(specs) == 2 else list(specs)
    # The lambda hides the function's options, which the signature would have to name.
    traced = compiled(lambda rows: function(rows), input_signature=signature)
    traced.get_concrete_function()
    return traced


def _prediction_functions(model: Any, num_rows: int = 0) -> dict[str, Callable[..., Any]]:
    """The prediction functions of a model or posterior, by the names of its methods. The cache of
    the posterior, which does not depend on the rows, is computed here.

    :param num_rows: The number of rows to predict, if it is known; a model may have a quicker
        function for many rows.
    :raises ValueError: If the model cannot predict.
    """
    # The predictions of GPflow's CGLB differ from those of its posterior. A deep GP and a loaded
    # SavedModel have no posterior.
    by_f = isinstance(model, GPModel) and type(model).predict_y is GPModel.predict_y
    if isinstance(model, AbstractPosterior):
        return {"predict_f": _predict_f(model)}
    if _is_known(model) and by_f and hasattr(model, "posterior"):
        predict_f = model.predictions_of_many() if _is_for_many(model, num_rows) else None
        predict_f = predict_f or _predict_f(model.posterior(PrecomputeCacheType.TENSOR))
        model = copy.copy(model)
        vars(model).pop(KEPT, None)  # functions compiled with the other predict_f
        model.predict_f = predict_f  # the other methods of the model call it
    functions = {name: getattr(model, name) for name in _METHODS if hasattr(model, name)}
    if not functions:
        raise ValueError(f"model must be a GPflow model or posterior, found {short(model)}.")
    return functions


def _likelihood_of(model: Any) -> Likelihood | None:
    likelihood = getattr(model, "likelihood", None)
    return likelihood if isinstance(likelihood, Likelihood) else None


def _is_known(model: Any) -> bool:
    """Whether the model's class is defined in GPflow or this library. The predictions of a user's
    class may differ from those of its posterior."""
    return type(model).__module__.split(".")[0] in ("gpflow", "interdomain")


def _is_for_many(model: Any, num_rows: int) -> bool:
    """Whether quicker predictions for many rows repay their preparation."""
    return isinstance(model, RowsModel) and num_rows > model.inducing_variable.num_inducing


def _predict_f(posterior: AbstractPosterior) -> Callable[..., Any]:
    """The prediction function of a copy of the posterior, whose cache is computed if there is none.
    The cache is held in variables, because a SavedModel writes variables of any size to files."""
    posterior = copy.copy(posterior)
    if posterior.cache is None:
        posterior.update_cache(PrecomputeCacheType.TENSOR)
    posterior.cache = tuple(tf.Variable(value, trainable=False) for value in posterior.cache or ())
    return posterior.predict_f
