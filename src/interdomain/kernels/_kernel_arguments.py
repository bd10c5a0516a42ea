"""Checks of arguments that are kernels."""

from __future__ import annotations

from typing import Any

import gpflow
from gpflow.kernels import Kernel

from .._arguments import instance


def single_output(name: str, kernel: Any, remedy: str | None = None) -> Kernel:
    """The kernel, if it has one output.

    :param remedy: What to do with a kernel of several outputs.
    :raises ValueError: If it is not a kernel, or has several outputs.
    """
    instance(name, kernel, Kernel, "a GPflow kernel")
    found: Kernel = kernel
    if isinstance(found, gpflow.kernels.MultioutputKernel):
        raise ValueError(
            f"{name} must have one output, found {type(found).__name__}; "
            f"{remedy or 'use a kernel of one output, and wrap the result instead'}."
        )
    return found
