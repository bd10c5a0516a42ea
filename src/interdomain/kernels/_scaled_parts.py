"""What a kernel expects of the columns of X: their scale, and that rows are inputs of it at all."""

from __future__ import annotations

from functools import singledispatch

from gpflow.kernels import Combination, Kernel, MultioutputKernel, Stationary

from .._arguments import Array
from .finite_rank import FiniteRank
from .harmonic.decomposition import HarmonicKernel
from .zonal.base import ZonalKernel


@singledispatch
def scaled_parts(kernel: Kernel) -> list[Kernel]:
    """The stationary and the zonal kernels of columns of X that a kernel is made of: those that
    compare them with a length."""
    return []


@scaled_parts.register(Stationary)
@scaled_parts.register(ZonalKernel)
def scaled_parts_itself(kernel: Kernel) -> list[Kernel]:
    """One by itself."""
    return [kernel]


@scaled_parts.register(Combination)
def scaled_parts_combination(kernel: Combination) -> list[Kernel]:
    """Those of sums and products."""
    return [part for inner in kernel.kernels for part in scaled_parts(inner)]


@scaled_parts.register(MultioutputKernel)
def scaled_parts_multioutput(kernel: MultioutputKernel) -> list[Kernel]:
    """Those of the latent kernels."""
    return [part for inner in kernel.latent_kernels for part in scaled_parts(inner)]


@scaled_parts.register(HarmonicKernel)
def scaled_parts_harmonic(kernel: HarmonicKernel) -> list[Kernel]:
    """Those of the kernel that is decomposed."""
    return scaled_parts(kernel.base_kernel)


@scaled_parts.register(FiniteRank)
def scaled_parts_finite_rank(kernel: FiniteRank) -> list[Kernel]:
    """Those of the kernel that it is a part of."""
    return scaled_parts(kernel.kernel)


def validate_rows(name: str, kernel: Kernel, X: Array) -> None:
    """:raises ValueError: For rows ``[..., D]`` that cannot be inputs of the kernel."""
    for part in scaled_parts(kernel):
        if isinstance(part, ZonalKernel):
            try:
                part.lift.validate(name, X[..., part.active_dims])
            except IndexError:  # of too few columns, which the covariances say
                continue
