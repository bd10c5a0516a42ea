"""Independent blocks of inducing variables, each with its summand, and in batches of equal size.

Each block of a sum of kernels needs the same algebra. Blocks of equal size are put into one batch,
so that a graph has as many operations for sixteen blocks as for two.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum
from gpflow.utilities import Dispatcher

from ..inducing_variables import SumInducingVariables
from ..inducing_variables.base import DecomposedInducingVariables
from ..kernels import DecomposedKernel, FiniteRank
from ..kernels.decomposed import summands
from ..kernels.finite_rank import base_of
from ..linalg import stack
from .dispatch import Kuu_operator

block_batches = Dispatcher("block_batches")
block_batches.__doc__ = """The blocks of an inducing variable, as a list of :class:`BlockBatch`.

``block_batches(inducing_variable, kernel)``; a family that computes the covariances of several
blocks at once registers its own. By default an inducing variable is one block, and those of a sum
are its summands' (sums of sums are one sum).
"""


class BlockBatch(abc.ABC):
    """Blocks of equal size that can share their algebra.

    :param positions: Where each block stands in the order of all blocks.
    """

    def __init__(self, positions: Sequence[int]) -> None:
        self.positions = tuple(positions)

    @abc.abstractmethod
    def features(self, X: TensorType) -> tf.Tensor:
        """Kuf of each block, ``[T, m, N]``, for X ``[N, D]``."""

    @abc.abstractmethod
    def operator(self, jitter: float) -> tf.linalg.LinearOperator:
        """Kuu of each block, as an operator ``[T, m, m]``."""


class StackedBlocks(BlockBatch):
    """Blocks whose covariances are computed one by one, and then put together."""

    def __init__(self, blocks: Sequence[Block], positions: Sequence[int]) -> None:
        super().__init__(positions)
        self.blocks = tuple(blocks)

    def features(self, X: TensorType) -> tf.Tensor:
        features = [Kuf(block, kernel, X) for block, kernel in self.blocks]
        return tf.expand_dims(features[0], 0) if len(features) == 1 else tf.stack(features)

    def operator(self, jitter: float) -> tf.linalg.LinearOperator:
        return stack([Kuu_operator(block, kernel, jitter=jitter) for block, kernel in self.blocks])


@block_batches.register(InducingVariables, Kernel)
def block_batches_single(inducing_variable: InducingVariables, kernel: Kernel) -> list[BlockBatch]:
    """One block."""
    return [StackedBlocks([(inducing_variable, kernel)], [0])]


@block_batches.register(SumInducingVariables, (Sum, DecomposedKernel, FiniteRank))
def block_batches_sum(
    inducing_variable: SumInducingVariables, kernel: Sum | DecomposedKernel | FiniteRank
) -> list[BlockBatch]:
    """Those of the summands; single blocks of one size and one kind are put together."""
    batches: list[BlockBatch] = []
    alike: dict[tuple[int, object], list[tuple[Block, int]]] = {}
    position = 0
    for block, summand in pair_blocks(inducing_variable, kernel):
        inner = block_batches(block, summand)
        count = len(flat_blocks(block, summand))
        size = block.shape[0] if block.shape else None
        if count == 1 and isinstance(inner[0], StackedBlocks) and size is not None:
            kind = Kuu_operator.dispatch(type(block), type(base_of(summand)))
            alike.setdefault((size, kind), []).append(((block, summand), position))
        else:
            for batch in inner:
                batch.positions = tuple(position + other for other in batch.positions)
                batches.append(batch)
        position += count
    for members in alike.values():
        blocks, positions = zip(*members, strict=True)
        batches.append(StackedBlocks(blocks, positions))
    return batches


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
