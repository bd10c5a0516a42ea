"""Functions of an angle at many points, interpolated between nodes where they are computed.

A series of fifty degrees passes over a matrix of inner products some hundred times. But if its
highest degree is low, it is a smooth function of the angle. Then a table of values and slopes at
the nodes, with cubic polynomials between neighbours, costs only a few passes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from ...._arguments import Array

NUM_INTERVALS = 6144
"""Of equal size in the angle. The error is at most ``(reach / NUM_INTERVALS)^4 / 384`` times the
fourth derivative: 2e-16 times the fourth power of a wavenumber, if the table reaches pi."""

NODES: Array = np.linspace(0.0, 1.0, NUM_INTERVALS + 1)
"""The nodes, as fractions of the angle where the table ends."""


AtNodes: TypeAlias = tuple[tf.Tensor, tf.Tensor]
"""A function at the nodes, and its derivative with respect to the angle there."""


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

    :param haversines: ``sin(angle / 2)^2``, in [0, 1]; rounding errors beyond are clipped.
    :param function: Gradients flow to it.
    :param derivative: The derivative of the function with respect to ``t = cos(angle)``.
    :param root: Whether ``derivative`` is given times ``(1 - t)^(1/2)``, because it diverges at
        t = 1. There, at a pair that coincides for all parameters, no gradient flows to the angle.
    :param reach: The angle of the last node. The function is constant beyond.
    :param dtype: Of the result; that of the haversines, in which angles are computed, by default.
    """
    dtype = dtype or haversines.dtype
    step = tf.convert_to_tensor(reach, tf.float64) / NUM_INTERVALS
    # t = 1 - 2 haversine
    slopes = tf.stop_gradient(tf.cast(-2 * _cubics(derivative, step), dtype))

    @tf.custom_gradient
    def evaluate(haversines: tf.Tensor, table: tf.Tensor) -> Any:
        # The interval of each angle, and where in it, from 0 to 1.
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
                # Far faster than unsorted_segment_sum.
                sums.append(tf.math.bincount(flat, values, NUM_INTERVALS, NUM_INTERVALS))
            change = tf.cast(upstream * _look_up(slopes, interval, rest), haversines.dtype)
            if root:
                change *= tf.where(haversines > 0, tf.math.rsqrt(2 * haversines), 0)
            return change, tf.stack(sums)

        return _look_up(table, interval, rest), gradient

    return evaluate(haversines, tf.cast(_cubics(function, step), dtype))


def _cubics(nodes: AtNodes, step: tf.Tensor) -> tf.Tensor:
    """The coefficients in each interval, constant first, ``[4, NUM_INTERVALS]``."""
    values, slopes = nodes[0], nodes[1] * step
    rise, left, right = values[1:] - values[:-1], slopes[:-1], slopes[1:]
    return tf.stack([values[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise])


def _look_up(table: tf.Tensor, interval: tf.Tensor, rest: tf.Tensor) -> tf.Tensor:
    total = tf.gather(table[3], interval)
    for k in (2, 1, 0):
        total = total * rest + tf.gather(table[k], interval)
    return total
