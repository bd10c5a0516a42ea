"""Sums of intercepts of groups, alone or with other features.

The products of the intercepts of one column of groups with each other are a diagonal. With L such
intercepts and B other features, a sum of products has ``L (1 + B) + B^2`` numbers. The column with
the most groups has this form, and no matrix ``[L, L]`` is formed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from .._arguments import Array
from .._tracing import compiled
from ..linalg import StructuredOperator
from .group_collapsed import GroupCollapsed, GroupGram
from .group_posterior import GroupPosterior, GroupQ
from .protocol import Latents, Sums, Tensors

_ENTRIES = 2**23
"""The count of dense feature values that are computed at a time."""


class GroupSums(Sums):
    """Sums of products of intercepts of groups and of other features, as the vector of a
    :class:`.GroupGram`.

    :ivar groups: The :class:`interdomain.sums.groups.Groups` of the features.
    """

    def __init__(self, features: Any, groups: Any) -> None:
        super().__init__(features)
        self.groups = groups
        self.rows_at_once = max(1, min(2**17, _ENTRIES // groups.row_entries))
        # In a row, all features but the first are dense numbers.
        self.rows_of_a_prediction = max(1, _ENTRIES // (1 + self._sizes[1]))

    @cached_property
    def _row_parts(self) -> Any:
        X = tf.TensorSpec([None, self.features.num_columns], gpflow.default_float())
        groups = self.groups
        return compiled(lambda X: (groups.indices(X), groups.others(X)), input_signature=[X])

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        rows = tf.constant(X, gpflow.default_float())
        weighted, sums = self.features.target_sums(rows, Y, *more)
        targets = weighted.numpy()
        indices, others = (part.numpy() for part in self._row_parts(rows))
        (gram,), products = self.groups.products(indices, others, 0, targets[:, -1:], targets)
        return {"gram": gram, "products": products, **sums}

    def in_graph(self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor) -> dict[str, tf.Tensor]:
        targets, sums = self.features.target_sums(X, Y, *more)
        none, weights = tf.zeros_like(targets[:, :0]), targets[:, -1:]
        grams, products = self._with_gradients(X, none, weights, targets)
        return {"gram": grams[0], "products": products, **sums}

    def site_sums(self, X: tf.Tensor, precisions: tf.Tensor, shifts: tf.Tensor) -> Tensors:
        columns = tf.cast(self.features.mean.columns(X), tf.float64)
        weights, shifts = (tf.transpose(part) for part in (precisions, shifts))
        return self._with_gradients(X, columns, weights, shifts)

    def _with_gradients(
        self, X: tf.Tensor, columns: tf.Tensor, weights: tf.Tensor, targets: tf.Tensor
    ) -> Tensors:
        """The sums of :meth:`Groups.products`, from tensors, with gradients."""
        groups, grams = self.groups, []
        first, rest = groups.first(X), tf.concat([groups.rest(X), columns], axis=1)

        def added(values: tf.Tensor) -> tf.Tensor:
            return tf.math.unsorted_segment_sum(values, first, groups.num_first)

        for w in tf.unstack(weights, axis=1):
            weighted = rest * w[:, None]
            corner = tf.matmul(weighted, rest, transpose_a=True)
            parts = added(w), added(weighted), corner
            grams.append(tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0))
        ordered = tf.concat([added(targets), tf.matmul(rest, targets, transpose_a=True)], axis=0)
        places = groups.size + np.arange(columns.shape[1])
        order = np.argsort(np.concatenate([groups.order, places]))
        return tf.stack(grams), tf.gather(ordered, order)

    def site_batch(self, rows: Any, precisions: Array, shifts: Array) -> tuple[Array, Array]:
        columns = tf.cast(self.features.mean.columns(rows), tf.float64).numpy()
        indices, others = (part.numpy() for part in self._row_parts(rows))
        dense = np.concatenate([others, columns], axis=1)
        parts = columns.shape[1], precisions.T, shifts.T
        grams, products = self.groups.products(indices, dense, *parts)
        return np.stack(grams), products

    def weighted(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return self.groups.weighted(X, weights)

    def gram_shape(self, num_columns: int) -> tuple[int, ...]:
        first, others = self._sizes
        others += num_columns
        return (first * (1 + others) + others**2,)

    @property
    def _sizes(self) -> tuple[int, int]:
        """The number L of intercepts whose products are a diagonal; the number of all others."""
        return self.groups.num_first, self.groups.size - self.groups.num_first

    def border(self, gram: tf.Tensor, num_columns: int) -> Tensors:
        first, size = self._sizes
        _, border, corner = GroupGram.unpacked(gram, first, size + num_columns)
        with_features = tf.concat([border[:, size:], corner[:size, size:]], axis=0)
        return tf.gather(with_features, np.argsort(self.groups.order)), corner[size:, size:]

    def prior_gram(self, num_columns: int) -> Array:
        diagonal, others = self.prior()
        corner = np.pad(others.to_dense(), (0, num_columns))
        border = np.zeros([len(diagonal), len(corner)])
        return GroupGram(np.asarray(diagonal), border, corner).packed()

    def prior(self) -> tuple[tf.Tensor, StructuredOperator]:
        """The diagonal of Kuu of the first intercepts, and Kuu of the other features."""
        prior: tuple[tf.Tensor, StructuredOperator] = self.groups.Kuu()
        return prior

    def finish(
        self,
        prior: tuple[tf.Tensor, StructuredOperator],
        gram: tf.Tensor,
        columns: tf.Tensor,
        *,
        num_columns: int = 0,
        gram_gradient: bool = False,
    ) -> GroupCollapsed:
        first, size = self._sizes
        counts, border, corner = GroupGram.unpacked(gram, first, size + num_columns)
        gram = GroupGram(counts, border[:, :size], corner[:size, :size])
        columns = tf.gather(columns, self.groups.order)
        return GroupCollapsed(self, *prior, gram, columns, gram_gradient)

    def q(self, latents: Latents) -> GroupQ:
        return GroupQ(self, latents)

    def posterior(
        self,
        latents: Callable[[], Latents],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> AbstractPosterior:
        return GroupPosterior(self, latents, precompute_cache)
