"""Expected log-likelihoods that are the same in every pass, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
from gpflow.likelihoods import Bernoulli, Likelihood, MonteCarloLikelihood, Ordinal
from gpflow.likelihoods.utils import inv_probit
from gpflow.quadrature import ndiag_mc

from ..._targets import densities_of

_SEED = (0, 0)

_FAR = 1e6
"""The outer edges of the outer bins of ordinal values, in units of sigma. Infinite edges would have
second derivatives that are NaN."""


def expectations(
    likelihood: Likelihood, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, Y: tf.Tensor
) -> tf.Tensor:
    """The expected log-likelihood of each row, ``[n]``: ``likelihood.variational_expectations``,
    with replacements for random draws, ordinal values and logistic links.

    :param mean: The mean of f, ``[n, L]``.
    :param variance: The variance of f, ``[n, L]``.
    """
    if isinstance(likelihood, MonteCarloLikelihood):
        # The likelihood's number of draws is rounded to an even number. Draws are always the same,
        # in pairs of opposite sign: expectations of odd functions vanish; slopes are less noisy.
        size = 2 * max(1, likelihood.num_monte_carlo_points // 2)
        half = [size // 2, tf.shape(mean)[0], mean.shape[1]]
        draws = tf.random.stateless_normal(half, _SEED, dtype=mean.dtype)

        def log_density(F: tf.Tensor, X_: tf.Tensor, Y_: tf.Tensor) -> tf.Tensor:
            return likelihood.log_prob(X_, F, Y_)

        both = tf.concat([draws, -draws], axis=0)
        values = ndiag_mc(log_density, size, mean, variance, epsilon=both, X_=X, Y_=Y)
        return tf.reduce_sum(values, axis=-1)
    if densities_of(likelihood) is Ordinal:
        far = tf.constant([_FAR], mean.dtype)

        def log_bin(F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            edges = likelihood.bin_edges / likelihood.sigma
            ends = [tf.concat(part, axis=0) for part in ((edges, far), (-far, edges))]
            numbers, scaled = tf.cast(Y, tf.int64), F / likelihood.sigma
            left, right = (inv_probit(tf.gather(part, numbers) - scaled) for part in ends)
            return tf.math.log(left - right + 1e-6)

        return tf.reduce_sum(likelihood.quadrature(log_bin, mean, variance, Y=Y), axis=-1)
    logistic = tf.sigmoid, tf.math.sigmoid, tf.nn.sigmoid
    if densities_of(likelihood) is not Bernoulli or likelihood.invlink not in logistic:
        return likelihood.variational_expectations(X, mean, variance, Y)

    # GPflow takes log(1 - sigmoid(f)); for f above 37, 1 - sigmoid(f) is rounded to zero.
    def log_prob(F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return tf.math.log_sigmoid(tf.where(tf.equal(Y, 1), F, -F))

    return tf.reduce_sum(likelihood.quadrature(log_prob, mean, variance, Y=Y), axis=-1)


def derivatives(
    function: Callable[[], tf.Tensor], inputs: Sequence[tf.Tensor], variables: Sequence[tf.Variable]
) -> tuple[tf.Tensor, list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """The value of a function, its gradients by ``inputs``, and, by the P numbers in ``variables``,
    its slopes ``[P]`` and second derivatives ``[P, P]``."""
    zero, size = tf.UnconnectedGradients.ZERO, len(inputs)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([*inputs, *variables])
            value = function()
        gradients = tape.gradient(value, [*inputs, *variables], unconnected_gradients=zero)
        slopes = [tf.reshape(tf.convert_to_tensor(slope), [-1]) for slope in gradients[size:]]
        numbers = [number for slope in slopes for number in tf.unstack(slope)]
    curvatures = [
        tf.reshape(tf.convert_to_tensor(part), [-1])
        for number in numbers
        for part in outer.gradient(number, variables, unconnected_gradients=zero)
    ]
    none = tf.zeros([0], value.dtype)  # a likelihood may have no parameters
    square = tf.reshape(tf.concat([none, *curvatures], axis=0), [len(numbers), len(numbers)])
    return value, gradients[:size], tf.concat([none, *slopes], axis=0), square
