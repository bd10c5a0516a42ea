"""One inducing variable per summand of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow.inducing_variables import InducingVariables

from .base import DecomposedInducingVariables, checked_list, each_once
from .multioutput import num_inducing


class SumInducingVariables(DecomposedInducingVariables):
    """Independent blocks of inducing variables, one for each summand of a sum kernel.

    ``f = sum_i f_i`` with independent ``f_i ~ GP(0, k_i)``; block i describes f_i alone. So Kuu is
    block-diagonal, and Kuf stacks those of the blocks (van der Wilk et al., *Convolutional Gaussian
    Processes*, 2017, section 3.3 and Appendix C). The blocks have a joint q(u) in a stock ``SVGP``
    and in :class:`interdomain.models.StructuredSGPR`.

    Blocks may differ in kind, size and input space; stock ``InducingPoints`` are allowed. The
    kernel is a ``gpflow.kernels.Sum``, whose summands pick their columns by ``active_dims``, or a
    :class:`interdomain.kernels.DecomposedKernel`. A summand may itself be such a sum, with a sum of
    inducing variables. :class:`interdomain.models.AdditiveSVGP` has an independent q for each
    block instead of the joint one.

    :param inducing_variables: One per summand, in the order of ``kernel.kernels``; None for a
        summand without inducing variables. If the same object is given several times, the summands
        share its parameters, but each has its own variables.
    :ivar blocks: The distinct objects among them.
    :raises ValueError: If the list is empty or has only None, or an entry is neither None nor an
        inducing variable.
    """

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
