"""Functions of period one: waves, and Matern kernels summed over their images.

A squared exponential kernel factorises, and its sum over images is a product over the columns of
theta functions. A theta function needs few terms: images if the lengthscale is short relative to
the period, a Fourier series if it is long. Matern kernels are mixtures of squared exponential
kernels,

    k(r) = int p(t) exp(-r^2 / (4 t)) dt,    p(t) = Gamma(t | nu, 2 nu),

and so are their sums over images. The integral is computed as a sum over a fixed grid in log t. Its
weights are positive and add up to one, so the sum is a valid kernel of the stated variance for any
number of points. No number of images has to be chosen, and no lengthscale is too long. The squared
exponential kernel is the limit of an infinite nu, with one t.
"""

from __future__ import annotations

import math
import operator
from functools import lru_cache, reduce

import numpy as np
import tensorflow as tf

from .._arguments import Array, IntArray
from .chunks import map_rows, rows_per_chunk

_LOG_ACCURACY = 32.0
"""Minus the log of the accuracy: errors are below exp(-32), 1e-14 of the variance."""

_SWITCH = 0.0175
"""The width ``t lengthscale^2 / period^2`` above which series replace images. At this width, seven
terms of the series and three images are exact to 1e-14. A term is a function of the width times a
function of the lag. An image is an exponential of both, and takes most of the time."""

_NUM_TERMS = 7


def table(turns: tf.Tensor, orders: IntArray) -> tf.Tensor:
    """The constant, cosines and sines of numbers of periods, ``[1 + 2 J, N]``: orthonormal
    functions over a period, times the root of the period.

    :param turns: ``(x - lower) / period``, ``[N]``.
    :param orders: Numbers of periods, 1 or more, increasing, ``[J]``.
    """
    ones = tf.ones_like(turns)[None]
    if not len(orders):
        return ones
    angles = 2 * np.pi * (turns - tf.stop_gradient(tf.floor(turns)))[None]
    if np.array_equal(orders, np.arange(1, len(orders) + 1)):
        # One cosine and one sine are computed; sums of angles give the others. Each step doubles
        # the number of multiples, so that few operations are sequential.
        cosines, sines = tf.cos(angles), tf.sin(angles)
        while (count := cosines.shape[0]) < len(orders):
            more = min(count, len(orders) - count)
            c, s, c_last, s_last = cosines[:more], sines[:more], cosines[-1:], sines[-1:]
            cosines, sines = (
                tf.concat([cosines, c * c_last - s * s_last], axis=0),
                tf.concat([sines, s * c_last + c * s_last], axis=0),
            )
    else:
        multiples = tf.constant(orders, turns.dtype)[:, None] * angles
        cosines, sines = tf.cos(multiples), tf.sin(multiples)
    pairs = np.sqrt(2) * tf.stack([cosines, sines], axis=1)
    return tf.concat([ones, tf.reshape(pairs, [2 * len(orders), tf.shape(turns)[0]])], axis=0)


def products(turns: tf.Tensor, functions: IntArray, factor: float = 1.0) -> tf.Tensor:
    """The values ``[M, N]`` of features ``[M, D]``, times the square root of the box's volume and a
    factor. ``turns`` ``[N, D]`` are the inputs, in periods from the lower end of the box."""
    rows = []
    for column, numbers in enumerate(functions.T):
        orders = np.unique((numbers[numbers > 0] + 1) // 2)  # only those that occur
        places = np.searchsorted(orders, (numbers + 1) // 2)
        places = np.where(numbers > 0, 2 * places + 1 + (numbers % 2 == 0), 0)
        waves = table(turns[:, column], orders)
        rows.append(tf.gather(waves if column else factor * waves, places))
    return reduce(operator.mul, rows)


@lru_cache(maxsize=8)
def matern_mixture(nu: float) -> tuple[Array, Array]:
    """The points t and their weights for a Matern kernel of order nu; one point for an infinite nu.

    In ``u = log t`` the integrand is ``exp(nu u - 2 nu e^u)``, whose Fourier transform is a gamma
    function. So the error of the trapezoidal rule with step h, relative to the integral, is
    ``(2 pi / h)^(nu - 1/2) exp(-pi^2 / h)``, up to a factor near one.
    """
    if math.isinf(nu):
        return np.array([0.5]), np.array([1.0])
    step = math.pi**2 / (_LOG_ACCURACY + 10)
    # The integral below ``lower`` is (2 nu e^lower)^nu / Gamma(nu + 1).
    lower = -(_LOG_ACCURACY - math.lgamma(nu + 1)) / nu - math.log(2 * nu)
    upper = math.log((_LOG_ACCURACY + 8 * nu) / (2 * nu))
    u = np.arange(lower, upper + step, step)
    log_weights = nu * u - 2 * nu * np.exp(u)
    weights = np.exp(log_weights - np.max(log_weights))
    return np.exp(u), weights / np.sum(weights)


def matern_density(nu: float, squares: tf.Tensor, dim: int) -> tf.Tensor:
    """The spectral density of a Matern kernel with variance one and lengthscales one.

    :param squares: Squared norms of angular frequencies.
    :param dim: The number of columns.
    """
    if math.isinf(nu):
        return (2 * np.pi) ** (dim / 2) * tf.exp(-squares / 2)
    log_factor = (
        dim * math.log(2 * math.sqrt(math.pi))
        + math.lgamma(nu + dim / 2)
        - math.lgamma(nu)
        + nu * math.log(2 * nu)
    )
    return math.exp(log_factor) * (2 * nu + squares) ** (-nu - dim / 2)


def theta_mixture(
    turns: tf.Tensor, squares: tf.Tensor, nu: float, *, constant: bool = True
) -> tf.Tensor:
    """A Matern kernel of variance one, summed over the images of a box, ``[N]``.

    :param turns: Differences, in periods, ``[N, D]``.
    :param squares: The squared lengthscales, in periods, ``[D]``.
    :param constant: Whether to keep the integral over the box. In one column, the kernel without it
        is accurate relative to the rest.
    """

    t, weights = matern_mixture(nu)

    def row_values(turns: tf.Tensor, squares: tf.Tensor) -> tf.Tensor:
        product = tf.constant(weights, turns.dtype)[:, None]
        for column in range(turns.shape[1]):
            widths = tf.constant(t, turns.dtype) * squares[column]
            product *= _theta(turns[:, column], widths, constant=constant)
        return tf.reduce_sum(product, axis=0)

    chunk = rows_per_chunk(len(t))  # with fewer rows, the calls take most of the time
    turns -= tf.stop_gradient(tf.round(turns))
    return map_rows(row_values, turns, [squares], chunk)


def _zero_mean_variances(squares: tf.Tensor, nu: float) -> tf.Tensor:
    """The variance of :func:`theta_mixture` in one column without the constant, ``[P]``.

    :param squares: Squared lengthscales, in periods, ``[P]``.
    """
    t, weights = matern_mixture(nu)
    widths = tf.constant(t, squares.dtype)[:, None] * squares
    zero = tf.zeros([1], squares.dtype)
    values = tf.reshape(_theta(zero, tf.reshape(widths, [-1]), constant=False), tf.shape(widths))
    return tf.linalg.matvec(values, tf.constant(weights, squares.dtype), transpose_a=True)


def _theta(turns: tf.Tensor, widths: tf.Tensor, *, constant: bool = True) -> tf.Tensor:
    """The theta function ``sum_n exp(-(turn + n)^2 / (4 width))``, ``[Q, N]``.

    :param turns: In ``[-1/2, 1/2]``, ``[N]``.
    :param widths: ``[Q]``.
    :param constant: Whether to keep the integral over a period.
    """
    # The gradient contains squares of widths.
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


# Kernels of one column without their constant, divided by the rest of their variance. For any
# lengthscale such a kernel has variance one, and its functions integrate to zero over a period.

_LONGEST_GAUSSIAN = 2.0
"""The longest lengthscale, in periods: a longer squared exponential kernel has one wave, and the
variances of all other waves are below 1e-100 of it."""

_LONGEST_MATERN = 5.0
"""The longest lengthscale, in periods: for a longer Matern kernel the shares of the waves change by
at most 2%, and the variance without the constant would lose digits."""


def wave_variances(nu: float, ratios: tf.Tensor, highest: int) -> tf.Tensor:
    """The prior variance of the cosine of each of 1, ..., ``highest`` periods, and of the sine,
    too, ``[P, highest]``. The variances of all numbers of periods add up to a half.

    :param ratios: Lengthscales, in periods, ``[P]``.
    """
    ratios = _bounded(nu, ratios)
    angles = 2 * np.pi * tf.constant(np.arange(1, highest + 1), ratios.dtype)
    densities = matern_density(nu, tf.square(ratios[:, None] * angles), 1)
    return (ratios / _zero_mean_variances(tf.square(ratios), nu))[:, None] * densities


def zero_mean_covariances(nu: float, ratio: tf.Tensor, lags: tf.Tensor) -> tf.Tensor:
    """The kernel without its constant, at differences of any shape, in periods.

    :param ratio: The lengthscale, in periods, a scalar.
    """
    square = tf.square(_bounded(nu, ratio))[None]
    sums = theta_mixture(tf.reshape(lags, [-1, 1]), square, nu, constant=False)
    return tf.reshape(sums, tf.shape(lags)) / _zero_mean_variances(square, nu)[0]


def _bounded(nu: float, ratios: tf.Tensor) -> tf.Tensor:
    """The lengthscales, in periods, at most the longest."""
    longest = _LONGEST_GAUSSIAN if math.isinf(nu) else _LONGEST_MATERN
    return tf.minimum(ratios, tf.cast(longest, ratios.dtype))
