"""Sums of stationary kernels over the images of a box: the periodized kernel itself.

A squared exponential kernel factorises, and its sum over images is a product over the columns of
theta functions, which converge within a few terms: as images while the kernel is short beside the
period, as a Fourier series while it is long. Matern kernels are mixtures of squared exponential
ones,

    k(r) = int p(t) exp(-r^2 / (4 t)) dt,    p(t) = Gamma(t | nu, 2 nu),

and so are their sums over images. The integral is a sum over a fixed grid in log t; its weights are
positive and add up to one, so that the sum is a valid kernel of the stated variance, however many
points the grid has. No number of images has to be chosen, and no lengthscale is too long.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel, SquaredExponential, Stationary

from ..._arguments import Array
from ...linalg.chunks import map_rows, rows_per_chunk
from .spectral_density import by_parts, matern_order, unit_density

_LOG_ACCURACY = 32.0
"""Errors are below exp(-32), 1e-14 of the variance."""

_SWITCH = 0.0175
"""The width ``t lengthscale^2 / period^2`` where series take over from images: both are exact to
1e-14 there, with seven terms, each a product of a function of the width and one of the lag, and
with three images, each an exponential of both, which is what takes the time."""

_NUM_TERMS = 7


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
    return kernel.variance * theta_mixture(lags / periods, squares, *images_mixture(type(kernel)))


@lru_cache(maxsize=8)
def matern_mixture(nu: float) -> tuple[Array, Array]:
    """The points t and their weights for a Matern kernel of order nu.

    In ``u = log t`` the integrand is ``exp(nu u - 2 nu e^u)``, whose Fourier transform is a gamma
    function: the error of the trapezoidal rule with step h is ``(2 pi / h)^(nu - 1/2) exp(-pi^2 /
    h)`` of the integral, but for a factor near one.
    """
    step = math.pi**2 / (_LOG_ACCURACY + 10)
    # What is left out below is (2 nu e^lower)^nu / Gamma(nu + 1).
    lower = -(_LOG_ACCURACY - math.lgamma(nu + 1)) / nu - math.log(2 * nu)
    upper = math.log((_LOG_ACCURACY + 8 * nu) / (2 * nu))
    u = np.arange(lower, upper + step, step)
    log_weights = nu * u - 2 * nu * np.exp(u)
    weights = np.exp(log_weights - np.max(log_weights))
    return np.exp(u), weights / np.sum(weights)


def images_mixture(kind: type[Stationary]) -> tuple[Array, Array]:
    """The points t and their weights for a class of kernels; one point for the squared exponential.

    :raises ValueError: For a class that is none of the known ones.
    """
    if issubclass(kind, SquaredExponential):
        return np.array([0.5]), np.array([1.0])
    return matern_mixture(matern_order(kind))


def theta_mixture(
    turns: tf.Tensor, squares: tf.Tensor, t: Array, weights: Array, *, constant: bool = True
) -> tf.Tensor:
    """A kernel of variance one, summed over the images of a box, ``[N]``.

    :param turns: Differences, in periods, ``[N, D]``.
    :param squares: The squared lengthscales, in periods, ``[D]``.
    :param t: As of :func:`images_mixture`.
    :param weights: As of :func:`images_mixture`.
    :param constant: Whether the integral over the box is left in; of one column, without it the
        kernel is accurate relative to what is left.
    """

    def of_rows(turns: tf.Tensor, squares: tf.Tensor) -> tf.Tensor:
        product = tf.constant(weights, turns.dtype)[:, None]
        for column in range(turns.shape[1]):
            widths = tf.constant(t, turns.dtype) * squares[column]
            product *= _theta(turns[:, column], widths, constant=constant)
        return tf.reduce_sum(product, axis=0)

    chunk = rows_per_chunk(len(t))  # with fewer rows, the calls take most of the time
    turns -= tf.stop_gradient(tf.round(turns))
    return map_rows(of_rows, turns, [squares], chunk)


def zero_mean_variances(squares: tf.Tensor, t: Array, weights: Array) -> tf.Tensor:
    """:func:`theta_mixture` of one column without its constant, at zero, ``[P]``.

    :param squares: Squared lengthscales, in periods, ``[P]``.
    """
    widths = tf.constant(t, squares.dtype)[:, None] * squares
    zero = tf.zeros([1], squares.dtype)
    values = tf.reshape(_theta(zero, tf.reshape(widths, [-1]), constant=False), tf.shape(widths))
    return tf.linalg.matvec(values, tf.constant(weights, squares.dtype), transpose_a=True)


def _theta(turns: tf.Tensor, widths: tf.Tensor, *, constant: bool = True) -> tf.Tensor:
    """``sum_n exp(-(turn + n)^2 / (4 width))``, ``[Q, N]``.

    :param turns: In ``[-1/2, 1/2]``, ``[N]``.
    :param widths: ``[Q]``.
    :param constant: Whether its integral over a period is left in.
    """
    # The gradient has their squares.
    narrowest = 10 * float(np.sqrt(np.finfo(widths.dtype.as_numpy_dtype).tiny))
    short = tf.clip_by_value(widths, narrowest, _SWITCH)
    long = tf.maximum(widths, _SWITCH)
    images = tf.add_n([tf.exp(-tf.square(turns + n) / (4 * short[:, None])) for n in range(-1, 2)])
    orders = tf.constant(np.arange(1, _NUM_TERMS + 1), turns.dtype)
    decays = 2 * tf.exp(-4 * np.pi**2 * long[:, None] * tf.square(orders))  # [Q, 7]
    waves = tf.cos(2 * np.pi * orders[:, None] * turns)  # [7, N]
    series = tf.matmul(decays, waves)
    if constant:
        series += 1
    else:
        images -= tf.sqrt(4 * np.pi * short)[:, None]
    series *= tf.sqrt(4 * np.pi * long)[:, None]
    return tf.where(widths[:, None] < _SWITCH, images, series)


# Without their constant, and divided by what is left of their variance: whatever the lengthscale
# is, such a kernel of one column has variance one, and its functions integrate to zero over the
# box.

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
