"""How this library's functions become graphs: they are traced as they are, without AutoGraph.

AutoGraph rewrites Python functions before they are traced, so that a Python ``if`` or ``for`` may
depend on a tensor. Nothing here needs that, and rewriting takes longer than tracing. A user's code
that does, such as a likelihood, is decorated with ``tf.function``, as TensorFlow's error says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import tensorflow as tf

Function = TypeVar("Function", bound=Callable[..., Any])


def unconverted(function: Function) -> Function:
    """Decorate a function that AutoGraph leaves as it is, with all that it calls.

    It stands at the doors through which GPflow, or a user's ``tf.function``, enters this library,
    and on what ``tf.map_fn`` and ``Dataset.map`` are given, which bring AutoGraph back in. A user's
    likelihood, which may be a ``tf.function`` with AutoGraph, must not be behind one.
    """
    left: Function = tf.autograph.experimental.do_not_convert(function)
    return left


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """A ``tf.function`` without AutoGraph."""
    # TensorFlow warns of code that is traced again and again, which code that serves many models
    # has to be. It does not recognise partial functions.
    traced = functools.partial(function)
    return tf.function(traced, autograph=False, **options)


_operation_by_operation = ContextVar("operation_by_operation", default=False)


@contextmanager
def operation_by_operation() -> Iterator[None]:
    """Within this context, what this library would compile is evaluated operation by operation in
    eager calls: of a model that changes after a few evaluations, tracing would take longer."""
    token = _operation_by_operation.set(True)
    try:
        yield
    finally:
        _operation_by_operation.reset(token)


def is_operation_by_operation() -> bool:
    """Whether it is called within :func:`operation_by_operation`, and in no graph."""
    return _operation_by_operation.get() and tf.executing_eagerly()
