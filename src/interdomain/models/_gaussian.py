"""The Gaussian likelihood of a model with q in closed form, from its arguments."""

from __future__ import annotations

import gpflow
import tensorflow as tf
from gpflow.base import TensorData
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian

from .._arguments import number
from .._targets import densities_of


def gaussian(noise_variance: TensorData | None, likelihood: Gaussian | None) -> Gaussian:
    """One of one noise variance, which is 1 by default.

    :raises ValueError: If both are given, the densities are not those of GPflow's Gaussian, for
        which the optimal q has a closed form, or the noise is something else.
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
    if densities_of(likelihood) is not Gaussian:
        own = " with densities of its own" * isinstance(likelihood, Gaussian)
        raise ValueError(
            "likelihood must be gpflow.likelihoods.Gaussian or have its densities, for which q has "
            f"a closed form, found {type(likelihood).__name__}{own}; pass it to "
            "interdomain.models.CollapsedSVGP, which fit_collapsed trains and whose to_svgp() "
            "minibatches go on with, or to gpflow.models.SVGP."
        )
    noise = likelihood.scale if likelihood.variance is None else likelihood.variance
    other = None
    if isinstance(noise, Function):
        other = f"a {type(noise).__name__} of X"
    elif int(tf.size(noise)) != 1:
        other = f"{int(tf.size(noise))} variances, one for each column of Y"
    if other is not None:
        raise ValueError(
            f"likelihood: its noise is {other}, and the sums over the data hold for one noise "
            "variance; pass Gaussian(variance), or use interdomain.models.CollapsedSVGP or "
            "gpflow.models.SVGP."
        )
    return likelihood
