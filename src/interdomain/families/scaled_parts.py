"""What a kernel expects of the columns of X: their scale, and that rows are inputs of it at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from gpflow.kernels import Combination, Kernel, MultioutputKernel, Stationary

from .._arguments import Array
from ..core.finite_rank import FiniteRank
from .harmonic.decomposition import HarmonicKernel
from .sphere.kernel import ZonalKernel


@singledispatch
def scaled_parts(kernel: Kernel) -> list[Kernel]:
    """The stationary and the zonal kernels of columns of X that a kernel is made of: those that
    compare them with a length."""
    if isinstance(kernel, (Stationary, ZonalKernel)):
        return [kernel]
    inner: Sequence[Kernel] = kernel.kernels if isinstance(kernel, Combination) else ()
    if isinstance(kernel, MultioutputKernel):
        inner = kernel.latent_kernels
    return [part for one in inner for part in scaled_parts(one)]


# Those of the kernel that is decomposed, or of which it is a part.
scaled_parts.register(HarmonicKernel, lambda kernel: scaled_parts(kernel.base_kernel))
scaled_parts.register(FiniteRank, lambda kernel: scaled_parts(kernel.kernel))


def validate_rows(name: str, kernel: Kernel, X: Array) -> None:
    """:raises ValueError: For rows ``[..., D]`` that cannot be inputs of the kernel."""
    for part in scaled_parts(kernel):
        if isinstance(part, ZonalKernel):
            try:
                part.lift.validate(name, X[..., part.active_dims])
            except IndexError:  # of too few columns, which the covariances say
                continue
