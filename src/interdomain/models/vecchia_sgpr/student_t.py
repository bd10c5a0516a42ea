"""Student-t noise as a mixture of Gaussian noises: weights of rows, the bound, steps, densities.

``y_n ~ N(f_n, s / (w_n lambda_n))`` with one ``lambda_n ~ Gamma(nu / 2, nu / 2)`` for all P outputs
of a row is a multivariate Student-t. With ``q(f) prod_n q(lambda_n)`` the optimal ``q(lambda_n)``
is ``Gamma(a, a / omega_n)`` with the shape ``a = (nu + P) / 2`` and the mean

    omega_n = (nu + P) / (nu + w_n r_n / s), r_n = sum_p E (y_np - f_np)^2

(Lange, Little and Taylor 1989; Tipping and Lawrence 2005). Then q(f) is the posterior for Gaussian
noises ``s / (w_n omega_n)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import tensorflow as tf
from scipy.special import gammaln, psi

from ..._arguments import Array

MOST_DEGREES = 1e3
"""The largest degrees of freedom, at which the noise is Gaussian to three digits."""

_NODES = 160
"""The number of nodes of the trapezoidal rule; with 160 the errors are rounding errors."""

_NEGLIGIBLE = 45.0
"""An integrand is cut off below its maximum times exp(-45) = 3e-20."""


def expected_weights(squares: Array, variance: float, degrees: float, num_outputs: int) -> Array:
    """The means ``omega`` of the weights of rows, ``[N]``, given q(f).

    :param squares: ``w_n r_n``, ``[N]``: the expected squares of the errors, summed over outputs,
        times the given weights.
    :param variance: s, the square of the scale.
    :param degrees: nu.
    """
    return (degrees + num_outputs) / (degrees + squares / variance)


def bound_of_weights(omega: Any, degrees: Any, num_outputs: int) -> tf.Tensor:
    """The bound minus the log evidence for Gaussian noises ``s / (w_n omega_n)``, ``[]``.

    It is ``sum_n P (E log lambda_n - log omega_n) / 2 - KL[q(lambda_n) || Gamma(c, c)]`` with ``c =
    nu / 2``, which for the optimal shape ``a = c + P / 2`` is

        sum_n log Gamma(a) - a log a + a - log Gamma(c) + c log c + c (log omega_n - omega_n).

    :param omega: The means of the weights, ``[N]``.
    :param degrees: nu, ``[]``; the result has gradients with respect to it.
    """
    omega = _float64(omega)
    c = _float64(degrees) / 2
    a = c + num_outputs / 2

    def gamma_term(shape: tf.Tensor) -> tf.Tensor:
        return tf.math.lgamma(shape) - shape * tf.math.log(shape) + shape

    constant = gamma_term(a) - gamma_term(c)
    # The constant includes -c, the maximum of c (log omega - omega).
    return tf.reduce_sum(constant + c * (tf.math.log(omega) - (omega - 1)))


def profile(squares: Array, variance: float, degrees: float, num_outputs: int) -> float:
    """The terms of the bound that depend on s and nu, with the optimal q(lambda) for each s and nu.

    They are the log densities of a multivariate Student-t, with the expected squares of the errors
    in place of the squares. The term ``sum_n P log(w_n) / 2`` is left out: it is constant.
    """
    return _profile(squares, variance, degrees, num_outputs)[0]


def _profile(
    squares: Array, variance: float, degrees: float, num_outputs: int
) -> tuple[float, Array]:
    """The value of :func:`profile`, and its gradient with respect to ``log s`` and ``log nu``."""
    c, a = degrees / 2, (degrees + num_outputs) / 2
    ratios = squares / (degrees * variance)
    logs, shares = np.sum(np.log1p(ratios)), np.sum(ratios / (1 + ratios))
    number, half = len(squares), num_outputs / 2
    log_normaliser = gammaln(a) - gammaln(c) - half * np.log(np.pi * degrees * variance)
    to_degrees = number * (psi(a) - psi(c) - 2 * half / degrees) / 2 - logs / 2
    to_log_degrees = degrees * to_degrees + a * shares
    gradient = np.array([a * shares - number * half, to_log_degrees])
    return float(number * log_normaliser - a * logs), gradient


def scale_and_degrees(
    squares: Array,
    variance: float,
    degrees: float,
    num_outputs: int,
    *,
    least_variance: float,
    least_degrees: float,
    trained: tuple[bool, bool] = (True, True),
) -> tuple[float, float]:
    """The s and nu that maximise :func:`profile`, by L-BFGS in their logarithms.

    The weights are at their optimum for each s and nu (Liu and Rubin 1994). Steps of s and nu at
    fixed weights have the same fixed point, and need many more passes.

    :param variance: The present s.
    :param degrees: The present nu.
    :param least_variance: The lower bound of s.
    :param least_degrees: The lower bound of nu.
    :param trained: Whether s is trained, and whether nu is.
    """
    present = np.log([variance, degrees])
    # For Gaussian noise s is the mean square; for any other noise it is less.
    most = 10 * max(float(np.mean(squares)) / num_outputs, least_variance)
    limits = np.log([least_variance, least_degrees]), np.log([most, MOST_DEGREES])
    bounds = [
        (low, high) if is_trained else (value, value)
        for low, high, value, is_trained in zip(*limits, present, trained, strict=True)
    ]

    def negative(logs: Array) -> tuple[float, Array]:
        s, df = np.exp(logs)
        value, gradient = _profile(squares, s, df, num_outputs)
        return -value / len(squares), -gradient / len(squares)

    start = [np.clip(value, *limit) for value, limit in zip(present, bounds, strict=True)]
    options = {"ftol": 1e-15, "gtol": 1e-10}
    result = scipy.optimize.minimize(negative, start, jac=True, bounds=bounds, options=options)
    variance, degrees = np.exp(result.x)
    return float(variance), float(degrees)


def log_density(
    mean: Any, variance: Any, scale: Any, degrees: Any, Y: Any, num_nodes: int = _NODES
) -> tf.Tensor:
    """The log predictive density of new rows y, ``[N]``, for a Gaussian f: it is joint over all
    outputs, which share lambda.

    Given lambda, y is Gaussian. The trapezoidal rule integrates over ``log lambda``, in which the
    integrand is analytic (Trefethen and Weideman 2014). GPflow's Gauss-Hermite rules over f miss
    the narrow density of the noise if f is uncertain.

    :param mean: The mean of f, ``[N, P]``.
    :param variance: The variance of f, ``[N, P]``; outputs are independent of each other.
    :param scale: The scale of the noise, ``[]`` or ``[N, 1]``: s is its square.
    :param degrees: nu, ``[]``.
    :param Y: The targets, ``[N, P]``.
    :param num_nodes: The number of nodes of the trapezoidal rule.
    """
    dtype = tf.convert_to_tensor(mean).dtype
    mean, variance, scale, degrees, Y = map(_float64, (mean, variance, scale, degrees, Y))
    s, c, squares = tf.square(scale), degrees / 2, tf.square(Y - mean)

    def logs(u: tf.Tensor) -> tf.Tensor:
        """The logarithm of the integrand at u = log lambda, ``[N, K]``."""
        total = variance[:, None] + s[..., None] * tf.exp(-u)[:, :, None]
        gaussian = squares[:, None] / total + tf.math.log(2 * np.pi * total)
        log_prior = c * (u - tf.exp(u) + 1)
        return log_prior - tf.reduce_sum(gaussian, axis=2) / 2

    shape = c + tf.shape(mean, tf.int64)[1] / 2
    tails = _NEGLIGIBLE / c
    # Modes are between the mean of lambda and its mean given errors that are only noise.
    lowest = -tf.math.log1p(tf.reduce_sum(squares / (2 * s * shape), axis=1))
    low = lowest - tf.sqrt(2 * tails) - tails
    high = tf.math.log(shape / c) + tf.math.log1p(tails + tf.sqrt(2 * tails)) + 0 * low
    nodes, step = _nodes(low, high, num_nodes)
    values = logs(nodes)
    # Repeat this on the range of the integrand, which is narrow for many degrees of freedom.
    counts = values > tf.reduce_max(values, axis=1, keepdims=True) - _NEGLIGIBLE
    low = tf.reduce_min(tf.where(counts, nodes, np.inf), axis=1) - step
    high = tf.reduce_max(tf.where(counts, nodes, -np.inf), axis=1) + step
    nodes, step = _nodes(low, high, num_nodes)
    constant = c * tf.math.log(c) - c - tf.math.lgamma(c)
    density = tf.reduce_logsumexp(logs(nodes), axis=1) + tf.math.log(step) + constant
    return tf.cast(density, dtype)


def _nodes(low: tf.Tensor, high: tf.Tensor, number: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Equidistant nodes ``[N, K]`` from ``low`` to ``high``, ``[N]``, and distances, ``[N]``."""
    low, high = tf.stop_gradient(low), tf.stop_gradient(high)
    step = (high - low) / (number - 1)
    return low[:, None] + step[:, None] * tf.range(number, dtype=tf.float64), step


def _float64(value: Any) -> tf.Tensor:
    """The value in float64. A cast alone would round a Python float to float32 first."""
    return tf.cast(np.float64(value) if isinstance(value, float) else value, tf.float64)
