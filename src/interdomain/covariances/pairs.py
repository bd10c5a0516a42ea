"""Blocks of inducing variables, each with the summand of the kernel that it belongs to."""

from __future__ import annotations

from typing import TypeAlias

from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum

from ..inducing_variables.base import DecomposedInducingVariables
from ..kernels import DecomposedKernel, FiniteRank
from ..kernels.decomposed import summands

Block: TypeAlias = tuple[InducingVariables, Kernel]


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
