"""Compilation of this library's functions to graphs, and release of the memory of graphs.

Functions are traced without AutoGraph. AutoGraph rewrites a function so that a Python ``if`` may
depend on a tensor; this library does not need it, and rewriting takes longer than tracing. If a
user's code needs AutoGraph (a likelihood, say), decorate that code with ``tf.function``.
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
from tensorflow.python.eager import record
from tensorflow.python.framework import ops

Function = TypeVar("Function", bound=Callable[..., Any])


def unconverted(function: Function) -> Function:
    """A decorator: AutoGraph leaves the function, and all functions that it calls, unchanged.

    Decorate the functions that GPflow, or a user's ``tf.function``, calls directly, and those
    passed to ``tf.map_fn`` and ``Dataset.map``, because both apply AutoGraph again. Never decorate
    a function that calls a user's likelihood, which may need AutoGraph.
    """
    left: Function = tf.autograph.experimental.do_not_convert(function)
    return left


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """A ``tf.function`` without AutoGraph, whose graphs are freed when the function is deleted."""
    _free_graphs()
    gradients: list[str] = []
    called: list[Any] = []  # the functions given to numpy_function

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

    # TensorFlow warns if code is traced many times; code that serves many models must be. The
    # warning does not recognise partial functions.
    made = tf.function(functools.partial(traced), autograph=False, **options)
    weakref.finalize(made, _unused_gradients.extend, gradients).atexit = False
    return made


# The lists of Python functions that graphs call: one list for each function now being traced.
_called: ContextVar[tuple[list[Any], ...]] = ContextVar("called", default=())

_unused_gradients: list[str] = []  # names of gradient functions whose graphs are deleted


def _custom_gradients(graph: tf.Graph) -> Iterator[str]:
    """The names under which TensorFlow keeps the gradient functions of ``tf.custom_gradient``."""
    for operation in graph.get_operations():
        if operation.type in ("Identity", "IdentityN"):
            with contextlib.suppress(ValueError):
                yield operation.get_attr("_gradient_op_type").decode()


def _free_graphs() -> None:
    """Release the graphs that TensorFlow and TensorFlow Probability keep for deleted functions.
    They belong to gradient functions of ``tf.custom_gradient``, and to tensors that bijectors have
    transformed (also in GPflow's models). TensorFlow has no public function for it."""
    if _unused_gradients:
        kept = ops.gradient_registry._registry
        with contextlib.suppress(IndexError):  # the list is empty, or another thread emptied it
            while True:
                kept.pop(_unused_gradients.pop(), None)
        vars(tfp.bijectors.Bijector)["_cache"].clear()


def numpy_function(
    function: Callable[..., Any], inputs: Sequence[Any], types: Any, *, stateful: bool = True
) -> Any:
    """``tf.numpy_function`` whose Python function, with its rows or model, is freed with the
    compiled function that calls it. TensorFlow would keep it until the process ends. The function
    of :func:`compiled` keeps it; in a user's ``tf.function``, the graph keeps it."""
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


def is_recorded() -> bool:
    """Whether a ``tf.GradientTape`` or a ``tf.autodiff.ForwardAccumulator`` may record operations.
    TensorFlow has no public function for it."""
    recorded: bool = record.could_possibly_record()
    return recorded


_operation_by_operation = ContextVar("operation_by_operation", default=False)


@contextmanager
def operation_by_operation() -> Iterator[None]:
    """A context in which eager calls of this library run operation by operation, not compiled. If a
    model changes after a few evaluations, tracing it would take longer."""
    token = _operation_by_operation.set(True)
    try:
        yield
    finally:
        _operation_by_operation.reset(token)


def is_operation_by_operation() -> bool:
    """Whether the caller is within :func:`operation_by_operation`, and not in a graph."""
    return _operation_by_operation.get() and tf.executing_eagerly()


_plain_operations = ContextVar("plain_operations", default=False)


@contextmanager
def plain_operations() -> Iterator[None]:
    """A context in which values are computed by TensorFlow's own operations, for slopes
    (:mod:`interdomain.core.slopes`). In graphs, TensorFlow's gradients of slopes are wrong if the
    values come from a compiled function with a custom gradient."""
    token = _plain_operations.set(True)
    try:
        yield
    finally:
        _plain_operations.reset(token)


def has_plain_operations() -> bool:
    """Whether the caller is within :func:`plain_operations`."""
    return _plain_operations.get()
