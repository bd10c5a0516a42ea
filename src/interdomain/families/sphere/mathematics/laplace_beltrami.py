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
times has a closed form (:mod:`.heat_kernel`). This is Ewald's summation. Both
parts and all their terms are positive, so that nothing cancels, at any lengthscale: the error is
some 1e-12 of the kernel's value at t = 1. A short lengthscale leaves short times only, and the
limit is white noise.

The spectra, and the functions they sum to, are computed in float64 whatever the dtype of the
lengthscale, and cast at the end. For many values of t the function is tabulated up to the angle
where it ends, and interpolated in the angle, in which it is smooth: an error below 5e-11.

These are errors of the function of an angle. What an error of the angle adds is, for Matern-1/2,
that error divided by the lengthscale: kernels take angles from
:func:`.heat_kernel.haversines`, to 1e-14, and not from inner products, whose
rounding moves a small angle by 1e-16 divided by the angle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import gammainccinv, gammaln, loggamma

from ...._arguments import Array, number
from ...._tracing import compiled
from .angle_table import NODES, NUM_INTERVALS, AtNodes, tabulated
from .dimensions import validate_dimension
from .heat_kernel import (
    heat_at_angles,
    heat_at_haversines,
    heat_at_one,
    log_heat_constant,
    longest_time,
)
from .zonal_series import derivative_weights, level_multiplicities, zonal_series

_LEAST_TABULATED = NUM_INTERVALS
"""For fewer values of t, known in advance, the series is summed at each of them."""

_RANGE = (1e-10, 1e10)
"""Of the lengthscales that float64 tells apart from white noise, and from a constant."""

_FADED = 40.0
"""Where ``exp(-q time)`` counts as zero."""


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


def _levels_needed(dimension: int) -> int:
    """How many harmonics a heat kernel needs after :func:`longest_time`."""
    last = gammainccinv((dimension - 1) / 2, 1e-17) / longest_time(dimension)  # l^2
    return int(np.ceil(np.sqrt(last)))


class _LogRule(NamedTuple):
    """The trapezoidal rule in the logarithm of time, for times from the longest to zero."""

    step: float
    fractions: Array
    """The times, divided by the longest."""

    @classmethod
    def accurate(cls, exponent: float, is_tabulated: bool) -> _LogRule:
        """For eigenvalues ``(q + x^2)^-exponent``, to 1e-12 of each.

        The times end where a Gaussian has fallen to zero before the smallest angle: 1e-10, and in
        a table the first interval, at least 1e-4 of the widest Gaussian.
        """
        step, error = 0.32, 1.0
        while error > 1e-12:
            step *= 0.95
            error = np.exp(loggamma(exponent + 2j * np.pi / step).real - gammaln(exponent))
        return cls(step, np.exp(-np.arange(0, 23 if is_tabulated else 48, step)))

    def weights(self, power: float) -> Array:
        """Of times to this power, divided by time. The last weight is for all shorter times, too,
        at which what is integrated does not change any more."""
        weights: Array = self.step * self.fractions**power
        weights[-1] /= -np.expm1(-self.step * power)
        return weights


def _with_first(value: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    return tf.concat([value[None], values[1:]], axis=0)


def _scalar(lengthscale: Any) -> tf.Tensor:
    if not tf.is_tensor(lengthscale):
        return tf.constant(number("lengthscale", lengthscale, above=0), tf.float64)
    value = tf.convert_to_tensor(lengthscale)
    if value.shape.rank not in (None, 0) or not value.dtype.is_floating:
        raise ValueError(
            f"lengthscale must be a number, found a tensor of shape {value.shape} and type "
            f"{value.dtype.name}; pass one float."
        )
    return value


class LaplaceBeltramiSpectrum(ABC):
    """The eigenvalues of a stationary kernel on S^{d-1}, and the kernel they sum to.

    :param dimension: Dimension d of the space around the sphere.
    :param lengthscale: In radians on the unit sphere: a number, or a scalar tensor whose dtype the
        results will have. It may have any positive value: below 1e-10 the kernel is white noise and
        above 1e10 a constant, and does not change any more.
    :raises ValueError: If there is no such sphere, or the lengthscale is not a scalar or is a
        number that is not positive. The values of tensors are not checked.
    """

    def __init__(self, dimension: int, lengthscale: tf.Tensor) -> None:
        self.dimension = validate_dimension(dimension)
        self.alpha = (dimension - 2) / 2
        self._given = _scalar(lengthscale)
        self.dtype = self._given.dtype

    # What follows from the lengthscale is computed where it is used: :func:`_compiled` makes a
    # spectrum of its own.
    @cached_property
    def lengthscale(self) -> tf.Tensor:
        """The lengthscale in float64, clipped to the limits."""
        return tf.clip_by_value(tf.cast(self._given, tf.float64), *_RANGE)

    smoothness: float = np.inf
    """nu: the kernel has a term ``(1 - t)^nu``, unless it is infinite."""

    @property
    def _arguments(self) -> tuple[float, ...]:
        """What the constructor is given besides dimension and lengthscale."""
        return ()

    @abstractmethod
    def _log_density(self, x: tf.Tensor) -> tf.Tensor:
        """log S up to a constant, at l = x - (d - 2) / 2; zero at l = 0."""

    @cached_property
    @abstractmethod
    def _log_normaliser(self) -> tf.Tensor:
        """The logarithm of the sum of N(d, l) S over all degrees."""

    @abstractmethod
    def _mixture(self, is_tabulated: bool) -> HeatMixture:
        """The kernel in heat kernels, for a table or for any t."""

    def shape_function(self, t: tf.Tensor) -> tf.Tensor:
        """The kernel as a function of the inner product t of two unit vectors, in the dtype of the
        lengthscale.

        :param t: Inner products. Small angles are resolved only as well as the dtype of t tells
            their cosine from one: to 1e-8 in float64, and to 3e-4 in float32.
            :meth:`at_haversines` has no such limit.
        """
        return self.at_haversines((1 - t) / 2)

    def at_haversines(self, haversines: tf.Tensor) -> tf.Tensor:
        """As :meth:`shape_function`, but as a function of ``sin(angle / 2)^2 = (1 - t) / 2``, which
        resolves small angles."""
        size = haversines.shape.num_elements()
        is_summed = size is not None and size < _LEAST_TABULATED
        dtypes = (haversines.dtype, self.dtype)
        function = _compiled(type(self), self.dimension, self._arguments, is_summed, dtypes)
        values = function(tf.cast(self._given, tf.float64), tf.reshape(haversines, [-1]))
        return tf.reshape(values, tf.shape(haversines))

    def eigenvalues(self, degrees: Sequence[int]) -> tf.Tensor:
        """lambda_l for each degree, with sum_l N(d, l) lambda_l = 1 over all degrees."""
        x = np.asarray(degrees, float) + self.alpha
        return tf.cast(tf.exp(self._log_density(x) - self._log_normaliser), self.dtype)

    def _sum(self, haversines: tf.Tensor) -> tf.Tensor:
        """The kernel, in float64, at each angle."""
        if self.smoothness < 1:
            # No gradient flows to t at t = 1, where it diverges and a pair coincides for good.
            haversines = tf.where(haversines > 0, haversines, tf.zeros_like(haversines))
        mixture = self._mixture(is_tabulated=False)
        heat = heat_at_haversines(haversines, mixture.times, self.dimension)
        t, weights = 1 - 2 * haversines, mixture.weights
        long = zonal_series(t, weights, self.dimension, num_levels=mixture.num_levels)
        return tf.linalg.matvec(heat, mixture.amplitudes) + long

    def _interpolate(self, haversines: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        """The kernel from a table of it."""
        times, amplitudes, onset, weights, num_levels, reach = self._mixture(is_tabulated=True)
        reach = tf.stop_gradient(reach)
        angles = reach * tf.constant(NODES)
        # The first derivative that diverges at t = 1 goes like ``limit / angle`` there.
        limit = onset * (np.sqrt(np.pi) * 2 ** (0.5 - self.smoothness))
        derivatives, squares, t = [], tf.square(angles), tf.cos(angles)
        for order in range(3):
            dimension = self.dimension + 2 * order
            heat = heat_at_angles(squares, times, dimension)
            long = zonal_series(t, weights, dimension, num_levels=num_levels - order)
            derivatives.append(tf.linalg.matvec(heat, amplitudes) + long)
            weights = derivative_weights(weights, dimension)
            amplitudes /= 2 * times
        values, first, second = derivatives
        sine = tf.sin(angles)
        slopes, second = -sine * first, -sine * second
        root = self.smoothness < 1
        if root:
            s, c = np.sqrt(2) * tf.sin(angles / 2), tf.cos(angles / 2) / np.sqrt(2)
            first, second = s * first, s * second + c * first
            # At t = 1; the slope by a cubic polynomial through the three nodes.
            slopes = _with_first(-limit, slopes)
            first = _with_first(limit / np.sqrt(2), first)
            rise = 2 * first[1] - 2.5 * first[0] + 0.5 * first[2]
            second = _with_first(rise / angles[1] - 2 * second[1], second)
        elif self.smoothness < 2:
            second = _with_first(-limit, second)
        function, derivative = AtNodes(values, slopes), AtNodes(first, second)
        return tabulated(haversines, function, derivative, root=root, reach=reach, dtype=dtype)


@lru_cache(maxsize=64)
def _compiled(
    kind: type[LaplaceBeltramiSpectrum],
    dimension: int,
    arguments: tuple[float, ...],
    is_summed: bool,
    dtypes: tuple[tf.DType, tf.DType],
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """From a lengthscale and haversines ``[n]`` to the kernel: a graph of some hundred operations
    that a model needs several times, and that is made once.

    :param dtypes: Of the haversines, and of the result.
    """

    def evaluate(lengthscale: tf.Tensor, haversines: tf.Tensor) -> tf.Tensor:
        spectrum = kind(dimension, lengthscale, *arguments)
        if is_summed:
            return tf.cast(spectrum._sum(tf.cast(haversines, tf.float64)), dtypes[1])
        return spectrum._interpolate(haversines, dtypes[1])

    signature = [tf.TensorSpec([], tf.float64), tf.TensorSpec([None], dtypes[0])]
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    function = compiled(evaluate, input_signature=signature)
    return function


class SquaredExponentialSpectrum(LaplaceBeltramiSpectrum):
    """Eigenvalues proportional to ``exp(-lengthscale^2 l (l + d - 2) / 2)``."""

    def _log_density(self, x: tf.Tensor) -> tf.Tensor:
        return -self._time * (tf.square(x) - self.alpha**2)

    @property
    def _time(self) -> tf.Tensor:
        return 0.5 * tf.square(self.lengthscale)

    @cached_property
    def _is_short(self) -> tf.Tensor:
        return self._time < longest_time(self.dimension)

    @cached_property
    def _short_time(self) -> tf.Tensor:
        return tf.minimum(self._time, longest_time(self.dimension))[None]

    @cached_property
    def _short_value(self) -> tf.Tensor:
        return heat_at_one(self._short_time, self.dimension)

    @cached_property
    def _log_shares(self) -> tf.Tensor:
        levels = _levels_needed(self.dimension)
        log_sizes = np.log(level_multiplicities(self.dimension, levels))
        return log_sizes + self._log_density(np.arange(levels) + self.alpha)

    @cached_property
    def _log_normaliser(self) -> tf.Tensor:
        short = tf.math.log(self._short_value) + self._short_time * self.alpha**2
        short -= (self.alpha + 0.5) * tf.math.log(self._short_time)
        short += log_heat_constant(self.dimension)
        return tf.where(self._is_short, short[0], tf.reduce_logsumexp(self._log_shares))

    def _mixture(self, is_tabulated: bool) -> HeatMixture:
        amplitudes = tf.where(self._is_short, 1 / self._short_value, 0)
        weights = tf.exp(self._log_shares - self._log_normaliser)
        remaining = tf.cumsum(weights, reverse=True)
        num_levels = tf.reduce_sum(tf.cast(remaining > 1e-18, tf.int32))
        num_levels = tf.where(self._is_short, 0, num_levels)
        reach = tf.where(self._is_short, tf.minimum(10 * self.lengthscale, np.pi), np.pi)
        onset = tf.zeros([], tf.float64)
        return HeatMixture(self._short_time, amplitudes, onset, weights, num_levels, reach)


class MaternSpectrum(LaplaceBeltramiSpectrum):
    """Eigenvalues proportional to ``(2 nu / lengthscale^2 + l (l + d - 2))^(-nu - (d - 1) / 2)``.

    :param nu: Smoothness, a half-integer.
    :raises ValueError: As :class:`LaplaceBeltramiSpectrum`; also for another ``nu``.
    """

    def __init__(self, dimension: int, lengthscale: tf.Tensor, nu: float) -> None:
        super().__init__(dimension, lengthscale)
        if number("nu", nu, above=0) % 1 != 0.5:
            raise ValueError(f"nu must be a half-integer, found {nu}; pass 0.5, 1.5 or 2.5.")
        self.smoothness = nu
        self.exponent = nu + self.alpha + 0.5  # s

    @cached_property
    def _lowest(self) -> tf.Tensor:
        """q + x^2, at l = 0."""
        return 2 * self.smoothness / tf.square(self.lengthscale)

    @cached_property
    def curvature(self) -> tf.Tensor:
        """q."""
        return self._lowest - self.alpha**2

    @cached_property
    def _bounded(self) -> tf.Tensor:
        return tf.stop_gradient(tf.maximum(self.curvature, 1.0))

    @cached_property
    def _longest(self) -> tf.Tensor:
        return tf.minimum(_FADED / self._bounded, longest_time(self.dimension))

    @cached_property
    def _reach(self) -> tf.Tensor:
        return tf.minimum((_FADED + 8) / tf.sqrt(self._bounded), np.pi)

    @property
    def _arguments(self) -> tuple[float, ...]:
        return (self.smoothness,)

    def _log_density(self, x: tf.Tensor) -> tf.Tensor:
        squares = tf.square(self.lengthscale) / (2 * self.smoothness)
        return -self.exponent * tf.math.log1p((tf.square(x) - self.alpha**2) * squares)

    @cached_property
    def _log_odds(self) -> tf.Tensor:
        """The logarithm of the factor of :func:`heat_at_angles`, the eigenvalue of degree zero
        being one and times being divided by the longest."""
        s = self.exponent
        constant = s * np.log(2 * self.smoothness) + log_heat_constant(self.dimension) - gammaln(s)
        log_odds = self.smoothness * tf.math.log(self._longest) + constant
        return log_odds - 2 * s * tf.math.log(self.lengthscale)

    def _short(self, rule: _LogRule) -> tf.Tensor:
        """The amplitudes, before that factor."""
        decay = tf.exp(-self.curvature * self._longest * rule.fractions)
        return rule.weights(self.smoothness) * decay

    @cached_property
    def _long(self) -> tf.Tensor:
        """N(d, l) S, less what belongs to the short times."""
        levels, s = _levels_needed(self.dimension), self.exponent
        l = np.arange(levels)[:, None]
        rates = self._longest * (self._lowest + l * (l + self.dimension - 2.0))
        log_rates, log_weights = tf.math.log(rates), np.log(self._rule.weights(s)) - gammaln(s)
        shares = tf.exp(log_weights + s * log_rates - rates * self._rule.fractions)
        log_sizes = np.log(level_multiplicities(self.dimension, levels))
        values = tf.exp(log_sizes + s * (log_rates[0] - log_rates[:, 0]))
        return values * (1 - tf.reduce_sum(shares, axis=1))

    @cached_property
    def _rule(self) -> _LogRule:
        return _LogRule.accurate(self.exponent, is_tabulated=True)

    @cached_property
    def _total(self) -> tf.Tensor:
        """Both parts at t = 1, weighted by their odds."""
        heat = heat_at_one(self._longest * self._rule.fractions, self.dimension)
        short, long = tf.reduce_sum(heat * self._short(self._rule)), tf.reduce_sum(self._long)
        for_short, for_long = tf.unstack(self._shares)
        return for_short * short + for_long * long

    @cached_property
    def _shares(self) -> tf.Tensor:
        """Of the two parts, ``[2]``. Either can be tiny, and its part huge."""
        return tf.sigmoid(tf.stack([self._log_odds, -self._log_odds]))

    @cached_property
    def _log_normaliser(self) -> tf.Tensor:
        return tf.math.log(self._total) + tf.math.softplus(self._log_odds)

    def _mixture(self, is_tabulated: bool) -> HeatMixture:
        rule = _LogRule.accurate(self.exponent, is_tabulated)
        for_short, for_long = tf.unstack(self._shares / self._total)
        is_all = self._longest < longest_time(self.dimension)
        return HeatMixture(
            times=self._longest * rule.fractions,
            amplitudes=for_short * self._short(rule),
            onset=for_short / self._longest**self.smoothness,
            weights=for_long * self._long,
            num_levels=tf.where(is_all, 0, _levels_needed(self.dimension)),
            reach=self._reach,
        )
