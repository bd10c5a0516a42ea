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
    """Inducing points of all components of a harmonic kernel, or of one."""

    @abc.abstractmethod
    def points(self, components: Sequence[int]) -> tf.Tensor:
        """The points of some components, ``[T, m, D]``, or ``[1, m, D]`` if they are shared."""

    @abc.abstractmethod
    def block_batches(self, kernel: Any) -> list[BlockBatch]:
        """The components, in batches of equal multiplicity."""

    def columns_under(self, base: Kernel) -> int | None:
        """The number of columns of X: that of the points, or of the kernel that sums over them."""
        if isinstance(base, SetKernel):
            return num_columns(base, base.input_dim)
        return int(self.points([0]).shape[-1])

    def Kuf(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """``k_t(z, x)`` for the points of each component, one component below the other."""
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
        """Block-diagonal, with one block for each component."""
        batches = self.block_batches(kernel)
        matrices = [tf.unstack(batch.operator(jitter).to_dense()) for batch in batches]
        operators = [Full(matrix) for matrix in _ordered(batches, matrices)]
        return operators[0] if len(operators) == 1 else block_diagonal(operators)


class HarmonicBlocks(BlockBatch):
    """Components of one multiplicity: their covariances are computed in one go.

    :param inducing_variable: Holds the points of these components, and maybe of others.
    :param positions: Where the blocks stand among all blocks of the model.
    :param images: Whether points have variables at their images as well.
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
        """``k_t(G^p z, G^q z')`` for all shifts p and q; it depends on p - q.

        G^s and G^-s give matrices that are each other's transpose, so one of the two is computed;
        a sum and its transpose are added in the end.
        """
        # One of each pair of exponents s and -s, and 1/2 where they are the same.
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
        """``[T, P m, N]``, or with ``split`` ``[T, P m, P m]`` from weights of P^2 rows."""
        orbits = tf.transpose(self.kernel.transform.orbit(points), [1, 0, 2, 3])  # [U, S, m, D]
        if elements is not None and len(elements) < orbits.shape[1]:
            orbits = tf.gather(orbits, elements, axis=1)
        num_blocks, num_rows = weights.shape[:2]
        if orbits.shape[0] != num_blocks:  # shared: all blocks from the same kernel values
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
    """What belongs to each block, batch by batch, in the order of the blocks."""
    positions = itertools.chain(*(batch.positions for batch in batches))
    by_position = dict(zip(positions, itertools.chain(*parts), strict=True))
    return [by_position[position] for position in sorted(by_position)]
