"""Expected log-likelihoods that are the same in every pass, as a fit without minibatches needs."""

from __future__ import annotations

import tensorflow as tf
from gpflow.likelihoods import Bernoulli, Likelihood, MonteCarloLikelihood
from gpflow.quadrature import ndiag_mc

from .._targets import densities_of

_SEED = (0, 0)


def expectations(
    likelihood: Likelihood, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, Y: tf.Tensor
) -> tf.Tensor:
    """The expected log-likelihood of each row, ``[n]``: what
    ``likelihood.variational_expectations`` returns, but for draws and a logistic link.

    :param mean: Of f, ``[n, L]``.
    :param variance: Of f, ``[n, L]``.
    """
    if isinstance(likelihood, MonteCarloLikelihood):
        return _by_draws(likelihood, X, mean, variance, Y)
    logistic = tf.sigmoid, tf.math.sigmoid, tf.nn.sigmoid
    if densities_of(likelihood) is not Bernoulli or likelihood.invlink not in logistic:
        return likelihood.variational_expectations(X, mean, variance, Y)

    # GPflow takes the logarithm of 1 - sigmoid(f), which is that of zero for f above 37.
    def log_prob(F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return tf.math.log_sigmoid(tf.where(tf.equal(Y, 1), F, -F))

    return tf.reduce_sum(likelihood.quadrature(log_prob, mean, variance, Y=Y), axis=-1)


def _by_draws(
    likelihood: MonteCarloLikelihood,
    X: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    Y: tf.Tensor,
) -> tf.Tensor:
    """By the likelihood's number of Monte Carlo draws, rounded to an even number; the draws are
    the same every time."""
    size = 2 * max(1, likelihood.num_monte_carlo_points // 2)
    half = [size // 2, tf.shape(mean)[0], mean.shape[1]]
    # Each with its opposite: expectations of what is odd vanish, and slopes are less noisy.
    draws = tf.random.stateless_normal(half, _SEED, dtype=mean.dtype)
    draws = tf.concat([draws, -draws], axis=0)

    def log_prob(F: tf.Tensor, X_: tf.Tensor, Y_: tf.Tensor) -> tf.Tensor:
        return likelihood.log_prob(X_, F, Y_)

    values = ndiag_mc(log_prob, size, mean, variance, epsilon=draws, X_=X, Y_=Y)
    return tf.reduce_sum(values, axis=-1)
