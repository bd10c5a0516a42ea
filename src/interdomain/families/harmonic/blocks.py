"""Covariances of inducing points of harmonic kernels: Sun et al. 2021, section 4.1."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..._arguments import Array
from ...core.columns import as_rows, num_columns, with_columns
from ...core.family import BlockBatch, InterDomainInducingVariables, with_jitter
from ...core.set_kernel import SetKernel
from ...linalg import Full, StructuredOperator
from ...linalg.block_diagonal import block_diagonal
from .decomposition import HarmonicKernel
from .orbit_sums import orbit_sums


class PointsOfComponents(InterDomainInducingVariables, abc.ABC):
    """Inducing points of all components of a harmonic kernel, or of one component."""

    @abc.abstractmethod
    def points(self, components: Sequence[int]) -> tf.Tensor:
        """The points of the numbered parts, ``[T, m, D]``, or ``[1, m, D]`` if they are shared."""

    @abc.abstractmethod
    def block_batches(self, kernel: Any) -> list[BlockBatch]:
        """The parts of the kernel, in batches with equal multiplicity."""

    def columns_under(self, kernel: Kernel, base: Kernel) -> int | None:
        """The number of columns of X: as many as points have, or as a set kernel's inputs have.

        :param kernel: The harmonic kernel or its part, which selects columns.
        """
        if isinstance(base, SetKernel):
            return num_columns(base, base.input_dim)
        return num_columns(kernel, int(self.points([0]).shape[-1]))

    def Kuf(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The covariances ``k_t(z, x)`` of each part's points, one part below the other."""
        X = with_columns(X, self.num_columns(kernel))
        rows = as_rows(X)
        batches = self.block_batches(kernel)
        features = [batch.features(rows) for batch in batches]
        if len(batches) == 1:
            joint = tf.reshape(features[0], [-1, tf.shape(rows)[0]])
        else:
            joint = tf.concat(_ordered(batches, [tf.unstack(part) for part in features]), axis=0)
        return tf.reshape(joint, tf.concat([[-1], tf.shape(X)[:-1]], axis=0))

    def Kuu(self, kernel: Any, *, jitter: float = 0.0) -> StructuredOperator:
        """The covariance of the inducing variables: one diagonal block for each part."""
        batches = self.block_batches(kernel)
        matrices = [tf.unstack(batch.operator(jitter).to_dense()) for batch in batches]
        operators = [Full(matrix) for matrix in _ordered(batches, matrices)]
        return operators[0] if len(operators) == 1 else block_diagonal(operators)


class HarmonicBlocks(BlockBatch):
    """Components with equal multiplicity, whose covariances are computed together.

    :param inducing_variable: The inducing points of at least these components.
    :param positions: The positions of the blocks among all blocks of the model.
    :param images: Whether there are variables at the images of the points as well.
    """

    def __init__(
        self,
        inducing_variable: PointsOfComponents,
        kernel: HarmonicKernel,
        components: tuple[int, ...],
        positions: tuple[int, ...],
        images: bool,
    ) -> None:
        super().__init__(positions)
        self.inducing_variable, self.kernel, self.components = inducing_variable, kernel, components
        none = (0,) * len(kernel.transform.orders)
        self.shifts = {t: kernel.shifts(t) if images else (none,) for t in components}

    def features(self, X: TensorType) -> tf.Tensor:
        orbit_weights = self.kernel.orbit_weights
        weights = [[orbit_weights(t, shift) for shift in self.shifts[t]] for t in self.components]
        points = self.inducing_variable.points(self.components)
        return self._sums(self.kernel.orbit_covariances, points, X, np.asarray(weights))

    def operator(self, jitter: float) -> StructuredOperator:
        """The covariances ``k_t(G^p z, G^q z')`` for all shifts p and q; they depend on p - q.

        G^s and G^-s give matrices that are each other's transpose, so only one of the two is
        computed. The sum of the computed matrices is then added to its transpose.
        """
        # One exponent of each pair s and -s; the weight is halved if s and -s are the same.
        orders = self.kernel.transform.orders
        exponents = np.indices(orders).reshape(len(orders), -1)
        inverse = np.ravel_multi_index((-exponents) % np.array(orders)[:, None], orders)
        itself = np.arange(len(inverse))
        representatives = itself[itself <= inverse]
        halves = np.where(inverse[representatives] == representatives, 0.5, 1.0)
        weights = [
            [
                self.kernel.orbit_weights(t, np.subtract(p, q).tolist())[representatives] * halves
                for p, q in itertools.product(self.shifts[t], repeat=2)
            ]
            for t in self.components
        ]
        base_sums = partial(orbit_sums, self.kernel.transformed_kernel)
        points = self.inducing_variable.points(self.components)
        sums = self._sums(
            base_sums, points, points, np.asarray(weights), representatives, split=True
        )
        return Full(with_jitter(sums + tf.linalg.matrix_transpose(sums), jitter))

    def _sums(
        self,
        sums_over: Callable[..., tf.Tensor],
        points: tf.Tensor,
        X: TensorType,
        weights: Array,
        elements: Array | None = None,
        split: bool = False,
    ) -> tf.Tensor:
        """Orbit sums ``[T, P m, N]``; with ``split``, ``[T, P m, P m]`` (weights of P^2 rows)."""
        orbits = tf.transpose(self.kernel.transform.orbit(points), [1, 0, 2, 3])  # [U, S, m, D]
        if elements is not None and len(elements) < orbits.shape[1]:
            orbits = tf.gather(orbits, elements, axis=1)
        num_blocks, num_rows = weights.shape[:2]
        if orbits.shape[0] != num_blocks:  # shared points: all blocks use the same kernel values
            weights = weights.reshape(1, num_blocks * num_rows, -1)
        sums = sums_over(orbits, X, tf.constant(weights, points.dtype))
        size, columns = tf.shape(sums)[-2], tf.shape(sums)[-1]
        if not split:
            return tf.reshape(sums, [num_blocks, num_rows * size, columns])
        side = int(round(num_rows**0.5))
        if side > 1:
            sums = tf.reshape(sums, [num_blocks, side, side, size, columns])
            sums = tf.transpose(sums, [0, 1, 3, 2, 4])
        return tf.reshape(sums, [num_blocks, side * size, side * columns])


def _ordered(batches: list[BlockBatch], parts: list[list[Any]]) -> list[Any]:
    """The parts of all batches, one part for each block, sorted by the blocks' positions."""
    positions = itertools.chain(*(batch.positions for batch in batches))
    by_position = dict(zip(positions, itertools.chain(*parts), strict=True))
    return [by_position[position] for position in sorted(by_position)]
