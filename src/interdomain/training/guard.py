"""Numbers that are not finite, in whatever way they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

# What is raised in place of a NaN: by the factorisations of some TensorFlow versions, and by
# gpflow.Parameter.assign.
_FAILED_FACTORISATION = "Cholesky decomposition was not successful"
_RAISED_FOR_NAN = {
    _FAILED_FACTORISATION: "a matrix factorisation failed",
    "not invertible": "a matrix factorisation failed",
    "has NaN or Inf": "an updated parameter is not finite",
}


class NumericalBreakdown(Exception):
    """The error for a non-finite number; its message is the reason."""


def is_failed_factorisation(error: Exception) -> bool:
    """Whether an error is that of a Cholesky factor that does not exist."""
    return _FAILED_FACTORISATION in str(error)


@contextmanager
def tensorflow_errors_as_breakdowns() -> Iterator[None]:
    """Turn the errors that TensorFlow or GPflow raise because of a NaN into a breakdown.

    :raises NumericalBreakdown: In place of such an error.
    :raises ValueError: If Python code in a compiled loss raised one, for instance because the rows
        are not those of the first pass.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        of_python = re.search(r"^ValueError: (.+)$", error.message, re.MULTILINE)
        if of_python is not None:
            raise ValueError(of_python[1]) from error
        for raised, reason in _RAISED_FOR_NAN.items():
            if raised in str(error):
                raise NumericalBreakdown(reason) from error
        raise
