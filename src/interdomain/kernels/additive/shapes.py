"""Stationary kernels of one column, summed over the images of a box and without their constant.

Divided by what is left of their variance: whatever the lengthscale is, the kernel has variance one,
and its functions integrate to zero over the box.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.kernels import Stationary

from ..periodic._images import images_mixture, theta_mixture, zero_mean_variances
from ..periodic.spectral_density import unit_density

_LONGEST_GAUSSIAN = 2.0
"""In periods: of a longer squared exponential kernel one wave is left, and all others are below
1e-100 of it."""

_LONGEST_MATERN = 5.0
"""In periods: of a longer Matern kernel the shares of the waves do not change by more than 2%, and
what is left of its variance would lose digits."""


def wave_variances(kind: type[Stationary], ratios: tf.Tensor, highest: int) -> tf.Tensor:
    """The prior variances of the cosine and of the sine of 1, ..., ``highest`` periods, which are
    equal, ``[P, highest]``; all that there are add up to a half.

    :param kind: ``Matern12``, ``Matern32``, ``Matern52`` or ``SquaredExponential`` of GPflow.
    :param ratios: Lengthscales, in periods, ``[P]``.
    """
    ratios = bounded_ratios(kind, ratios)
    angles = 2 * np.pi * tf.constant(np.arange(1, highest + 1), ratios.dtype)
    densities = unit_density(kind, tf.square(ratios[:, None] * angles), 1)
    variances = zero_mean_variances(tf.square(ratios), *images_mixture(kind))
    return (ratios / variances)[:, None] * densities


def zero_mean_covariances(kind: type[Stationary], ratio: tf.Tensor, lags: tf.Tensor) -> tf.Tensor:
    """The kernel at differences of any shape, in periods.

    :param kind: As of :func:`wave_variances`.
    :param ratio: The lengthscale, in periods, a scalar.
    """
    square = tf.square(bounded_ratios(kind, ratio))[None]
    mixture = images_mixture(kind)
    sums = theta_mixture(tf.reshape(lags, [-1, 1]), square, *mixture, constant=False)
    return tf.reshape(sums, tf.shape(lags)) / zero_mean_variances(square, *mixture)[0]


def bounded_ratios(kind: type[Stationary], ratios: tf.Tensor) -> tf.Tensor:
    """Lengthscales, in periods, as the kernels have them."""
    longest = _LONGEST_MATERN if images_mixture(kind)[0].size > 1 else _LONGEST_GAUSSIAN
    return tf.minimum(ratios, tf.cast(longest, ratios.dtype))
