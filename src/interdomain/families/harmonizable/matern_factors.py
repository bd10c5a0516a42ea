"""Products over columns of Matern functions, and their spectra under a Gaussian window."""

from __future__ import annotations

import math
import operator
from functools import reduce

import numpy as np
import tensorflow as tf
from gpflow.utilities.ops import difference_matrix
from scipy.special import factorial, wofz

from ..._arguments import Array
from ..._tracing import numpy_function
from ...linalg.radial_terms import matern12, matern32, matern52

_MATERN_FUNCTIONS = (matern12, matern32, matern52)
_MATERN_COEFFICIENTS = ((1.0,), (1.0, 1.0), (1.0, 1.0, 1 / 3))
"""The coefficients of the polynomials that multiply ``exp(-r)`` in the Matern functions."""


def matern_of_lag(
    X: tf.Tensor, X2: tf.Tensor | None, precision: tf.Tensor, order: int
) -> tf.Tensor:
    """The product over columns of Matern functions of the differences of all inputs
    ``[..., N, D]``, with the lengthscales of a squared exponential of the given precision."""
    scaled = tf.square(difference_matrix(X, X2) * _matern_rates(precision, order))
    no_error = tf.zeros([], X.dtype)  # differences of columns have no rounding error
    function = _MATERN_FUNCTIONS[order]
    return reduce(operator.mul, [function(s, no_error)[0] for s in tf.unstack(scaled, axis=-1)])


def _matern_rates(precision: tf.Tensor, order: int) -> tf.Tensor:
    return 2 * math.pi * tf.sqrt((2 * order + 1) * tf.linalg.diag_part(precision))


def matern_densities(
    w: tf.Tensor, precision: tf.Tensor, envelope: tf.Tensor, order: int
) -> tf.Tensor:
    """The spectral density of a product of Matern functions, smoothed by the window's
    ``N(0, envelope / 4)``: the product over the columns of w ``[..., D]`` of Voigt-like profiles

        2 Re int_0^inf (sum_n c_n (rate t)^n) exp(-rate t - pi^2 envelope t^2 / 2 - 2 pi i w t) dt.

    The densities have no gradient.
    """

    def values(w: Array, rates: Array, envelope: Array) -> Array:
        slope, curvature = rates + 2j * np.pi * w, np.broadcast_to(np.pi**2 * envelope / 2, w.shape)
        moments = _moments(slope, curvature, order)
        terms = [c * rates**n * moments[n] for n, c in enumerate(_MATERN_COEFFICIENTS[order])]
        return np.asarray(np.prod(2 * np.real(sum(terms)), axis=-1), w.dtype)

    arguments = [w, _matern_rates(precision, order), tf.linalg.diag_part(envelope)]
    return tf.ensure_shape(numpy_function(values, arguments, w.dtype), w.shape[:-1])


def _moments(slope: Array, curvature: Array, order: int) -> list[Array]:
    """The integrals ``int_0^inf t^n exp(-slope t - curvature t^2) dt`` for n = 0, ..., ``order``.

    The integral for n = 0 is a Faddeeva function; the others follow by parts. If that would cancel,
    all are asymptotic series, cut off when terms are below rounding. Re slope must be positive.
    """
    far = np.abs(slope) ** 2 > 256 * curvature
    a, b = np.where(far, 1.0, curvature), np.where(far, 1.0, slope)
    moments = [np.sqrt(np.pi / a) / 2 * wofz(1j * b / (2 * np.sqrt(a)))]
    for n in range(1, order + 1):
        before = (n - 1) * moments[n - 2] if n > 1 else 1.0
        moments.append((before - b * moments[-1]) / (2 * a))
    a, b = np.where(far, curvature, 0.0), np.where(far, slope, 1.0)
    for n in range(order + 1):
        terms = [
            factorial(n + 2 * k) / factorial(k) * (-a / b**2) ** k / b ** (n + 1) for k in range(20)
        ]
        moments[n] = np.where(far, sum(terms), moments[n])
    return moments
