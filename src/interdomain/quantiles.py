"""Quantiles of y at new points, under Gaussian, heteroscedastic and Student-t noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import scipy.stats
import tensorflow as tf
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian, HeteroskedasticTFPConditional, StudentT
from gpflow.models import GPModel
from scipy.special import gammaln, log_ndtr, ndtri
from tensorflow_probability import distributions

from ._arguments import Array, real_array, refusal, short
from ._targets import densities_of
from .serving import predict_in_batches

__all__ = ["predict_quantiles"]

_NODES = 160
"""The number of nodes of the trapezoidal rules; errors are rounding errors."""

_NEGLIGIBLE = 45.0
"""The logarithm of the ratio to the maximum, below which an integrand ends: exp(-45) = 3e-20."""

_STEPS = 60
"""Newton steps or bisections for a quantile, at most; six are usual."""

_ROWS_AT_A_TIME = 8_192


def predict_quantiles(
    model: Any,
    X: Any,
    levels: Any = (0.05, 0.5, 0.95),
    *,
    batch_size: int | None = None,
    progress: bool = True,
) -> Array:
    """Predict quantiles of y, such as the ends of intervals.

    f is Gaussian at each row, and y is f plus noise. With Gaussian noise, quantiles have a closed
    form. Student-t noise is a mixture: y given its weight lambda is Gaussian. The distribution
    function is an integral over ``log lambda``, and its roots are accurate to rounding errors.
    If the noise has its own latent GP, y given this latent GP is Gaussian.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> model = gpflow.models.GPR((X, np.sin(X)), gpflow.kernels.Matern32(), noise_variance=0.01)
    >>> low, high = np.moveaxis(idm.predict_quantiles(model, X, [0.05, 0.95]), 2, 0)
    >>> bool(np.all((low < np.sin(X)) & (np.sin(X) < high)))
    True

    :param model: A model of GPflow or of this library. Its likelihood is Gaussian, a StudentT of
        one scale, or a HeteroskedasticTFPConditional of normal distributions.
    :param X: Rows ``[N, D]``; see :func:`predict_in_batches`.
    :param levels: Probabilities ``[L]`` between 0 and 1; by default the median and the ends of a
        90% interval.
    :param batch_size: See :func:`predict_in_batches`.
    :param progress: See :func:`predict_in_batches`.
    :return: The quantiles of each output, ``[N, P, L]``, in the order of ``levels``.
    :raises ValueError: For all other likelihoods, for levels that are not probabilities, and for
        rows for which :func:`predict_in_batches` raises an error.
    """
    rule, remedy = "probabilities above 0 and below 1", "pass levels such as [0.05, 0.95]"
    probabilities = np.atleast_1d(real_array("levels", levels, rule, remedy))
    if probabilities.ndim != 1 or not np.all((probabilities > 0) & (probabilities < 1)):
        raise refusal("levels", f"be {rule}", short(levels), remedy)
    likelihood: Any = getattr(model, "likelihood", None)
    if not isinstance(model, GPModel) or not _is_known(likelihood):
        raise refusal(
            "model",
            "be a model of GPflow or interdomain with a Gaussian likelihood, a StudentT of one "
            "scale, or a HeteroskedasticTFPConditional of normal distributions",
            f"{type(model).__name__} with {type(likelihood).__name__}",
            "draw samples of y, and take their quantiles",
        )
    options: Any = {"batch_size": batch_size, "progress": progress}
    is_gaussian = isinstance(likelihood, Gaussian)
    method = "predict_y" if is_gaussian else "predict_f"
    moments = predict_in_batches(model, X, method=method, **options)
    mean, variance = (np.asarray(part, np.float64)[:, :, None] for part in moments)
    if is_gaussian:
        gaussian_quantiles: Array = mean + np.sqrt(variance) * ndtri(probabilities)
        return gaussian_quantiles
    upper_quantiles: Callable[..., Array]
    if isinstance(likelihood, StudentT):
        arguments, upper_quantiles = [variance[:, :, 0]], _under_student_t
    else:
        arguments = [variance[:, :1, 0], mean[:, 1:, 0], variance[:, 1:, 0]]
        mean, upper_quantiles = mean[:, :1], _under_noise_of_x
    distances = np.zeros([*mean.shape[:2], len(probabilities)])
    # Rounding gives the levels 0.05 and 0.95 the same tail.
    tails = np.round(np.minimum(probabilities, 1 - probabilities), 16)
    for tail in set(tails) - {0.5}:
        for start in range(0, len(mean), _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            parts = [part[rows] for part in arguments]
            upper = upper_quantiles(likelihood, *map(np.ravel, parts), tail=tail)
            distances[rows, :, tails == tail] = np.reshape(upper, [*parts[0].shape, 1])
    result: Array = mean + np.sign(probabilities - 0.5) * distances
    return result


def _is_known(likelihood: Any) -> bool:
    """Whether y given f, or given f and the scale of its noise, is Gaussian or Student-t."""
    kind = densities_of(likelihood)
    if kind is HeteroskedasticTFPConditional:
        latents = tf.zeros([1, 2], gpflow.default_float())
        noise = likelihood.conditional_distribution(latents)
        return type(noise) is distributions.Normal
    return kind is Gaussian or (kind is StudentT and not isinstance(likelihood.scale, Function))


def _number(value: Any) -> float:
    """The value of a scalar parameter or a float; TensorFlow would round the float to float32."""
    return float(value if isinstance(value, float) else tf.reshape(value, []))


def _under_student_t(likelihood: StudentT, variances: Array, *, tail: float) -> Array:
    """The values q ``[N]`` that a noisy y of mean zero exceeds with probability ``tail``.

    The integrals are those of :func:`interdomain.models.vecchia_sgpr.student_t.log_density`.

    :param variances: The variances of f, ``[N]``.
    """
    scale, degrees = _number(likelihood.scale), _number(likelihood.df)
    c = degrees / 2
    width = (_NEGLIGIBLE - np.log(tail)) / c
    low, high = -np.sqrt(2 * width) - width, np.log1p(width + np.sqrt(2 * width))
    u, step = np.linspace(low, high, _NODES, retstep=True)
    log_weights = c * (u - np.exp(u) + np.log(c)) - gammaln(c) + np.log(step)
    deviations = np.sqrt(variances[:, None] + scale**2 * np.exp(-u))
    f_deviations = np.sqrt(variances)
    # Adding f or noise spreads y, so the quantile of y exceeds the quantile of each. The sum
    # exceeds the sum of two bounds only if one of the two exceeds its own bound.
    noise = scipy.stats.t(degrees, scale=scale)
    lower = np.maximum(-f_deviations * ndtri(tail), noise.isf(tail))
    upper = -f_deviations * ndtri(tail / 2) + noise.isf(tail / 2)
    return _of_mixture(log_weights, deviations, tail, lower, upper)


def _under_noise_of_x(
    likelihood: HeteroskedasticTFPConditional,
    variances: Array,
    latent_means: Array,
    latent_variances: Array,
    *,
    tail: float,
) -> Array:
    """The values q ``[N]`` that a noisy y of mean zero exceeds with probability ``tail``, if the
    scale of the noise is a function of a Gaussian latent GP."""
    end = np.sqrt(2 * _NEGLIGIBLE)
    nodes = np.linspace(-end, end, _NODES)
    latents = latent_means[:, None] + np.sqrt(latent_variances)[:, None] * nodes
    scales = likelihood.scale_transform(tf.constant(latents, gpflow.default_float()))
    deviations = np.sqrt(variances[:, None] + np.square(np.asarray(scales, np.float64)))
    quantiles = -deviations * ndtri(tail)
    log_weights = -np.square(nodes) / 2
    log_weights -= np.logaddexp.reduce(log_weights)
    return _of_mixture(log_weights, deviations, tail, quantiles.min(1), quantiles.max(1))


def _of_mixture(
    log_weights: Array, deviations: Array, tail: float, lower: Array, upper: Array
) -> Array:
    """The values q ``[N]`` that mixtures of Gaussians of mean zero exceed with probability
    ``tail``. Newton steps for the logarithm of the probability stay within brackets.

    :param log_weights: The logarithms of the weights, ``[K]``.
    :param deviations: The standard deviations of the Gaussians, ``[N, K]``.
    :param lower: Lower bounds of q, ``[N]``; ``upper`` are upper bounds.
    """
    target, q, scale = np.log(tail), lower, lower
    for _ in range(_STEPS):
        standard = q[:, None] / deviations
        value = np.logaddexp.reduce(log_weights + log_ndtr(-standard), axis=1)
        slopes = np.exp(log_weights - np.square(standard) / 2 - value[:, None]) / deviations
        beyond = value < target
        upper, lower = np.where(beyond, q, upper), np.where(beyond, lower, q)
        new = q + (value - target) * np.sqrt(2 * np.pi) / np.sum(slopes, axis=1)
        new = np.where((new >= lower) & (new <= upper), new, (lower + upper) / 2)
        change, q = np.max(np.abs(new - q) / scale, initial=0.0), new
        if change < 1e-12:
            break
    return q
