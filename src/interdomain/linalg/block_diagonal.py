"""Block-diagonal operators: Kuu of sums of kernels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import tensorflow as tf

from .diagonal import Diagonal
from .full import Full, stack
from .operators import Inverse, Root, StructuredOperator, Tensors, last_axis


class BlockDiagonal(StructuredOperator, tf.linalg.LinearOperatorBlockDiag):  # type: ignore[misc]
    """A block-diagonal matrix.

    :param blocks: The blocks, all with the same leading axes.
    """

    def __init__(self, blocks: Sequence[StructuredOperator]) -> None:
        super().__init__(blocks, is_self_adjoint=True, is_positive_definite=True)

    def root(self) -> BlockDiagonalRoot:
        return BlockDiagonalRoot([block.root() for block in self.operators])

    def whiten(self, columns: tf.Tensor) -> tf.Tensor:
        """``L^{-1} columns``, block by block."""
        sizes = [block.shape[-1] or block.domain_dimension_tensor() for block in self.operators]
        pairs = zip(self.operators, tf.split(columns, sizes, axis=-2), strict=True)
        return tf.concat([block.whiten(part) for block, part in pairs], axis=-2)

    def stacked_with(self, *others: BlockDiagonal) -> StructuredOperator:
        """A batch of each block if all operators have the same block sizes; else a dense batch."""
        operators = (self, *others)
        sizes = [[block.shape[-1] for block in other.operators] for other in operators]
        if any(other_sizes != sizes[0] for other_sizes in sizes) or (others and None in sizes[0]):
            return Full(tf.stack([operator.to_dense() for operator in operators]))
        alike = zip(*(other.operators for other in operators), strict=True)
        return BlockDiagonal([stack(blocks) for blocks in alike])

    def cast(self, dtype: tf.DType) -> BlockDiagonal:
        return BlockDiagonal([block.cast(dtype) for block in self.operators])


def block_diagonal(blocks: Sequence[StructuredOperator]) -> StructuredOperator:
    """The block-diagonal operator of some blocks; a diagonal one if all blocks are diagonal."""
    diagonals = [block.sole_diagonal for block in blocks]
    if all(diagonal is not None for diagonal in diagonals):
        return Diagonal(tf.concat(diagonals, axis=-1))
    return BlockDiagonal(blocks)


class BlockDiagonalRoot(Root):
    """A block-diagonal Cholesky factor L.

    :param blocks: The blocks, all with the same leading axes.
    """

    def __init__(self, blocks: Sequence[Root]) -> None:
        # Nested roots are flattened.
        blocks = [inner for block in blocks for inner in getattr(block, "_blocks", [block])]
        sizes = [block.size for block in blocks]
        super().__init__(sum(sizes), blocks[0].dtype)
        self._blocks, self._sizes = tuple(blocks), sizes

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        parts = zip(self._blocks, tf.split(columns, self._sizes, axis=-2), strict=True)
        return tf.concat([block.solve(part, adjoint=adjoint) for block, part in parts], axis=-2)

    def log_determinant(self) -> tf.Tensor:
        return tf.add_n([block.log_determinant() for block in self._blocks])

    def inverse(self) -> tuple[Inverse, Tensors]:
        inverses = [block.inverse() for block in self._blocks]
        tensors = [tensor for _, group in inverses for tensor in group]
        functions = [(function, len(group)) for function, group in inverses]
        return partial(_inverses, functions), tuple(tensors)

    def inverse_diagonal(self) -> tf.Tensor:
        return tf.concat([block.inverse_diagonal() for block in self._blocks], axis=-1)


def _inverses(
    functions: Sequence[tuple[Inverse, int]],
    tensors: Tensors,
    columns: tf.Tensor,
    *,
    adjoint: bool = False,
) -> tf.Tensor:
    """The blocks' inverses times columns, by each block's function and its tensors."""
    ends = list(itertools.accumulate(number for _, number in functions))
    groups = [tensors[end - number : end] for end, (_, number) in zip(ends, functions, strict=True)]
    parts = tf.split(columns, [last_axis(group[0]) for group in groups], axis=-2)
    triples = zip(functions, groups, parts, strict=True)
    return tf.concat([f(t, part, adjoint=adjoint) for (f, _), t, part in triples], axis=-2)
