"""Sums of intercepts of groups, of which one is nonzero in a row, alone or beside dense features.

The rows' features are sparse matrices, and sums of their products take no dense block of rows. The
sums are dense matrices ``[M, M]``. Without neighbours, G of one column of groups is diagonal, and
the bound eliminates these features: with ``B = [[A, C^T], [C, E]]``, A being diagonal,

    log det B = log det A + log det S,    S = E - C A^{-1} C^T,
    |c|^2 = |A^{-1/2} t_1|^2 + |S^{-1/2} (t_2 - C A^{-1} t_1)|^2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.covariances import Kuf

from .._arguments import Array, BoolArray, IntArray
from .._tracing import compiled
from ..core.family import Block
from ..core.pairs import Kuf_in_domain, structure_of
from ..core.structures import FeatureStructure
from ..linalg import Root
from ..linalg.precision import precision_terms
from .dense import Collapsed, DenseSums
from .protocol import Tensors
from .whitened import Weights, WhitenedSums, combine

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
        self, groups: scipy.sparse.csr_matrix, others: Array, targets: Array
    ) -> tuple[Array, Array]:
        """The sums over rows of products of features, ``[M, M]``, and with targets, ``[M, T]``.

        :param groups: The intercepts of the rows, ``[n, M]``, without dense features.
        :param others: The dense features, ``[n, B]``.
        :param targets: ``[n, T]``.
        """
        transposed = groups.T.tocsr()
        gram = (transposed @ groups).toarray()
        border = transposed @ others
        gram[:, self.dense] = border
        gram[self.dense] = border.T
        gram[np.ix_(self.dense, self.dense)] = others.T @ others
        products = transposed @ targets
        products[self.dense] = others.T @ targets
        return gram, products


def _sparse(indices: IntArray, values: Array, size: int) -> scipy.sparse.csr_matrix:
    """The matrix ``[n, size]`` with the values ``[n, k]`` at these columns ``[n, k]`` of each row;
    values at the same place are added."""
    ends = indices.shape[1] * np.arange(len(indices) + 1)
    matrix = scipy.sparse.csr_matrix((values.ravel(), indices.ravel(), ends), (len(indices), size))
    matrix.sum_duplicates()
    return matrix


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
        targets, sums = self.features.target_sums(rows, Y)
        indices, others = (part.numpy() for part in self._of_rows(rows))
        sparse = _sparse(indices, np.ones(indices.shape), self._groups.size)
        gram, products = self._groups.products(sparse, others, targets)
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


class GroupCollapsed(NamedTuple):
    """What the bound and q are made of, for diagonal Kuu: see :class:`.protocol.Collapsed`.

    :ivar dense: The same in dense matrices.
    :ivar start: The first of the features whose G is diagonal.
    :ivar end: The first after these.
    """

    dense: Collapsed
    start: int
    end: int

    def terms(self, noise_variance: tf.Tensor, *, refuse: bool = True) -> Tensors:
        """``log det B`` and ``|c|^2``; the features whose G is diagonal are eliminated."""
        _, scale, gram, _, columns = self.dense
        first = np.arange(self.start, self.end)
        rest = np.delete(np.arange(columns.shape[0]), first)
        of_first, of_rest = tf.gather(scale, first), tf.gather(scale, rest)
        variances = tf.gather(tf.linalg.diag_part(gram), first)
        diagonal = 1 + variances * tf.square(of_first) / noise_variance
        rows = tf.gather(gram, rest)
        border = tf.gather(rows, first, axis=1) * of_first * of_rest[:, None] / noise_variance
        corner = tf.gather(rows, rest, axis=1) * of_rest * of_rest[:, None] / noise_variance
        corner -= tf.matmul(border / diagonal, border, transpose_b=True)  # S - I
        half = tf.gather(columns, first) * of_first[:, None] / noise_variance
        solved = half / diagonal[:, None]
        targets = tf.gather(columns, rest) * of_rest[:, None] / noise_variance
        targets -= tf.matmul(border, solved)
        one = tf.ones([], tf.float64)
        log_determinant, fit = precision_terms(
            tf.ones_like(of_rest), corner, targets, one, gram_gradient=True, refuse=refuse
        )
        log_determinant += tf.reduce_sum(tf.math.log(diagonal))
        return log_determinant, fit + tf.reduce_sum(half * solved)

    def explained_variance(self, incomplete: BoolArray) -> tf.Tensor:
        return self.dense.explained_variance(incomplete)

    def whitened_q(self, noise_variance: tf.Tensor) -> Tensors:
        return self.dense.whitened_q(noise_variance)

    def weights(self, noise_variance: tf.Tensor) -> Tensors:
        return self.dense.weights(noise_variance)

    def mean_of_weights(self, noise_variance: tf.Tensor) -> Array:
        return self.dense.mean_of_weights(noise_variance)


class WhitenedGroupSums(WhitenedSums):
    """Sums over whitened rows of intercepts: of a row with m neighbours at most m + 1 are nonzero
    in each block.

    Their gradients are those of dense features: see :meth:`in_graph`.
    """

    def __init__(self, features: Any, weights: Callable[..., Weights], groups: Groups) -> None:
        super().__init__(features, weights)
        self._groups = groups

    def _whitened(self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The weights of rows ``[b, m + 1]``; the intercepts of the neighbours and the row, ``[b, J
        (m + 1)]``, and the weight of each; the whitened dense features and targets; and the sum of
        ``log 2 pi d``."""
        features, groups = self.features, self._groups
        weights, log_variances, places = self._weights(X, *more)
        parts = [groups.others(X), Y - features.mean.rest(X), features.mean.columns(X)]
        rows = tf.concat([tf.cast(part, tf.float64) for part in parts], axis=1)
        indices, values = groups_of_neighbours(groups.indices(X), weights, places)
        total = tf.reduce_sum(np.log(2 * np.pi) + log_variances)
        return indices, values, combine(weights, places, rows), total

    @cached_property
    def _compiled(self) -> Any:
        return compiled(self._whitened, input_signature=self.features.signature())

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        dtype = gpflow.default_float()
        rows = tf.constant(X, dtype), tf.constant(Y, dtype)
        indices, values, dense, log_variances = (p.numpy() for p in self._compiled(*rows, *more))
        others, targets = np.split(dense, [len(self._groups.dense)], axis=1)
        sparse = _sparse(indices, values, self._groups.size)
        gram, products = self._groups.products(sparse, others, targets)
        return {
            "gram": gram,
            "products": products,
            "targets": targets.T @ targets,
            "diagonal": np.zeros(0),
            "log_variances": log_variances,
        }

    def weighted(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return self._groups.weighted(X, weights)

    def combined(self, X: tf.Tensor, weights: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        groups = self._groups
        indices, values = groups_of_neighbours(groups.indices(X), weights, places)
        size = tf.shape(indices, out_type=tf.int64)
        rows = tf.broadcast_to(tf.range(size[0])[:, None], size)
        shape = tf.stack([size[0], tf.constant(groups.size, tf.int64)])
        of_groups = tf.scatter_nd(tf.stack([rows, indices], axis=2), values, shape)
        if not len(groups.dense):
            return of_groups
        others = combine(weights, places, groups.others(X, in_domain=False))
        # Their columns among all, by a product with few ones.
        selection = np.zeros([len(groups.dense), groups.size])
        selection[np.arange(len(groups.dense)), groups.dense] = 1.0
        return of_groups + tf.matmul(others, selection)


def groups_of_neighbours(
    indices: tf.Tensor, weights: tf.Tensor, places: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The intercepts of rows and their neighbours, and the weight of each, ``[b, (m + 1) J]``.

    :param indices: The intercepts of single rows, ``[U, J]``.
    :param weights: ``[b, m + 1]``.
    :param places: Which rows, ``[b, m + 1]``.
    """
    number = indices.shape[1]
    gathered, repeated = tf.gather(indices, places), tf.repeat(weights, number, axis=1)
    return tf.reshape(gathered, tf.shape(repeated)), repeated
