"""Sums of independent parts: the kernels, and inducing variables with a block for each part."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum

from .columns import WholeRows, kernel_method
from .family import Block, InterDomainInducingVariables


class DecomposedKernel(WholeRows, metaclass=abc.ABCMeta):
    """Base class of kernels ``k = sum_t k_t`` that may compute the sum at a lower cost.

    :class:`interdomain.inducing_variables.SumInducingVariables` needs one inducing variable per
    part, as for ``gpflow.kernels.Sum``. This class does not derive from ``Sum``: GPflow would split
    a ``Sum`` in ``kernel + other``, and the kernel would lose its own ``K``.
    """

    @property
    @abc.abstractmethod
    def kernels(self) -> Sequence[Kernel]:
        """The kernels k_t, which share this kernel's parameters; each selects its columns of X."""

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """The sum over the parts. Override ``K`` and ``K_diag`` if there is a cheaper formula."""
        return tf.add_n([part.K(X, X2) for part in self.kernels])

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return tf.add_n([part.K_diag(X) for part in self.kernels])

    def validate(self) -> None:  # noqa: B027 - most subclasses have nothing to check
        """Check that training has not broken the decomposition. By default, nothing is checked.

        :raises ValueError: If the kernel is not the sum of its parts after training.
        """


class DecomposedInducingVariables(InterDomainInducingVariables, abc.ABC):
    """Independent blocks of inducing variables, one for each summand of a kernel.

    The kernel is a ``gpflow.kernels.Sum`` or a :class:`DecomposedKernel`.
    """

    @property
    @abc.abstractmethod
    def inducing_variables(self) -> Sequence[InducingVariables | None]:
        """One block per summand, in the order of ``kernel.kernels``; None for no block."""


def summands(kernel: Kernel) -> Sequence[Kernel]:
    """The parts of a kernel that is a sum, or acts on a sum; an empty sequence for any other
    kernel."""
    is_sum = isinstance(kernel, (Sum, DecomposedKernel))
    parts: Sequence[Kernel] = kernel.kernels if is_sum else getattr(kernel, "summands", ())
    return parts


def pair_blocks(inducing_variable: DecomposedInducingVariables, kernel: Kernel) -> list[Block]:
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
    """All blocks, including those of sums inside sums. A pair that is not a sum is one block.

    :raises ValueError: If a sum does not have one block per summand.
    """
    is_sum = isinstance(inducing_variable, DecomposedInducingVariables)
    if not is_sum or not summands(kernel):
        return [(inducing_variable, kernel)]
    pairs = pair_blocks(inducing_variable, kernel)
    return [flat for pair in pairs for flat in flat_blocks(*pair)]


def summed_pairs(
    inducing_variable: InducingVariables | None, kernel: Kernel
) -> list[tuple[InducingVariables | None, Kernel]]:
    """All summands of a kernel, each with its block or None. A pair that is not a sum with blocks
    for its summands is one pair."""
    is_sum = type(getattr(kernel, "prior", kernel)) is Sum
    if not is_sum or not isinstance(inducing_variable, DecomposedInducingVariables):
        return [(inducing_variable, kernel)]
    pairs = zip(inducing_variable.inducing_variables, summands(kernel), strict=True)
    return [flat for pair in pairs for flat in summed_pairs(*pair)]
