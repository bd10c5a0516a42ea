"""Functions of a prior, rows of them, and the rank of the truth at places held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
from scipy.special import ndtr

import interdomain as idm
from benchmarks._lib.data import Array

ROWS, PLACES, NOISE = 40, 8, 0.05


def drawn(rng: np.random.Generator, kernel: Any, X: Array, functions: int) -> Array:
    """Functions of a GP at rows X, as columns."""
    covariance = np.asarray(kernel(X))
    root = np.linalg.cholesky(covariance + 1e-9 * np.trace(covariance) * np.eye(len(X)) / len(X))
    return np.asarray(root @ rng.normal(size=(len(X), functions)))


def one_place_each(mean: Any, variance: Any, truth: Array) -> Array:
    """The probability below the truth, of each column at one of the places."""
    scores = (truth - np.asarray(mean)) / np.sqrt(np.asarray(variance))
    columns = np.arange(truth.shape[1])
    return np.asarray(ndtr(scores[columns % len(truth), columns]))


def exact(
    rng: np.random.Generator,
    functions: int,
    kernel: Any,
    X: Array,
    new: Array,
    condition: Callable[[Any], Any],
    *,
    observe: Callable[[np.random.Generator, Array], Array] | None = None,
) -> Array:
    """Draw functions, condition a model on rows of them, and rank the truth at new places.

    :param observe: Y of f; by default f and Gaussian noise.
    """
    f = drawn(rng, kernel, np.r_[X, new], functions)
    Y = (observe or noisy)(rng, f[: len(X)])
    return one_place_each(*condition((X, Y)).predict_f(new), f[len(X) :])


def noisy(rng: np.random.Generator, f: Array) -> Array:
    return f + NOISE**0.5 * rng.normal(size=f.shape)


def square(rng: np.random.Generator, number: int) -> Array:
    return rng.uniform(-1, 1, (number, 2))


def matern(scale: float = 0.7) -> Any:
    return gpflow.kernels.Matern32(lengthscales=scale)


def box_waves(_: Any = None) -> Any:
    box = idm.kernels.Periodized(matern(0.5), [-2.0, -2.0], [2.0, 2.0])
    return box, idm.inducing_variables.BoxFourierFeatures.for_kernel(box, 60)
