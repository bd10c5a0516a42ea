"""Predictions for any number of rows, in bounded memory: ``predict_in_batches``."""

from __future__ import annotations

import contextlib
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood

from .._arguments import choice, integer, numeric, short
from .._progress import bar_of_rows
from .._targets import check_number_of_targets, check_targets, takes_missing, targets_type
from ..kernels._scaled_parts import validate_rows
from ..regression.rows import InvalidRowsError, named
from ..sphere._typing import Array
from .predictors import (
    METHODS,
    OF_TARGETS,
    columns_and_size,
    likelihood_of,
    loaded_specs,
    prediction_functions,
    traced,
)

_BATCH_ENTRIES = 2**21
"""Numbers in the covariances of a batch: 16 MB, of which a prediction holds a few at a time."""

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
    >>> mean, variance = idm.serving.predict_in_batches(model, np.ones((100_000, 2)))
    >>> mean.shape, variance.shape
    ((100000, 1), (100000, 1))

    :param model: A GPflow model or posterior, a ``DeepGP``, or what ``tf.saved_model.load`` returns
        for a saved one. A posterior with a cache is used as it is. What TensorFlow cannot compile
        for any number of rows, such as predictions with GPflow's Softmax, is called eagerly.
    :param X: Rows ``[N, D]``: an array, a memory-mapped array, or anything with a shape whose rows
        can be sliced.
    :param Y: Targets ``[N, P]`` for "predict_log_density".
    :param method: "predict_f" or "predict_y" for mean and variance, ``[N, P]`` each;
        "predict_f_mean" for only the mean of f, ``[N, P]``, which avoids M^2 operations per row; or
        "predict_log_density", ``[N]``.
    :param likelihood: The likelihood for "predict_y" and "predict_log_density" if ``model`` is a
        posterior, which has none.
    :param batch_size: The number of rows in a batch. By default the covariances of a batch with M
        inducing variables (or rows of an exact GP) are 2^21 numbers, 16 MB in float64, in 64 to
        8,192 rows.
    :param progress: Show a progress bar on stderr, if the predictions take more than a second.
    :return: The predictions as arrays.
    :raises InvalidRowsError: For rows with NaN or infinite numbers, which are listed.
    :raises ValueError: For X with another number of columns than the model's, for rows that cannot
        be inputs of the kernel, and for arguments that are wrong or do not go together.
    """
    choice("method", method, METHODS)
    functions = prediction_functions(model, likelihood)
    if method not in functions:
        raise ValueError(
            f"method must be one that a {type(model).__name__} has, found {method!r}; pass a "
            "model, or a posterior and likelihood=model.likelihood."
        )
    likelihood = likelihood_of(model, likelihood)
    loaded = loaded_specs(model, method)
    columns, size = (loaded[0].shape[1], None) if loaded else columns_and_size(model)
    if batch_size is None:
        batch_size = max(64, min(8_192, _BATCH_ENTRIES // (size or 1_024)))
    integer("batch_size", batch_size, at_least=1)
    given = _rows(X, Y, with_targets=method == OF_TARGETS)
    num_rows, found = map(int, given["X"].shape)
    if columns not in (None, found):
        raise ValueError(
            f"X must have {columns} columns, as many as the {type(model).__name__} was made for, "
            f"found {found}; pass the columns that it was trained on, in their order."
        )
    dtypes = [spec.dtype for spec in loaded] or [tf.as_dtype(gpflow.default_float())]
    if method == OF_TARGETS and not loaded:
        dtypes.append(targets_type(likelihood, getattr(given["Y"], "dtype", None)))
    if method == OF_TARGETS and likelihood is not None:
        check_number_of_targets(likelihood, None, int(given["Y"].shape[1]))
    pairs = zip(given.values(), dtypes, strict=True)
    specs = [tf.TensorSpec([None, part.shape[1]], dtype) for part, dtype in pairs]
    function = functions[method]
    with contextlib.suppress(Exception):  # called as it is, it says what is wrong, if it is
        function = traced(function, *specs)
    kernel = getattr(getattr(model, "layer_of_inputs", model), "kernel", None)
    written: list[Array] = []
    invalid: list[int] = []
    with bar_of_rows(method, num_rows, progress=progress) as bar:
        for start in range(0, max(num_rows, 1), batch_size):  # without rows, a batch without any
            rows = slice(start, start + batch_size)
            batch = [numeric(name, part[rows], _RULE) for name, part in given.items()]
            bar.update(len(batch[0]))
            invalid += [start + row for row in _invalid_rows(batch, likelihood)]
            if invalid:  # the rest is read for more of them
                continue
            if kernel is not None:
                validate_rows("X", kernel, batch[0])
            if method == OF_TARGETS and likelihood is not None:
                check_targets(likelihood, batch[1])
            inputs = [tf.cast(part, dtype) for part, dtype in zip(batch, dtypes, strict=True)]
            returned = function(inputs[0] if len(inputs) == 1 else tuple(inputs))
            values = [part.numpy() for part in tf.nest.flatten(returned)]
            if not written:
                written = [np.empty([num_rows, *part.shape[1:]], part.dtype) for part in values]
            for array, part in zip(written, values, strict=True):
                array[rows] = part
    if invalid:
        raise InvalidRowsError(
            f"{len(invalid)} rows have NaN or infinite numbers: {named(invalid)} (counted from "
            "zero); mend them, or leave them out.",
            np.array(invalid),
            argument="X",
        )
    return written[0] if len(written) == 1 else tuple(written)


def _rows(X: Any, Y: Any, *, with_targets: bool) -> dict[str, Any]:
    """What can be sliced, by name."""
    if (Y is not None) != with_targets:
        raise ValueError(
            f"Y must be the targets for {OF_TARGETS!r}, and None for others, found {short(Y)}."
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


def _invalid_rows(batch: list[Array], likelihood: Any) -> list[int]:
    """Those with numbers that are not finite, but for targets that may be missing."""
    wrong = [~np.isfinite(part) for part in batch]
    if len(batch) == 2 and takes_missing(likelihood):
        wrong[1] = np.isinf(batch[1])
    return list(np.flatnonzero(np.any(np.concatenate(wrong, axis=1), axis=1)))
