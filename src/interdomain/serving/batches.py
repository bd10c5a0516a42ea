"""Predictions for any number of rows, in bounded memory: ``predict_in_batches``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood

from .._arguments import boolean, choice, integer
from .._progress import bar_of_rows
from ..kernels._scaled_parts import validate_rows
from ..models.targets import (
    check_number_of_targets,
    check_targets,
    takes_missing,
    targets_type,
)
from ..sphere._typing import Array, IntArray
from ..streaming.invalid_rows import InvalidRowsError, named
from .collecting import Collected
from .predictors import METHODS, OF_TARGETS, Predictor
from .rows import ArrayRows, Batch, BoolArray, DatasetRows, make_rows
from .sorts import any_predictor

_BATCH_ENTRIES = 2**21
"""Numbers in the covariances of a batch: 16 MB, of which a prediction holds a few at a time."""

_LEAST, _MOST = 64, 8_192
"""Rows of a batch."""


def predict_in_batches(
    model: Any,
    X: Any,
    *,
    Y: Any = None,
    method: str = "predict_f",
    likelihood: Likelihood | None = None,
    batch_size: int | None = None,
    out: Any = None,
    on_invalid: str = "raise",
    progress: bool = True,
) -> Any:
    """Predict for many rows, a batch at a time.

    What does not depend on the rows (the posterior with its cache, the compiled function) is
    computed once. So this is faster than calling ``model.predict_f`` for parts of the rows, and it
    needs memory only for one batch and the result. The function is traced once, even if the last
    batch is smaller. It is traced again at the next call: for many small calls, use
    ``interdomain.serving.load``, whose functions are already compiled.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=4)
    >>> model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
    >>> mean, variance = idm.serving.predict_in_batches(model, np.ones((100_000, 2)))
    >>> mean.shape, variance.shape
    ((100000, 1), (100000, 1))

    :param model: A GPflow model, a GPflow posterior, what :func:`interdomain.serving.load` returns,
        or what ``tf.saved_model.load`` returns, with a function of the method's name. If a model
        has a ``posterior()``, that is used; a posterior with a cache is used as it is. What
        TensorFlow cannot compile, such as predictions with GPflow's CGLB and Softmax, is called
        eagerly for each batch.
    :param X: Rows ``[N, D]``: an array, a memory-mapped array, or anything with a shape whose rows
        can be sliced; or a ``tf.data.Dataset`` of batches ``[B, D]``, or of tuples of which these
        are the first. It may have no rows.
    :param Y: Targets ``[N, P]`` for "predict_log_density". If X is a Dataset, Y is the second
        element of each tuple.
    :param method: "predict_f" or "predict_y" for mean and variance, ``[N, P]`` each;
        "predict_f_mean" for only the mean of f, ``[N, P]``, which avoids M^2 operations per row; or
        "predict_log_density", ``[N]``.
    :param likelihood: The likelihood for "predict_y" and "predict_log_density" if ``model`` is a
        posterior, which has none.
    :param batch_size: The number of rows in a batch. Except for rounding, it does not change the
        predictions. By default it is chosen such that the covariances of a batch, ``batch_size M
        P`` numbers for M inducing variables (or rows of an exact GP) and P latent GPs, are 2^21
        numbers (16 MB in float64), but between 64 and 8,192 rows. A prediction holds several arrays
        of that size.
    :param out: Arrays to write to, such as ``np.memmap``, for results that do not fit into memory:
        a pair (mean, variance), or a single array for methods that return one.
    :param on_invalid: What to do with rows that have NaN or infinite numbers: "raise" an
        :class:`interdomain.streaming.InvalidRowsError` that lists them all, or "nan", for
        predictions that are NaN in these rows.
    :param progress: Show a progress bar on stderr, if the predictions take more than a second.
    :return: The predictions as arrays; those of ``out``, if it is given.
    :raises ValueError: For X with another number of columns than the model's, for rows that cannot
        be inputs of the kernel, and for arguments that are wrong or do not go together.
    """
    choice("method", method, METHODS)
    choice("on_invalid", on_invalid, ("raise", "nan"))
    boolean("progress", progress)
    if batch_size is not None:
        integer("batch_size", batch_size, at_least=1)
    rows = make_rows(X, Y, with_targets=method == OF_TARGETS)
    predictor = any_predictor(model, method, likelihood)
    _check_columns(predictor, rows.num_columns)
    predict = _Batches(predictor, method, rows)
    if batch_size is None:
        batch_size = _default_batch_size(predictor.row_entries, predict.num_outputs)
    collected = Collected(
        predict.specs, is_single=predict.is_single, num_rows=rows.num_rows, out=out
    )
    with bar_of_rows(method, rows.num_rows, progress=progress) as bar:
        _predict_all(predict, rows, batch_size, collected, on_invalid, bar.update)
    return collected.result()


def _predict_all(
    predict: _Batches,
    rows: ArrayRows | DatasetRows,
    batch_size: int,
    collected: Collected,
    on_invalid: str,
    told: Callable[[int], object],
) -> None:
    """
    :raises InvalidRowsError: If that is to be done about rows; the rest is read for more of them.
    """
    invalid: list[IntArray] = []
    num_read = 0
    for batch in rows.batches(batch_size):
        valid = predict.valid(batch)
        if on_invalid == "raise" and not valid.all():
            invalid.append(num_read + np.flatnonzero(~valid))
        elif not invalid:
            collected.add(predict(batch, valid), valid)
        num_read += len(batch[0])
        told(len(batch[0]))
    if invalid:
        found = np.concatenate(invalid)
        raise InvalidRowsError(
            f"{len(found)} rows have NaN or infinite numbers: {named(found)} (counted from zero); "
            'mend them, or pass on_invalid="nan" for predictions that are NaN there.',
            found,
            argument="X",
        )


class _Batches:
    """A method as a function of batches of NumPy arrays.

    :ivar specs: Of what it returns.
    :ivar is_single: Whether that is one array.
    """

    def __init__(self, predictor: Predictor, method: str, rows: ArrayRows | DatasetRows) -> None:
        self._predictor, self._is_pair = predictor, method == OF_TARGETS
        self._likelihood = predictor.likelihood if self._is_pair else None
        if self._likelihood is not None and rows.num_targets is not None:
            check_number_of_targets(self._likelihood, None, rows.num_targets)
        targets = tf.int64 if rows.targets_are_integers else predictor.dtype
        if self._likelihood is not None:
            targets = targets_type(self._likelihood, targets)
        self._dtypes = [predictor.dtype, predictor.targets_dtype or targets]
        widths = [width for width in (rows.num_columns, rows.num_targets) if width is not None]
        specs = [
            tf.TensorSpec([None, width], dtype, name)
            for width, dtype, name in zip(widths, self._dtypes, ("Xnew", "Y"), strict=False)
        ]
        self._function = predictor.function(method)
        returned = None
        if not predictor.is_compiled:
            with contextlib.suppress(Exception):  # called as it is, it says what is wrong, if it is
                traced = predictor.traced(method, *specs)
                returned = traced.concrete_function().structured_outputs
                self._function = traced
        if returned is None or not all(map(_has_known_shape, tf.nest.flatten(returned))):
            returned = self._of([tf.zeros([1, *spec.shape[1:]], spec.dtype) for spec in specs])
        flat = tf.nest.flatten(returned)
        self.is_single = len(flat) == 1
        self.specs = [tf.TensorSpec([None, *part.shape[1:]], part.dtype) for part in flat]
        self.num_outputs = int(np.prod(self.specs[0].shape[1:], dtype=int))

    def valid(self, batch: Batch) -> BoolArray:
        """Which rows are finite, but for targets that may be missing."""
        wrong = [~np.isfinite(part) for part in batch]
        if takes_missing(self._likelihood):
            wrong[1] = np.isinf(batch[1])
        found: BoolArray = ~np.logical_or.reduce([part.any(axis=1) for part in wrong])
        return found

    def __call__(self, batch: Batch, valid: BoolArray) -> list[Array]:
        """The predictions of the valid rows."""
        if not valid.all():
            batch = tuple(part[valid] for part in batch)
        if not len(batch[0]):
            return [np.empty((0, *s.shape[1:]), s.dtype.as_numpy_dtype) for s in self.specs]
        if self._likelihood is not None:
            check_targets(self._likelihood, batch[1])
        inputs = [
            part.astype(dtype.as_numpy_dtype, copy=False)
            for part, dtype in zip(batch, self._dtypes, strict=False)
        ]
        if self._predictor.kernel is not None:
            validate_rows("X", self._predictor.kernel, inputs[0])
        returned = self._of([tf.convert_to_tensor(part) for part in inputs])
        return [part.numpy() for part in tf.nest.flatten(returned)]

    def _of(self, inputs: list[tf.Tensor]) -> Any:
        return self._function(tuple(inputs) if self._is_pair else inputs[0])


def _has_known_shape(part: Any) -> bool:
    return part.shape.rank is not None and bool(part.shape[1:].is_fully_defined())


def _check_columns(predictor: Predictor, found: int) -> None:
    if predictor.num_columns not in (None, found):
        raise ValueError(
            f"X must have {predictor.num_columns} columns, as many as the {predictor.kind} was "
            f"made for, found {found}; pass the columns that it was trained on, in their order."
        )


def _default_batch_size(row_entries: int | None, num_outputs: int) -> int:
    per_row = 1_024 if row_entries is None else row_entries * max(1, num_outputs)
    return max(_LEAST, min(_MOST, _BATCH_ENTRIES // max(1, per_row)))
