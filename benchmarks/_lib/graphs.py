"""Compiled training steps, and the time and size of their graphs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from gpflow.models.training_mixins import ExternalDataTrainingLossMixin


def step_function(model: Any) -> Any:
    """A `tf.function` of (X, Y), not yet traced: the loss and its gradients to what is trainable.

    :param model: a GPflow model that is given its data, or one that holds them; the latter ignores
        X and Y.
    """
    variables = model.trainable_variables
    takes_data = isinstance(model, ExternalDataTrainingLossMixin)

    @tf.function
    def step(X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = model.training_loss((X, Y)) if takes_data else model.training_loss()
        return loss, tape.gradient(loss, variables, unconnected_gradients="zero")

    return step


def elbo_and_gradient(model: Any, data: tuple[tf.Tensor, tf.Tensor]) -> Callable[[], Any]:
    """The compiled, already traced `step_function` of `model` on `data`."""
    step = step_function(model)
    step.get_concrete_function(*data)
    return lambda: step(*data)


def tracing(function: Any, *arguments: Any) -> dict[str, float]:
    """Seconds to trace a `tf.function`, and the operations in its graph and library."""
    start = time.perf_counter()
    graph = function.get_concrete_function(*arguments).graph
    seconds = time.perf_counter() - start
    definition = graph.as_graph_def()
    operations = len(definition.node) + sum(len(f.node_def) for f in definition.library.function)
    return {"seconds": seconds, "operations": operations}
