"""Weighted sums of a radial term over groups of points, with gradients in closed form.

A sum of ``c rho(r2)`` with ``r2 = scale |a - b|^2``, and S the slopes of rho at r2, has the
gradients

    to a:        2 scale sum c S (a - b),
    to scale:    sum c S r2 / scale.

The gradients for points take products of S with the points, which cost as much as the distances.
The gradient for the scale takes no product and is computed separately. So TensorFlow leaves the
products out of a graph that needs no gradient for points, such as pixels of images.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .chunks import (
    compiled_if_many,
    from_chunks,
    into_chunks,
    map_chunks,
    map_rows,
    rows_per_chunk,
)
from .radial_terms import (
    RadialTerm,
    ValueAndSlope,
    differences,
    distance_factors,
    rounding_error,
    squared_distances,
    with_one,
)

_NUM_BLOCKS = 9
"""The blocks of a group's points, an odd number: (9 + 1) / 2 in 9 pairs of blocks are computed."""

_SMALLEST_GROUP = 128
"""The number of points below which a group is one block."""


def radial_cross(
    term: RadialTerm, Z: tf.Tensor, points: tf.Tensor, weights: tf.Tensor, chunk: int
) -> tf.Tensor:
    """``sum_p weights[p] k(Z[m], points[n, p])`` ``[N, M]``, for ``chunk`` groups at a time."""

    def group_sums(
        groups: tf.Tensor, Z: tf.Tensor, weights: tf.Tensor, scale: tf.Tensor
    ) -> tf.Tensor:
        values, _ = term.value_and_slope(*squared_distances(for_each(Z, groups), groups, scale))
        return tf.tensordot(values, weights, 1)

    def gradient(
        upstream: tf.Tensor,
        groups: tf.Tensor,
        Z: tf.Tensor,
        weights: tf.Tensor,
        scale: tf.Tensor,
    ) -> tuple[tf.Tensor, ...]:
        r2, error = squared_distances(for_each(Z, groups), groups, scale)
        values, slopes = term.value_and_slope(r2, error)
        by_Z = tf.einsum(
            "nm,nme->me", upstream, tf.matmul(slopes, weights[:, None] * with_one(groups))
        )
        by_point = tf.matmul(slopes, upstream[..., None] * with_one(Z), transpose_a=True)
        return (
            2 * scale * weights[:, None] * differences(groups, by_point),
            2 * scale * differences(Z, by_Z),
            tf.reduce_sum(tf.matmul(upstream[:, None], values), axis=[0, 1]),
            tf.reduce_sum(upstream * tf.tensordot(slopes * r2, weights, 1)) / scale,
        )

    shared = [term.inputs(Z), weights, term.squared_scale]
    return term.variance * map_rows(group_sums, term.inputs(points), shared, chunk, gradient)


def radial_quadratic(
    term: RadialTerm, points: tf.Tensor, weights: tf.Tensor, max_entries: int
) -> tf.Tensor:
    """``sum_pq weights[p] weights[q] k(points[n, p], points[n, q])`` ``[N]``.

    The gradient needs sums over the same matrices as the value. The forward pass computes them, so
    that no matrix is kept or computed again.

    :param max_entries: The most kernel values of one group that may be held.
    """

    @tf.custom_gradient
    def sums(points: tf.Tensor, weights: tf.Tensor, scale: tf.Tensor) -> tuple[tf.Tensor, Any]:
        group_terms = _group_terms if points.shape[1] ** 2 <= max_entries else _large_group_terms
        values, row_sums, radii, flows = group_terms(term.value_and_slope, points, weights, scale)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            d_row_sums = upstream[:, None] * weights
            return (
                4 * scale * d_row_sums[..., None] * differences(points, flows),
                2 * tf.linalg.matvec(row_sums, upstream, transpose_a=True),
                tf.reduce_sum(upstream * radii) / scale,
            )

        return values, gradient

    compute = compiled_if_many(sums, points, rows_per_chunk(points.shape[1] ** 2))
    return term.variance * compute(term.inputs(points), weights, term.squared_scale)


def _group_terms(
    value_and_slope: ValueAndSlope, points: tf.Tensor, weights: tf.Tensor, scale: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """The value and the sums that its gradients need, computed for some groups at a time.

    :return: The values ``[N]``; the row sums ``sum_q rho_pq w_q`` ``[N, P]``; the gradient's
        ``sum_pq w_p w_q S_pq r2_pq`` ``[N]``; and ``sum_q S_pq w_q (x_q, 1)`` ``[N, P, D + 1]``.
    """
    num_points = points.shape[1]
    pairs = _BlockPairs(num_points)
    padded_weights = pairs.pad(weights[None, :, None])[0]

    def chunk_terms(groups: tf.Tensor) -> tuple[tf.Tensor, ...]:
        groups = pairs.pad(groups)
        weights = for_each(padded_weights, groups)
        row_weights, partner_weights = pairs.rows(weights), pairs.once(pairs.partners(weights))
        left, right = distance_factors(groups, groups, scale)
        r2 = tf.matmul(pairs.rows(left), pairs.partners(right), transpose_b=True)
        rho, slopes = value_and_slope(r2, rounding_error(left, right))

        def symmetric_products(matrix: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
            """The products of rows with their partners, plus those of partners with rows."""
            forth = tf.matmul(matrix, pairs.once(pairs.partners(values)))
            back = tf.matmul(matrix, pairs.rows(values), transpose_a=True)
            sums = forth + pairs.to_rows(pairs.once(back))
            return pairs.flat(sums)[:, :num_points]

        def total(matrix: tf.Tensor) -> tf.Tensor:
            products = tf.matmul(matrix, partner_weights)
            return 2 * tf.reduce_sum(products * row_weights, axis=[1, 2, 3])

        return (
            total(rho),
            symmetric_products(rho, weights)[..., 0],
            total(slopes * r2),
            symmetric_products(slopes, weights * with_one(groups)),
        )

    chunk = rows_per_chunk(pairs.num_entries)
    if points.shape[0] is not None and points.shape[0] <= chunk:
        return chunk_terms(points)
    parts = map_chunks(chunk_terms, into_chunks(points, chunk), (points.dtype,) * 4)
    return tuple(from_chunks(part, tf.shape(points)[0]) for part in parts)


def _large_group_terms(
    value_and_slope: ValueAndSlope, points: tf.Tensor, weights: tf.Tensor, scale: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """:func:`_group_terms` for groups of very many points, computed for some points at a time."""
    num_points, dim = points.shape[1], points.shape[2]
    size = rows_per_chunk(num_points)
    num_parts = -(-num_points // size)
    padded = tf.pad(points, [[0, 0], [0, num_parts * size - num_points], [0, 0]])
    rows = tf.reshape(padded, [-1, size, dim])

    def part_sums(arguments: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, ...]:
        part, i = arguments
        group = points[i // num_parts]
        r2, error = squared_distances(part, group, scale)
        rho, slopes = value_and_slope(r2, error)
        return (
            tf.linalg.matvec(rho, weights),
            tf.linalg.matvec(slopes * r2, weights),
            tf.matmul(slopes, weights[:, None] * with_one(group)),
        )

    parts = map_chunks(part_sums, (rows, tf.range(tf.shape(rows)[0])), (points.dtype,) * 3)
    row_sums, radii, flows = (
        tf.reshape(part, tf.concat([[-1, num_parts * size], tf.shape(part)[2:]], axis=0))
        for part in parts
    )
    row_sums, radii = row_sums[:, :num_points], radii[:, :num_points]
    return (
        tf.linalg.matvec(row_sums, weights),
        row_sums,
        tf.linalg.matvec(radii, weights),
        flows[:, :num_points],
    )


def for_each(matrix: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """A matrix repeated for each group.

    The copies are explicit: products of float32 batches that broadcast a matrix corrupt memory
    (TensorFlow 2.21 on a CPU, from six matrices on).
    """
    return tf.tile(matrix[None], [tf.shape(groups)[0], 1, 1])


class _BlockPairs:
    """The pairs of points of a group, each pair once.

    The points form an odd number of blocks in a circle. A block is paired with itself and with the
    next ``reach - 1`` blocks, so that every pair of blocks occurs once. Pairs inside a block occur
    twice, and count half: see :meth:`once`.
    """

    def __init__(self, num_points: int) -> None:
        self.num_blocks = _NUM_BLOCKS if num_points >= _SMALLEST_GROUP else 1
        self.size = -(-num_points // self.num_blocks)
        self.missing = self.num_blocks * self.size - num_points
        self.reach = self.num_blocks // 2 + 1
        self.num_entries = self.num_blocks * self.reach * self.size**2

    def pad(self, values: tf.Tensor) -> tf.Tensor:
        """The values ``[n, P, D]``, with zeros for the points that the last block lacks."""
        return tf.pad(values, [[0, 0], [0, self.missing], [0, 0]]) if self.missing else values

    def rows(self, values: tf.Tensor) -> tf.Tensor:
        """The values ``[n, blocks, size, D]``, from ``[n, blocks size, D]``."""
        return tf.reshape(values, [-1, self.num_blocks, self.size, values.shape[-1]])

    def flat(self, values: tf.Tensor) -> tf.Tensor:
        """The values ``[n, blocks size, D]``, from ``[n, blocks, size, D]``."""
        return tf.reshape(values, [-1, self.num_blocks * self.size, values.shape[-1]])

    def partners(self, values: tf.Tensor) -> tf.Tensor:
        """The partners' values ``[n, blocks, reach size, D]``, from ``[n, blocks size, D]``."""
        starts = self.size * np.arange(self.num_blocks)[:, None]
        indices = (starts + np.arange(self.reach * self.size)) % (self.num_blocks * self.size)
        return tf.gather(values, tf.constant(indices, tf.int32), axis=1)

    def once(self, values: tf.Tensor) -> tf.Tensor:
        """The values ``[n, blocks, reach size, D]``, halved for each block's own points."""
        size = self.size
        factors = [0.5] * size + [1.0] * ((self.reach - 1) * size)
        return values * tf.constant(factors, values.dtype)[:, None]

    def to_rows(self, values: tf.Tensor) -> tf.Tensor:
        """The transpose of partners: ``[n, blocks, size, D]`` of ``[n, blocks, reach size, D]``."""
        parts = tf.split(values, self.reach, axis=2)
        return tf.add_n([tf.roll(part, offset, axis=1) for offset, part in enumerate(parts)])
