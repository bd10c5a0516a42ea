"""The weights of space and time given sums over rows: the terms of the bound, and the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..._arguments import Array, BoolArray
from ..._tracing import numpy_function
from ...core.pairs import Kuu_operator
from ...linalg import StructuredOperator
from ...linalg.chain import Chain, ChainFactor
from ...linalg.chain_terms import NOT_FACTORISED, chain_terms
from ...linalg.stencil_factors import NotFactorised
from ..dense import check_dense, optimal_q, root_of, whiten
from ..protocol import Latents, Tensors
from ..sparse_q import SparseQ, SparseWeights


class ChainCollapsed(NamedTuple):
    """The terms of the bound and q for space and time: see
    :class:`interdomain.sums.protocol.Collapsed`. The weights are those of whitened features.

    :ivar sums: The :class:`.ChainSums` of the features.
    :ivar band: The prior precision: see :meth:`.SpaceTime.band`.
    :ivar others: Kuu of the features without splines of time.
    :ivar matrix: The matrix that whitens features of space, ``[m, m]``; None for the identity.
    :ivar raw: Blocks, border and corner of G, and ``sum phi t^T`` in the order of the structure,
        ``[M, P]``, in the basis of the sums.
    :ivar border: The border of G for whitened features.
    :ivar columns: ``sum phi t^T`` for whitened features.
    :ivar gram_gradient: Whether the terms have gradients with respect to G.
    """

    sums: Any
    band: tf.Tensor
    others: StructuredOperator
    matrix: tf.Tensor | None
    raw: tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]
    border: tf.Tensor
    columns: tf.Tensor
    gram_gradient: bool = False

    @property
    def gram(self) -> list[tf.Tensor]:
        """Blocks, in the basis of the sums, border and corner of G, and the matrix that whitens the
        blocks."""
        blocks, _, corner, _ = self.raw
        size = self._chain.width
        matrix = tf.eye(size, dtype=tf.float64) if self.matrix is None else self.matrix
        return [blocks, self.border, corner, matrix]

    @property
    def _chain(self) -> Chain:
        chain: Chain = self.sums.structure.chain
        return chain

    def terms(self, noise_variance: tf.Tensor, *, refuse: bool = True) -> Tensors:
        """The terms ``log det B`` and ``|c|^2``; see :func:`.chain_terms`."""
        log, fit = chain_terms(
            self._chain,
            self.band,
            self.others.to_dense(),
            self.gram[:3],
            self.columns,
            noise_variance,
            matrix=self.matrix,
            gram_gradient=self.gram_gradient,
            refuse=refuse,
        )
        prior_log = self.sums.structure.log_determinant()
        if self._chain.others:
            prior_log += 2 * self.others.root().log_determinant()
        return log - prior_log, fit

    def prior_tensors(self, incomplete: BoolArray) -> list[tf.Tensor]:
        """The prior precision's band and corner; if a feature is incomplete, also the band of the
        inverse."""
        inverses = [self.sums.structure.band(inverse=True)] if np.any(incomplete) else []
        return [self.band, self.others.to_dense(), *inverses]

    def explained_variance(self, incomplete: BoolArray) -> tf.Tensor:
        """The trace ``tr Kuu^{-1} G`` over features that leave out a part of their kernel."""
        total, structure = tf.zeros([], tf.float64), self.sums.structure
        of_nodes, of_others = np.split(incomplete[structure.order], [self._chain.num_weights])
        if np.any(of_nodes):
            inverse = structure.band(inverse=True) * _mask(self._chain, of_nodes)
            total += tf.reduce_sum(_doubled(inverse) * self._diagonals())
        if np.any(of_others):
            root = self.others.root()
            half = tf.linalg.matrix_transpose(root.solve(self.raw[2]))
            variances = tf.linalg.diag_part(root.solve(half))
            total += tf.reduce_sum(tf.where(of_others, variances, 0.0))
        return total

    def _diagonals(self) -> tf.Tensor:
        """The diagonals of the blocks of G for whitened features, ``[N, p + 1, g, m]``."""
        blocks = self.raw[0]
        if self.matrix is None:
            return tf.linalg.diag_part(blocks)
        return tf.reduce_sum(tf.matmul(self.matrix, blocks) * self.matrix, axis=4)

    def whitened_q(self, noise_variance: tf.Tensor) -> Tensors:
        """The mean and root of the whitened q of few features as dense matrices, without gradients.

        :raises ValueError: If the features are too many.
        """
        gram, columns = self._dense()  # raises for many features, before the root is made
        features = self.sums.features
        root = root_of(Kuu_operator(features.inducing_variable, features.kernel))
        return optimal_q(whiten(root, gram, columns, gram_gradient=False), noise_variance)

    def weights(self, noise_variance: tf.Tensor) -> Tensors:
        """:raises ValueError: Always: the covariance would be dense."""
        raise ValueError(
            "inducing_variable: found products with splines of time, of whose weights no dense "
            "covariance is made; choose features for a model without them."
        )

    def mean_of_weights(self, noise_variance: tf.Tensor) -> Array:
        """The mean of the weights of features in the basis of the sums, in their order, ``[M,
        P]``."""
        means = ChainQ(self.sums, [(self, noise_variance)]).means
        structure, chain = self.sums.structure, self._chain
        matrix = structure.whitening()
        if matrix is not None:
            means = np.asarray(mapped(chain, tf.transpose(matrix), tf.constant(means)))
        return means[np.argsort(structure.order)]

    def _dense(self) -> Tensors:
        """G and the columns for Kuf as matrices, in the order of all features.

        :raises ValueError: If the features are too many.
        """
        structure, chain = self.sums.structure, self._chain
        count = structure.size
        check_dense(count, "splines of time or features of space")
        matrix, (blocks, border, corner, columns) = structure.from_raw(), self.raw
        if matrix is not None:
            blocks = tf.matmul(tf.matmul(matrix, blocks), matrix, transpose_b=True)
            border, columns = (mapped(chain, matrix, part) for part in (border, columns))
        places = np.argsort(structure.order)

        def assembled(blocks: Array, border: Array, corner: Array) -> Array:
            dense = np.block([[chain.dense(blocks), border], [border.T, corner]])
            return np.asarray(dense[places][:, places])

        dense = numpy_function(assembled, [blocks, border, corner], tf.float64, stateful=False)
        return tf.ensure_shape(dense, [count, count]), tf.gather(columns, places)


def _mask(chain: Chain, of_nodes: BoolArray) -> Array:
    """Whether weights ``[N g m]`` are chosen, as ``[N, 1, g, m]`` in float64."""
    return of_nodes.reshape(chain.nodes, 1, chain.copies, chain.width).astype(np.float64)


def _doubled(band: Any) -> Any:
    """A band ``[N, p + 1, g, m]``, with the entries doubled that the matrix has twice."""
    return band * np.array([1.0, *[2.0] * (int(band.shape[1]) - 1)])[:, None, None]


def mapped(chain: Chain, matrix: tf.Tensor | None, columns: tf.Tensor) -> tf.Tensor:
    """Columns ``[N g m, K]``, or ``[N g m + E, K]``, whose weights of each node are multiplied by a
    matrix ``[m, m]``; None for the identity."""
    if matrix is None:
        return columns
    nodes, others = columns[: chain.num_weights], columns[chain.num_weights :]
    shape = [chain.nodes * chain.copies, chain.width, columns.shape[1]]
    products = tf.matmul(matrix, tf.reshape(nodes, shape))
    return tf.concat([tf.reshape(products, [chain.num_weights, columns.shape[1]]), others], axis=0)


class ChainWeights(SparseWeights):
    """The posterior of the weights of all latent GPs, as arrays, in the order of the structure.

    :param structure: The :class:`.SpaceTime` features.
    :param incomplete: Whether each feature's block leaves out a part of its kernel.
    :param prior: The band of the prior precision, its corner, and the band of the inverse if a
        feature is incomplete.
    :param latents: G, the columns and the noise variance, for all outputs or for each.
    :raises tf.errors.InvalidArgumentError: If a precision cannot be factorised.
    :ivar means: The mean of the weights, ``[M, P]``.
    """

    def __init__(
        self,
        structure: Any,
        incomplete: BoolArray,
        prior: Sequence[Array],
        latents: Sequence[tuple[Sequence[Array], Array, Array]],
    ) -> None:
        self._chain: Chain = structure.chain
        self._incomplete, self._prior = incomplete, prior
        band, corner, *_ = prior
        self.factors: list[ChainFactor] = []
        means = []
        for (blocks, border, own, matrix), columns, noise in latents:
            scale = float(1 / noise)
            parts = band, corner + own * scale, blocks, border * scale, scale
            whitening = None if structure.whitening() is None else matrix
            try:
                factor = ChainFactor(self._chain, *parts, whitening)
            except NotFactorised:
                raise tf.errors.InvalidArgumentError(None, None, NOT_FACTORISED) from None
            self.factors.append(factor)
            means.append(factor.solve(factor.solve(columns * scale), adjoint=True))
        self.means = np.concatenate(means, axis=1)

    def arrays(self) -> list[Array]:
        """The means, and blocks, borders and corners of ``P^{-1} - Kuu^{-1}``, where Kuu is for the
        incomplete features alone."""
        chain, (_, corner, *inverses) = self._chain, self._prior
        of_nodes, of_others = np.split(self._incomplete, [chain.num_weights])
        blocks, borders, corners = [], [], []
        for factor in self.factors:
            inverse = factor.inverse_blocks()
            border, own = factor.inverse_border()
            if inverses:
                places = np.arange(chain.width)
                inverse[..., places, places] -= inverses[0] * _mask(chain, of_nodes)
                own -= np.linalg.inv(corner) * (of_others * of_others[:, None])
            blocks.append(inverse)
            borders.append(border)
            corners.append(own)
        return [self.means, *map(np.stack, (blocks, borders, corners))]

    @cached_property
    def _prior_factor(self) -> ChainFactor:
        band, corner, *_ = self._prior
        nothing = np.broadcast_to(0.0, self._chain.shapes[0])
        border = np.zeros(self._chain.shapes[1])
        return ChainFactor(self._chain, band, corner, nothing, border)

    def covariances(self, features: Array) -> Array:
        """``phi^T (P^{-1} - Kuu^{-1}) phi`` between few rows ``[M, n]``, ``[L, n, n]``."""
        halves = [factor.solve(features) for factor in self.factors]
        covariances: Array = np.stack([half.T @ half for half in halves])
        if np.any(self._incomplete):
            half = self._prior_factor.solve(features * self._incomplete[:, None])
            covariances -= half.T @ half
        return covariances

    def kl(self) -> float:
        """The KL divergence from the prior, of all latent GPs."""
        chain, (band, corner, *_) = self._chain, self._prior
        prior_log, total = self._prior_factor.log_determinant(), 0.0
        traces = []
        for factor in self.factors:
            inverse = _doubled(factor.inverse_band())
            own = factor.inverse_border()[1]
            traces.append(np.sum(inverse * band) + np.sum(own * corner))
        logs = [factor.log_determinant() for factor in self.factors]
        copies = self.means.shape[1] // len(self.factors)
        for number, mean in enumerate(self.means.T):
            nodes, others = np.split(mean[:, None], [chain.num_weights])
            squares = np.sum(_doubled(chain.band_of_products(nodes)) * band)
            squares += np.sum((others @ others.T) * corner)
            latent = number // copies  # outputs may share a factor
            total += traces[latent] + squares + 2 * (logs[latent] - prior_log) - len(mean)
        return float(total / 2)


class ChainQ(SparseQ):
    """The posterior of the weights of space and time: see :class:`.SparseQ`."""

    failure = NOT_FACTORISED

    def __init__(self, sums: Any, latents: Latents) -> None:
        super().__init__(sums, latents, sums.structure)

    def _posterior_of(
        self, prior: Sequence[Array], latents: Sequence[tuple[list[Array], Array, Array]]
    ) -> ChainWeights:
        return ChainWeights(self._structure, self.incomplete, prior, latents)

    def _shapes(self) -> list[tuple[int, ...]]:
        chain, latents = self._structure.chain, self._num_latents
        means = self._structure.size, self._num_outputs
        return [means, *((latents, *shape) for shape in chain.shapes)]
