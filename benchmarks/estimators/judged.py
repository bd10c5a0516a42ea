"""Errors and seconds of fitted models with scikit-learn's methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks._lib.data import Array
from benchmarks._lib.memory import peak_of_process, resident_bytes
from benchmarks._lib.prediction import gaussian_errors
from benchmarks._lib.race import Rows

LEVELS = (0.5, 0.9, 0.99)
"""The levels of the intervals whose coverage is measured."""
MOST_COUNTED = 10_000
"""The most test rows, drawn at random."""


class Rival:
    """A baseline with the methods of an estimator.

    :param at: a function of rows that returns the mean and the standard deviation of y, or for
        classes 0 and 1 the probability of class 1.
    """

    def __init__(self, at: Callable[[Array], Any]) -> None:
        self._at = at

    def predict(self, X: Array, return_std: bool = False) -> Any:
        mean, deviation = self._at(X)
        return (mean, deviation) if return_std else mean

    def predict_proba(self, X: Array) -> Array:
        probability = self._at(X)
        return np.stack([1 - probability, probability], axis=1)


class Stopwatch:
    """Seconds of the wall clock and CPU seconds since the start."""

    def __init__(self) -> None:
        self._started = time.perf_counter(), time.process_time()

    def passed(self, what: str) -> dict[str, float]:
        """The seconds since the start, named ``what_seconds`` and ``what_cpu``."""
        wall, cpu = self._started
        return {
            f"{what}_seconds": time.perf_counter() - wall,
            f"{what}_cpu": time.process_time() - cpu,
        }


def judged(
    fit: Callable[[], Any], test: tuple[Any, Array], *, classes: bool = False
) -> dict[str, Any]:
    """The errors of a model at test rows, with the seconds and the memory of `fit` and of the
    predictions with standard deviations.

    :param fit: returns the fitted model.
    :param test: rows, in the form that the model takes, and targets [N, 1].
    """
    X, Y = test
    before, watch = resident_bytes(), Stopwatch()
    fitted = fit()
    seconds, watch = watch.passed("fit"), Stopwatch()
    predicted = fitted.predict_proba(X) if classes else fitted.predict(X, return_std=True)
    found = {**seconds, **watch.passed("predict"), "before_bytes": before}
    found["peak_bytes"] = peak_of_process()
    found["cpu_seconds"] = found["fit_cpu"] + found["predict_cpu"]
    if classes:
        true = np.where(Y[:, 0] == 1, predicted[:, 1], predicted[:, 0])
        found["error_rate"] = float(np.mean((predicted[:, 1] > 0.5) != (Y[:, 0] == 1)))
        found["nll"] = -float(np.mean(np.log(np.maximum(true, 1e-15))))
    else:
        mean, deviation = (np.reshape(part, Y.shape) for part in predicted)
        found |= gaussian_errors(Y, mean, np.square(deviation))
        few: Any = slice(None)
        if len(X) > MOST_COUNTED:
            few = np.random.default_rng(0).permutation(len(X))[:MOST_COUNTED]
        found |= coverage(fitted, X[few], *(part[few, 0] for part in (Y, mean, deviation)))
    return {**found, **described(fitted)}


def coverage(fitted: Any, X: Any, y: Array, mean: Array, deviation: Array) -> dict[str, float]:
    """The share of y inside of the intervals of each level, of the estimator or Gaussian."""
    inside = {}
    for level in LEVELS:
        half = deviation * ndtri((1 + level) / 2)
        low, high = mean - half, mean + half
        if hasattr(fitted, "predict_interval"):
            low, high = fitted.predict_interval(X, level)
        inside[f"in_{100 * level:.0f}"] = float(np.mean((low <= y) & (y <= high)))
    return inside


def described(fitted: Any) -> dict[str, Any]:
    """The choice of an estimator, from its report, and the parts of its model."""
    if not hasattr(fitted, "report_"):
        return {}
    head = fitted.report_.partition(":")[0]
    named = head.removeprefix("Take ").removeprefix("Nothing was learnt. The best was ")
    parts = getattr(fitted.model_, "parts", None)
    found = {"chosen": named, "learnt": head.startswith("Take")}
    return found if parts is None else {**found, "parts": str(parts)}


def likelihood_density(fitted: Any, train: Rows, test: Rows) -> Mapping[str, float]:
    """The mean log density by the likelihood of an estimator's model, in units of y."""
    import interdomain as idm

    (X, Y), (X_test, Y_test) = train, test
    mean, deviation = Y.mean(axis=0), Y.std(axis=0)
    rows = idm.tables.TableScaler(X, "columns")(X_test)
    moments = idm.predict_in_batches(fitted.model_, rows, method="predict_f", progress=False)
    likelihood, targets = fitted.model_.likelihood, (Y_test - mean) / deviation
    density = np.asarray(likelihood.predict_log_density(rows, *moments, targets))
    noise = {
        "freedom": float(np.asarray(likelihood.df)),
        "scale": float(np.asarray(likelihood.scale) * deviation[0]),
    }
    return {"nll": float(np.log(deviation[0]) - np.mean(density)), **noise}
