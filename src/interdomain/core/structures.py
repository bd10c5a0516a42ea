"""Structures of features, by which sums over rows cost less time and memory than dense matrices.

A family defines the structure of its features by one method,
:meth:`interdomain.core.family.InterDomainInducingVariables.structure`. Inducing
variables that are sums or products combine structures only through this interface.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import IntArray


def dense_entries(size: int) -> int:
    """The number of values in memory for the dense sums of ``size`` features."""
    return 4 * size**2  # sums, whitened sums, factor and inverse


class FeatureStructure(abc.ABC):
    """A structure of the features of one inducing variable and kernel.

    :ivar size: The number M of features.
    """

    size: int

    @abc.abstractmethod
    def sums(self, features: Any) -> Any:
        """The :class:`interdomain.sums.protocol.Sums` of rows that have these features; None if
        dense sums take less time.

        :param features: The :class:`interdomain.sums.features.Features` of the rows.
        """

    def whitened_sums(self, features: Any, weights: Any) -> Any:
        """The sums of rows that are whitened by their neighbours; None, the default, if whitened
        rows have dense features.

        :param features: The features of the rows.
        :param weights: See :class:`interdomain.sums.whitened.WhitenedSums`.
        """
        return None

    @property
    def row_entries(self) -> int:
        """The number of values in memory for the features of a row, whitened or not."""
        return self.size

    @property
    def entries(self) -> int:
        """The number of values in memory for the sums and a posterior; by default, dense ones."""
        return dense_entries(self.size)

    def explained_diagonal(self, X: tf.Tensor) -> tf.Tensor | None:
        """The diagonal of ``Kfu Kuu^{-1} Kuf`` at rows ``[n, ...]``, ``[n]`` in float64; None, the
        default, to compute it from dense features."""
        return None

    def acted(self, inducing_variable: InducingVariables, kernel: Any) -> FeatureStructure | None:
        """The structure of the features on which the functionals of rows act; None, the default,
        if these features have no structure.

        :param inducing_variable: The inducing variable that has this structure.
        :param kernel: The :class:`interdomain.kernels.Functional` kernel.
        """
        return None

    def in_sum(
        self, blocks: Sequence[tuple[InducingVariables, Kernel]], number: int
    ) -> FeatureStructure | None:
        """The structure of all features of a sum; None, the default, if the sum has none.

        :param blocks: The blocks of the sum.
        :param number: The index of the block that has this structure.
        """
        return None

    def in_product(
        self, others: Sequence[FeatureStructure], members: IntArray
    ) -> FeatureStructure | None:
        """The structure of products of features; None, the default, if products have none.

        :param others: The structures of the other factors; this is the structure of the first.
        :param members: The features that each product multiplies, one of each factor, ``[M, F]``.
        """
        return None

    def in_all_products(
        self, pairs: Sequence[tuple[InducingVariables, Kernel]]
    ) -> FeatureStructure | None:
        """The structure of all products of the features of several factors; None if there is none.

        :param pairs: The factors, of which one has this structure.
        """
        return None
