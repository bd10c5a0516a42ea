"""The part `stream`: rows that come in parts, beside all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.mixed_tables import made
from benchmarks._lib.race import Rows
from benchmarks.estimators.judged import Stopwatch

METHODS = ("waves", "splines", "neighbours")
PARTS, ROWS, ROWS_OF_NEIGHBOURS = 20, 50_000, 2_500
"""The number of parts, and the rows of each."""
BOUNDS = {0: (-1.0, 1.0), 1: (-1.0, 1.0)}


def configurations(short: bool) -> Iterator[dict[str, Any]]:
    for method in ("splines", "neighbours") if short else METHODS:
        rows = ROWS_OF_NEIGHBOURS if method == "neighbours" else ROWS
        parts, rows = (3, 200) if short else (PARTS, rows)
        yield {"data": "made", "method": method, "parts": parts, "rows": rows}


def measured(
    *, data: str, method: str, parts: int, rows: int, data_dir: str | None
) -> dict[str, Any]:
    """The largest difference of the predictions, in standard deviations of y."""
    from interdomain.estimators import GPRegressor

    (X, Y), (new, _) = made(parts * rows)
    y, deviation = Y[:, 0], Y.std()

    def regressor() -> Any:
        return GPRegressor(method, bounds=BOUNDS, progress=False)

    watch, streamed = Stopwatch(), regressor()
    for part in np.split(np.arange(len(X)), parts):
        streamed.partial_fit(X[part], y[part])
    found = {"parts": parts, "rows": len(X), **watch.passed("stream")}
    found["peak_bytes"] = peak_of_process()
    given, watch = streamed.predict(new, return_std=True), Stopwatch()
    if method == "neighbours":
        at_once = regressor().partial_fit(X[:rows], y[:rows]).partial_fit(X[rows:], y[rows:])
        found |= watch.passed("once")
        others = at_once.predict(new, return_std=True)
    else:
        others = one_model_predictions(streamed, (X, Y), rows, new)
        found |= watch.passed("once")
        watch = Stopwatch()
        regressor().fit(X, y)
        found |= watch.passed("fit")
    for name, one, other in zip(("mean", "std"), given, others, strict=True):
        found[f"{name}_difference"] = float(np.max(np.abs(one - other)) / deviation)
    return found


def one_model_predictions(streamed: Any, data: Rows, first: int, new: Array) -> tuple[Array, Array]:
    """Predictions of one model of all rows, with the parameters of another estimator.

    :param first: how many rows the scales of y are from; those of X are from the bounds.
    """
    import interdomain as idm

    (X, Y), model = data, streamed.model_
    scaler = idm.tables.TableScaler(X[:first], "columns", bounds=BOUNDS)
    shift, scale = Y[:first].mean(axis=0), Y[:first].std(axis=0)
    one = idm.models.StructuredSGPR(
        (scaler(X), (Y - shift) / scale),
        model.kernel,
        model.inducing_variable,
        mean_function=model.mean_function,
        likelihood=model.likelihood,
    )
    mean, variance = (
        np.asarray(part)
        for part in idm.predict_in_batches(one, scaler(new), method="predict_y", progress=False)
    )
    return (mean * scale + shift)[:, 0], (np.sqrt(variance) * scale)[:, 0]
