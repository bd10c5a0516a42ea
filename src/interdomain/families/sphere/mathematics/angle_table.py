"""Functions of an angle at many points, interpolated between the nodes of a table.

A series of fifty degrees needs about a hundred passes over a matrix of inner products. If its
highest degree is low, it is a smooth function of the angle. A table of values and slopes at nodes,
with cubic polynomials between the nodes, then needs only a few passes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from ...._arguments import Array

NUM_INTERVALS = 6144
"""The number of intervals, of equal size in the angle. The error is at most the fourth derivative
times ``(reach / NUM_INTERVALS)^4 / 384``: 2e-16 wavenumber^4 for a table up to pi."""

NODES: Array = np.linspace(0.0, 1.0, NUM_INTERVALS + 1)
"""The nodes, as fractions of the largest angle of the table."""


AtNodes: TypeAlias = tuple[tf.Tensor, tf.Tensor]
"""The values of a function at the nodes, and its derivatives with respect to the angle."""


@check_shapes("haversines: [any...]", "return: [any...]")
def tabulated(
    haversines: tf.Tensor,
    function: AtNodes,
    derivative: AtNodes,
    *,
    root: bool = False,
    reach: tf.Tensor | float = np.pi,
    dtype: tf.DType | None = None,
) -> tf.Tensor:
    """A function of the angle, by cubic Hermite interpolation.

    :param haversines: ``sin(angle / 2)^2``, in [0, 1]; rounding errors outside are clipped.
    :param function: The function at the nodes; it receives gradients.
    :param derivative: The derivative of the function with respect to ``t = cos(angle)``.
    :param root: Whether ``derivative`` is multiplied by ``(1 - t)^(1/2)``, because it diverges at
        t = 1. The angle then has no gradient at t = 1, where inputs coincide for all parameters.
    :param reach: The angle of the last node; the function is constant at larger angles.
    :param dtype: The dtype of the result, by default that of the haversines and the angles.
    """
    dtype = dtype or haversines.dtype
    step = tf.convert_to_tensor(reach, tf.float64) / NUM_INTERVALS
    # The factor -2, because t = 1 - 2 haversine.
    slopes = tf.stop_gradient(tf.cast(-2 * _cubics(derivative, step), dtype))

    @tf.custom_gradient
    def evaluate(haversines: tf.Tensor, table: tf.Tensor) -> Any:
        # The interval of each angle, and the position in it, from 0 to 1.
        position = tf.asin(tf.sqrt(tf.clip_by_value(haversines, 0, 1)))
        position *= tf.cast(2 / step, haversines.dtype)
        position = tf.minimum(position, NUM_INTERVALS)
        interval = tf.minimum(tf.cast(position, tf.int32), NUM_INTERVALS - 1)
        rest = tf.cast(position - tf.cast(interval, position.dtype), dtype)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            flat, powers = tf.reshape(interval, [-1]), tf.reshape(rest, [-1])
            values, sums = tf.reshape(upstream, [-1]), []
            for k in range(4):
                values = values * powers if k else values
                # tf.math.bincount is far faster than unsorted_segment_sum.
                sums.append(tf.math.bincount(flat, values, NUM_INTERVALS, NUM_INTERVALS))
            change = tf.cast(upstream * _look_up(slopes, interval, rest), haversines.dtype)
            if root:
                change *= tf.where(haversines > 0, tf.math.rsqrt(2 * haversines), 0)
            return change, tf.stack(sums)

        return _look_up(table, interval, rest), gradient

    return evaluate(haversines, tf.cast(_cubics(function, step), dtype))


def _cubics(nodes: AtNodes, step: tf.Tensor) -> tf.Tensor:
    """The cubic polynomials' coefficients, constants first, ``[4, NUM_INTERVALS]``."""
    values, slopes = nodes[0], nodes[1] * step
    rise, left, right = values[1:] - values[:-1], slopes[:-1], slopes[1:]
    return tf.stack([values[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise])


def _look_up(table: tf.Tensor, interval: tf.Tensor, rest: tf.Tensor) -> tf.Tensor:
    total = tf.gather(table[3], interval)
    for k in (2, 1, 0):
        total = total * rest + tf.gather(table[k], interval)
    return total
