"""Quadrature of averages of a stationary kernel over the difference of two errors, by column.

The covariance of two averages in a column is ``E k(lag + t)``. The number t is the difference of an
error of each row: uniform for a mean, Gaussian for a blur. Its density is a trapezoid, a Gaussian
or a smoothed box. Panels of a Gauss-Legendre rule end where the density or the kernel has a kink,
and are graded around the lag zero, where the kernel may be a narrow peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import roots_legendre

_NODES = 10
"""The number of nodes of a panel."""

_PEAK = (3.0, 9.0, 30.0)
"""The ends of panels around the lag zero, in lengthscales."""

_FINE_PEAK = (0.005, 0.05, 0.4, 3.0, 30.0)
"""The ends of panels if other columns have lags: the kink of a kernel is then rounded."""

_TAIL = 8.5
"""The deviations that a Gaussian error reaches; the rest has a probability of 2e-17."""

_BENDS = (2.5, 5.0)
"""The ends of panels of a Gaussian, in deviations."""

EVALUATIONS = _NODES * 16
"""A count of kernel evaluations for a covariance, to bound the memory."""


class Error(NamedTuple):
    """The error of a row in one column.

    :ivar width: The width of a uniform error; None if it is Gaussian.
    :ivar deviation: The standard deviation of a Gaussian error; None if it is uniform.
    """

    width: tf.Tensor | None = None
    deviation: tf.Tensor | None = None


def lag_rule(
    errors: Sequence[Error], lag: tf.Tensor, lengthscale: tf.Tensor, *, alone: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """The nodes ``lag + t`` and the weights of an average over t, each ``[..., Q]``.

    Gradients reach the nodes and the weights, but not the ends of panels inside of the range: the
    average does not depend on them.

    :param errors: The errors of one or two rows, of the shape of ``lag``.
    :param alone: Whether the lag of no other column matters.
    """
    widths = [error.width for error in errors if error.width is not None]
    deviations = [error.deviation for error in errors if error.deviation is not None]
    tiny = tf.constant(np.finfo(lag.dtype.as_numpy_dtype).tiny * 1e6, lag.dtype)
    if deviations:
        deviation = tf.sqrt(tf.add_n([tf.square(one) for one in deviations]))
        width = widths[0] if widths else tf.zeros_like(deviation)
        reach = width / 2 + _TAIL * deviation
        bends = (-_TAIL, *(-b for b in _BENDS), 0.0, *_BENDS) if widths else _BENDS
        knots = [(width / 2 + bend * deviation) / reach for bend in bends]
    else:
        width = tf.add_n(widths)
        reach = width / 2
        least = tf.minimum(widths[0], widths[-1]) if len(widths) == 2 else tf.zeros_like(width)
        most = width - least
        share = least / tf.where(most > 0, most, tf.ones_like(most))
        knots = [(1 - share) / (1 + share)] * (len(widths) == 2)
    knots = [sign * tf.clip_by_value(knot, 0.0, 1.0) for knot in knots for sign in (-1.0, 1.0)]
    edges = _PEAK if alone else _FINE_PEAK
    peak = [-lag + lengthscale * edge for edge in (0.0, *edges, *(-e for e in edges))]
    inner = [*knots, *(one / tf.maximum(reach, tiny) for one in peak)]
    shape = tf.broadcast_dynamic_shape(tf.shape(lag), tf.shape(reach))
    ends = tf.ones(shape, lag.dtype)
    inner = [tf.stop_gradient(tf.clip_by_value(one, -1.0, 1.0)) + 0 * ends for one in inner]
    nodes, weights = _panels(tf.sort(tf.stack([-ends, *inner, ends], axis=-1), axis=-1))
    if deviations:
        density = _smoothed_box(nodes * reach[..., None], width, deviation, boxed=bool(widths))
        return lag[..., None] + nodes * reach[..., None], weights * density * reach[..., None]
    if len(widths) == 2:
        height = (1 + share[..., None]) / 2
        slope = height * (1 - tf.abs(nodes)) / tf.maximum(share, tiny)[..., None]
        weights *= height * tf.minimum(slope, tf.ones_like(slope))
    else:
        weights /= 2
    return lag[..., None] + nodes * reach[..., None], weights


def _panels(knots: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The nodes and weights of panels between knots, ``[..., Q]``."""
    nodes, weights = (tf.constant(part, knots.dtype) for part in roots_legendre(_NODES))
    starts, halves = knots[..., :-1, None], (knots[..., 1:, None] - knots[..., :-1, None]) / 2
    shape = tf.concat([tf.shape(knots)[:-1], [(knots.shape[-1] - 1) * _NODES]], axis=0)
    places = starts + halves * (1 + nodes)
    return tf.reshape(places, shape), tf.reshape(halves * weights, shape)


def _smoothed_box(
    steps: tf.Tensor, width: tf.Tensor, deviation: tf.Tensor, *, boxed: bool
) -> tf.Tensor:
    """The density of a Gaussian error, or of the sum of a Gaussian and a uniform error."""
    deviation = deviation[..., None]
    if not boxed:
        normal = tf.exp(-tf.square(steps / deviation) / 2)
        return normal / (deviation * np.sqrt(2 * np.pi))
    # Differences of the distribution function lose digits if the box is narrow.
    share = float(np.finfo(steps.dtype.as_numpy_dtype).eps) ** (1 / 3)
    width = tf.maximum(width[..., None], share * deviation)
    distances = tf.abs(steps)
    scaled = [(distances - side * width / 2) / (deviation * np.sqrt(2)) for side in (1, -1)]
    return (tf.math.erfc(scaled[0]) - tf.math.erfc(scaled[1])) / (2 * width)
