"""The baseline of all models: the log density of held-out rows under a constant f."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.likelihoods import Likelihood
from gpflow.utilities import deepcopy

from .._targets import number_of_latents

_STEPS, _LEAST = 50, 1e-12
"""The largest number of steps of L-BFGS, and the least variance of Y."""


def density_of_the_mean(
    likelihood: Likelihood | None, train: RegressionData, held_out: RegressionData
) -> float:
    """The mean log density of held-out rows under a constant f. The constant and the parameters of
    the likelihood are fitted to the training rows. None stands for Gaussian noise."""
    if likelihood is None:
        mean, variance = np.mean(train[1], axis=0), np.maximum(np.var(train[1], axis=0), _LEAST)
        densities = np.square(held_out[1] - mean) / variance + np.log(2 * np.pi * variance)
        return float(-np.mean(np.sum(densities, axis=1)) / 2)
    own = deepcopy(likelihood)
    rows, others = (
        tuple(tf.constant(part, gpflow.default_float()) for part in pair)
        for pair in (train, held_out)
    )
    latents = number_of_latents(own, rows[1].shape[1])
    constant = tf.Variable(tf.zeros([1, latents], gpflow.default_float()))

    def density(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(own.log_prob(X, tf.repeat(constant, len(X), axis=0), Y))

    variables = [constant, *own.trainable_variables]
    gpflow.optimizers.Scipy().minimize(
        lambda: -density(*rows), variables, compile=False, options={"maxiter": _STEPS}
    )
    return float(density(*others))
