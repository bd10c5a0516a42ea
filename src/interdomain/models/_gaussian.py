"""The Gaussian likelihood of a collapsed model, from its arguments."""

from __future__ import annotations

import gpflow
import tensorflow as tf
from gpflow.base import TensorData
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian

from .._arguments import number


def gaussian(noise_variance: TensorData | None, likelihood: Gaussian | None) -> Gaussian:
    """One of one noise variance, which is 1 by default.

    :raises ValueError: If both are given, or the noise is something else.
    """
    if likelihood is None:
        if noise_variance is None:
            return Gaussian(1.0)
        if not isinstance(noise_variance, (tf.Variable, gpflow.Parameter)):
            least = gpflow.config.default_likelihood_positive_minimum()
            noise_variance = number("noise_variance", noise_variance, above=least)
        return Gaussian(noise_variance)
    if noise_variance is not None:
        raise ValueError(
            f"noise_variance: found {noise_variance!r} beside a likelihood, which has its own; "
            "pass one of the two."
        )
    if not isinstance(likelihood, Gaussian):
        raise ValueError(
            f"likelihood must be gpflow.likelihoods.Gaussian, found {type(likelihood).__name__}; "
            "for another one use gpflow.models.SVGP with minibatches."
        )
    noise = likelihood.scale if likelihood.variance is None else likelihood.variance
    if isinstance(noise, Function):
        raise ValueError(
            f"likelihood: its noise is a {type(noise).__name__} of X, and the sums over the data "
            "hold for one noise variance; pass Gaussian(variance), or use gpflow.models.SVGP."
        )
    return likelihood
