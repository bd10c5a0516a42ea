"""The ends of boxes: rows beyond an end by no more than rounding are taken for rows at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array

_SHARE = 1e-9
"""The share of the length of a box: ``linspace`` and converted units have smaller errors."""

_ULPS = 8
"""Spacings of floats at the greater end, which matter in float32 and far from zero."""


def slack_of(lower: Any, upper: Any, dtype: Any) -> Array:
    """How far beyond an end of a box a row is taken for one at the end, ``[D]``.

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
    """The numbers x; a number beyond an end by no more than the slack is at the end."""
    ends = tf.constant(lower, x.dtype), tf.constant(upper, x.dtype)
    slack = tf.constant(float(slack_of(lower, upper, x.dtype)), x.dtype)
    clipped = tf.clip_by_value(x, *ends)
    return tf.where(tf.abs(x - clipped) <= slack, clipped, x)
