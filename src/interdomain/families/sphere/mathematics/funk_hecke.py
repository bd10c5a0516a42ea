"""Funk-Hecke coefficients on S^{d-1}: eigenvalues of zonal kernels, coefficients of activations.

``lambda_l = 1 / B(1/2, (d-1)/2) * integral of kappa(t) P_l(t) (1 - t^2)^((d-3)/2) dt`` over [-1, 1]
(Dai & Xu, Theorem 1.2.9, for the uniform probability measure), with ``P_l(1) = 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from mpmath.ctx_mp import MPContext
from scipy.special import betaln, gammaln, roots_legendre

from ...._arguments import Array
from .dimensions import validate_dimension


@lru_cache(maxsize=64)
def funk_hecke_rule(
    dimension: int, max_degree: int, breaks: tuple[float, ...] = ()
) -> tuple[Array, Array]:
    """A quadrature rule for the coefficients of all degrees up to ``max_degree``, split at breaks.

    It is Gauss-Legendre quadrature in the angle theta, ``t = cos(theta)``, because functions with
    square-root singularities at t = -1 and t = 1 are smooth in theta.

    :return: Nodes t, ``[n]``, and the matrix ``[max_degree + 1, n]`` from values to coefficients.
    """
    validate_dimension(dimension)
    if any(not -1 < b < 1 for b in breaks):
        raise ValueError(f"breaks must lie inside (-1, 1), found {breaks}; pass only such values.")
    edges = np.concatenate([[0.0], np.sort(np.arccos(np.array(breaks, float))), [np.pi]])
    x, w = roots_legendre(max(100, max_degree + dimension))
    half = np.diff(edges)[:, None] / 2
    theta = (edges[:-1, None] + half * (x + 1)).ravel()
    t = np.cos(theta)
    weights = (half * w).ravel() * np.sin(theta) ** (dimension - 2)
    weights *= np.exp(-betaln(0.5, (dimension - 1) / 2))
    return t, np.stack(_gegenbauer_of_angles(theta, dimension, max_degree)) * weights


def _gegenbauer_of_angles(theta: Array, dimension: int, max_degree: int) -> list[Array]:
    """The polynomials P_0(t), ..., P_L(t) at t = cos(theta).

    Reinsch's recurrence sums differences ``P_{l+1} - P_l``, with ``1 - t = 2 sin^2(theta / 2)``.
    Near t = 1 the rounding of t itself would be multiplied by l^2. Negative t have the values of
    -t, with the sign ``(-1)^l``.
    """
    is_positive = theta < np.pi / 2
    x = 2 * np.sin(np.where(is_positive, theta, np.pi - theta) / 2) ** 2
    rows, difference = [np.ones_like(x)], -x
    for l in range(max_degree):
        if l > 0:
            difference = l * difference - (2 * l + dimension - 2) * x * rows[-1]
            difference /= l + dimension - 2
        rows.append(rows[-1] + difference)
    sign = np.where(is_positive, 1, -1)
    return [row * sign**l for l, row in enumerate(rows)]


def normalised_gegenbauer(t: Any, dimension: int, max_degree: int) -> list[Any]:
    """The polynomials P_0(t), ..., P_L(t), at a number of any precision."""
    rows = [t**0, t]
    for l in range(1, max_degree):
        rows.append(((2 * l + dimension - 2) * t * rows[-1] - l * rows[-2]) / (l + dimension - 2))
    return rows[: max_degree + 1]


@check_shapes("return: [L]")
def funk_hecke_coefficients(
    shape_function: Callable[[tf.Tensor], tf.Tensor],
    dimension: int,
    degrees: Sequence[int],
    *,
    breaks: tuple[float, ...] = (),
    dtype: tf.DType = tf.float64,
) -> tf.Tensor:
    """The Funk-Hecke coefficients of a function of the cosine t of an angle, by quadrature.

    They are differentiable in parameters of the function. The accuracy is *absolute*: about 1e-15
    times the function's largest value up to degree 60, and 2e-14 at degree 150. Smaller
    coefficients are noise. For squares of an activation's coefficients, square the result.

    :param shape_function: The function, from a tensor of values of t to a tensor of its values.
    :param dimension: The dimension d of the space around the sphere S^{d-1}.
    :param breaks: Values of t in (-1, 1) at which the function has a kink or a jump.
    """
    t, matrix = funk_hecke_rule(dimension, max(degrees), breaks)
    values = shape_function(tf.constant(t, dtype))
    return tf.linalg.matvec(tf.constant(matrix[list(degrees)], dtype), values)


def power_coefficient(power: int, dimension: int, degree: int) -> float:
    """The coefficient of the activation ``max(t, 0)^power``: step (0), ReLU (1), its square (2).

    It is exactly zero for the degrees l > power with l - power even.
    """
    l, p, d = degree, power, dimension
    half = (d - 1) / 2
    if l <= p:
        # The coefficients of the polynomial P_l, times the moments of t^m on (0, 1).
        moments = np.exp([betaln((p + i + 1) / 2, half) - betaln(0.5, half) for i in range(p + 1)])
        polynomials = [[1.0], [0.0, 1.0], [-1 / (d - 1), 0.0, d / (d - 1)]]
        return float(np.dot(polynomials[l], moments[: l + 1]) / 2)
    if (l - p - 1) % 2:
        return 0.0
    j, nu = (l - p - 1) // 2, l + (d - 3) / 2
    log_size = -l * np.log(2) + gammaln(half) + gammaln(2 * j + 1) + gammaln(nu + 1)
    log_size += gammaln(p + 1)
    log_size -= betaln(0.5, half) + gammaln(l + half) + gammaln(j + 1) + gammaln(nu - j + 1)
    return float((-1) ** (l + p + 1 + j) * np.exp(log_size))


# Funk-Hecke coefficients in extended precision. Coefficients of smooth functions fall far below the
# resolution 1e-15 of a quadrature in float64. They are multiplied by the growing numbers of
# harmonics, so they are needed to full *relative* accuracy.

ExtendedFunction: TypeAlias = Callable[[Any, Any], Any]
"""A function from an mpmath context and an angle theta to its value at ``t = cos(theta)``."""

_MAX_DIGITS = 1_000


def extended_coefficients(
    function: ExtendedFunction, dimension: int, degrees: Sequence[int]
) -> tuple[float, ...]:
    """The Funk-Hecke coefficients of a function that is smooth in (-1, 1), rounded to float64.

    :param function: A function that is smooth in the angle inside (0, pi).
    :param degrees: Degrees with nonzero coefficients.
    :raises ValueError: If 1,000 digits do not resolve a coefficient, which may be zero.
    """
    if not degrees:
        return ()
    digits = 40  # decimal digits; more are used if the coefficients need them
    while True:
        mp = MPContext()
        mp.dps = digits
        totals = _integrals(mp, function, dimension, degrees)
        sizes = [abs(total) for total in totals]
        # After the loss of digits by cancellation, the 17 digits of a float must remain.
        lost = float(mp.log10(max(sizes) / min(sizes))) if min(sizes) else float(digits)
        if lost < digits - 22:
            break
        digits = int(max(lost, digits)) + 30
        if digits > _MAX_DIGITS:
            raise ValueError(
                f"degrees: a coefficient among {tuple(degrees)} in dimension {dimension} is too "
                "small to be computed, or zero; leave out the degrees that are zero."
            )
    norm = 1 / mp.beta(mp.mpf(1) / 2, mp.mpf(dimension - 1) / 2)
    return tuple(float(norm * total) for total in totals)


def _integrals(
    mp: Any, function: ExtendedFunction, dimension: int, degrees: Sequence[int]
) -> list[Any]:
    """The integrals of ``function P_l sin(theta)^(d - 2)`` over theta for each degree l, by
    tanh-sinh quadrature, which has the same nodes for all degrees."""

    @cache
    def products(theta: Any) -> list[Any]:
        weight = function(mp, theta) * mp.sin(theta) ** (dimension - 2)
        polynomials = normalised_gegenbauer(mp.cos(theta), dimension, max(degrees))
        return [weight * p for p in polynomials]

    intervals = [0, mp.pi]
    return [mp.quad(lambda theta, l=l: products(theta)[l], intervals, maxdegree=9) for l in degrees]
