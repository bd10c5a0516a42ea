"""What any inducing variable and kernel answer together, as a family does.

Here, and nowhere else, a kernel of finite rank gives way to the kernel of its features, and a pair
that GPflow knows (points, or what users register) gets the methods of a family.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from ..linalg import Full, StructuredOperator
from ..linalg.full import stack
from .family import Block, BlockBatch, FeatureSums, InterDomainInducingVariables

if TYPE_CHECKING:
    from .dictionaries import Dictionary
    from .structures import FeatureStructure


class RegisteredPairs(InterDomainInducingVariables):
    """An inducing variable whose covariances GPflow's dispatchers know, as a family."""

    def __init__(self, inducing_variable: InducingVariables) -> None:
        super().__init__()
        self._inducing_variable = inducing_variable

    @property
    def num_inducing(self) -> int | tf.Tensor:
        return self._inducing_variable.num_inducing

    def Kuf(self, kernel: Kernel, X: TensorType) -> tf.Tensor:
        return Kuf(self._inducing_variable, kernel, X)

    def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> StructuredOperator:
        return Full(Kuu(self._inducing_variable, kernel, jitter=jitter))

    def num_columns(self, kernel: Kernel) -> int | None:
        """Points have all columns of X, those included that the kernel does not see."""
        if isinstance(self._inducing_variable, InducingPoints):
            columns: int | None = self._inducing_variable.Z.shape[-1]
            return columns
        return super().num_columns(kernel)


def base_kernel(inducing_variable: InducingVariables, kernel: Kernel) -> Kernel:
    """The kernel whose covariances with u a pair has: u has the covariances with f that it has
    under the kernel that a prior of finite rank is a part of, ``cov(u, f) = Kuu Kuu^{-1} Kuf``, and
    its own Kuu; of some of the features, the rows of both.

    :raises ValueError: For features that a kernel of finite rank does not consist of.
    """
    is_family = isinstance(inducing_variable, InterDomainInducingVariables)
    while is_family and hasattr(kernel, "base_for"):
        kernel = kernel.base_for(inducing_variable)
    return kernel


def as_family(
    inducing_variable: InducingVariables, kernel: Kernel
) -> tuple[InterDomainInducingVariables, Kernel]:
    """What answers for a pair, and the kernel to ask it for."""
    kernel = base_kernel(inducing_variable, kernel)
    is_family = isinstance(inducing_variable, InterDomainInducingVariables)
    if is_family and isinstance(kernel, inducing_variable.kernels):
        return inducing_variable, kernel
    return RegisteredPairs(inducing_variable), kernel


def boxed_parts(
    inducing_variable: InducingVariables, kernel: Kernel
) -> list[tuple[InterDomainInducingVariables, Kernel]]:
    """The pairs that may have a domain each: of a kernel of finite rank, those of the features that
    the prior is made of, whatever the inducing variable is."""
    while hasattr(kernel, "base_for"):
        inducing_variable, kernel = kernel.inducing_variable, kernel.kernel
    features, base = as_family(inducing_variable, kernel)
    return [as_family(*part) for part in features.parts(base)]


def Kuu_operator(
    inducing_variable: InducingVariables, kernel: Kernel, *, jitter: float = 0.0
) -> StructuredOperator:
    """Kuu as a linear operator that keeps its structure. The structured posterior and KL divergence
    use it, and ``gpflow.models.SVGP`` through them; ``gpflow.models.SGPR`` uses the dense ``Kuu``.

    :param jitter: What is added where a matrix of M rows (or of the rows of a block) has to be
        factorised; diagonal operators, and those of diagonal plus low rank, ignore it.
    :return: A positive-definite ``tf.linalg.LinearOperator`` ``[M, M]``: diagonal, block-diagonal,
        diagonal plus low rank or a full matrix made of GPflow's dense ``Kuu``.
    :raises ValueError: If there is no covariance.
    """
    family, kernel = as_family(inducing_variable, kernel)
    operator = family.Kuu(kernel, jitter=jitter)
    if not isinstance(operator, StructuredOperator):
        raise TypeError(
            f"{type(inducing_variable).__name__}.Kuu must return one of the operators of "
            f"interdomain.linalg, found {type(operator).__name__}; return Full(matrix)."
        )
    return operator


def Kuf_in_domain(inducing_variable: InducingVariables, kernel: Kernel, X: TensorType) -> tf.Tensor:
    """Kuf at rows that are known to be in the domain, ``[M, N]``, with the values that ``Kuf`` has
    there, and without what only rows outside need."""
    family, kernel = as_family(inducing_variable, kernel)
    return family.Kuf_in_domain(kernel, X)


def feature_sums(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    X: TensorType,
    weights: TensorType | None,
    targets: TensorType,
) -> FeatureSums:
    """The sums over rows of products of their features, in the family's own way if it has one: see
    :meth:`InterDomainInducingVariables.sums`."""
    family, kernel = as_family(inducing_variable, kernel)
    return family.sums(kernel, X, weights, targets)


def structure_of(inducing_variable: InducingVariables, kernel: Kernel) -> FeatureStructure | None:
    """The structure of features in sums over rows, which their family names; None for dense."""
    family, kernel = as_family(inducing_variable, kernel)
    return family.structure(kernel)


def dictionary_of(inducing_variable: InducingVariables, kernel: Kernel) -> Dictionary | None:
    """The dictionary that features are taken from, if there is one; a prior of finite rank has what
    the features explain of its kernel."""
    family, base = as_family(inducing_variable, kernel)
    dictionary = family.dictionary(base)
    return dictionary and replace(dictionary, finite_rank=base is not kernel)


def num_columns_of_any(pairs: Iterable[Block]) -> int | None:
    """The number of columns of X that the first pair knows that knows any; None if none does."""
    families = (as_family(*pair) for pair in pairs)
    known = (family.num_columns(kernel) for family, kernel in families)
    return next((columns for columns in known if columns is not None), None)


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
    """The blocks of an inducing variable, in batches of equal size, so that a graph has as many
    operations for sixteen blocks as for two; one, unless its family says more."""
    family, base = as_family(inducing_variable, kernel)
    return family.block_batches(base) or [StackedBlocks([(inducing_variable, kernel)], [0])]
