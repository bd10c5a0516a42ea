"""Terms of models of space and time, training, and errors of test rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.prediction import gaussian_errors, interval_errors
from benchmarks._lib.race import Rows
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    ProductInducingVariables,
    SumInducingVariables,
)
from interdomain.kernels import FiniteRank, Periodized

Pair = tuple[Any, Any]
"""A kernel and its features."""


def times(*factors: Pair) -> Pair:
    """The product of factors as a prior of finite rank, and its features. The first factor has the
    variance."""
    kernels = [kernel for kernel, _ in factors]
    for kernel in kernels[1:]:
        gpflow.set_trainable(getattr(kernel, "base_kernel", kernel).variance, False)
    product = gpflow.kernels.Product(kernels)
    features = ProductInducingVariables([features for _, features in factors])
    return FiniteRank(product, features), features


def plus(terms: Sequence[Pair]) -> Pair:
    """The sum of terms."""
    if len(terms) == 1:
        return terms[0]
    kernels, features = zip(*terms, strict=True)
    return gpflow.kernels.Sum(list(kernels)), SumInducingVariables(list(features))


def waves(base: Any, places: Array, columns: list[int], count: int, margin: float) -> Pair:
    """A periodized kernel of columns, and its waves."""
    kernel = Periodized.from_data(base, places, margin=margin, active_dims=columns)
    return kernel, BoxFourierFeatures.for_kernel(kernel, count)


def cycle(base: Any, period: float, column: int, count: int) -> Pair:
    """A kernel of functions that repeat after a period, and its waves."""
    kernel = Periodized.cycle(base, period, active_dims=[column])
    return kernel, BoxFourierFeatures.for_kernel(kernel, count)


def fitted(data: Rows, prior: Pair, **arguments: Any) -> tuple[Any, dict[str, Any]]:
    """A StructuredSGPR after `fit`, and the figures of its training."""
    clock = Clock()
    model = idm.models.StructuredSGPR(data, *prior, progress=False, **arguments)
    fit = idm.fit(model, progress=False, options={"ftol": 1e-6})
    found = {
        **clock.figures(),
        "pass_seconds": fit.pass_seconds,
        "steps": fit.steps,
        "num_inducing": int(model.inducing_variable.num_inducing),
        "all_rows": len(data[0]),
    }
    return model, found


class Clock:
    """Seconds since the start, on the wall and of the CPUs, and the peak memory of the process."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def figures(self) -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - self._wall,
            "cpu_seconds": time.process_time() - self._cpu,
            "peak_bytes": peak_of_process(),
        }


def predicted(model: Any, X: Array, method: str = "predict_y") -> tuple[Array, Array]:
    """Means and variances at rows, ``[n, 1]``."""
    mean, variance = idm.predict_in_batches(model, X, method=method, progress=False)
    return np.asarray(mean), np.asarray(variance)


def errors(Y: Array, mean: Array, variance: Array | None = None) -> dict[str, float]:
    """The root mean squared error, the mean negative log density and the coverage of 90% bands; the
    first alone if predictions have no variance."""
    if variance is None:
        return {"rmse": float(np.sqrt(np.mean(np.square(Y - mean))))}
    return gaussian_errors(Y, mean, variance) | interval_errors((Y - mean) / np.sqrt(variance))
