"""Legendre polynomials on an interval, and integrals of their products with each other and waves.

The polynomials are P_1, ..., P_k of t, from -1 to 1. Derivatives are with respect to t.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from scipy.special import eval_legendre, roots_legendre, spherical_jn

from ..._arguments import Array

MOST_DEGREES = 3
"""The largest useful degree: f and two derivatives of it may differ between the two ends."""


def polynomials(degree: int, t: tf.Tensor) -> tf.Tensor:
    """The values of ``P_1, ..., P_k`` at t ``[...]``, ``[k, ...]``."""
    values = [tf.ones_like(t), t]
    for n in range(1, degree):
        values.append(((2 * n + 1) * t * values[n] - n * values[n - 1]) / (n + 1))
    return tf.stack(values[1 : degree + 1])


def derivatives(degree: int, count: int, t: Array) -> Array:
    """The polynomials and their first ``count - 1`` derivatives at t ``[n]``, ``[count, k, n]``."""
    values: Array = _series(degree, count) @ eval_legendre(np.arange(degree + 1)[:, None], t)
    return values


def acted(degree: int, order: int, t: tf.Tensor, spread: tf.Tensor) -> tf.Tensor:
    """The averages of a derivative of ``P_1, ..., P_k`` around t ``[n]``, ``[k, n]``.

    The fourth derivatives are zero: a symmetric average adds half the spread times the second
    derivative.

    :param order: The order of the derivative.
    :param spread: The variance of the points that are averaged, ``[n]`` or a number.
    """
    values = tf.concat([tf.ones_like(t)[None], polynomials(degree, t)], axis=0)
    series = tf.constant(_series(degree, order + 3), t.dtype)
    curved = tf.matmul(series[order + 2], values)
    return tf.matmul(series[order], values) + spread / 2 * curved


def products(degree: int, count: int) -> Array:
    """The integrals over t of products of two derivatives, ``[count, count, k, k]``."""
    nodes, weights = roots_legendre(degree + 1)
    values = derivatives(degree, count, nodes)
    integrals: Array = np.einsum("ikn,jln,n->ijkl", values, values, weights)
    return integrals


def transforms(degree: int, count: int, num_frequencies: int) -> npt.NDArray[np.complex128]:
    """The integrals over t of derivatives times ``exp(i pi m (t + 1))``, m = 0, ...,
    num_frequencies, ``[count, k, num_frequencies + 1]``. The integral for P_l itself is
    ``2 i^l j_l(pi m) (-1)^m``, with the spherical Bessel function j_l."""
    numbers, orders = np.arange(num_frequencies + 1), np.arange(degree + 1)[:, None]
    bessel = spherical_jn(orders, np.pi * numbers)
    legendre_integrals = 2 * 1j**orders * (-1.0) ** numbers * bessel
    integrals: npt.NDArray[np.complex128] = _series(degree, count) @ legendre_integrals
    return integrals


def _series(degree: int, count: int) -> Array:
    """The coefficients of derivatives 0 to ``count - 1`` in P_0, ..., P_k, ``[count, k, k + 1]``:
    the derivative of P_l is the sum of ``(2 j + 1) P_j`` over j = l - 1, l - 3, ..."""
    j = np.arange(degree + 1)
    derivative = np.where((j < j[:, None]) & ((j[:, None] - j) % 2 == 1), 2 * j + 1, 0)
    powers = [np.linalg.matrix_power(derivative, n)[1:] for n in range(count)]
    return np.array(powers, float)
