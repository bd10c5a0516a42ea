"""Stationary kernels on the sphere, defined by the spectrum of the Laplace-Beltrami operator.

A stationary kernel on S^{d-1} has the eigenvalues ``S(sqrt(l (l + d - 2)))``, where S is the
spectral density of the Euclidean kernel. See Solin & Sarkka, *Hilbert space methods for
reduced-rank Gaussian process regression*, 2020, eq. 20, and Dutordoir et al., *Sparse Gaussian
Processes with Spherical Harmonic Features*, 2020, section 3.2. Here the eigenvalues are divided by
their sum over *all* harmonics. So the kernel is one at t = 1, and the prior is not truncated.

The squared exponential is a heat kernel at the time ``lengthscale^2 / 2``. A Matern kernel is a
mixture of heat kernels over all times with positive weights, because

    (q + x^2)^(-s) = 1 / Gamma(s) * integral of time^(s - 1) exp(-q time) exp(-x^2 time) d time.

The part of long times is a series of about fifty harmonics. The part of short times has a closed
form (:mod:`.heat_kernel`). This is Ewald's summation. Both parts and all their terms are positive,
so nothing cancels at any lengthscale: the error is about 1e-12 of the kernel's value at t = 1. A
short lengthscale has short times only; the limit is white noise.

All computations are in float64, and the result has the dtype of the lengthscale. For many values of
t, the function is tabulated up to its reach, and interpolated in the angle with an error below
5e-11.

An error of the angle adds, for Matern-1/2, that error divided by the lengthscale. So kernels
compute angles by :func:`.heat_kernel.haversines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import gammainccinv, gammaln, loggamma

from ...._arguments import Array
from ...._tracing import compiled
from . import heat_kernel
from .angle_table import NODES, NUM_INTERVALS, tabulated
from .heat_kernel import heat_at_angles, heat_at_one, log_heat_constant, longest_time
from .zonal_series import derivative_weights, level_multiplicities, zonal_series

_LEAST_TABULATED = NUM_INTERVALS
"""For fewer values of t, if their number is known, the series is summed at each value."""

_RANGE = (1e-10, 1e10)  # lengthscales outside are white noise, or a constant, in float64

_FADED = 40.0  # the value of ``q time`` from which ``exp(-q time)`` counts as zero


def stationary_kernel(
    haversines: tf.Tensor, dimension: int, lengthscale: tf.Tensor, nu: float
) -> tf.Tensor:
    """A stationary kernel on S^{d-1} at ``sin(angle / 2)^2``, in the dtype of the lengthscale.

    :param haversines: Haversines of any shape. They resolve small angles; an inner product t would
        resolve them to 1e-8 in float64, and to 3e-4 in float32.
    :param lengthscale: A positive scalar, in radians on the unit sphere. Below 1e-10 the kernel is
        white noise, and above 1e10 it is constant.
    :param nu: The smoothness: the kernel has a term ``(1 - t)^nu``. It is a half-integer for Matern
        kernels, and infinity for the squared exponential.
    """
    size = haversines.shape.num_elements()
    is_summed = size is not None and size < _LEAST_TABULATED
    function = _compiled(dimension, nu, is_summed, (haversines.dtype, lengthscale.dtype))
    values = function(tf.cast(lengthscale, tf.float64), tf.reshape(haversines, [-1]))
    return tf.reshape(values, tf.shape(haversines))


def stationary_eigenvalues(
    degrees: Sequence[int], dimension: int, lengthscale: tf.Tensor, nu: float
) -> tf.Tensor:
    """The eigenvalues lambda_l of :func:`stationary_kernel`: ``exp(-lengthscale^2 l (l + d - 2) /
    2)`` if nu is infinite, else ``(2 nu / lengthscale^2 + l (l + d - 2))^(-nu - (d - 1) / 2)``,
    divided by their sum over all harmonics."""
    scale = tf.clip_by_value(tf.cast(lengthscale, tf.float64), *_RANGE)
    log_normaliser = _mixture(dimension, scale, nu, is_tabulated=True).log_normaliser
    log_density = _log_density(np.asarray(degrees, float), dimension, scale, nu)
    return tf.cast(tf.exp(log_density - log_normaliser), lengthscale.dtype)


@lru_cache(maxsize=64)
def _compiled(dimension: int, nu: float, is_summed: bool, dtypes: tuple[tf.DType, tf.DType]) -> Any:
    """A traced function from a lengthscale and haversines ``[n]`` to the kernel. The graph has
    hundreds of operations and is used several times, so it is built only once.

    :param dtypes: The dtypes of the haversines and of the result.
    """

    def evaluate(lengthscale: tf.Tensor, haversines: tf.Tensor) -> tf.Tensor:
        lengthscale = tf.clip_by_value(lengthscale, *_RANGE)
        mixture = _mixture(dimension, lengthscale, nu, is_tabulated=not is_summed)
        if is_summed:
            haversines = tf.cast(haversines, tf.float64)
            return tf.cast(_sum(mixture, haversines, dimension, nu), dtypes[1])
        return _interpolate(mixture, haversines, dimension, nu, dtypes[1])

    signature = [tf.TensorSpec([], tf.float64), tf.TensorSpec([None], dtypes[0])]
    return compiled(evaluate, input_signature=signature)


class HeatMixture(NamedTuple):
    """A kernel as a sum of heat kernels at short times, and a series of harmonics."""

    times: tf.Tensor
    """The times ``[K]``; for Matern kernels, they are quadrature nodes without gradient."""
    amplitudes: tf.Tensor
    """The factors of :func:`heat_at_angles`, ``[K]``, as parts of the value at t = 1; the last
    factor includes all shorter times."""
    onset: tf.Tensor
    """The limit of ``amplitude / (step time^nu)`` at time zero; zero if nu is infinite."""
    weights: tf.Tensor
    """The part of the eigenvalues for long times, multiplied by ``N(d, l)``, ``[L]``."""
    num_levels: tf.Tensor
    """The number of degrees of the series to sum."""
    reach: tf.Tensor
    """The angle from which the kernel is zero."""
    log_normaliser: tf.Tensor
    """The logarithm of the sum of N(d, l) S over all degrees, with S one at l = 0."""


def _sum(mixture: HeatMixture, haversines: tf.Tensor, dimension: int, nu: float) -> tf.Tensor:
    """The kernel at each haversine, in float64."""
    if nu < 1:
        # No gradient to t at t = 1: it diverges, and the inputs coincide for all parameters.
        haversines = tf.where(haversines > 0, haversines, tf.zeros_like(haversines))
    heat = heat_kernel.heat_at_haversines(haversines, mixture.times, dimension)
    t, weights = 1 - 2 * haversines, mixture.weights
    long = zonal_series(t, weights, dimension, num_levels=mixture.num_levels)
    return tf.linalg.matvec(heat, mixture.amplitudes) + long


def _interpolate(
    mixture: HeatMixture, haversines: tf.Tensor, dimension: int, nu: float, dtype: tf.DType
) -> tf.Tensor:
    """The kernel at each haversine, interpolated in a table."""
    times, amplitudes, onset, weights, num_levels, reach, _ = mixture
    reach = tf.stop_gradient(reach)
    angles = reach * tf.constant(NODES)
    # Near t = 1, the lowest derivative that diverges behaves like ``limit / angle``.
    limit = onset * (np.sqrt(np.pi) * 2 ** (0.5 - nu))
    derivatives, squares, t = [], tf.square(angles), tf.cos(angles)
    for order in range(3):
        d = dimension + 2 * order
        long = zonal_series(t, weights, d, num_levels=num_levels - order)
        derivatives.append(tf.linalg.matvec(heat_at_angles(squares, times, d), amplitudes) + long)
        weights, amplitudes = derivative_weights(weights, d), amplitudes / (2 * times)
    values, first, second = derivatives
    sine = tf.sin(angles)
    slopes, second = -sine * first, -sine * second
    root = nu < 1
    if root:
        s, c = np.sqrt(2) * tf.sin(angles / 2), tf.cos(angles / 2) / np.sqrt(2)
        first, second = s * first, s * second + c * first
        # The values at t = 1; the slope is that of a cubic polynomial through three nodes.
        slopes = tf.concat([[-limit], slopes[1:]], axis=0)
        first = tf.concat([[limit / np.sqrt(2)], first[1:]], axis=0)
        rise = 2 * first[1] - 2.5 * first[0] + 0.5 * first[2]
        second = tf.concat([[rise / angles[1] - 2 * second[1]], second[1:]], axis=0)
    elif nu < 2:
        second = tf.concat([[-limit], second[1:]], axis=0)
    function, derivative = (values, slopes), (first, second)
    return tabulated(haversines, function, derivative, root=root, reach=reach, dtype=dtype)


def _log_density(degrees: Array, dimension: int, lengthscale: tf.Tensor, nu: float) -> tf.Tensor:
    """The logarithm of S up to a constant, so that it is zero at l = 0."""
    eigenvalues = degrees * (degrees + dimension - 2)
    if np.isinf(nu):
        return -0.5 * tf.square(lengthscale) * eigenvalues
    bend = eigenvalues * (tf.square(lengthscale) / (2 * nu))
    return -(nu + (dimension - 1) / 2) * tf.math.log1p(bend)


def _levels_needed(dimension: int) -> int:
    """The number of degrees that a heat kernel needs at times from :func:`longest_time` on."""
    last = gammainccinv((dimension - 1) / 2, 1e-17) / longest_time(dimension)  # l^2
    return int(np.ceil(np.sqrt(last)))


def _squared_exponential(dimension: int, lengthscale: tf.Tensor) -> HeatMixture:
    """The squared exponential: one heat kernel, or its series if the time is long."""
    alpha, time = (dimension - 2) / 2, 0.5 * tf.square(lengthscale)
    longest = longest_time(dimension)
    is_short = time < longest
    short_time = tf.minimum(time, longest)[None]
    at_one = heat_at_one(short_time, dimension)
    log_short = tf.math.log(at_one) + short_time * alpha**2 + log_heat_constant(dimension)
    log_short -= (alpha + 0.5) * tf.math.log(short_time)
    levels = _levels_needed(dimension)
    log_shares = np.log(level_multiplicities(dimension, levels))
    log_shares += _log_density(np.arange(float(levels)), dimension, lengthscale, np.inf)
    log_normaliser = tf.where(is_short, log_short[0], tf.reduce_logsumexp(log_shares))
    weights = tf.exp(log_shares - log_normaliser)
    num_levels = tf.math.count_nonzero(tf.cumsum(weights, reverse=True) > 1e-18, dtype=tf.int32)
    return HeatMixture(
        times=short_time,
        amplitudes=tf.where(is_short, 1 / at_one, 0),
        onset=tf.zeros([], tf.float64),
        weights=weights,
        num_levels=tf.where(is_short, 0, num_levels),
        reach=tf.where(is_short, tf.minimum(10 * lengthscale, np.pi), np.pi),
        log_normaliser=log_normaliser,
    )


def _mixture(dimension: int, lengthscale: tf.Tensor, nu: float, is_tabulated: bool) -> HeatMixture:
    """A kernel as a mixture of heat kernels, for a table or for any t."""
    if np.isinf(nu):
        return _squared_exponential(dimension, lengthscale)
    alpha, s = (dimension - 2) / 2, nu + (dimension - 1) / 2
    lowest = 2 * nu / tf.square(lengthscale)  # q + x^2 at l = 0
    curvature = lowest - alpha**2  # the q of the module's docstring
    bounded = tf.stop_gradient(tf.maximum(curvature, 1.0))
    longest = tf.minimum(_FADED / bounded, longest_time(dimension))
    # The factor of the short times, if the eigenvalue of degree zero is one and times are divided
    # by the longest time. One part can be tiny, and the other huge.
    constant = s * np.log(2 * nu) + log_heat_constant(dimension) - gammaln(s)
    log_odds = nu * tf.math.log(longest) + constant - 2 * s * tf.math.log(lengthscale)
    for_short, for_long = tf.sigmoid(log_odds), tf.sigmoid(-log_odds)

    def short(step: float, fractions: Array) -> tf.Tensor:
        return _rule_weights(step, fractions, nu) * tf.exp(-curvature * longest * fractions)

    # N(d, l) S, minus the part of the short times.
    step, fractions = _log_rule(s, is_tabulated=True)
    levels = _levels_needed(dimension)
    l = np.arange(levels)[:, None]
    rates = longest * (lowest + l * (l + dimension - 2.0))
    log_rates = tf.math.log(rates)
    log_weights = np.log(_rule_weights(step, fractions, s)) - gammaln(s)
    shares = tf.exp(log_weights + s * log_rates - rates * fractions)
    log_sizes = np.log(level_multiplicities(dimension, levels))
    values = tf.exp(log_sizes + s * (log_rates[0] - log_rates[:, 0]))
    long = values * (1 - tf.reduce_sum(shares, axis=1))

    heat = heat_at_one(longest * fractions, dimension)
    total = for_short * tf.reduce_sum(heat * short(step, fractions))
    total += for_long * tf.reduce_sum(long)
    if not is_tabulated:
        step, fractions = _log_rule(s, is_tabulated=False)
    return HeatMixture(
        times=longest * fractions,
        amplitudes=for_short / total * short(step, fractions),
        onset=for_short / total / longest**nu,
        weights=for_long / total * long,
        num_levels=tf.where(longest < longest_time(dimension), 0, levels),
        reach=tf.minimum((_FADED + 8) / tf.sqrt(bounded), np.pi),
        log_normaliser=tf.math.log(total) + tf.math.softplus(log_odds),
    )


@lru_cache(maxsize=64)
def _log_rule(exponent: float, is_tabulated: bool) -> tuple[float, Array]:
    """The trapezoidal rule in the logarithm of time, from the longest time to zero: the step, and
    times divided by the longest. Each eigenvalue ``(q + x^2)^-exponent`` is accurate to 1e-12.

    At the shortest time, the Gaussian is zero at the smallest angle: at 1e-10 or, for a table, at
    the first interval, which is at least 1e-4 of the width of the widest Gaussian.
    """
    step, error = 0.32, 1.0
    while error > 1e-12:
        step *= 0.95
        error = np.exp(loggamma(exponent + 2j * np.pi / step).real - gammaln(exponent))
    return step, np.exp(-np.arange(0, 23 if is_tabulated else 48, step))


def _rule_weights(step: float, fractions: Array, power: float) -> Array:
    """The quadrature weights for an integrand times ``time^(power - 1)``. The last weight includes
    all shorter times, at which the integrand is constant."""
    weights: Array = step * fractions**power
    weights[-1] /= -np.expm1(-step * power)
    return weights
