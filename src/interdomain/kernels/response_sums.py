"""Sums of a kernel over groups of points: all covariances of sums of responses.

For ``f(x) = sum_p w_p g(x_p)`` with ``g ~ GP(0, k)`` and P points x_p for each x,

    cov(g(z), f(x))  = sum_p w_p k(z, x_p)                  :func:`cross_sums`,
    cov(f(x), f(x')) = sum_p sum_q w_p w_q k(x_p, x'_q)     :func:`double_sums`,
    var(f(x))        = sum_p sum_q w_p w_q k(x_p, x_q)      :func:`quadratic_sums`.

All of them go over the groups a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.kernels import Kernel

from . import chunks
from .chunks import from_chunks, into_chunks, map_chunks, map_rows, rows_per_chunk
from .radial import RadialTerm, ValueAndSlope, radial_terms, radial_values, squared_distances

_LARGEST_GROUP = 8
"""Times the size of a chunk: what a single group's kernel values may take."""

_TYPICAL_ROWS = 1024
"""Assumed where a number of rows is not known before the graph runs."""


@check_shapes(
    "Z: [M, D]",
    "points: [N, P, D]",
    "weights: [P]",
    "return: [M, N]",
)
def cross_sums(kernel: Kernel, Z: tf.Tensor, points: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """``sum_p weights[p] k(Z[m], points[n, p])``.

    :param kernel: k; its ``active_dims`` are respected.
    """
    terms = radial_terms(kernel)
    if terms is None:
        return _mapped_cross(lambda A, B: kernel(A, B), Z, points, weights)
    return tf.add_n(
        [
            term.variance
            * _mapped_cross(
                _matrix_of(term.value_and_slope), term.scaled(Z), term.scaled(points), weights
            )
            for term in terms
        ]
    )


@check_shapes(
    "points: [N, P, D]",
    "points2: [N2, P2, D]",
    "weights: [P]",
    "weights2: [P2]",
    "return: [N, N2]",
)
def double_sums(
    kernel: Kernel,
    points: tf.Tensor,
    points2: tf.Tensor,
    weights: tf.Tensor,
    weights2: tf.Tensor,
) -> tf.Tensor:
    """``sum_pq weights[p] weights2[q] k(points[n, p], points2[n', q])``."""
    num_points, dim = points.shape[1], points.shape[2]

    def of_groups(
        groups: tf.Tensor, points2: tf.Tensor, weights: tf.Tensor, weights2: tf.Tensor
    ) -> tf.Tensor:
        cross = cross_sums(kernel, tf.reshape(groups, [-1, dim]), points2, weights2)
        by_group = tf.reshape(cross, [tf.shape(groups)[0], num_points, tf.shape(points2)[0]])
        return tf.tensordot(by_group, weights, [[1], [0]])

    chunk = rows_per_chunk(num_points * (points2.shape[0] or _TYPICAL_ROWS))
    return map_rows(of_groups, points, [points2, weights, weights2], chunk)


@check_shapes(
    "points: [N, P, D]",
    "weights: [P]",
    "return: [N]",
)
def quadratic_sums(kernel: Kernel, points: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """``sum_pq weights[p] weights[q] k(points[n, p], points[n, q])``."""
    terms = radial_terms(kernel)
    if terms is None:
        return _generic_quadratic(kernel, points, weights)
    return tf.add_n([_radial_quadratic(term, points, weights) for term in terms])


def _max_entries() -> int:
    return _LARGEST_GROUP * chunks.CHUNK_ENTRIES


def _matrix_of(value_and_slope: ValueAndSlope) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    return lambda A, B: radial_values(value_and_slope, A, B)


def _mapped_cross(
    matrix: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    Z: tf.Tensor,
    points: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    """:func:`cross_sums` with the function that makes matrices of k, in chunks of groups and,
    where one group has too many values, of Z."""
    num_points, dim = points.shape[1], points.shape[2]
    size = Z.shape[0] or _TYPICAL_ROWS

    def of_groups(groups: tf.Tensor, Z: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        values = matrix(Z, tf.reshape(groups, [-1, dim]))
        sums = tf.linalg.matvec(tf.reshape(values, [-1, num_points]), weights)
        # Without -1, here and below: there may be no groups.
        return tf.transpose(tf.reshape(sums, [tf.shape(Z)[0], tf.shape(groups)[0]]))

    num_parts = -(-size * num_points // _max_entries())
    if num_parts > 1 and Z.shape[0] is not None:
        starts = [size * part // num_parts for part in range(num_parts + 1)]
        blocks = [Z[first:last] for first, last in zip(starts, starts[1:], strict=False)]
    else:
        blocks = [Z]
    chunk = rows_per_chunk(num_points * -(-size // len(blocks)))
    sums = [map_rows(of_groups, points, [block, weights], chunk) for block in blocks]
    return tf.transpose(sums[0] if len(sums) == 1 else tf.concat(sums, axis=1))


def _generic_quadratic(kernel: Kernel, points: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """By TensorFlow's gradient of the kernel, each chunk computed again for it."""
    num_points = points.shape[1]

    def of_groups(groups: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matvec(tf.linalg.matvec(kernel(groups), weights), weights)

    def of_large_group(group: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """One group ``[1, P, D]``, its points a few at a time."""

        def of_points(part: tf.Tensor, group: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
            return tf.linalg.matvec(kernel(part, group[0]), weights)

        sums = map_rows(of_points, group[0], [group, weights], max(1, _max_entries() // num_points))
        return tf.tensordot(weights, sums, 1)[None]

    if num_points**2 <= _max_entries():
        return map_rows(of_groups, points, [weights], rows_per_chunk(num_points**2))
    return map_rows(of_large_group, points, [weights], 1)


def _radial_quadratic(term: RadialTerm, points: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """In closed form. With ``S`` the slopes of the term at the squared distances in a group,

        d / dx_p = 4 w_p sum_q w_q S_pq (x_p - x_q),    d / dw_p = 2 sum_q K_pq w_q,

    so the sums that the gradient needs are products of the matrices that the value needs: they are
    taken on the way forward, and no matrix is kept or computed again.
    """

    @tf.custom_gradient
    def sums(points: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, Any]:
        responses, flows = _responses_and_flows(term.value_and_slope, points, weights)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            d_responses = upstream[:, None] * weights
            d_points = 4 * d_responses[..., None] * (points * flows[..., -1:] - flows[..., :-1])
            return d_points, 2 * tf.linalg.matvec(responses, upstream, transpose_a=True)

        return tf.linalg.matvec(responses, weights), gradient

    return term.variance * sums(term.scaled(points), weights)


def _responses_and_flows(
    value_and_slope: ValueAndSlope, points: tf.Tensor, weights: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """``sum_q K_pq w_q`` ``[N, P]`` and ``sum_q S_pq w_q (x_q, 1)`` ``[N, P, D + 1]``."""
    num_points, dim = points.shape[1], points.shape[2]

    def of_rows(rows: tf.Tensor, group: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Some of the points ``[n, R, D]`` against all of their groups ``[n, P, D]``."""
        values, slopes = value_and_slope(squared_distances(rows, group))
        extended = tf.concat([group, tf.ones_like(group[..., :1])], axis=-1)
        flows = tf.matmul(slopes, weights[:, None] * extended)
        flat = tf.linalg.matvec(tf.reshape(values, [-1, num_points]), weights)
        return tf.reshape(flat, tf.shape(rows)[:-1]), flows

    dtypes = (points.dtype, points.dtype)
    if num_points**2 <= _max_entries():
        chunk = rows_per_chunk(num_points**2)
        if points.shape[0] is not None and points.shape[0] <= chunk:
            return of_rows(points, points)
        parts = map_chunks(
            lambda groups: of_rows(groups, groups), into_chunks(points, chunk), dtypes
        )
        num_rows = tf.shape(points)[0]
        return from_chunks(parts[0], num_rows), from_chunks(parts[1], num_rows)

    size = rows_per_chunk(num_points)
    num_parts = -(-num_points // size)
    padded = tf.pad(points, [[0, 0], [0, num_parts * size - num_points], [0, 0]])
    rows = tf.reshape(padded, [-1, size, dim])

    def of_part(arguments: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        part, i = arguments
        responses, flows = of_rows(part[None], points[i // num_parts][None])
        return responses[0], flows[0]

    responses, flows = map_chunks(of_part, (rows, tf.range(tf.shape(rows)[0])), dtypes)
    responses = tf.reshape(responses, [-1, num_parts * size])[:, :num_points]
    flows = tf.reshape(flows, [-1, num_parts * size, dim + 1])[:, :num_points]
    return responses, flows
