"""Functions of period one: waves, and Matern kernels summed over their images.

A squared exponential kernel factorises, and its sum over images is a product over the columns of
theta functions, which converge within a few terms: as images while the kernel is short beside the
period, as a Fourier series while it is long. Matern kernels are mixtures of squared exponential
ones,

    k(r) = int p(t) exp(-r^2 / (4 t)) dt,    p(t) = Gamma(t | nu, 2 nu),

and so are their sums over images. The integral is a sum over a fixed grid in log t; its weights are
positive and add up to one, so that the sum is a valid kernel of the stated variance, however many
points the grid has. No number of images has to be chosen, and no lengthscale is too long. The
squared exponential kernel is the limit of an infinite nu, with one t.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import tensorflow as tf

from .._arguments import Array, IntArray
from .chunks import map_rows, rows_per_chunk

_LOG_ACCURACY = 32.0
"""Errors are below exp(-32), 1e-14 of the variance."""

_SWITCH = 0.0175
"""The width ``t lengthscale^2 / period^2`` where series take over from images: both are exact to
1e-14 there, with seven terms, each a product of a function of the width and one of the lag, and
with three images, each an exponential of both, which is what takes the time."""

_NUM_TERMS = 7


def table(turns: tf.Tensor, orders: IntArray) -> tf.Tensor:
    """The constant, and the cosine and sine of each number of periods, ``[1 + 2 J, N]``, times the
    root of the period.

    :param turns: ``(x - lower) / period``, ``[N]``.
    :param orders: Numbers of periods, 1 or more, increasing, ``[J]``.
    """
    ones = tf.ones_like(turns)[None]
    if not len(orders):
        return ones
    angles = 2 * np.pi * (turns - tf.stop_gradient(tf.floor(turns)))[None]
    if np.array_equal(orders, np.arange(1, len(orders) + 1)):
        # One of each is computed. The others follow by adding angles, to which the number of
        # multiples is doubled at a time, so that few operations come one after the other.
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


@lru_cache(maxsize=8)
def matern_mixture(nu: float) -> tuple[Array, Array]:
    """The points t and their weights for a Matern kernel of order nu; one point for an infinite nu.

    In ``u = log t`` the integrand is ``exp(nu u - 2 nu e^u)``, whose Fourier transform is a gamma
    function: the error of the trapezoidal rule with step h is ``(2 pi / h)^(nu - 1/2) exp(-pi^2 /
    h)`` of the integral, but for a factor near one.
    """
    if math.isinf(nu):
        return np.array([0.5]), np.array([1.0])
    step = math.pi**2 / (_LOG_ACCURACY + 10)
    # What is left out below is (2 nu e^lower)^nu / Gamma(nu + 1).
    lower = -(_LOG_ACCURACY - math.lgamma(nu + 1)) / nu - math.log(2 * nu)
    upper = math.log((_LOG_ACCURACY + 8 * nu) / (2 * nu))
    u = np.arange(lower, upper + step, step)
    log_weights = nu * u - 2 * nu * np.exp(u)
    weights = np.exp(log_weights - np.max(log_weights))
    return np.exp(u), weights / np.sum(weights)


def matern_density(nu: float, squares: tf.Tensor, dim: int) -> tf.Tensor:
    """The spectral density of a Matern kernel of variance and lengthscales one.

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
    :param constant: Whether the integral over the box is left in; of one column, without it the
        kernel is accurate relative to what is left.
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
    """:func:`theta_mixture` of one column without its constant, at zero, ``[P]``.

    :param squares: Squared lengthscales, in periods, ``[P]``.
    """
    t, weights = matern_mixture(nu)
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
# is, such a kernel of one column has variance one, and its functions integrate to zero over a
# period.

_LONGEST_GAUSSIAN = 2.0
"""In periods: of a longer squared exponential kernel one wave is left, and all others are below
1e-100 of it."""

_LONGEST_MATERN = 5.0
"""In periods: of a longer Matern kernel the shares of the waves do not change by more than 2%, and
what is left of its variance would lose digits."""


def wave_variances(nu: float, ratios: tf.Tensor, highest: int) -> tf.Tensor:
    """The prior variances of the cosine and of the sine of 1, ..., ``highest`` periods, which are
    equal, ``[P, highest]``; all that there are add up to a half.

    :param ratios: Lengthscales, in periods, ``[P]``.
    """
    ratios = _bounded(nu, ratios)
    angles = 2 * np.pi * tf.constant(np.arange(1, highest + 1), ratios.dtype)
    densities = matern_density(nu, tf.square(ratios[:, None] * angles), 1)
    return (ratios / _zero_mean_variances(tf.square(ratios), nu))[:, None] * densities


def zero_mean_covariances(nu: float, ratio: tf.Tensor, lags: tf.Tensor) -> tf.Tensor:
    """The kernel at differences of any shape, in periods.

    :param ratio: The lengthscale, in periods, a scalar.
    """
    square = tf.square(_bounded(nu, ratio))[None]
    sums = theta_mixture(tf.reshape(lags, [-1, 1]), square, nu, constant=False)
    return tf.reshape(sums, tf.shape(lags)) / _zero_mean_variances(square, nu)[0]


def _bounded(nu: float, ratios: tf.Tensor) -> tf.Tensor:
    """Lengthscales, in periods, as the kernels have them."""
    longest = _LONGEST_GAUSSIAN if math.isinf(nu) else _LONGEST_MATERN
    return tf.minimum(ratios, tf.cast(longest, ratios.dtype))
