"""Sums of a base kernel over the orbits of points: all covariances of harmonic kernels.

Every covariance is, for points z and x,

    out[u, p, z, x] = sum_s weights[u, p, s] k(G^s z, x),

where u is the index of a set of points, and p is the index of a sum over the same kernel values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.kernels import Kernel

from ..._arguments import refusal
from ..._tracing import unconverted
from ...core.point_sums import radial_terms
from ...linalg.chunks import CHUNK_ENTRIES
from ...linalg.radial_terms import RadialTerm, distance_gradients, squared_distances

_TYPICAL_COLUMNS = 1024
"""The number of points x that is assumed if it is not known before the graph runs."""


@check_shapes(
    "orbits: [U, S, m, D]", "X: [..., N, D]", "weights: [U, P, S]", "return: [U, P, m, N]"
)
def orbit_sums(kernel: Kernel, orbits: tf.Tensor, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """The sums ``sum_s weights[u, p, s] k(orbits[u, s, :], X)``.

    :param kernel: The base kernel, with any ``active_dims``.
    :param orbits: For each of U sets, the S images of its m points.
    :param X: ``[N, D]``, or ``[U, N, D]`` to pair each set with separate points.
    :param weights: For each set, P rows of weights.
    """
    X, weights = tf.convert_to_tensor(X), tf.cast(weights, orbits.dtype)
    terms = radial_terms(kernel)
    if terms is None:
        return _generic_sums(kernel, orbits, X, weights)
    return tf.add_n(
        [_radial_sums(term, term.scaled(orbits), term.scaled(X), weights) for term in terms]
    )


def _generic_sums(kernel: Kernel, orbits: tf.Tensor, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    def sums(arguments: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        points, X, weights = arguments
        return weighted(weights, kernel(tf.reshape(points, [-1, points.shape[-1]]), X), points, X)

    if X.shape.rank == 2:
        return sums((orbits, X, weights))
    if orbits.shape[0] == 1:
        return sums((orbits[0], X[0], weights[0]))[None]
    return tf.map_fn(unconverted(sums), (orbits, X, weights), fn_output_signature=orbits.dtype)


def weighted(weights: tf.Tensor, values: tf.Tensor, points: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
    """The kernel values of points ``[..., S, m, D]`` and X ``[N, D]``, summed over S with weights
    ``[..., P, S]``, as ``[..., P, m, N]``."""
    shape = tf.shape(points)
    sums = tf.matmul(weights, tf.reshape(values, tf.concat([shape[:-2], [-1]], axis=0)))
    # tf.reshape cannot infer a size (-1) if X has no rows, so all sizes are given.
    sizes = [tf.shape(weights)[:-1], shape[-2:-1], tf.shape(X)[:1]]
    return tf.reshape(sums, tf.concat(sizes, axis=0))


def _radial_sums(
    term: RadialTerm, orbits: tf.Tensor, X: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """The :func:`orbit_sums` of one radial term, for scaled inputs."""

    @tf.custom_gradient
    def sums(orbits: tf.Tensor, X: tf.Tensor, variance: tf.Tensor) -> Any:
        if orbits.shape[0] == 1:
            inputs = X if X.shape.rank == 2 else X[0]
            values, slopes = _kernel_values(term, orbits[0], inputs)
            result = weighted(variance * weights[0], values, orbits[0], inputs)[None]
        else:

            def chunk_sums(weights: tf.Tensor, X: tf.Tensor, points: tf.Tensor) -> tf.Tensor:
                return weighted(weights, _kernel_values(term, points, X)[0], points, X)

            chunks = _over_chunks(chunk_sums, orbits.dtype, X, variance * weights, orbits)
            result = _from_chunks(chunks, orbits.shape[0])

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            if orbits.shape[0] == 1:
                d_orbits, d_X = _distance_gradients(
                    slopes, term.sign * variance * weights[0], orbits[0], inputs, upstream[0]
                )
                d_orbits = d_orbits[None]
                d_X = d_X if X.shape.rank == 2 else d_X[None]
            else:
                d_orbits, d_X = _gradient_over_chunks(
                    term, orbits, X, term.sign * variance * weights, upstream
                )
            return d_orbits, d_X, tf.reduce_sum(upstream * result) / variance

        return result, gradient

    return sums(orbits, X, term.variance)


def _kernel_values(
    term: RadialTerm, points: tf.Tensor, X: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The values and slopes of rho between points ``[S, m, D]`` and X ``[N, D]``, ``[S m, N]``."""
    points = tf.reshape(points, [-1, points.shape[-1]])
    return term.value_and_slope(*squared_distances(points, X, term.sign))


def _distance_gradients(
    slopes: tf.Tensor, weights: tf.Tensor, points: tf.Tensor, X: tf.Tensor, upstream: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradients in points ``[S, m, D]`` and in X ``[N, D]``; ``upstream`` is ``[P, m, N]``."""
    rows = tf.reshape(upstream, [tf.shape(weights)[0], -1])
    d_values = tf.matmul(weights, rows, transpose_a=True)
    d_squares = slopes * tf.reshape(d_values, tf.shape(slopes))
    d_points, d_X = distance_gradients(d_squares, tf.reshape(points, [-1, points.shape[-1]]), X)
    return tf.reshape(d_points, tf.shape(points)), d_X


def _chunk_rows(orbits: tf.Tensor, X: tf.Tensor) -> int:
    """The number of points in a chunk: a divisor of the number m of points."""
    num_images, num_points = orbits.shape[1:3]
    if num_images is None or num_points is None:
        remedy = "pass Z with a static shape"
        rule = "have a known number of rows when a graph is built"
        raise refusal("Z", rule, f"shape {orbits.shape} of their images", remedy)
    limit = max(1, CHUNK_ENTRIES // (num_images * (X.shape[-2] or _TYPICAL_COLUMNS)))
    divisors = [d for d in range(1, num_points + 1) if num_points % d == 0]
    fitting = max(d for d in divisors if d <= limit)
    # If m has few divisors, one chunk of all points avoids a loop over single points.
    return fitting if 4 * fitting >= min(limit, num_points) else num_points


def _into_chunks(tensor: tf.Tensor, rows: int) -> tf.Tensor:
    """The chunks of a tensor: ``[U, S, m, ...] -> [U m / rows, S, rows, ...]``."""
    shape = tf.shape(tensor)
    split = tf.reshape(tensor, tf.concat([shape[:2], [shape[2] // rows, rows], shape[3:]], axis=0))
    moved = tf.transpose(split, [0, 2, 1, 3, 4])
    result = tf.reshape(moved, tf.concat([[-1], shape[1:2], [rows], shape[3:]], axis=0))
    return tf.ensure_shape(result, [None, tensor.shape[1], rows, tensor.shape[3]])


def _from_chunks(tensor: tf.Tensor, num_sets: int) -> tf.Tensor:
    """The tensor of the chunks: ``[U c, S, rows, ...] -> [U, S, c rows, ...]``."""
    shape = tf.shape(tensor)
    split = tf.reshape(tensor, tf.concat([[num_sets, shape[0] // num_sets], shape[1:]], axis=0))
    moved = tf.transpose(split, [0, 2, 1, 3, 4])
    rows = shape[0] // num_sets * shape[2]
    return tf.reshape(moved, tf.concat([[num_sets], shape[1:2], [rows], shape[3:]], axis=0))


def _over_chunks(
    function: Callable[..., Any],
    dtypes: Any,
    X: tf.Tensor,
    weights: tf.Tensor,
    orbits: tf.Tensor,
    *others: tf.Tensor,
) -> Any:
    """The values of a function for all points, computed chunk by chunk. The function's arguments
    are a set's weights, its inputs X, a chunk of ``orbits``, and the same chunk of ``others``."""
    rows, num_sets = _chunk_rows(orbits, X), orbits.shape[0]
    chunks = [_into_chunks(tensor, rows) for tensor in (orbits, *others)]
    set_numbers = tf.repeat(tf.range(num_sets), tf.shape(chunks[0])[0] // num_sets)

    def one(arguments: tuple[tf.Tensor, ...]) -> Any:
        number, *parts = arguments
        return function(weights[number], X if X.shape.rank == 2 else X[number], *parts)

    return tf.map_fn(unconverted(one), (set_numbers, *chunks), fn_output_signature=dtypes)


def _gradient_over_chunks(
    term: RadialTerm, orbits: tf.Tensor, X: tf.Tensor, weights: tf.Tensor, upstream: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradients for all points. Kernel values are computed again, which bounds the memory."""

    def gradients(
        weights: tf.Tensor, X: tf.Tensor, points: tf.Tensor, d_sums: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        _, slopes = _kernel_values(term, points, X)
        return _distance_gradients(slopes, weights, points, X, d_sums)

    d_chunks, d_X = _over_chunks(gradients, (orbits.dtype,) * 2, X, weights, orbits, upstream)
    if X.shape.rank == 2:
        d_X = tf.reduce_sum(d_X, axis=0)
    else:
        shape = tf.concat([[orbits.shape[0], -1], tf.shape(d_X)[1:]], axis=0)
        d_X = tf.reduce_sum(tf.reshape(d_X, shape), axis=1)
    return _from_chunks(d_chunks, orbits.shape[0]), d_X
