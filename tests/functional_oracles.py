"""Linear functionals of functions, from many values: apart from the library's closed forms."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

Function = Callable[[np.ndarray], np.ndarray]
"""From inputs ``[n, D]`` to values ``[M, n]``."""


def slopes(function: Function, X: np.ndarray, column: int, order: int, step: float) -> np.ndarray:
    """By differences of sixth order."""
    weights = {1: [0, 45, -9, 1], 2: [-245, 270, -27, 2]}[order]
    scale = {1: 60 * step, 2: 180 * step**2}[order]
    move = np.eye(X.shape[1])[column] * step
    total = np.zeros([])
    for number, weight in enumerate(weights):
        ahead, behind = function(X + number * move), function(X - number * move)
        total = total + weight * (ahead + (-1) ** order * behind)
    return total / scale


def means(function: Function, X: np.ndarray, widths: Any, points: int = 30) -> np.ndarray:
    """By the rule of Gauss and Legendre in one column after the other; widths ``[D]`` or
    ``[n, D]``."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return averages(function, X, widths, nodes / 2, weights / 2)


def blurs(function: Function, X: np.ndarray, deviations: Any, points: int = 50) -> np.ndarray:
    """By the trapezoidal rule over 9 deviations on either side."""
    nodes = np.linspace(-9, 9, points)
    weights = np.exp(-(nodes**2) / 2)
    return averages(function, X, deviations, nodes, weights / np.sum(weights))


def averages(
    function: Function, X: np.ndarray, scales: Any, nodes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Of the function at the nodes times scales around X, in one column after the other."""
    scales = np.broadcast_to(scales, X.shape)
    for column in range(X.shape[1]):
        if np.any(scales[:, column]):
            along = np.zeros_like(X)
            along[:, column] = scales[:, column]
            function = partial(_averages, function, nodes, weights, along)
    return function(X)


def _averages(function: Any, nodes: Any, weights: Any, along: Any, X: np.ndarray) -> np.ndarray:
    repeats = len(X) // len(along)
    along = np.tile(along, [repeats, 1])
    X = np.concatenate([X + node * along for node in nodes])
    return np.tensordot(function(X).reshape(-1, len(nodes), len(along)), weights, [1, 0])


def features_of(kernel: Any, inducing_variable: Any) -> Function:
    """The covariances of u and the values of f."""

    def features(X: np.ndarray) -> np.ndarray:
        X = tf.constant(X, gpflow.default_float())
        return np.asarray(gpflow.covariances.Kuf(inducing_variable, kernel, X))

    return features


def acted(prior: Any, inducing_variable: Any, functionals: Any, X: Any) -> np.ndarray:
    """The library's covariances of u and rows with functionals."""
    import interdomain as idm

    X = tf.constant(np.asarray(X, gpflow.default_float()))
    kernel = idm.kernels.Functional(prior, functionals)
    return np.asarray(gpflow.covariances.Kuf(inducing_variable, kernel, X))


def with_numbers(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The rows of all parts, mixed, with the number of the part in the last column."""
    rows = [np.pad(part, [(0, 0), (0, 1)], constant_values=k) for k, part in enumerate(parts)]
    joined = np.concatenate(rows)
    return joined[np.random.default_rng(5).permutation(len(joined))]
