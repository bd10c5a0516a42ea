"""Predictions of many rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.data import Array


class Predictor:
    """Means and variances of f, [N, P] each; the model's matrices are factorised once."""

    def __init__(self, model: Any, input_dim: int) -> None:
        import tensorflow as tf

        posterior = model.posterior()
        self._predict = tf.function(
            lambda X: posterior.predict_f(X),
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
