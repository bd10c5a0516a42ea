"""The loss of a model, its gradients, and numbers in it that are not finite."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

Loss = Callable[..., tf.Tensor]


def training_loss_of(model: Any) -> Loss:
    """The training loss of a batch (X, Y); without arguments, that of the data in the model.

    What is compiled of it is kept in the model, which it must therefore not keep alive.
    """
    reference = weakref.ref(model)

    def training_loss(*batch: tf.Tensor) -> tf.Tensor:
        model: Any = reference()
        return model.training_loss(batch) if batch else model.training_loss()

    return training_loss


def loss_and_gradients(
    loss: Loss, variables: Sequence[tf.Variable], rows: Sequence[tf.Tensor]
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """The loss of a batch, and its gradients: zeros for variables that it does not depend on."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(variables)
        value = loss(*rows)
    zeros = tf.UnconnectedGradients.ZERO
    gradients = tape.gradient(value, variables, unconnected_gradients=zeros)
    return value, [tf.convert_to_tensor(gradient) for gradient in gradients]


def draw_for_step(model: Any, step: int) -> None:
    """Tell a model with random draws in its loss, such as :class:`interdomain.deep.DeepGP`, the
    step: all evaluations in it then use the same draws, in a fit that is resumed there, too."""
    if hasattr(model, "set_step"):
        model.set_step(step)


# What is raised in place of a NaN: by the factorisations of some TensorFlow versions, and by
# gpflow.Parameter.assign.
FAILED_FACTORISATION = "Cholesky decomposition was not successful"
_RAISED_FOR_NAN = {
    FAILED_FACTORISATION: "a matrix factorisation failed",
    "lost to rounding": "the bound is lost to rounding, as Y is too far away from the mean "
    "function (pass mean_function=Constant(Y.mean(axis=0)), or standardise Y)",
    "not invertible": "a matrix factorisation failed",
    "has NaN or Inf": "an updated parameter is not finite",
}


class NumericalBreakdown(Exception):
    """The error for a non-finite number; its message is the reason."""


def require(finite: Any, reason: str) -> None:
    """:raises NumericalBreakdown: for this reason, unless all is finite."""
    if not finite:
        raise NumericalBreakdown(reason)


@contextmanager
def tensorflow_errors_as_breakdowns() -> Iterator[None]:
    """:raises NumericalBreakdown: in place of what TensorFlow or GPflow raise because of a NaN.
    :raises ValueError: if Python code that a compiled loss calls has raised one.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        match = re.search(r"^ValueError: (.+)$", error.message, re.MULTILINE)
        if match is not None:
            raise ValueError(match[1]) from error
        for raised, reason in _RAISED_FOR_NAN.items():
            require(raised not in str(error), reason)
        raise
