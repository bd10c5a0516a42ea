"""The dense variational solution of Student-t noise, as a mixture of Gaussian noises."""

from typing import Any

import gpflow
import numpy as np
import scipy.special
import scipy.stats
import tensorflow as tf

NUM_ROWS, SCALE, DEGREES = 30, 0.3, 3.5


def rows(num_outputs: int = 1, num_rows: int = NUM_ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(num_rows, 2))
    waves = np.sin(X @ rng.normal(size=(2, num_outputs)) * 4)
    Y = waves + 0.2 * rng.standard_t(2.5, size=(num_rows, 1)) * np.ones(num_outputs)
    Y[::7] += 3.0 * np.cos(np.arange(len(Y[::7])))[:, None]
    return X, Y


def local() -> gpflow.kernels.Kernel:
    return gpflow.kernels.Matern32(variance=0.8, lengthscales=[0.4, 0.7])


class Dense:
    """Coordinate ascent over q(f) and q(lambda) by dense algebra, for a covariance K of f.

    :ivar bound: From its definition: expected log densities and divergences.
    """

    def __init__(self, K: Any, Y: Any, given: Any, s: float = SCALE**2, df: float = DEGREES):
        number, outputs = Y.shape
        shape, rate = (df + outputs) / 2, np.full(number, (df + outputs) / 2)
        for _ in range(5_000):
            self.omega = shape / rate
            gain = np.linalg.solve(K + np.diag(s / (given * self.omega)), K).T
            self.mean, self.covariance = gain @ Y, K - gain @ K
            squares = np.square(Y - self.mean).sum(1) + outputs * np.diag(self.covariance)
            new = (df + given * squares / s) / 2
            done = np.allclose(new, rate, rtol=1e-13, atol=0)
            rate = new
            if done:
                break
        self.squares = given * squares
        log_of_lambda = scipy.special.psi(shape) - np.log(rate)
        logs = np.log(given / (2 * np.pi * s)) + log_of_lambda
        expected = np.sum(outputs * logs - given * squares * shape / rate / s) / 2
        _, root = np.linalg.slogdet(self.covariance)
        _, prior = np.linalg.slogdet(K)
        solved = np.linalg.solve(K, np.hstack([self.covariance, self.mean]))
        divergence = outputs * (np.trace(solved[:, :number]) - number + prior - root) / 2
        divergence += np.sum(self.mean * solved[:, number:]) / 2
        entropy = scipy.stats.gamma.entropy(shape, scale=1 / rate)
        half = df / 2
        log_prior = half * np.log(half) - scipy.special.gammaln(half) - half * shape / rate
        log_prior += (half - 1) * log_of_lambda
        self.bound = expected - divergence + np.sum(entropy + log_prior)


class Spread(gpflow.functions.MeanFunction):  # type: ignore[misc]
    def __call__(self, X: Any) -> Any:
        return 0.1 + tf.square(X[:, :1])
