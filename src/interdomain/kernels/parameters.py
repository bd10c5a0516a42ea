"""Parameters and numbers of kernels, from arguments whose values and shapes are checked."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.utilities import positive


def positive_parameter(
    name: str, value: TensorType, *, remedy: str, per_column: bool = False
) -> gpflow.Parameter:
    """A positive parameter, from a value that is checked to be one.

    :param name: Of the argument, for the message.
    :param remedy: What to pass instead of a value of another shape.
    :param per_column: Whether it may also be a vector ``[D]`` of one entry or more.
    :raises ValueError: Unless every entry of ``value`` is finite and positive, and it is a scalar
        or what else may be.
    """
    if isinstance(value, (gpflow.Parameter, tf.Variable)):
        parameter = gpflow.Parameter(value, transform=positive())
    else:
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} must be made of numbers, found {value!r}; {remedy}."
            ) from None
        if not np.all(np.isfinite(array)) or np.any(array <= 0):
            raise ValueError(f"{name} must be finite and positive, found {value!r}.")
        parameter = gpflow.Parameter(array, transform=positive())
    shape = parameter.shape
    if shape.rank != 0 and not (per_column and shape.rank == 1 and shape[0] != 0):
        form = "a scalar or a vector [D]" if per_column else "a scalar"
        raise ValueError(f"{name} must be {form}, found shape {tuple(shape)}; {remedy}.")
    return parameter


def whole_number(name: str, value: int, least: int) -> int:
    """:raises ValueError: If it is not one integer, or below the least."""
    if np.ndim(value) or not np.isreal(value) or not value >= least or int(value) != value:
        raise ValueError(f"{name} must be an integer of {least} or more, found {value!r}.")
    return int(value)


def nonnegative_number(name: str, value: float) -> float:
    """:raises ValueError: If it is not one number, or not finite, or negative."""
    if np.ndim(value) or not np.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be finite and not negative, found {value!r}; pass a number.")
    return float(value)
