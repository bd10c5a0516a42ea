"""How this library's functions become graphs, and how the memory of graphs is freed again.

Functions are traced without AutoGraph, which first rewrites them, so that a Python ``if`` may
depend on a tensor. Nothing here needs that, and rewriting takes longer than tracing. A user's code
that does, such as a likelihood, is decorated with ``tf.function``, as TensorFlow's error says.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow.python.framework import ops

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
    """A ``tf.function`` without AutoGraph, whose graphs are freed with it."""
    _free_graphs()
    gradients: list[str] = []
    called: list[Any] = []  # by numpy_function

    @functools.wraps(function)
    def traced(*arguments: Any, **keywords: Any) -> Any:
        if tf.executing_eagerly():
            return function(*arguments, **keywords)
        token = _called.set((*_called.get(), called))
        try:
            return function(*arguments, **keywords)
        finally:
            _called.reset(token)
            gradients.extend(_custom_gradients(tf.compat.v1.get_default_graph()))

    # TensorFlow warns of code that is traced again and again, which code that serves many models
    # has to be. It does not recognise partial functions.
    made = tf.function(functools.partial(traced), autograph=False, **options)
    weakref.finalize(made, _unused_gradients.extend, gradients).atexit = False
    return made


# The Python functions that a graph calls, for each function of `compiled` in tracing.
_called: ContextVar[tuple[list[Any], ...]] = ContextVar("called", default=())

_unused_gradients: list[str] = []  # names of gradient functions of graphs whose functions are gone


def _custom_gradients(graph: tf.Graph) -> Iterator[str]:
    """The names under which TensorFlow keeps the gradient functions of ``tf.custom_gradient``."""
    for operation in graph.get_operations():
        if operation.type in ("Identity", "IdentityN"):
            with contextlib.suppress(ValueError):
                yield operation.get_attr("_gradient_op_type").decode()


def _free_graphs() -> None:
    """Let go of the graphs that TensorFlow and TensorFlow Probability keep for functions that are
    gone: those of gradient functions of ``tf.custom_gradient``, and of the tensors that bijectors
    have transformed, in GPflow's own models, too. No public function frees them."""
    if _unused_gradients:
        kept = ops.gradient_registry._registry
        with contextlib.suppress(IndexError):  # there is none, or another thread has it
            while True:
                kept.pop(_unused_gradients.pop(), None)
        vars(tfp.bijectors.Bijector)["_cache"].clear()


def numpy_function(
    function: Callable[..., Any], inputs: Sequence[Any], types: Any, *, stateful: bool = True
) -> Any:
    """``tf.numpy_function``, whose function is freed with the compiled function that calls it, with
    the rows or the model that it uses. TensorFlow keeps it as long as the process runs. Here the
    functions of :func:`compiled` keep it; in a user's ``tf.function``, its graph does."""
    if tf.executing_eagerly():
        return tf.numpy_function(function, inputs, types, stateful=stateful)
    for called in _called.get():
        called.append(function)
    graph = tf.compat.v1.get_default_graph()
    while not _called.get() and hasattr(graph, "outer_graph"):
        graph._interdomain_functions = [*getattr(graph, "_interdomain_functions", []), function]
        graph = graph.outer_graph
    reference = weakref.ref(function)

    def call(*arrays: Any) -> Any:
        found = reference()
        if found is None:
            raise RuntimeError("the compiled function's model is gone; keep it, or compile again.")
        return found(*arrays)

    return tf.numpy_function(call, inputs, types, stateful=stateful)


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
