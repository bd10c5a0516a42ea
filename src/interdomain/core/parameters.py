"""Checked parameters, checks of kernels, and temporary freezing of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel, White
from gpflow.utilities import positive

from .._arguments import instance, real_array, refusal


def positive_parameter(
    name: str, value: TensorType, *, remedy: str, per_column: bool = False
) -> gpflow.Parameter:
    """A positive parameter with a checked value.

    :param remedy: What to pass instead of a value of another shape.
    :param per_column: Whether the value may also be a vector ``[D]`` of one entry or more.
    :raises ValueError: If an entry is not finite and positive, or the shape is wrong.
    """
    given = value
    if not isinstance(value, (gpflow.Parameter, tf.Variable)):
        given = real_array(name, value, "", remedy)
        if not np.all(np.isfinite(given)) or np.any(given <= 0):
            raise refusal(name, "be finite and positive", f"{value!r}", "pass positive numbers")
    parameter = gpflow.Parameter(given, transform=positive())
    shape = parameter.shape
    if shape.rank != 0 and not (per_column and shape.rank == 1 and shape[0] != 0):
        form = "a scalar or a vector [D]" if per_column else "a scalar"
        raise ValueError(f"{name} must be {form}, found shape {tuple(shape)}; {remedy}.")
    return parameter


def single_output(name: str, kernel: Any, remedy: str | None = None) -> Kernel:
    """The kernel, checked to have one output.

    :param remedy: What to do with a kernel of several outputs, for the message.
    :raises ValueError: If the argument is not a kernel, or has several outputs.
    """
    instance(name, kernel, Kernel, "a GPflow kernel")
    single: Kernel = kernel
    if isinstance(single, gpflow.kernels.MultioutputKernel):
        remedy = remedy or "use a kernel of one output, and wrap the result instead"
        raise refusal(name, "have one output", type(single).__name__, remedy)
    return single


def check_no_noise(name: str, kernel: Kernel) -> None:
    """Check that no part of a kernel is ``White``; a ValueError otherwise. White noise is not a
    function: features do not explain it, and its covariance with f at other rows is zero."""
    if any(isinstance(part, White) for part in (kernel, *kernel.submodules)):
        remedy = "pass noise to the likelihood, or add the White kernel to the result"
        raise refusal(name, "be the kernel of a function", "White noise", remedy)


@contextmanager
def frozen(parameters: Iterable[gpflow.Parameter | tf.Variable]) -> Iterator[None]:
    """A context in which the parameters are marked not trainable."""
    parameters = [parameter for parameter in parameters if parameter.trainable]
    for parameter in parameters:
        gpflow.set_trainable(parameter, False)
    try:
        yield
    finally:
        for parameter in parameters:
            gpflow.set_trainable(parameter, True)
