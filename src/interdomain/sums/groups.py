"""Sums of intercepts of groups, of which one is nonzero in a row, alone or beside dense features.

The rows' features are sparse matrices, and sums of their products take no dense block of rows. The
sums are dense matrices ``[M, M]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.covariances import Kuf

from .._arguments import Array, IntArray
from .._tracing import compiled
from ..core.family import Block
from ..core.pairs import Kuf_in_domain, structure_of
from ..core.structures import FeatureStructure
from ..linalg import Root
from .dense import DenseSums
from .group_collapsed import GroupCollapsed
from .whitened import Weights
from .whitened_groups import WhitenedGroupSums

FEWEST = 512
"""Groups whose sums take less time by sparse matrices."""

_ENTRIES = 2**23
"""Numbers of dense features that are computed at a time."""

Indices = Callable[[tf.Tensor], tf.Tensor]
"""Function of rows ``[n, D]`` that returns the number of the nonzero feature of each, ``[n]``."""


class Groups(FeatureStructure):
    """One or several blocks of intercepts, and the dense features of other blocks.

    :param groups: The first feature, the number of features, and the indices of each block of
        intercepts.
    :param others: The first feature, and the block, of each dense one.
    :ivar dense: The places of the dense features among all features, ``[B]``.
    """

    def __init__(
        self,
        size: int,
        groups: Sequence[tuple[int, int, Indices]],
        others: Sequence[tuple[int, Block]] = (),
    ) -> None:
        self.size, self._groups, self._others = size, tuple(groups), tuple(others)
        ranges = [start + np.arange(int(block.num_inducing)) for start, (block, _) in others]
        self.dense: IntArray = np.concatenate([np.zeros(0, np.int64), *ranges])

    @classmethod
    def single(cls, size: int, indices: Indices) -> Groups:
        """One block of intercepts."""
        return cls(size, [(0, size, indices)])

    def in_sum(self, blocks: Sequence[Block], number: int) -> Groups:
        """All blocks of intercepts in a sum, and its other blocks as dense ones."""
        groups, others, start = list[Any](), list[Any](), 0
        for block in blocks:
            part = structure_of(*block)
            if isinstance(part, Groups):
                groups += [(start + first, size, at) for first, size, at in part._groups]
            else:
                others.append((start, block))
            start += int(block[0].num_inducing)
        return Groups(start, groups, others)

    def sums(self, features: Any) -> GroupSums | None:
        return GroupSums(features, self) if self._is_large else None

    def whitened_sums(
        self, features: Any, weights: Callable[..., Weights]
    ) -> WhitenedGroupSums | None:
        return WhitenedGroupSums(features, weights, self) if self._is_large else None

    @property
    def _is_large(self) -> bool:
        return self.largest[1] - self.largest[0] >= FEWEST

    @property
    def row_entries(self) -> int:
        return len(self.dense) + len(self._groups) if self._is_large else self.size

    @property
    def largest(self) -> tuple[int, int]:
        """The range of the features of the largest block of intercepts."""
        start, size, _ = max(self._groups, key=lambda part: part[1])
        return start, start + size

    def indices(self, X: tf.Tensor) -> tf.Tensor:
        """The numbers of the nonzero intercepts of rows, ``[n, J]`` for J blocks of them."""
        of_blocks = [start + tf.cast(indices(X), tf.int64) for start, _, indices in self._groups]
        return tf.stack(of_blocks, axis=1)

    def others(self, X: tf.Tensor, *, in_domain: bool = True) -> tf.Tensor:
        """The dense features of rows, ``[n, B]``, in float64.

        :param in_domain: Whether the rows are known to be in the features' domains.
        """
        covariances = Kuf_in_domain if in_domain else Kuf
        features = [tf.cast(covariances(*block, X), tf.float64) for _, block in self._others]
        none = tf.zeros([0, tf.shape(X)[0]], tf.float64)
        stacked = tf.ensure_shape(tf.concat([none, *features], axis=0), [len(self.dense), None])
        return tf.linalg.matrix_transpose(stacked)

    def weighted(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """The sums of features of rows in the domains with weights ``[M, P]``, ``[n, P]``."""
        weights = tf.cast(weights, tf.float64)
        of_groups = tf.reduce_sum(tf.gather(weights, self.indices(X)), axis=1)
        return of_groups + tf.matmul(self.others(X), tf.gather(weights, self.dense))

    def products(
        self, indices: IntArray, values: Array, others: Array, targets: Array
    ) -> tuple[Array, Array]:
        """The sums over rows of products of features, ``[M, M]``, and with targets, ``[M, T]``.

        :param indices: The numbers of the intercepts that are nonzero in a row, ``[n, k]``.
        :param values: Their values, ``[n, k]``; values of the same intercept are added.
        :param others: The dense features, ``[n, B]``.
        :param targets: ``[n, T]``.
        """
        ends = indices.shape[1] * np.arange(len(indices) + 1)
        shape = len(indices), self.size
        groups = scipy.sparse.csr_matrix((values.ravel(), indices.ravel(), ends), shape)
        groups.sum_duplicates()
        transposed = groups.T.tocsr()
        gram = (transposed @ groups).toarray()
        border = transposed @ others
        gram[:, self.dense] = border
        gram[self.dense] = border.T
        gram[np.ix_(self.dense, self.dense)] = others.T @ others
        products = transposed @ targets
        products[self.dense] = others.T @ targets
        return gram, products


class GroupSums(DenseSums):
    """Sums of intercepts of groups, and of dense features beside them."""

    def __init__(self, features: Any, groups: Groups) -> None:
        super().__init__(features)
        self._groups = groups
        self.rows_at_once = max(1, min(2**17, _ENTRIES // groups.row_entries))

    @cached_property
    def _of_rows(self) -> Any:
        X = tf.TensorSpec([None, self.features.num_columns], gpflow.default_float())
        groups = self._groups
        return compiled(lambda X: (groups.indices(X), groups.others(X)), input_signature=[X])

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        rows = tf.constant(X, gpflow.default_float())
        weighted, sums = self.features.target_sums(rows, Y, *more)
        indices, others = (part.numpy() for part in self._of_rows(rows))
        # Of features times the roots of weights, and of targets divided by these roots.
        targets = weighted.numpy()
        roots = np.sqrt(targets[:, -1:]) if more else np.ones([len(targets), 1])
        ones = np.broadcast_to(roots, indices.shape)
        gram, products = self._groups.products(indices, ones, others * roots, targets / roots)
        return {"gram": gram, "products": products, **sums}

    def weighted(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return self._groups.weighted(X, weights)

    def finish(
        self,
        prior: Root,
        gram: tf.Tensor,
        columns: tf.Tensor,
        *,
        num_columns: int = 0,
        gram_gradient: bool = False,
    ) -> Any:
        dense = super().finish(
            prior, gram, columns, num_columns=num_columns, gram_gradient=gram_gradient
        )
        return dense if prior.diagonal is None else GroupCollapsed(dense, *self._groups.largest)
