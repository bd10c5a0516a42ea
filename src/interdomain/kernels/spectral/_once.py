"""Functions that are traced once for each shape, however often a graph calls them."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from ..._tracing import Function, compiled


def once_per_shape(function: Function) -> Function:
    """Decorate a function that graphs call many times with tensors of the same shapes.

    Each shape is traced once, and graphs call the traced function. Eager calls are left as they
    are. The arguments are tensors (nested as in ``tf.nest``) or None; the function must not use
    other tensors or variables.
    """

    @functools.lru_cache(maxsize=64)
    def traced(specs: tuple[Any, ...]) -> Any:
        def flat(*tensors: tf.Tensor) -> Any:
            given = iter(tensors)
            return function(
                *tf.nest.map_structure(lambda s: None if s is None else next(given), specs)
            )

        return compiled(flat, input_signature=[s for s in tf.nest.flatten(specs) if s is not None])

    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        if tf.executing_eagerly():
            return function(*arguments)
        specs = tf.nest.map_structure(
            lambda value: None if value is None else tf.TensorSpec(value.shape, value.dtype),
            arguments,
        )
        tensors = [value for value in tf.nest.flatten(arguments) if value is not None]
        return traced(specs)(*tensors)

    return called  # type: ignore[return-value]
