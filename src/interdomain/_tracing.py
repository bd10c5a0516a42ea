"""How this library's functions become graphs: they are traced as they are, without AutoGraph.

AutoGraph rewrites Python functions before they are traced, so that a Python ``if`` or ``for`` may
depend on a tensor. Nothing here needs that, and rewriting takes longer than tracing.
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
    code that may need AutoGraph, such as a likelihood, must not be behind one.
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


class Traced:
    """A compiled function that calls code which a user may have written.

    It is traced without AutoGraph. If it cannot be traced that way (because the user's code has an
    ``if`` on a tensor, or a loop over one), it is traced again with AutoGraph; so it is from then
    on.

    :param original: The function; AutoGraph cannot convert one of several lambdas on a line.
    :param options: Options of ``tf.function``.
    :ivar function: The ``tf.function`` that was traced last, which a SavedModel can hold.
    :raises TypeError: At a call, if it cannot be traced either way: AutoGraph's message shows the
        user's line.
    """

    def __init__(self, original: Callable[..., Any], **options: Any) -> None:
        self.function = compiled(original, **options)
        self._untried: tuple[Callable[..., Any], dict[str, Any]] | None = original, options

    def __call__(self, *arguments: Any) -> Any:
        """The compiled function's value."""
        return self._attempt(lambda function: function(*arguments))

    def concrete_function(self) -> Any:
        """The concrete function for the ``input_signature``."""
        return self._attempt(lambda function: function.get_concrete_function())

    def _attempt(self, use: Callable[[Any], Any]) -> Any:
        try:
            return use(self.function)
        except TypeError:  # of an `if`, a loop, len() or int() on a tensor
            if self._untried is None:
                raise
            original, options = self._untried
            converted = tf.function(original, autograph=True)
            function = compiled(lambda *arguments: converted(*arguments), **options)
            value = use(function)
        self.function, self._untried = function, None
        return value
