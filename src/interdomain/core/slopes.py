"""Derivatives of functions of rows along a tangent, as gradients of gradients.

The gradient to the inputs is linear in the upstream gradient, so its derivative by the upstream
gradient is the slope. TensorFlow's forward accumulators fail in compiled functions, and record
nothing in ``tf.init_scope``, where tapes record nothing either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import tensorflow as tf

from .._tracing import compiled

Function: TypeAlias = Callable[[tf.Tensor], tf.Tensor]
"""A function from inputs ``[n, D]`` to values ``[n, C]``, each row by itself."""


def slope_along(function: Function, inputs: tf.Tensor, tangent: tf.Tensor) -> tf.Tensor:
    """The derivative of a function at inputs along a tangent, both ``[n, D]``: ``[n, C]``."""
    if not tf.executing_eagerly():
        return _slope_in_graph(function, inputs, tangent)
    if _is_recording():
        return _slope_by_tapes(function, inputs, tangent)
    return compiled(partial(_slope_in_graph, function))(inputs, tangent)


def _is_recording() -> bool:
    """Whether gradient tapes record operations here."""
    somewhere = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(somewhere)
        double = 2 * somewhere
    return tape.gradient(double, somewhere) is not None


def _slope_by_tapes(function: Function, inputs: tf.Tensor, tangent: tf.Tensor) -> tf.Tensor:
    """The derivative of a function along a tangent, outside of graphs."""
    inputs = tf.identity(inputs)
    with tf.GradientTape(watch_accessed_variables=False) as outer:
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(inputs)
            values = function(inputs)
        upstream = tf.ones_like(values)
        outer.watch(upstream)
        gradient = inner.gradient(values, inputs, upstream)
    slopes = None if gradient is None else outer.gradient(gradient, upstream, tangent)
    return tf.zeros_like(values) if slopes is None else slopes


def _slope_in_graph(function: Function, inputs: tf.Tensor, tangent: tf.Tensor) -> tf.Tensor:
    """The derivative of a function along a tangent, in a graph."""
    inputs = tf.identity(inputs)
    values = function(inputs)
    upstream = tf.ones_like(values)
    (gradient,) = tf.gradients(values, [inputs], [upstream])
    slopes = None if gradient is None else tf.gradients(gradient, [upstream], [tangent])[0]
    return tf.zeros_like(values) if slopes is None else slopes
