"""A structure of sums that is added from outside: of a Markov chain, block by block in one column.

A row depends on its two neighbours in the chain alone: ``A = Kuu^{-1} Kuf`` has two numbers in a
column. With these numbers as features, the inducing variables u have the precision ``Kuu^{-1} + A
A^T / s`` given the rows, which is tridiagonal. Sums are two diagonals, and the terms of the bound
take a multiple of M.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.kernels import Matern12

from interdomain.core.structures import FeatureStructure
from interdomain.sums.protocol import Sums

from .markov_operator import MarkovChain, MarkovRoot
from .markov_points import MarkovPoints


class ChainPoints(MarkovPoints):
    """Places in one column, whose sums over rows keep the chain."""

    def structure(self, kernel: Matern12) -> Chain:
        return Chain(self, kernel)


class Chain(FeatureStructure):
    """The chain of the values at some places.

    :ivar block: The places, and the kernel.
    """

    def __init__(self, points: ChainPoints, kernel: Matern12) -> None:
        self.block, self.size = (points, kernel), points.num_inducing

    def sums(self, features: Any) -> ChainSums:
        return ChainSums(features, self)


class ChainSums(Sums):
    """Sums of A: two diagonals, what the columns of the mean function border them with, and the
    products of these columns, as one vector."""

    def __init__(self, features: Any, chain: Chain) -> None:
        self.chain = chain
        super().__init__(features)

    def in_graph(self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor) -> dict[str, tf.Tensor]:
        targets, sums = self.features.target_sums(X, Y, *more)  # the last are the weights
        near = self._neighbours(X)
        return {
            "gram": tf.reshape(self._diagonals(near, targets[:, -1]), [-1]),
            "products": self._products(near, targets),
            **sums,
        }

    def _neighbours(self, X: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The places before and after each row, and the numbers in A."""
        points, kernel = self.chain.block
        places, last = tf.constant(points.places, tf.float64), points.num_inducing - 1
        x = tf.cast(tf.reshape(kernel.slice(X)[0], [-1]), tf.float64)
        length = tf.cast(kernel.lengthscales, tf.float64)
        number = tf.searchsorted(places, x, side="right")
        before, after = tf.maximum(number - 1, 0), tf.minimum(number, last)
        a = tf.exp(-tf.abs(x - tf.gather(places, before)) / length)
        b = tf.exp(-tf.abs(tf.gather(places, after) - x) / length)
        is_inside = before < after
        gap = tf.where(is_inside, 1 - tf.square(a * b), tf.ones_like(a))
        weight_before = tf.where(
            is_inside, a * (1 - tf.square(b)) / gap, tf.where(number > last, a, tf.zeros_like(a))
        )
        weight_after = tf.where(
            is_inside, b * (1 - tf.square(a)) / gap, tf.where(number > last, tf.zeros_like(b), b)
        )
        return before, after, weight_before, weight_after

    def _products(self, near: tuple[tf.Tensor, ...], targets: tf.Tensor) -> tf.Tensor:
        """``A t``, ``[M, T]``."""
        before, after, weight_before, weight_after = near
        sums = tf.math.unsorted_segment_sum(
            weight_before[:, None] * targets, before, self.chain.size
        )
        return sums + tf.math.unsorted_segment_sum(
            weight_after[:, None] * targets, after, self.chain.size
        )

    def _diagonals(self, near: tuple[tf.Tensor, ...], weights: tf.Tensor) -> tf.Tensor:
        """The diagonal of ``A diag(w) A^T`` and the one beside it, ``[2, M]``."""
        before, after, weight_before, weight_after = near
        weights, size = tf.cast(weights, tf.float64), self.chain.size
        parts = (tf.square(weight_before), before), (tf.square(weight_after), after)
        diagonal = [tf.math.unsorted_segment_sum(weights * w, at, size) for w, at in parts]
        beside = tf.math.unsorted_segment_sum(weights * weight_before * weight_after, before, size)
        return tf.stack([tf.add_n(diagonal), beside])

    def site_sums(self, X: tf.Tensor, precisions: Any, shifts: Any) -> tuple[tf.Tensor, tf.Tensor]:
        near, grams = self._neighbours(X), []
        columns = tf.cast(self.features.mean.columns(X), tf.float64)
        for weights in tf.unstack(tf.convert_to_tensor(precisions)):
            weighted = columns * weights[:, None]
            parts = self._diagonals(near, weights), self._products(near, weighted)
            parts = *parts, tf.matmul(columns, weighted, transpose_a=True)
            grams.append(tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0))
        shifts = tf.transpose(shifts)
        both = [self._products(near, shifts), tf.matmul(columns, shifts, transpose_a=True)]
        return tf.stack(grams), tf.concat(both, axis=0)

    def gram_shape(self, num_columns: int) -> tuple[int, ...]:
        return (2 * self.chain.size + num_columns * (self.chain.size + num_columns),)

    def border(self, gram: tf.Tensor, num_columns: int) -> tuple[tf.Tensor, tf.Tensor]:
        size = self.chain.size
        parts = tf.split(gram, [2 * size, size * num_columns, num_columns**2])[1:]
        shapes = [size, num_columns], [num_columns, num_columns]
        return tuple(map(tf.reshape, parts, shapes))

    def prior_gram(self, num_columns: int) -> np.ndarray:
        """As ``A = I`` of the values themselves, the sum is ``Kuu^{-1}``."""
        diagonals = np.ravel(tf.stack(inverse_of(self.prior())))
        return np.pad(diagonals, (0, self.gram_shape(num_columns)[0] - len(diagonals)))

    def prior(self) -> MarkovChain:
        points, kernel = self.chain.block
        return points.Kuu(kernel).cast(tf.float64)

    def finish(
        self,
        prior: MarkovChain,
        gram: tf.Tensor,
        columns: tf.Tensor,
        *,
        num_columns: int = 0,
        gram_gradient: bool = False,
    ) -> ChainCollapsed:
        diagonals = tf.reshape(gram[: 2 * self.chain.size], [2, self.chain.size])
        return ChainCollapsed(prior, *tf.unstack(diagonals), columns)


def inverse_of(chain: MarkovChain) -> tuple[tf.Tensor, tf.Tensor]:
    """The diagonal of ``Kuu^{-1}``, and the one beside it, which ends in a zero."""
    _, (a, b) = MarkovRoot(chain).inverse()
    beside = tf.pad(b[1:], [[0, 1]])
    return tf.square(a) + tf.square(beside), -tf.pad(a[1:], [[0, 1]]) * beside


class ChainCollapsed(NamedTuple):
    """What bound and q are made of.

    :ivar prior: Kuu.
    :ivar diagonal: The diagonal of ``A A^T``, ``[M]``.
    :ivar beside: The one beside it, ``[M]``.
    :ivar columns: ``A (Y - m)``, ``[M, P]``.
    """

    prior: MarkovChain
    diagonal: tf.Tensor
    beside: tf.Tensor
    columns: tf.Tensor

    def terms(
        self, noise_variance: tf.Tensor, *, refuse: bool = True
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """By elimination from the first place to the last."""
        pairs = zip(inverse_of(self.prior), (self.diagonal, self.beside), strict=True)
        diagonal, beside = (tf.unstack(a + b / noise_variance) for a, b in pairs)
        columns, pivot = tf.unstack(self.columns / noise_variance), diagonal[0]
        column, logs, fits = columns[0], [tf.math.log(pivot)], [tf.square(columns[0]) / pivot]
        for number in range(1, len(diagonal)):
            factor = beside[number - 1] / pivot
            pivot = diagonal[number] - factor * beside[number - 1]
            column = columns[number] - factor * column
            logs.append(tf.math.log(pivot))
            fits.append(tf.square(column) / pivot)
        log_determinant = tf.add_n(logs) + 2 * self.prior.root().log_determinant()
        return log_determinant, tf.reduce_sum(tf.add_n(fits))

    def explained_variance(self, incomplete: np.ndarray) -> tf.Tensor:
        between = 2 * tf.reduce_sum(self.beside[:-1] * self.prior.decays)
        explained = self.prior.variance * (tf.reduce_sum(self.diagonal) + between)
        return explained if np.any(incomplete) else tf.zeros([], tf.float64)

    def whitened_q(self, noise_variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        triangle, products = tf.linalg.cholesky(self.prior.to_dense()), self._matrix()
        half = tf.matmul(triangle, tf.matmul(products, triangle), transpose_a=True)
        covariance = tf.linalg.inv(tf.eye(len(half), dtype=tf.float64) + half / noise_variance)
        columns = tf.matmul(triangle, self.columns, transpose_a=True) / noise_variance
        return tf.matmul(covariance, columns), tf.linalg.cholesky(covariance)

    def weights(self, noise_variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        root = self.prior.root()
        mean, q_root = self.whitened_q(noise_variance)
        return root.solve(mean, adjoint=True), root.solve(q_root, adjoint=True)

    def mean_of_weights(self, noise_variance: tf.Tensor) -> np.ndarray:
        """Of the features A: the mean of u."""
        mean, _ = self.whitened_q(noise_variance)
        return np.asarray(tf.matmul(tf.linalg.cholesky(self.prior.to_dense()), mean))

    def _matrix(self) -> tf.Tensor:
        beside = tf.linalg.diag(self.beside[:-1], k=1)
        return tf.linalg.diag(self.diagonal) + beside + tf.transpose(beside)
