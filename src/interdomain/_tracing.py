"""How this library's functions become graphs: they are traced as they are, without AutoGraph.

AutoGraph rewrites Python functions before they are traced, so that a Python ``if`` or ``for`` may
depend on a tensor. Nothing here needs that, and rewriting takes longer than tracing.
"""

from __future__ import annotations

import functools
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import tensorflow as tf

from ._graph_memory import freed_with_its_graph

Function = TypeVar("Function", bound=Callable[..., Any])

_FRAMEWORKS = ("interdomain", "tensorflow", "tensorflow_probability", "gpflow", "check_shapes")


def unconverted(function: Function) -> Function:
    """Decorate a function that AutoGraph leaves as it is, with all that it calls.

    It stands at the doors through which GPflow, or the ``tf.function`` of a user, enters this
    library, and on what ``tf.map_fn`` and ``Dataset.map`` are given, which bring AutoGraph back in.
    A user's code that may need AutoGraph, such as a likelihood, must not be behind one.
    """
    left: Function = tf.autograph.experimental.do_not_convert(function)
    return left


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """A ``tf.function`` without AutoGraph."""
    # TensorFlow warns of code that is traced again and again, which code that serves many models
    # has to be. It does not recognise partial functions.
    traced = functools.partial(freed_with_its_graph(function))
    return tf.function(traced, autograph=False, **options)


_operation_by_operation = ContextVar("operation_by_operation", default=False)


@contextmanager
def operation_by_operation() -> Iterator[None]:
    """Within this context, eager calls of functions that this library would compile are evaluated
    operation by operation: where a model, or a set of features, is evaluated only a few times
    before it changes, tracing would take longer.
    """
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

    It is traced without AutoGraph. If the user's code cannot be traced that way (because of an
    ``if`` on a tensor, or a loop over one), it is traced again, and AutoGraph converts that code
    alone; so it is from then on.

    :param build: A function that takes the user's function and returns the function to be compiled,
        which calls it.
    :param user_function: The function that may have to be converted.
    :param options: Options of ``tf.function``.
    :ivar function: The ``tf.function`` that was traced last, which a SavedModel can hold.
    :raises TypeError: At a call, if the user's code cannot be traced either way: the message begins
        with the line where it occurs.
    """

    def __init__(
        self,
        build: Callable[[Callable[..., Any]], Callable[..., Any]],
        user_function: Callable[..., Any],
        **options: Any,
    ) -> None:
        self._converted: Callable[[], Any] | None = lambda: compiled(
            build(tf.function(user_function, autograph=True)), **options
        )
        self.function = compiled(build(user_function), **options)

    def __call__(self, *arguments: Any) -> Any:
        """The compiled function's value."""
        return self._attempt(lambda function: function(*arguments))

    def concrete_function(self, *specs: tf.TensorSpec) -> Any:
        """The concrete function for such arguments; of an ``input_signature``, for none."""
        return self._attempt(lambda function: function.get_concrete_function(*specs))

    def _attempt(self, use: Callable[[Any], Any]) -> Any:
        try:
            return use(self.function)
        except TypeError as error:  # of an `if`, a loop, len() or int() on a tensor
            if self._converted is None:
                raise
            original = error
        function = self._converted()
        try:
            value = use(function)
        except TypeError:
            raise TypeError(
                f"{_line_of_user(original)}{original}\n(AutoGraph could not convert it either.)"
            ) from original
        self.function, self._converted = function, None
        return value


def _line_of_user(error: Exception) -> str:
    """The innermost line that is none of a framework's, as "file:line, in function: code"."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _FRAMEWORKS:
            file, name = frame.f_code.co_filename, frame.f_code.co_name
            return f"{file}:{number}, in {name}: {linecache.getline(file, number).strip()}\n"
    return ""
