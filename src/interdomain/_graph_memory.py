"""Frees what TensorFlow would keep of a graph for ever, once the model of the graph is deleted.

Two registries would hold every graph that was traced: TensorFlow's of the
gradient functions of ``tf.custom_gradient``, such as that of a softplus, and the cache in which
the bijectors of TensorFlow Probability remember what they computed with, symbolic tensors too. The
first is asked about operations of that graph alone; the second is a cache.

Both are reached through names that are not public. Where a version has others, memory is kept as
TensorFlow keeps it, and nothing else changes.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

_CUSTOM = "CustomGradient-"
_BRANCHES = ("CondBranchFuncGraph", "WhileBodyFuncGraph", "WhileCondFuncGraph")
_KEPT = "_gradients_kept_by_interdomain"


def freed_with_its_graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, changed so that its graphs can be freed: registries keep nothing of them."""

    @functools.wraps(function)
    def traced(*arguments: Any) -> Any:
        if not tf.inside_function():
            return function(*arguments)
        before = set(_gradients())
        try:
            return function(*arguments)
        finally:
            graph = tf.compat.v1.get_default_graph()
            _keep_gradients(graph, before)
            _forget_symbolic(graph)

    return traced


def _keep_gradients(graph: Any, before: set[str]) -> None:
    """Those registered since, for operations of this graph: the graph holds them, and the registry
    finds them there."""
    registry = _gradients()
    for name in [name for name in registry if name.startswith(_CUSTOM) and name not in before]:
        function = registry[name].get("type")
        if callable(function) and _owner(_graph_of(function)) is graph:
            setattr(graph, _KEPT, [*getattr(graph, _KEPT, ()), function])
            registry[name]["type"] = _while_alive(weakref.ref(function), name)


def _while_alive(reference: weakref.ref[Any], name: str) -> Callable[..., Any]:
    def gradient(operation: Any, *upstream: Any) -> Any:
        function = reference()
        if function is None:
            raise LookupError(f"{operation.name}: the graph of its gradient, {name}, is gone.")
        return function(operation, *upstream)

    return gradient


def _forget_symbolic(graph: Any) -> None:
    """Remove what bijectors remember of this graph's tensors."""
    storage = _remembered()
    for key in list(storage):
        tensors = tf.nest.flatten(key())
        if any(_owner(getattr(tensor, "graph", None)) is graph for tensor in tensors):
            key.cancel()
            storage.pop(key, None)


def _owner(graph: Any) -> Any:
    """The graph of the function around branches of conditions and bodies of loops."""
    while type(graph).__name__ in _BRANCHES:
        graph = graph.outer_graph
    return graph


def _graph_of(function: Any) -> Any:
    """That of the tensors that a gradient function has as its closure."""
    for value in _closure(function, depth=3):
        if tf.is_tensor(value) and not tf.executing_eagerly():
            with contextlib.suppress(AttributeError):
                return value.graph
    return None


def _closure(function: Any, depth: int) -> Iterator[Any]:
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            content = cell.cell_contents
            if callable(content) and depth:
                yield from _closure(content, depth - 1)
            elif isinstance(content, (list, tuple)):
                yield from content
            else:
                yield content


def _gradients() -> MutableMapping[str, Any]:
    """By name, a dictionary with the function as "type"."""
    from tensorflow.python.framework import ops

    found: Any = getattr(getattr(ops, "gradient_registry", None), "_registry", None)
    return found if isinstance(found, dict) else {}


def _remembered() -> MutableMapping[Any, Any]:
    """By a weak reference to what a bijector was called with."""
    cache = vars(tfp.bijectors.Bijector).get("_cache")
    found: Any = getattr(cache, "storage", None)
    return found if isinstance(found, dict) else {}
