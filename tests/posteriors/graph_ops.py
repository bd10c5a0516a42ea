"""Counting the operations of a graph."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.types.experimental import ConcreteFunction


def graph_nodes(graph: tf.Graph) -> list[Any]:
    """The nodes of a graph, those inside its loops and function calls included."""
    definition = graph.as_graph_def()
    nodes: list[Any] = list(definition.node)
    for function in definition.library.function:
        nodes.extend(function.node_def)
    return nodes


def count_ops(function: ConcreteFunction, parts_of_names: Sequence[str]) -> int:
    """How many operations have a type that contains one of the names, nested functions included.

    The bodies of loops, branches and inner tf.functions are in the graph's function library.
    """
    nodes = graph_nodes(function.graph)
    return sum(any(part in node.op for part in parts_of_names) for node in nodes)
