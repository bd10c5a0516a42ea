"""Predictions for many rows, in batches, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._lib.data import Array


class Predictor:
    """Means and variances of f, [N, P] each; the model's matrices are factorised once.

    :param cached: pass False for a model that is still being trained: its matrices are then
        factorised for every batch.
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


def class_errors(
    model: Any, X: Array, Y: NDArray[Any], predict: Predictor | None = None
) -> dict[str, float]:
    """Accuracy and mean negative log probability of the classes Y [N, 1] (0 and 1 for a Bernoulli
    likelihood); with a Predictor of the model, if there is one already."""
    mean, variance = (predict or Predictor(model, X.shape[1]))(X)
    probabilities = np.asarray(model.likelihood.predict_mean_and_var(X, mean, variance)[0])
    log_density = model.likelihood.predict_log_density(X, mean, variance, Y)
    single = probabilities.shape[1] == 1
    chosen = probabilities[:, 0] > 0.5 if single else np.argmax(probabilities, axis=1)
    accuracy = np.mean(chosen == Y[:, 0])
    return {"accuracy": float(accuracy), "nll": -float(np.mean(log_density))}
