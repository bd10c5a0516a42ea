"""The structure of intercepts of groups (features of which one is nonzero in a row)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf

from .._arguments import Array, IntArray
from ..core.family import Block
from ..core.pairs import Kuu_operator, features_of_blocks, structure_of
from ..core.structures import FeatureStructure, dense_entries
from ..linalg import Diagonal, StructuredOperator
from ..linalg.block_diagonal import block_diagonal
from .group_collapsed import GroupGram
from .group_sums import GroupSums
from .whitened import Weights
from .whitened_groups import WhitenedGroupSums

FEWEST = 512
"""The least number of groups for which sparse sums take less time than dense sums."""

Indices = Callable[[tf.Tensor], tf.Tensor]
"""A function of rows ``[n, D]`` that returns the number of each row's nonzero feature, ``[n]``."""


class Groups(FeatureStructure):
    """Intercepts of groups in one or several blocks, and dense features of all other blocks.

    :param blocks: All blocks of features.
    :param indices: The indices of each block of intercepts; None for a block of dense features.
    :ivar num_first: The number L of intercepts of the largest block of intercepts.
    :ivar order: The numbers of all features in another order: these L intercepts first, ``[M]``.
    :ivar dense: The places of the dense features among all features.
    """

    def __init__(self, blocks: Sequence[Block], indices: Sequence[Indices | None]) -> None:
        self._blocks, self._indices = tuple(blocks), tuple(indices)
        sizes = [int(block.num_inducing) for block, _ in blocks]
        self._starts = np.cumsum([0, *sizes])
        self.size = int(self._starts[-1])
        groups = [k for k, block_indices in enumerate(indices) if block_indices is not None]
        self._first = max(groups, key=lambda k: sizes[k])
        self.num_first, start = sizes[self._first], self._starts[self._first]
        first = start + np.arange(self.num_first)
        self.order = np.concatenate([first, np.delete(np.arange(self.size), first)])
        is_dense = np.repeat([block_indices is None for block_indices in indices], sizes)
        self.dense: IntArray = np.flatnonzero(is_dense)

    def in_sum(self, blocks: Sequence[Block], number: int) -> Groups:
        """The structure of a sum: all intercepts, and all other blocks as dense features."""
        parts = list[tuple[Block, Indices | None]]()
        for block in blocks:
            part: Any = structure_of(*block)
            is_groups = isinstance(part, Groups)
            parts += zip(part._blocks, part._indices, strict=True) if is_groups else [(block, None)]
        return Groups(*zip(*parts, strict=True))

    def sums(self, features: Any) -> GroupSums | None:
        return GroupSums(features, self) if self.num_first >= FEWEST else None

    def whitened_sums(
        self, features: Any, weights: Callable[..., Weights]
    ) -> WhitenedGroupSums | None:
        few = self.num_first < FEWEST
        return None if few else WhitenedGroupSums(features, weights, self)

    @property
    def row_entries(self) -> int:
        if self.num_first < FEWEST:
            return self.size
        return len(self.dense) + sum(block_indices is not None for block_indices in self._indices)

    @property
    def entries(self) -> int:
        others = self.size - self.num_first
        return 4 * self.num_first * (1 + others) + dense_entries(others)

    def indices(self, X: tf.Tensor) -> tf.Tensor:
        """The numbers of the nonzero intercepts of rows among all features, ``[n, J]`` for J blocks
        of intercepts."""
        pairs = zip(self._starts, self._indices, strict=False)
        parts = [start + tf.cast(index(X), tf.int64) for start, index in pairs if index is not None]
        return tf.stack(parts, axis=1)

    def first(self, X: tf.Tensor) -> tf.Tensor:
        """The number of each row's nonzero intercept among the first L intercepts, ``[n]``."""
        indices: Any = self._indices[self._first]
        return tf.cast(indices(X), tf.int64)

    def rest(self, X: tf.Tensor, *, in_domain: bool = True) -> tf.Tensor:
        """The features of rows without the first L features, ``[n, B]``, in float64."""
        blocks = [block for k, block in enumerate(self._blocks) if k != self._first]
        return features_of_blocks(blocks, X, self.size - self.num_first, in_domain=in_domain)

    def others(self, X: tf.Tensor, *, in_domain: bool = True) -> tf.Tensor:
        """The dense features of rows, ``[n, K]``, in float64.

        :param in_domain: Whether the rows are known to be in the features' domains.
        """
        pairs = zip(self._blocks, self._indices, strict=True)
        blocks = [block for block, block_indices in pairs if block_indices is None]
        return features_of_blocks(blocks, X, len(self.dense), in_domain=in_domain)

    def values(self, weights: tf.Tensor, X: tf.Tensor, *, in_domain: bool = False) -> tf.Tensor:
        """The features of rows times weights ``[S, M, P]``, summed over features: ``[S, n, P]``."""
        sums = tf.reduce_sum(tf.gather(weights, self.indices(X), axis=1), axis=2)
        others = self.others(X, in_domain=in_domain)
        return sums + tf.einsum("nk,skp->snp", others, tf.gather(weights, self.dense, axis=1))

    def entries_per_row(self, weights: tf.Tensor) -> int:
        """The count of numbers that :meth:`values` has in memory for each row."""
        samples, _, latents = map(int, weights.shape)
        return samples * latents * len(self._indices) + len(self.dense)

    def weighted(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """The features of rows in the domains times weights ``[M, P]``, summed: ``[n, P]``."""
        return self.values(tf.cast(weights, tf.float64)[None], X, in_domain=True)[0]

    def Kuu(self) -> tuple[tf.Tensor, StructuredOperator]:
        """The diagonal of Kuu of the first intercepts, and Kuu of the rest, in float64."""
        jitter, operators = gpflow.config.default_jitter(), list[StructuredOperator]()
        for block in self._blocks:
            operators.append(Kuu_operator(*block, jitter=jitter).cast(tf.float64))
        first = operators.pop(self._first)
        none = Diagonal(tf.zeros([0], tf.float64))
        return first.diag_part(), block_diagonal(operators) if operators else none

    def products(
        self, indices: IntArray, others: Array, num_columns: int, weights: Array, targets: Array
    ) -> tuple[list[Array], Array]:
        """Weighted sums over rows of products of s, which joins the features and further columns.

        :param indices: The numbers of the nonzero intercepts, ``[n, J]``.
        :param others: The dense features, and further columns, ``[n, K + H]``.
        :param num_columns: H.
        :param weights: ``[n, W]``, all of one sign.
        :param targets: ``[n, T]``.
        :return: For each column of weights ``sum_n w_n s_n s_n^T`` as the vector of a
            :class:`.GroupGram`; and ``sum_n s_n t_n^T``, ``[M + H, T]``.
        """
        size, shape = self.size + num_columns, (len(indices), self.size + num_columns)
        ends = indices.shape[1] * np.arange(len(indices) + 1)
        groups = scipy.sparse.csr_matrix((np.ones(indices.size), indices.ravel(), ends), shape)
        transposed = groups.T.tocsr()
        places = np.arange(self.size, size)
        dense, rest = (np.concatenate([part, places]) for part in (self.dense, self.order))
        first, rest = np.split(rest, [self.num_first])
        within = np.searchsorted(rest, dense)
        grams = []
        for w in weights.T:
            sign, roots = np.sign(np.sum(w)), np.sqrt(np.abs(w))
            scaled = others if np.all(w == 1) else others * roots[:, None]
            beside = transposed @ (scaled if scaled is others else others * w[:, None])
            group_products = transposed @ scipy.sparse.diags(w) @ groups
            border = group_products[first][:, rest].toarray()
            border[:, within] = beside[first]
            corner = group_products[rest][:, rest].toarray()
            corner[:, within] = beside[rest]
            corner[within] = beside[rest].T
            # NumPy detects the symmetric product, and computes half of it.
            corner[np.ix_(within, within)] = sign * (scaled.T @ scaled)
            grams.append(GroupGram(group_products.diagonal()[first], border, corner).packed())
        products = transposed @ targets
        products[dense] = others.T @ targets
        return grams, products
