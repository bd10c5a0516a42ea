"""Independent blocks of inducing variables, each with its summand, and in batches of equal size.

Each block of a sum of kernels needs the same algebra. Blocks of equal size are put into one batch,
so that a graph has as many operations for sixteen blocks as for two.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from ..linalg import StructuredOperator, stack
from .family import Block, BlockBatch, answers
from .finite_rank import Kuu_operator


class StackedBlocks(BlockBatch):
    """Blocks whose covariances are computed one by one, and then put together."""

    def __init__(self, blocks: Sequence[Block], positions: Sequence[int]) -> None:
        super().__init__(positions)
        self.blocks = tuple(blocks)

    def features(self, X: TensorType) -> tf.Tensor:
        features = [Kuf(block, kernel, X) for block, kernel in self.blocks]
        return tf.expand_dims(features[0], 0) if len(features) == 1 else tf.stack(features)

    def operator(self, jitter: float) -> StructuredOperator:
        return stack([Kuu_operator(block, kernel, jitter=jitter) for block, kernel in self.blocks])


def block_batches(inducing_variable: InducingVariables, kernel: Kernel) -> list[BlockBatch]:
    """The blocks of an inducing variable; one, unless its family says more (sums of sums are one
    sum)."""
    known = answers(inducing_variable, kernel)
    batches = inducing_variable.block_batches(kernel) if known else None
    return batches or [StackedBlocks([(inducing_variable, kernel)], [0])]
