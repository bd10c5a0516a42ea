"""Counting the operations of a graph."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow.types.experimental import ConcreteFunction

from interdomain.devices import graph_nodes


def count_ops(function: ConcreteFunction, parts_of_names: Sequence[str]) -> int:
    """How many operations have a type that contains one of the names, nested functions included.

    The bodies of loops, branches and inner tf.functions are in the graph's function library.
    """
    nodes = graph_nodes(function.graph)
    return sum(any(part in node.op for part in parts_of_names) for node in nodes)
