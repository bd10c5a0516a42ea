"""Stationary kernels on the sphere, defined by the spectrum of the Laplace-Beltrami operator.

Solin & Sarkka (*Hilbert space methods for reduced-rank Gaussian process regression*, 2020, eq. 20;
used by Dutordoir et al., *Sparse Gaussian Processes with Spherical Harmonic Features*, 2020,
section 3.2) give a stationary kernel on S^{d-1} the eigenvalues ``S(sqrt(l (l + d - 2)))``, S being
the spectral density of the Euclidean kernel. Here they are divided by their sum over *all*
harmonics, so that the kernel is one at t = 1 and no truncation changes the prior.

These kernels are heat kernels: the squared exponential is one, at the time ``lengthscale^2 / 2``,
and a Matern kernel is a mixture of them over all times with positive weights, because

    (q + x^2)^(-s) = 1 / Gamma(s) * integral of time^(s - 1) exp(-q time) exp(-x^2 time) d time.

What belongs to long times is summed as a series, of some fifty harmonics; what belongs to short
times has a closed form (:mod:`.heat_kernel`). This is Ewald's summation. Both parts and all their
terms are positive, so that nothing cancels, at any lengthscale: the error is some 1e-12 of the
kernel's value at t = 1. A short lengthscale leaves short times only; the limit is white noise.

The spectra, and the functions they sum to, are computed in float64 whatever the dtype of the
lengthscale, and cast at the end. For many values of t the function is tabulated up to the angle
where it ends, and interpolated in the angle, in which it is smooth: an error below 5e-11.

These are errors of the function of an angle. What an error of the angle adds is, for Matern-1/2,
that error divided by the lengthscale: kernels take angles from :func:`.heat_kernel.haversines`.
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
"""For fewer values of t, known in advance, the series is summed at each of them."""

_RANGE = (1e-10, 1e10)  # of lengthscales that float64 tells from white noise, and from a constant

_FADED = 40.0  # where ``exp(-q time)`` counts as zero


def stationary_kernel(
    haversines: tf.Tensor, dimension: int, lengthscale: tf.Tensor, nu: float
) -> tf.Tensor:
    """A stationary kernel on S^{d-1} at ``sin(angle / 2)^2``, in the dtype of the lengthscale.

    :param haversines: Of any shape. An inner product t resolves small angles only as well as its
        dtype tells their cosine from one: to 1e-8 in float64, and to 3e-4 in float32.
    :param lengthscale: In radians on the unit sphere, a scalar. It may have any positive value:
        below 1e-10 the kernel stays white noise, and above 1e10 a constant.
    :param nu: Smoothness: the kernel has a term ``(1 - t)^nu``. A half-integer for Matern kernels,
        infinite for the squared exponential.
    """
    size = haversines.shape.num_elements()
    is_summed = size is not None and size < _LEAST_TABULATED
    function = _compiled(dimension, nu, is_summed, (haversines.dtype, lengthscale.dtype))
    values = function(tf.cast(lengthscale, tf.float64), tf.reshape(haversines, [-1]))
    return tf.reshape(values, tf.shape(haversines))


def stationary_eigenvalues(
    degrees: Sequence[int], dimension: int, lengthscale: tf.Tensor, nu: float
) -> tf.Tensor:
    """lambda_l of :func:`stationary_kernel` for each degree: ``exp(-lengthscale^2 l (l + d - 2) /
    2)`` if nu is infinite, else ``(2 nu / lengthscale^2 + l (l + d - 2))^(-nu - (d - 1) / 2)``,
    divided by the sum of N(d, l) times these over all degrees."""
    scale = tf.clip_by_value(tf.cast(lengthscale, tf.float64), *_RANGE)
    log_normaliser = _mixture(dimension, scale, nu, is_tabulated=True).log_normaliser
    log_density = _log_density(np.asarray(degrees, float), dimension, scale, nu)
    return tf.cast(tf.exp(log_density - log_normaliser), lengthscale.dtype)


@lru_cache(maxsize=64)
def _compiled(dimension: int, nu: float, is_summed: bool, dtypes: tuple[tf.DType, tf.DType]) -> Any:
    """From a lengthscale and haversines ``[n]`` to the kernel: a graph of some hundred operations
    that a model needs several times, and that is made once.

    :param dtypes: Of the haversines, and of the result.
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
    """``[K]``; no gradient flows to those of Matern kernels, which the rule chooses."""
    amplitudes: tf.Tensor
    """The parts of the value at t = 1 that :func:`heat_at_angles` is to be multiplied by, ``[K]``;
    the last one stands for all shorter times."""
    onset: tf.Tensor
    """The limit of ``amplitude / (step time^nu)`` at time zero; zero if nu is infinite."""
    weights: tf.Tensor
    """``N(d, l)`` times the part of the eigenvalues that belongs to long times, ``[L]``."""
    num_levels: tf.Tensor
    """How many of these count."""
    reach: tf.Tensor
    """The kernel is zero beyond this angle."""
    log_normaliser: tf.Tensor
    """The logarithm of the sum of N(d, l) S over all degrees, S being one at l = 0."""


def _sum(mixture: HeatMixture, haversines: tf.Tensor, dimension: int, nu: float) -> tf.Tensor:
    """The kernel, in float64, at each angle."""
    if nu < 1:
        # No gradient flows to t at t = 1, where it diverges and a pair coincides for good.
        haversines = tf.where(haversines > 0, haversines, tf.zeros_like(haversines))
    heat = heat_kernel.heat_at_haversines(haversines, mixture.times, dimension)
    t, weights = 1 - 2 * haversines, mixture.weights
    long = zonal_series(t, weights, dimension, num_levels=mixture.num_levels)
    return tf.linalg.matvec(heat, mixture.amplitudes) + long


def _interpolate(
    mixture: HeatMixture, haversines: tf.Tensor, dimension: int, nu: float, dtype: tf.DType
) -> tf.Tensor:
    """The kernel from a table of it."""
    times, amplitudes, onset, weights, num_levels, reach, _ = mixture
    reach = tf.stop_gradient(reach)
    angles = reach * tf.constant(NODES)
    # The first derivative that diverges at t = 1 goes like ``limit / angle`` there.
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
        # At t = 1; the slope by a cubic polynomial through the three nodes.
        slopes = tf.concat([[-limit], slopes[1:]], axis=0)
        first = tf.concat([[limit / np.sqrt(2)], first[1:]], axis=0)
        rise = 2 * first[1] - 2.5 * first[0] + 0.5 * first[2]
        second = tf.concat([[rise / angles[1] - 2 * second[1]], second[1:]], axis=0)
    elif nu < 2:
        second = tf.concat([[-limit], second[1:]], axis=0)
    function, derivative = (values, slopes), (first, second)
    return tabulated(haversines, function, derivative, root=root, reach=reach, dtype=dtype)


def _log_density(degrees: Array, dimension: int, lengthscale: tf.Tensor, nu: float) -> tf.Tensor:
    """log S up to a constant; zero at l = 0."""
    eigenvalues = degrees * (degrees + dimension - 2)
    if np.isinf(nu):
        return -0.5 * tf.square(lengthscale) * eigenvalues
    bend = eigenvalues * (tf.square(lengthscale) / (2 * nu))
    return -(nu + (dimension - 1) / 2) * tf.math.log1p(bend)


def _levels_needed(dimension: int) -> int:
    """How many harmonics a heat kernel needs after :func:`longest_time`."""
    last = gammainccinv((dimension - 1) / 2, 1e-17) / longest_time(dimension)  # l^2
    return int(np.ceil(np.sqrt(last)))


def _squared_exponential(dimension: int, lengthscale: tf.Tensor) -> HeatMixture:
    """One heat kernel, or, at a long time, its series."""
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
    """The kernel in heat kernels, for a table or for any t; below, of Matern kernels."""
    if np.isinf(nu):
        return _squared_exponential(dimension, lengthscale)
    alpha, s = (dimension - 2) / 2, nu + (dimension - 1) / 2
    lowest = 2 * nu / tf.square(lengthscale)  # q + x^2, at l = 0
    curvature = lowest - alpha**2  # q
    bounded = tf.stop_gradient(tf.maximum(curvature, 1.0))
    longest = tf.minimum(_FADED / bounded, longest_time(dimension))
    # The factor of the short times, the eigenvalue of degree zero being one and times being divided
    # by the longest. Either part can be tiny, and the other huge.
    constant = s * np.log(2 * nu) + log_heat_constant(dimension) - gammaln(s)
    log_odds = nu * tf.math.log(longest) + constant - 2 * s * tf.math.log(lengthscale)
    for_short, for_long = tf.sigmoid(log_odds), tf.sigmoid(-log_odds)

    def short(step: float, fractions: Array) -> tf.Tensor:
        return _rule_weights(step, fractions, nu) * tf.exp(-curvature * longest * fractions)

    # N(d, l) S, less what belongs to the short times.
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
    """The trapezoidal rule in the logarithm of time, for times from the longest to zero: its step,
    and the times, divided by the longest. For eigenvalues ``(q + x^2)^-exponent``, to 1e-12 each.

    The times end where a Gaussian has fallen to zero before the smallest angle: 1e-10, and in
    a table the first interval, at least 1e-4 of the widest Gaussian.
    """
    step, error = 0.32, 1.0
    while error > 1e-12:
        step *= 0.95
        error = np.exp(loggamma(exponent + 2j * np.pi / step).real - gammaln(exponent))
    return step, np.exp(-np.arange(0, 23 if is_tabulated else 48, step))


def _rule_weights(step: float, fractions: Array, power: float) -> Array:
    """Of times to this power, divided by time. The last weight is for all shorter times, too, at
    which what is integrated does not change any more."""
    weights: Array = step * fractions**power
    weights[-1] /= -np.expm1(-step * power)
    return weights
