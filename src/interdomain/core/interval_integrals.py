"""Integrals over intervals of stationary kernels of one column, in closed form.

With ``u = |lag| / scale``, a kernel k(u) has a second antiderivative ``c u + g(u)``, where g
decays. A covariance of two means over intervals is a second difference of it, and that of a mean
and a value a first difference of its slope. The second difference of ``c u`` is a multiple of the
density of the difference of two uniform errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from gpflow.kernels import Exponential, Matern12, Matern32, Matern52, SquaredExponential

_LEAST_WIDTHS = {tf.float64: 2e-3, tf.float32: 0.3}
"""The least width of a mean in units of the scale; differences over shorter ones lose digits."""


class Antiderivative(NamedTuple):
    """A kernel k(u) of variance one: ``k = g''``, and ``c = -g'(0)``.

    :ivar scale: The length by which lags are divided.
    :ivar slope: The constant c.
    """

    scale: tf.Tensor
    slope: float
    second: Callable[[tf.Tensor], tf.Tensor]
    first: Callable[[tf.Tensor], tf.Tensor]


_GAUSSIAN = math.sqrt(math.pi / 2)


def antiderivative(kernel: Any, lengthscale: tf.Tensor) -> Antiderivative | None:
    """The antiderivatives of a kernel of one column; None if they are not known."""
    if isinstance(kernel, (Matern12, Exponential)):
        scale = lengthscale * (2 if isinstance(kernel, Exponential) else 1)
        return Antiderivative(scale, 1.0, lambda u: tf.exp(-u), lambda u: -tf.exp(-u))
    if isinstance(kernel, Matern32):
        return Antiderivative(
            lengthscale / math.sqrt(3),
            2.0,
            lambda u: (3 + u) * tf.exp(-u),
            lambda u: -(2 + u) * tf.exp(-u),
        )
    if isinstance(kernel, Matern52):
        return Antiderivative(
            lengthscale / math.sqrt(5),
            8 / 3,
            lambda u: (15 + 7 * u + u**2) / 3 * tf.exp(-u),
            lambda u: -(8 + 5 * u + u**2) / 3 * tf.exp(-u),
        )
    if isinstance(kernel, SquaredExponential):
        return Antiderivative(
            lengthscale,
            _GAUSSIAN,
            lambda u: tf.exp(-(u**2) / 2) - _GAUSSIAN * u * tf.math.erfc(u / math.sqrt(2)),
            lambda u: -_GAUSSIAN * tf.math.erfc(u / math.sqrt(2)),
        )
    return None


def are_long(known: Antiderivative, widths: Sequence[tf.Tensor]) -> tf.Tensor:
    """Whether all intervals are long enough for differences of antiderivatives."""
    least = tf.reduce_min([tf.reduce_min(width) for width in widths])
    return least >= tf.cast(_LEAST_WIDTHS.get(least.dtype, 0.3), least.dtype) * known.scale


def mean_over_intervals(
    known: Antiderivative, widths: Sequence[tf.Tensor], lag: tf.Tensor
) -> tf.Tensor:
    """The covariances of two means over intervals, or of means and values.

    :param widths: One or two widths, of the rank of ``lag``.
    """
    scale = known.scale
    if len(widths) == 1:
        (width,) = widths
        ends = [lag + width / 2, lag - width / 2]
        ends = [tf.sign(d) * (known.slope + known.first(tf.abs(d) / scale)) for d in ends]
        return (ends[0] - ends[1]) * scale / width
    product, reach = widths[0] * widths[1], (widths[0] + widths[1]) / 2
    inner = tf.abs(widths[0] - widths[1]) / 2
    values = [
        sign * known.second(tf.abs(lag + step) / scale)
        for sign, step in ((1, reach), (-1, inner), (-1, -inner), (1, -reach))
    ]
    overlap = tf.clip_by_value(reach - tf.abs(lag), 0 * inner, reach - inner)
    return (tf.add_n(values) * scale + 2 * known.slope * overlap) * scale / product
