"""What a kernel expects of the columns of X: their scale, and that rows are inputs of it at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import numpy as np
from gpflow.kernels import Combination, Kernel, MultioutputKernel, Stationary

from .._arguments import Array
from .finite_rank import FiniteRank
from .harmonic import HarmonicKernel
from .zonal import ZonalKernel


def _say_nothing(name: str, X: Array) -> None:
    return None


class ScaledPart(NamedTuple):
    """A kernel of columns of X, and the lengths it compares them with.

    :ivar lengths: Returns one length, or one for each column; None if no scale is wrong.
    :ivar has_centre: Whether data far from zero are all alike to it.
    :ivar validate: Raises a ValueError, with the name that X has, for rows of the columns that the
        kernel sees, ``[..., D]``, that cannot be its inputs.
    :ivar warn: Warns of such that can hardly be meant so.
    """

    kernel: Kernel
    lengths: Callable[[], Array | None]
    has_centre: bool = False
    validate: Callable[[str, Array], None] = _say_nothing
    warn: Callable[[str, Array], None] = _say_nothing


@singledispatch
def scaled_parts(kernel: Kernel) -> list[ScaledPart]:
    """The parts of a kernel that have a lengthscale, in any form; a family registers its own."""
    return []


@scaled_parts.register(Combination)
def scaled_parts_combination(kernel: Combination) -> list[ScaledPart]:
    """Those of sums and products."""
    return [part for inner in kernel.kernels for part in scaled_parts(inner)]


@scaled_parts.register(MultioutputKernel)
def scaled_parts_multioutput(kernel: MultioutputKernel) -> list[ScaledPart]:
    """Those of the latent kernels."""
    return [part for inner in kernel.latent_kernels for part in scaled_parts(inner)]


@scaled_parts.register(HarmonicKernel)
def scaled_parts_harmonic(kernel: HarmonicKernel) -> list[ScaledPart]:
    """Those of the kernel that is decomposed."""
    return scaled_parts(kernel.base_kernel)


@scaled_parts.register(FiniteRank)
def scaled_parts_finite_rank(kernel: FiniteRank) -> list[ScaledPart]:
    """Those of the kernel that it is a part of."""
    return scaled_parts(kernel.kernel)


@scaled_parts.register(Stationary)
def scaled_parts_stationary(kernel: Stationary) -> list[ScaledPart]:
    """Its lengthscales."""
    return [ScaledPart(kernel, lambda: np.asarray(kernel.lengthscales.numpy(), float))]


@scaled_parts.register(ZonalKernel)
def scaled_parts_zonal(kernel: ZonalKernel) -> list[ScaledPart]:
    """What makes the weighted column as large as the bias. On the sphere no scale is wrong, but
    rows may not be on it."""
    lift = kernel.lift
    return [ScaledPart(kernel, lambda: lift.lengths(kernel), True, lift.validate, lift.warn)]


def validate_rows(name: str, kernel: Kernel, X: Array) -> None:
    """:raises ValueError: For rows ``[..., D]`` that cannot be inputs of the kernel."""
    for part in scaled_parts(kernel):
        try:
            seen = X[..., part.kernel.active_dims]
        except IndexError:  # of too few columns, which the covariances say
            continue
        part.validate(name, seen)
