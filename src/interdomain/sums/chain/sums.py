"""Sums over rows of products of splines of time and features of space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from ..._arguments import Array, BoolArray
from ...linalg import StructuredOperator
from ..protocol import Latents, Sums, Tensors
from .posterior import ChainPosterior
from .q import ChainCollapsed, ChainQ, mapped

if TYPE_CHECKING:
    from .structure import SpaceTime

_ROWS = 2**16, 2**20
"""The limits of the least number of rows of a joined batch: rows that repeat places are summed by
place first."""

_BORDER = 2**24
"""The count of numbers of dense features of these rows."""

_ROWS_OF_A_PREDICTION = 64, 2**14
"""The least and the largest number of rows that are predicted at a time."""

_ENTRIES = 2**23
"""The count of numbers in memory for these rows."""


class ChainSums(Sums):
    """Sums of products as a vector of blocks, border and corner (:class:`.Chain`). Like dense sums,
    they can be added, saved and used for the sites of a model.

    :ivar structure: The features.
    """

    def __init__(self, features: Any, structure: SpaceTime) -> None:
        super().__init__(features)
        self.structure = structure
        structure.check_size()
        chain = structure.chain
        self.rows_at_once = int(np.clip(_BORDER // (1 + chain.others), *_ROWS))
        numbers = chain.width * (chain.reach + 1) * (1 + chain.others * features.num_outputs)
        self.rows_of_a_prediction = int(np.clip(_ENTRIES // numbers, *_ROWS_OF_A_PREDICTION))

    @property
    def numbers_per_row(self) -> int:
        chain, features = self.structure.chain, self.features
        num_columns: int = features.num_stacked - features.num_inducing
        return chain.width + chain.reach + 1 + chain.others + num_columns

    def in_graph(self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor) -> dict[str, tf.Tensor]:
        targets, sums = self.features.target_sums(X, Y, *more)
        weights = more[0][:, 0] if more else tf.ones(tf.shape(X)[:1], tf.float64)
        gram, products = self.structure.sums_of(X, weights, targets)
        return {"gram": gram, "products": products, **sums}

    def explained_at_rows(self) -> BoolArray | None:
        return self.structure.explained_at_rows()

    def check_spacing(self) -> None:
        self.structure.warn_of_spacing(self.features.incomplete)

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        rows = tf.constant(X, gpflow.default_float())
        targets, sums = self.features.target_sums(rows, Y, *more)
        weights = more[0] if more else np.ones([len(X), 1])
        parts = np.asarray(weights), np.zeros([len(X), 0]), targets.numpy()
        (gram,), products = self.structure.products(rows, *parts)
        return {"gram": gram, "products": products, **sums}

    def weighted(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        structure, chain = self.structure, self.structure.chain
        ordered, matrix = (
            tf.gather(tf.cast(weights, tf.float64), structure.order),
            structure.whitening(),
        )
        if matrix is not None:  # weights of whitened features
            nodes = tf.reshape(ordered[: chain.num_weights], [-1, chain.width, weights.shape[1]])
            nodes = tf.einsum("kj,nkp->njp", tf.linalg.inv(matrix), nodes)
            nodes = tf.reshape(nodes, [chain.num_weights, -1])
            ordered = tf.concat([nodes, ordered[chain.num_weights :]], axis=0)
        return structure.values(ordered[None], X)[0]

    def site_sums(self, X: tf.Tensor, precisions: Any, shifts: Any) -> tuple[Array, Array]:
        """The sums have no gradients."""
        columns = tf.cast(self.features.mean.columns(X), tf.float64).numpy()
        weights, shifts = (np.transpose(part) for part in (precisions, shifts))
        return self.structure.products(X, weights, columns, shifts)

    def gram_shape(self, num_columns: int) -> tuple[int, ...]:
        chain = self.structure.chain
        return (chain._replace(others=chain.others + num_columns).entries,)

    def border(self, gram: tf.Tensor, num_columns: int) -> Tensors:
        structure = self.structure
        _, border, corner = structure.unpacked(gram, num_columns)
        size = structure.chain.others
        with_features = tf.concat([border[:, size:], corner[:size, size:]], axis=0)
        return tf.gather(with_features, np.argsort(structure.order)), corner[size:, size:]

    def prior_gram(self, num_columns: int) -> Array:
        structure, (band, others, matrix) = self.structure, self.prior()
        diagonals = tf.linalg.diag(band)
        if matrix is not None:  # the precision of the weights of features in the basis of the sums
            inverse = tf.linalg.inv(matrix)
            diagonals = tf.matmul(inverse, tf.matmul(diagonals, inverse, transpose_b=True))
        size = structure.chain.others + num_columns
        border = np.zeros([structure.chain.num_weights, size])
        corner = np.pad(others.to_dense(), (0, num_columns))
        parts = diagonals, border, corner
        return np.concatenate([np.ravel(np.asarray(part)) for part in parts])

    def prior(self) -> tuple[tf.Tensor, StructuredOperator, tf.Tensor | None]:
        """The band of the prior precision, Kuu of the features without splines of time, and the
        matrix that whitens features of space, or None."""
        structure = self.structure
        return structure.band(), structure.Kuu_of_others(), structure.whitening()

    def finish(
        self,
        prior: tuple[tf.Tensor, StructuredOperator, tf.Tensor | None],
        gram: tf.Tensor,
        columns: tf.Tensor,
        *,
        num_columns: int = 0,
        gram_gradient: bool = False,
    ) -> ChainCollapsed:
        structure, (band, others, matrix) = self.structure, prior
        size = structure.chain.others
        blocks, border, corner = structure.unpacked(gram, num_columns)
        raw = blocks, border[:, :size], corner[:size, :size], tf.gather(columns, structure.order)
        beside, targets = (mapped(structure.chain, matrix, part) for part in (raw[1], raw[3]))
        return ChainCollapsed(self, band, others, matrix, raw, beside, targets, gram_gradient)

    def q(self, latents: Latents) -> ChainQ:
        return ChainQ(self, latents)

    def posterior(
        self,
        latents: Callable[[], Latents],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> AbstractPosterior:
        return ChainPosterior(self, latents, precompute_cache)
