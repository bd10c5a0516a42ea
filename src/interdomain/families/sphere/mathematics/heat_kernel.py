"""The heat kernel on the sphere at short times, for which its series of harmonics is long.

With ``x = l + (d - 2) / 2``, the kernel ``p(time, t) = sum_l N(d, l) exp(-time x^2) P_l(t)`` solves
the heat equation of the Laplace-Beltrami operator minus ``((d - 2) / 2)^2``. As time goes to zero,
it becomes the Gaussian of the flat space, times a factor of the curvature. At ``t = cos(theta)``,

    p = C time^(-(d - 1) / 2) (theta / sin theta)^alpha
        exp(-theta^2 / (4 time) + g_1(theta) time + g_2(theta) time^2 + ...),  alpha = (d - 2) / 2,

the expansion of Minakshisundaram and Pleijel (1949), written for the logarithm. Without the factor
``(theta / sin theta)^alpha``, the heat equation is that of the flat space with a potential
``W = alpha (alpha - 1) (1 / sin^2(theta) - 1 / theta^2)``, which gives

    j g_j + theta g_j' = g_(j-1)'' + (2 alpha / theta) g_(j-1)' + sum_i g_i' g_(j-1-i)' - [j = 1] W,

where each g_j is a power series in theta^2. On the circle and on S^3 all g_j are zero.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import tensorflow as tf
from scipy.special import gammaln, zeta

from ...._arguments import Array

_NUM_ORDERS = 8  # g_1, ..., g_8
_NUM_POWERS = 12  # powers of theta^2 in each g_j
_EXPONENTS: Array = np.array([*range(_NUM_ORDERS + 1), -1.0])  # exponents of time
_REACH = 42.0
"""The kernel is zero in float64 if ``theta^2 / (4 time)`` exceeds this value."""


def longest_time(dimension: int) -> float:
    """The time up to which the expansion is accurate to 1e-12 of its value at t = 1."""
    return 0.02 / max(1.0, 0.1 * (dimension - 2) / 2)


def log_heat_constant(dimension: int) -> float:
    """The logarithm of C, the limit of ``time^((d - 1) / 2) p(time, 1)``."""
    return float(gammaln((dimension - 1) / 2) - gammaln(dimension - 1))


@lru_cache(maxsize=64)
def _log_coefficients(dimension: int) -> Array:
    """The coefficients ``[m, j]`` of theta^(2 m) time^j in the log of the curvature factor."""
    alpha = (dimension - 2) / 2
    num = _NUM_POWERS + _NUM_ORDERS  # each order has one power less than the previous order
    m = np.arange(num + 1.0)
    zetas = zeta(2 * m + 2) / np.pi ** (2 * m + 2)
    potential = alpha * (alpha - 1) * 2 * (2 * m + 1) * zetas
    orders = [np.append(0.0, alpha * zetas[:-1] / (m[:-1] + 1))]  # alpha log(theta / sin theta)
    for j in range(1, _NUM_ORDERS + 1):
        source = -potential
        if j > 1:
            source = np.append((2 * m[1:] - 1 + 2 * alpha) * 2 * m[1:] * orders[-1][1:], 0.0)
            for i in range(1, j - 1):
                product = np.convolve(2 * m * orders[i], 2 * m * orders[j - 1 - i])
                source += product[1 : num + 2]
        orders.append(source / (j + 2 * m))
    coefficients: Array = np.array(orders)[:, :_NUM_POWERS].T.copy()
    coefficients.setflags(write=False)
    return coefficients


def heat_at_angles(squared_angles: tf.Tensor, times: tf.Tensor, dimension: int) -> tf.Tensor:
    """The values ``time^((d - 1) / 2) p / C``, at most about one, of angles and times, ``[n, K]``.

    :param squared_angles: theta^2, ``[n]``, in float64, without gradient.
    :param times: ``[K]``, positive, up to :func:`longest_time`.
    """
    squares = tf.stop_gradient(squared_angles)
    # The series in theta^2 converges up to pi. At larger angles, the kernel is zero.
    near = tf.minimum(squares, 4 * _REACH * longest_time(dimension))
    powers = tf.math.cumprod(near[:, None] * np.ones(_NUM_POWERS), axis=1, exclusive=True)
    orders = tf.matmul(powers, tf.constant(_log_coefficients(dimension)))
    # One product of matrices, with an additional column for the Gaussian.
    factors = tf.concat([orders, -0.25 * squares[:, None]], axis=1)
    return tf.exp(tf.matmul(factors, times ** _EXPONENTS[:, None]))


def heat_at_one(times: tf.Tensor, dimension: int) -> tf.Tensor:
    """The values of :func:`heat_at_angles` at angle zero, ``[K]``."""
    return heat_at_angles(tf.zeros([1], tf.float64), times, dimension)[0]


def heat_at_haversines(haversines: tf.Tensor, times: tf.Tensor, dimension: int) -> tf.Tensor:
    """The values of :func:`heat_at_angles` at ``sin(theta / 2)^2``, with the gradient to it.

    The slope of p with respect to t is d times the p of a sphere of two more dimensions.
    """

    @tf.custom_gradient
    def attach_slope(values: tf.Tensor, haversines: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            slopes = heat_at_haversines(haversines, times, dimension + 2) / -times
            return upstream, tf.reduce_sum(upstream * slopes, axis=1)

        return tf.identity(values), gradient

    angles = angles_of(tf.stop_gradient(haversines))
    return attach_slope(heat_at_angles(tf.square(angles), times, dimension), haversines)


# The angles between unit vectors, as accurate as the vectors allow. A rounding error of 1e-16 in
# the inner product ``t = cos(angle)`` changes a small angle by 1e-16 divided by the angle. This
# error matters for a kernel with a short lengthscale. The haversine, ``sin(angle / 2)^2``, is a
# quarter of the squared distance between the vectors, and resolves small angles.

_GRID = 2.0**26
_COINCIDENT = 2.5e-21
"""The haversine, of an angle of 1e-10, below which vectors count as equal; the error is 1e-24."""


def angles_of(haversines: tf.Tensor) -> tf.Tensor:
    """The angles in [0, pi] of some haversines; rounding errors outside [0, 1] are clipped."""
    return 2 * tf.asin(tf.sqrt(tf.clip_by_value(haversines, 0, 1)))


def haversines(unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
    """The haversines of all pairs of unit vectors of two arrays, or of each batch with itself.

    :param unit: ``[batch..., N, d]``, in float64; ``unit2`` is ``[batch2..., N2, d]``.
    :return: ``[batch..., N, batch2..., N2]``, or ``[batch..., N, N]``.
    """
    if unit2 is None or unit.shape.rank == unit2.shape.rank == 2:
        return _between(unit, unit if unit2 is None else unit2)
    size = unit.shape[-1]
    flat = _between(tf.reshape(unit, [-1, size]), tf.reshape(unit2, [-1, size]))
    return tf.reshape(flat, tf.concat([tf.shape(unit)[:-1], tf.shape(unit2)[:-1]], axis=0))


@tf.custom_gradient
def _between(unit: tf.Tensor, unit2: tf.Tensor) -> Any:
    """The haversines ``(1 - u.v) / 2`` of all pairs, without rounding of large terms.

    A vector is split into ``u = a + b``, where a has multiples of 2^-26. Products of these, and
    their sums up to two, are exact in float64. So in ``1 - u.v = (1 - a.a') - (a.b' + b.v)``, the
    first bracket is exact, and the terms of the second are small.
    """
    coarse, rest = _split(unit)
    coarse2, rest2 = (coarse, rest) if unit2 is unit else _split(unit2)
    left = tf.concat([coarse, rest], axis=-1)
    right = tf.concat([rest2, unit2], axis=-1)
    gaps = 1 - tf.matmul(coarse, coarse2, transpose_b=True)
    halves = 0.5 * (gaps - tf.matmul(left, right, transpose_b=True))

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        upstream *= -0.5
        return tf.matmul(upstream, unit2), tf.matmul(upstream, unit, transpose_a=True)

    return tf.where(halves < _COINCIDENT, tf.zeros([], halves.dtype), halves), gradient


def _split(unit: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The parts a and b of unit vectors; a + b has length one to twice the digits of float64."""
    coarse = tf.round(unit * _GRID) * (1 / _GRID)
    rest = unit - coarse
    # |u|^2 = |a|^2 + b.(a + u)
    excess = tf.reduce_sum(tf.square(coarse), axis=-1, keepdims=True) - 1
    excess += tf.reduce_sum(rest * (coarse + unit), axis=-1, keepdims=True)
    return coarse, rest - 0.5 * excess * unit
