"""Sums of stationary kernels over the images of a box: the periodized kernel itself."""

from __future__ import annotations

import tensorflow as tf
from gpflow.kernels import Kernel, Stationary

from ...linalg.periodic import theta_mixture
from .spectral_density import by_parts, matern_order


def sum_of_images(kernel: Kernel, lags: tf.Tensor, periods: tf.Tensor) -> tf.Tensor:
    """``sum_n k(lag + n * period)`` for all integer vectors n.

    :param kernel: The stationary kernel k.
    :param lags: Differences ``x - x'`` ``[N, D]``.
    :param periods: ``[D]``.
    :return: ``[N]``.
    """
    return by_parts(kernel, _stationary_images, lags, periods)


def _stationary_images(kernel: Stationary, lags: tf.Tensor, periods: tf.Tensor) -> tf.Tensor:
    """A mixture of squared exponential kernels."""
    squares = tf.square(kernel.lengthscales / periods)  # [D]
    return kernel.variance * theta_mixture(lags / periods, squares, matern_order(type(kernel)))
