"""Predictions for many rows, in batches, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri

from benchmarks._lib.data import Array


class Predictor:
    """Means and variances of f, [N, P] each; the model's matrices are factorised once.

    :param cached: False for a model that is still being trained: its matrices are then factorised
        for every batch.
    """

    def __init__(self, model: Any, input_dim: int, *, cached: bool = True) -> None:
        import tensorflow as tf

        predicting = model.posterior() if cached else model
        self._predict = tf.function(
            lambda X: predicting.predict_f(X),
            input_signature=[tf.TensorSpec([None, input_dim], tf.float64)],
        )

    def __call__(self, X: Array, batch_size: int = 1_000) -> tuple[Array, Array]:
        means, variances = [], []
        for start in range(0, len(X), batch_size):
            mean, variance = self._predict(X[start : start + batch_size])
            means.append(mean.numpy())
            variances.append(variance.numpy())
        return np.concatenate(means), np.concatenate(variances)


def gaussian_errors(Y: Array, mean: Array, variance: Array) -> dict[str, float]:
    """Root mean squared error and mean negative log density of Gaussian predictions of Y."""
    squared = np.square(Y - mean)
    log_density = -0.5 * (np.log(2.0 * np.pi * variance) + squared / variance)
    return {"rmse": float(np.sqrt(squared.mean())), "nll": -float(log_density.mean())}


def interval_errors(scores: Array) -> dict[str, float]:
    """The share of rows in the central 90% of their predictions, and the root mean square of their
    normal scores z. It is 1 if standard deviations are right."""
    inside = float(np.mean(np.abs(scores) < 1.6449))
    return {"coverage": inside, "z": float(np.sqrt(np.mean(np.square(scores))))}


def student_errors(
    Y: Array, mean: Array, variance: Array, scale: float, freedom: float
) -> tuple[dict[str, float], Array]:
    """`gaussian_errors` under Student-t noise, and the normal scores of the test rows.

    Given the logarithm u of the noise's weight, y is Gaussian with variance ``variance + scale^2 /
    exp(u)``; densities and probabilities are sums over 400 values of u.

    :param mean: the mean of f; `variance` is its variance.
    :param scale: the scale of the noise; `freedom` are its degrees of freedom.
    """
    c = freedom / 2
    width = 45 / c  # outside of it the density of u is below exp(-45) of its maximum
    u, step = np.linspace(
        -width - np.sqrt(2 * width), np.log1p(width + np.sqrt(2 * width)), 400, retstep=True
    )
    masses = step * np.exp(c * (u - np.exp(u)) + c * np.log(c) - gammaln(c))
    density, below = np.zeros_like(Y), np.zeros_like(Y)
    for mass, each in zip(masses, u, strict=True):
        deviation = np.sqrt(variance + scale**2 * np.exp(-each))
        score = (Y - mean) / deviation
        density += mass * np.exp(-np.square(score) / 2) / (np.sqrt(2 * np.pi) * deviation)
        below += mass * ndtr(score)
    squared = np.mean(np.square(Y - mean))
    errors = {"rmse": float(np.sqrt(squared)), "nll": -float(np.mean(np.log(density)))}
    return errors, np.asarray(ndtri(np.clip(below, 1e-12, 1 - 1e-12)))


def class_errors(
    model: Any, X: Array, Y: NDArray[Any], predict: Predictor | None = None
) -> dict[str, float]:
    """Accuracy and mean negative log probability of the classes Y [N, 1]; a Bernoulli likelihood
    has classes 0 and 1. Pass a Predictor of the model if there is one."""
    mean, variance = (predict or Predictor(model, X.shape[1]))(X)
    probabilities = np.asarray(model.likelihood.predict_mean_and_var(X, mean, variance)[0])
    log_density = model.likelihood.predict_log_density(X, mean, variance, Y)
    single = probabilities.shape[1] == 1
    chosen = probabilities[:, 0] > 0.5 if single else np.argmax(probabilities, axis=1)
    accuracy = np.mean(chosen == Y[:, 0])
    return {"accuracy": float(accuracy), "nll": -float(np.mean(log_density))}
