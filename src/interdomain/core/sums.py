"""Inducing variables with one block per summand of a kernel."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

import tensorflow as tf
from gpflow.covariances import Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum

from ..linalg import StructuredOperator
from ..linalg.block_diagonal import block_diagonal
from .acting import acted_features
from .combined import CombinedInducingVariables, checked_list, each_once, num_inducing
from .covariances import Kvu, Kvu_shapes
from .decomposed import DecomposedInducingVariables, DecomposedKernel, flat_blocks, pair_blocks
from .family import Block, BlockBatch
from .functionals import LinearFunctional, Places
from .pairs import Kuu_operator, StackedBlocks, block_batches, structure_of
from .structures import FeatureStructure


class SumInducingVariables(CombinedInducingVariables, DecomposedInducingVariables):
    """Independent blocks of inducing variables, one for each summand of a sum kernel.

    ``f = sum_i f_i`` with independent ``f_i ~ GP(0, k_i)``; block i describes only f_i. Kuu is
    therefore block-diagonal. Kuf stacks the Kuf of the blocks (van der Wilk et al., *Convolutional
    Gaussian Processes*, 2017, section 3.3 and Appendix C). The blocks have a joint q(u) in
    ``gpflow.models.SVGP`` and in :class:`interdomain.models.StructuredSGPR`.

    Blocks may differ in class, size and input space, and may be GPflow's ``InducingPoints``. The
    kernel is a ``DecomposedKernel`` or a ``gpflow.kernels.Sum``; the summands of a ``Sum`` select
    columns by ``active_dims``. A summand may itself be such a sum, with a sum of inducing
    variables. :class:`interdomain.models.AdditiveSVGP` has an independent q for each block instead
    of the joint q.

    :param inducing_variables: One per summand, in the order of ``kernel.kernels``; None for a
        summand without inducing variables. If the same object is given several times, the summands
        share its parameters, but each has its own variables.
    :ivar blocks: The distinct objects among the inducing variables.
    :raises ValueError: If the list is empty or has only None, or an entry is neither None nor an
        inducing variable.
    """

    kernels: ClassVar[tuple[type[Kernel], ...]] = (Sum, DecomposedKernel)

    def __init__(
        self, inducing_variables: Sequence[InducingVariables | None], *, name: str | None = None
    ) -> None:
        super().__init__(name=name)
        blocks = checked_list("inducing_variables", inducing_variables, "summand", optional=True)
        self.blocks, self._order = each_once(blocks)
        if not self.blocks:
            raise ValueError(
                "inducing_variables must have an entry that is not None, found "
                f"{list(blocks)}; pass inducing variables for one summand at least."
            )

    @property
    def inducing_variables(self) -> tuple[InducingVariables | None, ...]:
        """The inducing variable of each summand, or None; several may have the same object."""
        return tuple(None if i is None else self.blocks[i] for i in self._order)

    @property
    def num_inducing(self) -> tf.Tensor | int:
        """The number M of inducing variables in all blocks."""
        return sum(num_inducing(block) for block in self.inducing_variables if block is not None)

    def pairs(self, kernel: Any) -> list[Block]:
        """Each block with its summand.

        :raises ValueError: If there is not one block per summand.
        """
        return pair_blocks(self, kernel)

    def _combined(self, features: Sequence[tf.Tensor]) -> tf.Tensor:
        return tf.concat(features, axis=0)

    def _acted(
        self, kernel: Any, functional: LinearFunctional, places: Places, *, in_domain: bool
    ) -> tf.Tensor:
        """The functional of each block's features."""
        act = partial(acted_features, functional=functional, places=places, in_domain=in_domain)
        return self._combined([act(*pair) for pair in self.pairs(kernel)])

    def structure(self, kernel: Any) -> FeatureStructure | None:
        """The structure of the sum, from the largest block whose structure a sum can keep."""
        blocks = flat_blocks(self, kernel)
        parts = [structure_of(*block) for block in blocks]
        known = [(part, number) for number, part in enumerate(parts) if part is not None]
        largest_first = sorted(known, key=lambda pair: -pair[0].size)
        found = (part.in_sum(blocks, number) for part, number in largest_first)
        return next((structure for structure in found if structure is not None), None)

    def Kuu(self, kernel: Any, *, jitter: float = 0.0) -> StructuredOperator:
        """A block-diagonal operator; ``jitter`` is passed to the blocks that are factorised."""
        return block_diagonal([Kuu_operator(*pair, jitter=jitter) for pair in self.pairs(kernel)])

    def dense_Kuu(self, kernel: Any, jitter: float) -> tf.Tensor:
        return dense_blocks([Kuu(*pair, jitter=jitter) for pair in self.pairs(kernel)])

    def block_batches(self, kernel: Any) -> list[BlockBatch]:
        """The batches of all summands; single blocks of equal size and kind are stacked."""
        batches: list[BlockBatch] = []
        alike: dict[tuple[int, object], list[tuple[Block, int]]] = {}
        position = 0
        for block, summand in self.pairs(kernel):
            inner = block_batches(block, summand)
            count = len(flat_blocks(block, summand))
            size = block.shape[0] if block.shape else None
            if count == 1 and isinstance(inner[0], StackedBlocks) and size is not None:
                kind = getattr(type(block), "Kuu", None)
                alike.setdefault((size, kind), []).append(((block, summand), position))
            else:
                for batch in inner:
                    batches.append(placed(batch, [position + k for k in batch.positions]))
            position += count
        for members in alike.values():
            blocks, positions = zip(*members, strict=True)
            batches.append(StackedBlocks(blocks, positions))
        return batches


def placed(batch: BlockBatch, positions: Iterable[int]) -> BlockBatch:
    """A copy of the batch with other positions among all blocks."""
    other = copy.copy(batch)
    other.positions = tuple(positions)
    return other


def dense_blocks(matrices: Sequence[tf.Tensor]) -> tf.Tensor:
    """The block-diagonal matrix of matrices that need not be square."""
    operators = [tf.linalg.LinearOperatorFullMatrix(matrix) for matrix in matrices]
    return tf.linalg.LinearOperatorBlockDiag(operators).to_dense()


@Kvu.register(SumInducingVariables, SumInducingVariables, (Sum, DecomposedKernel))
@Kvu_shapes
def Kvu_sums(
    iv_v: SumInducingVariables, iv_u: SumInducingVariables, kernel: Sum | DecomposedKernel
) -> tf.Tensor:
    """A block-diagonal matrix, because different summands are independent."""
    pairs = zip(pair_blocks(iv_v, kernel), pair_blocks(iv_u, kernel), strict=True)
    return dense_blocks([Kvu(block_v, block_u, part) for (block_v, part), (block_u, _) in pairs])
