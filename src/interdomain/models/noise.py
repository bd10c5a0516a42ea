"""The Gaussian likelihood of models whose q has a closed form, and its noise variance."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorData
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian

from .._arguments import real_array, short
from .._targets import densities_of


def noise_variance_of(likelihood: Gaussian) -> tf.Tensor:
    """The one variance of a Gaussian likelihood, ``[]`` in float64."""
    somewhere = tf.zeros([1, 1], gpflow.default_float())
    return tf.cast(tf.reshape(likelihood.variance_at(somewhere), []), tf.float64)


def _variance(noise_variance: Any, bound: float) -> Any:
    """A noise variance that GPflow's transform can take: numbers at its lower bound are raised by a
    ten thousandth.

    :raises ValueError: If it is below the bound, or no number.
    """
    if isinstance(noise_variance, (gpflow.Parameter, Function)):
        return noise_variance
    array = real_array("noise_variance", noise_variance, "a number", "pass a positive number")
    if not np.all((array >= bound) & np.isfinite(array)):
        raise ValueError(
            f"noise_variance must be finite and {bound:g} or more, the lower bound of GPflow's "
            f"likelihoods, found {short(noise_variance)}; pass a larger one, or Y in larger units."
        )
    return np.maximum(array, bound * (1 + 1e-4))


def gaussian(
    noise_variance: TensorData | None, likelihood: Gaussian | None, floor: float | None = None
) -> Gaussian:
    """The Gaussian likelihood of a model with q in closed form, from its arguments; of one noise
    variance, which is 1 by default.

    :param floor: The least noise variance of a likelihood that is made here, or a smaller one that
        is given; by default GPflow's.
    :raises ValueError: If both are given, or the likelihood is no Gaussian of one noise variance.
    """
    if likelihood is None:
        usual = gpflow.config.default_likelihood_positive_minimum()
        floor = usual if floor is None else floor
        variance = _variance(1.0 if noise_variance is None else noise_variance, min(floor, usual))
        if isinstance(variance, np.ndarray):
            floor = min(floor, float(np.min(variance)) / (1 + 1e-4))
        likelihood = Gaussian(variance, variance_lower_bound=floor)
    elif noise_variance is not None:
        raise ValueError(
            f"noise_variance: found {noise_variance!r} beside a likelihood, which has its own; "
            "pass one of the two."
        )
    is_own = densities_of(likelihood) is not Gaussian
    noise = None if is_own else likelihood.variance
    noise = likelihood.scale if noise is None and not is_own else noise
    if is_own or isinstance(noise, Function) or int(tf.size(noise)) != 1:
        what = f"{type(likelihood).__name__} with densities of its own" if is_own else "another"
        raise ValueError(
            "likelihood must be gpflow.likelihoods.Gaussian of one noise variance, for which q has "
            f"a closed form, found {what}; pass it to interdomain.models.DualSVGP, whose to_svgp() "
            "minibatches go on with, or to gpflow.models.SVGP."
        )
    return likelihood
