"""The ends of boxes: a row that only rounding puts outside of a box counts as a row at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array

_SHARE = 1e-9
"""The tolerance as a share of a box's length; ``linspace`` and converted units err by less."""

_ULPS = 8
"""The tolerance in float spacings at the greater end; it matters in float32 and far from zero."""


def slack_of(lower: Any, upper: Any, dtype: Any) -> Array:
    """The largest distance from a box at which a row still counts as a row at its end, ``[D]``.

    :param lower: The lower end, ``[D]`` or a number.
    :param upper: The upper end.
    :param dtype: The type of the rows.
    """
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    eps = float(np.finfo(tf.as_dtype(dtype).as_numpy_dtype).eps)
    slack: Array = np.maximum(
        _SHARE * (upper - lower), _ULPS * eps * np.maximum(np.abs(lower), np.abs(upper))
    )
    return slack


def with_ends(x: tf.Tensor, lower: float, upper: float) -> tf.Tensor:
    """The numbers x; a number outside of the box by no more than the slack is moved to the end."""
    ends = tf.constant(lower, x.dtype), tf.constant(upper, x.dtype)
    slack = tf.constant(float(slack_of(lower, upper, x.dtype)), x.dtype)
    clipped = tf.clip_by_value(x, *ends)
    return tf.where(tf.abs(x - clipped) <= slack, clipped, x)
