"""The collapsed bound of sparse regression, from sums over the data alone.

With a root R of Kuu, ``Phi = Kuf Kfu``, ``Psi = Kuf (Y - m)`` and the noise variance s (Titsias
2009, eq. 9):

    B = I + R^{-1} Phi R^{-T} / s = L L^T,    c = L^{-1} R^{-1} Psi / s,
    bound = -N P log(2 pi s) / 2 - P log|L| - P (tr Kff - tr R^{-1} Phi R^{-T}) / (2 s)
            - (|Y - m|^2 / s - |c|^2) / 2.

A row of weight w has the noise variance s / w. It enters all sums over rows with the factor w, and
the weights add ``P sum log w / 2`` to the bound.

The two traces are over blocks whose features leave out a part of their kernel. For all other blocks
the traces are equal.

All computations are in float64, whatever the default float: sums over millions of rows cancel.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from .._arguments import BoolArray
from ..linalg.precision import checked
from .protocol import Collapsed

_ROUNDING = 1e-3
"""The largest accepted rounding error of the bound, relative to a nat a row or squared errors."""

_LOST = (
    "data: the bound is lost to rounding, because Y is too far from the mean function for so small "
    "a noise variance; pass mean_function=gpflow.functions.Constant(Y.mean(axis=0)), or "
    "(Y - Y.mean(axis=0)) / Y.std(axis=0) as Y."
)


def from_reference(weights: tf.Tensor, reference: tf.Tensor) -> tf.Tensor:
    """The weights of the columns h of the mean function minus a reference of Y, ``[H, P]``; the
    last column is one.

    :param reference: The level that was subtracted from Y, ``[P]``.
    """
    return tf.concat([weights[:-1], weights[-1:] - reference], axis=0)


def residual_of(weights: tf.Tensor) -> tf.Tensor:
    """The matrix ``[P + H, P]`` that maps ``(y - r, h)`` to ``y - m``.

    :param weights: The weights of the columns h of the mean function minus the reference r,
        ``[H, P]``.
    """
    return tf.concat([tf.eye(weights.shape[1], dtype=weights.dtype), -weights], axis=0)


def bound(
    collapsed: Collapsed,
    targets: tf.Tensor,
    weights: tf.Tensor,
    prior_variance: tf.Tensor,
    incomplete: BoolArray,
    noise_variance: tf.Tensor,
    num_rows: tf.Tensor,
    *,
    log_weights: tf.Tensor | float = 0.0,
    log_variances: tf.Tensor | None = None,
    charge: str = "trace",
    refuse: bool = True,
) -> tf.Tensor:
    """The lower bound on the log marginal likelihood.

    The features do not explain ``t = tr W (Kff - Qff) / s`` of the prior variance of N rows, with
    the diagonal W of weights. The charge for t is ``t / 2``, or ``N log(1 + t / N) / 2``, which is
    never more. The second charge gives a bound for any weights: a ``q(f | u)`` with v times the
    prior covariance costs ``N (v - 1 - log v) / 2 + v t / 2``, least at ``v = N / (N + t)``. (One v
    per row would need a sum of logarithms, whose terms depend on the kernel.)

    :param targets: The sum of ``t t^T`` with ``t = (y - r, h)``, ``[P + H, P + H]``.
    :param weights: See :func:`residual_of`.
    :param prior_variance: The sum of ``K(x_n, x_n)`` for blocks that leave out a part of their
        kernel.
    :param incomplete: Whether a feature belongs to such a block, ``[M]``.
    :param log_weights: The sum of ``log w`` over rows.
    :param log_variances: The sum of ``log 2 pi s`` over whitened rows, whose s differ; the charge
        is then by the trace.
    :param charge: "trace" or "log".
    :param refuse: Whether to raise if the bound cannot be computed; if False, it is NaN.
    :raises tf.errors.InvalidArgumentError: If a matrix cannot be factorised, or the bound is lost
        to rounding.
    """
    log_determinant, explained_fit = collapsed.terms(noise_variance, refuse=refuse)
    residual, num_outputs = residual_of(weights), weights.shape[1]
    squared_error = tf.reduce_sum(residual * tf.matmul(targets, residual))
    explained = collapsed.explained_variance(incomplete)
    unexplained = (prior_variance - explained) / noise_variance
    fit = squared_error / noise_variance - explained_fit
    if log_variances is None:
        if charge == "log":  # rounding may make a difference negative
            unexplained = num_rows * tf.math.log1p(tf.maximum(unexplained / num_rows, 0.0))
        log_variances = num_rows * tf.math.log(2 * np.pi * noise_variance) - log_weights
    value = -(num_outputs * (log_variances + log_determinant + unexplained) + fit) / 2
    # The fit is a difference of squares; only rounding makes it negative.
    nats = tf.maximum(num_outputs * num_rows, fit)
    rounding = np.finfo(np.float64).eps * squared_error / noise_variance
    lost = (rounding > _ROUNDING * nats) | (fit < -_ROUNDING * nats)
    ok = tf.where(lost, tf.zeros([], tf.float64), 1.0)
    value = tf.where(lost, tf.constant(np.nan, tf.float64), value)
    (value,) = checked(ok, [value], [()], _LOST if refuse else None)
    return value
