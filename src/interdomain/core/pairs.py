"""Functions of any pair of an inducing variable and a kernel, in terms of a family's methods.

Only this module replaces a kernel of finite rank by the kernel of its features. It also gives the
methods of a family to pairs that GPflow supports (points, or pairs that users register).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
    from .functionals import LinearFunctional, Places
    from .structures import FeatureStructure


class RegisteredPairs(InterDomainInducingVariables):
    """An inducing variable with covariances registered in GPflow's dispatchers, as a family."""

    def __init__(self, inducing_variable: InducingVariables) -> None:
        super().__init__()
        self._inducing_variable = inducing_variable

    @property
    def num_inducing(self) -> int | tf.Tensor:
        size = self._inducing_variable.shape[0] if self._inducing_variable.shape else None
        return self._inducing_variable.num_inducing if size is None else size

    def Kuf(self, kernel: Kernel, X: TensorType) -> tf.Tensor:
        return Kuf(self._inducing_variable, kernel, X)

    def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> StructuredOperator:
        return Full(Kuu(self._inducing_variable, kernel, jitter=jitter))

    def acted_Kuf(
        self, kernel: Kernel, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """The covariances of values at GPflow's points with a functional, in closed form."""
        from .functional_covariances import point_covariances  # it imports this module

        if not isinstance(self._inducing_variable, InducingPoints):
            return None
        while getattr(kernel, "inducing_variable", None) is self._inducing_variable:
            kernel = kernel.kernel  # the prior's own points have the covariances of its base
        return point_covariances(kernel, self._inducing_variable.Z, functional, places)

    def num_columns(self, kernel: Kernel) -> int | None:
        """The number of columns of X. Points have all columns, including those not selected."""
        if isinstance(self._inducing_variable, InducingPoints):
            columns: int | None = self._inducing_variable.Z.shape[-1]
            return columns
        return super().num_columns(kernel)


def base_kernel(inducing_variable: InducingVariables, kernel: Kernel) -> Kernel:
    """The kernel that defines the covariances of a pair: for a finite-rank prior, the kernel of its
    features. Under the prior, u has the same Kuu and Kuf, because ``cov(u, f) = Kuu Kuu^{-1} Kuf``.
    A subset of the features has the corresponding rows of both.

    :raises ValueError: If a kernel of finite rank does not contain the features.
    """
    is_family = isinstance(inducing_variable, InterDomainInducingVariables)
    while is_family and hasattr(kernel, "base_for"):
        kernel = kernel.base_for(inducing_variable)
    return kernel


def as_family(
    inducing_variable: InducingVariables, kernel: Kernel
) -> tuple[InterDomainInducingVariables, Kernel]:
    """The inducing variable as a family, and the kernel with which to call its methods."""
    kernel = base_kernel(inducing_variable, kernel)
    if hasattr(kernel, "acting_family"):
        return kernel.acting_family(inducing_variable), kernel
    is_family = isinstance(inducing_variable, InterDomainInducingVariables)
    if is_family and isinstance(kernel, inducing_variable.kernels):
        return inducing_variable, kernel
    return RegisteredPairs(inducing_variable), kernel


def boxed_parts(
    inducing_variable: InducingVariables, kernel: Kernel
) -> list[tuple[InterDomainInducingVariables, Kernel]]:
    """The inducing variables with kernels that may have a domain each. For a finite-rank prior they
    belong to the prior's features, for any inducing variable of the model."""
    while hasattr(kernel, "base_for"):
        inducing_variable, kernel = kernel.inducing_variable, kernel.kernel
    features, base = as_family(inducing_variable, kernel)
    return [as_family(*part) for part in features.parts(base)]


def Kuu_operator(
    inducing_variable: InducingVariables, kernel: Kernel, *, jitter: float = 0.0
) -> StructuredOperator:
    """Kuu as a linear operator that keeps its structure. The structured posterior and KL divergence
    use it, and thus ``gpflow.models.SVGP``; ``gpflow.models.SGPR`` uses the dense ``Kuu``.

    :param jitter: The jitter to add if a matrix of M rows (or of a block's rows) is factorised;
        diagonal operators, and those of diagonal plus low rank, ignore it.
    :return: A positive-definite ``tf.linalg.LinearOperator`` ``[M, M]``: diagonal, block-diagonal,
        diagonal plus low rank, or a full matrix that holds GPflow's dense ``Kuu``.
    :raises ValueError: If the covariance is not defined.
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
    """Kuf at rows that are known to be inside the domain, ``[M, N]``. The values are those of
    ``Kuf``; work that only rows outside need is skipped."""
    family, kernel = as_family(inducing_variable, kernel)
    return family.Kuf_in_domain(kernel, X)


def features_of_blocks(
    blocks: Sequence[Block], X: tf.Tensor, number: int, *, in_domain: bool
) -> tf.Tensor:
    """The features of some blocks at rows, ``[n, number]``, in float64.

    :param number: The number of all features; the blocks may be none.
    :param in_domain: Whether the rows are known to be in the features' domains.
    """
    covariances = Kuf_in_domain if in_domain else Kuf
    features = [tf.cast(covariances(*block, X), tf.float64) for block in blocks]
    none = tf.zeros([0, tf.shape(X)[0]], tf.float64)
    stacked = tf.ensure_shape(tf.concat([none, *features], axis=0), [number, None])
    return tf.linalg.matrix_transpose(stacked)


def feature_sums(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    X: TensorType,
    weights: TensorType | None,
    targets: TensorType,
) -> FeatureSums:
    """The sums over rows of products of their features, by the family's method:
    :meth:`InterDomainInducingVariables.sums`."""
    family, kernel = as_family(inducing_variable, kernel)
    return family.sums(kernel, X, weights, targets)


def structure_of(inducing_variable: InducingVariables, kernel: Kernel) -> FeatureStructure | None:
    """The structure of the features in sums over rows, from their family; None for dense sums."""
    family, kernel = as_family(inducing_variable, kernel)
    return family.structure(kernel)


def settings_of(inducing_variable: InducingVariables, kernel: Kernel) -> Any:
    """The settings of a kernel on which ``Kuf`` depends, from the family of the features. The
    kernel, for points and other pairs that are registered with GPflow."""
    if hasattr(kernel, "acting_family"):
        return kernel.acting_family(inducing_variable).settings_of(kernel)
    is_family = isinstance(inducing_variable, InterDomainInducingVariables)
    return inducing_variable.settings_of(kernel) if is_family else kernel


def dictionary_of(inducing_variable: InducingVariables, kernel: Kernel) -> Dictionary | None:
    """The dictionary of the features, if there is one. Under a prior of finite rank, the dictionary
    is one of finite rank too."""
    family, base = as_family(inducing_variable, kernel)
    dictionary = family.dictionary(base)
    return dictionary and replace(dictionary, finite_rank=base is not kernel)


def num_columns_of_any(pairs: Iterable[Block]) -> int | None:
    """The number of columns of X of the first pair that has one; None if no pair has one."""
    families = (as_family(*pair) for pair in pairs)
    known = (family.num_columns(kernel) for family, kernel in families)
    return next((columns for columns in known if columns is not None), None)


class StackedBlocks(BlockBatch):
    """Blocks whose covariances are computed one by one and then stacked."""

    def __init__(self, blocks: Sequence[Block], positions: Sequence[int]) -> None:
        super().__init__(positions)
        self.blocks = tuple(blocks)

    def features(self, X: TensorType) -> tf.Tensor:
        features = [Kuf(block, kernel, X) for block, kernel in self.blocks]
        return tf.expand_dims(features[0], 0) if len(features) == 1 else tf.stack(features)

    def operator(self, jitter: float) -> StructuredOperator:
        return stack([Kuu_operator(block, kernel, jitter=jitter) for block, kernel in self.blocks])


def block_batches(inducing_variable: InducingVariables, kernel: Kernel) -> list[BlockBatch]:
    """The blocks of an inducing variable, in batches of equal size; one block by default. A graph
    then has as many operations for sixteen equal blocks as for two."""
    family, base = as_family(inducing_variable, kernel)
    return family.block_batches(base) or [StackedBlocks([(inducing_variable, kernel)], [0])]
