"""What a kernel expects of the columns of X: their scale, and that rows are inputs of it at all."""

from __future__ import annotations

from collections.abc import Sequence

from gpflow.kernels import Combination, Kernel, MultioutputKernel, Stationary

from .._arguments import Array


def scaled_parts(kernel: Kernel) -> list[Kernel]:
    """The kernels that compare columns of X with a length of which a kernel is made: stationary
    ones, and those that a method of this name returns."""
    if hasattr(kernel, "scaled_parts"):
        parts: list[Kernel] = kernel.scaled_parts()
        return parts
    if isinstance(kernel, Stationary):
        return [kernel]
    inner: Sequence[Kernel] = kernel.kernels if isinstance(kernel, Combination) else ()
    if isinstance(kernel, MultioutputKernel):
        inner = kernel.latent_kernels
    return [part for summand in inner for part in scaled_parts(summand)]


def validate_rows(name: str, kernel: Kernel, X: Array) -> None:
    """:raises ValueError: For rows ``[..., D]`` that cannot be inputs of the kernel."""
    for part in scaled_parts(kernel):
        if hasattr(part, "validate_rows"):
            part.validate_rows(name, X)
