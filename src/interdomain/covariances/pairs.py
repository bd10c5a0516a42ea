"""Blocks of inducing variables, each with the summand of the kernel that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum

from ..inducing_variables.base import DecomposedInducingVariables
from ..kernels import DecomposedKernel, FiniteRank
from ..kernels.finite_rank import has_own_features

Block: TypeAlias = tuple[InducingVariables, Kernel]


def summands(kernel: Kernel) -> Sequence[Kernel]:
    """The parts of a sum; of one of finite rank that was made as a whole, each of finite rank; and
    none of a kernel that is no sum."""
    if isinstance(kernel, (Sum, DecomposedKernel)):
        return kernel.kernels
    if not isinstance(kernel, FiniteRank) or not has_own_features(kernel.kernel):
        return []
    blocks = kernel.inducing_variable.inducing_variables
    pairs = zip(kernel.kernel.kernels, blocks, strict=True)
    return [FiniteRank(part, block) for part, block in pairs]


def pair_blocks(
    inducing_variable: DecomposedInducingVariables, kernel: Sum | DecomposedKernel | FiniteRank
) -> list[Block]:
    """Each block with its summand; summands without inducing variables are left out.

    :raises ValueError: If there is not one block per summand.
    """
    blocks, kernels = inducing_variable.inducing_variables, summands(kernel)
    if len(blocks) != len(kernels):
        raise ValueError(
            f"inducing_variables has {len(blocks)} blocks, but the kernel is a sum of "
            f"{len(kernels)} (gpflow flattens sums of sums); pass one block per summand."
        )
    pairs = zip(blocks, kernels, strict=True)
    return [(block, summand) for block, summand in pairs if block is not None]


def flat_blocks(inducing_variable: InducingVariables, kernel: Kernel) -> list[Block]:
    """All blocks, those of sums inside sums included; what is not a sum is one block.

    :raises ValueError: If a sum does not have one block per summand.
    """
    is_sum = isinstance(inducing_variable, DecomposedInducingVariables)
    if not is_sum or not summands(kernel):
        return [(inducing_variable, kernel)]
    return [
        flat
        for block, summand in pair_blocks(inducing_variable, kernel)
        for flat in flat_blocks(block, summand)
    ]
