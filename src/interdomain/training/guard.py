"""Numbers that are not finite, in whatever way they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

# What is raised in place of a NaN: by the factorisations of some TensorFlow versions, and by
# gpflow.Parameter.assign.
FAILED_FACTORISATION = "Cholesky decomposition was not successful"
_RAISED_FOR_NAN = {
    FAILED_FACTORISATION: "a matrix factorisation failed",
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
    """
    :raises NumericalBreakdown: in place of what TensorFlow or GPflow raise because of a NaN.
    :raises ValueError: if Python code that a compiled loss calls has raised one.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        of_python = re.search(r"^ValueError: (.+)$", error.message, re.MULTILINE)
        if of_python is not None:
            raise ValueError(of_python[1]) from error
        for raised, reason in _RAISED_FOR_NAN.items():
            require(raised not in str(error), reason)
        raise
