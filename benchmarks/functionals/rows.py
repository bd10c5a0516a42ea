"""Training on rows of one functional, predictions of another, and their errors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks._lib.prediction import interval_errors
from benchmarks._lib.race import Rows
from interdomain.functionals import LinearFunctional


def numbered(X: Array, kind: int) -> Array:
    """Rows whose last column is the number of their functional."""
    return np.asarray(np.c_[X, np.full(len(X), float(kind))])


def fitted(
    data: Rows,
    prior: Any,
    features: Any,
    functionals: Sequence[LinearFunctional] = (),
    **arguments: Any,
) -> tuple[Any, dict[str, Any]]:
    """A StructuredSGPR after `fit`, and the figures of its training.

    :param functionals: the functionals of rows, by the numbers in their last column; if there are
        none, rows are values and have no such column.
    """
    started, cpu = time.perf_counter(), time.process_time()
    kernel = idm.kernels.Functional(prior, functionals) if functionals else prior
    model = idm.models.StructuredSGPR(data, kernel, features, progress=False, **arguments)
    fit = idm.fit(model, progress=False)
    return model, {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "pass_seconds": fit.pass_seconds,
        "steps": fit.steps,
        "num_inducing": int(features.num_inducing),
        "all_rows": len(data[0]),
    }


def predicted(model: Any, X: Array, kind: int) -> tuple[Array, Array]:
    """Means and variances of a functional at rows; its number is ignored by models of values."""
    rows = numbered(X, kind) if hasattr(model.kernel, "functionals") else X
    mean, variance = idm.predict_in_batches(model, rows, method="predict_f", progress=False)
    return mean, variance


def errors(truth: Array, mean: Array, variance: Array | None = None) -> dict[str, float]:
    """The root mean squared error, and the coverage of 90% intervals."""
    squared = np.square(truth - mean)
    found = {"rmse": float(np.sqrt(squared.mean()))}
    if variance is None:
        return found
    return found | interval_errors((truth - mean) / np.sqrt(variance))
