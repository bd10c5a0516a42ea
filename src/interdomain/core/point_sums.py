"""Sums of a kernel over groups of points: all covariances of a :class:`SetKernel`.

For ``f(x) = sum_p w_p g(x_p)`` with ``g ~ GP(0, k)`` and P points x_p for each x,

    cov(g(z), f(x))  = sum_p w_p k(z, x_p)                  :func:`cross_sums`,
    cov(f(x), f(x')) = sum_p sum_q w_p w_q k(x_p, x'_q)     :func:`double_sums`,
    var(f(x))        = sum_p sum_q w_p w_q k(x_p, x_q)      :func:`quadratic_sums`.

All functions use a few groups at a time. Z is ``[M, D]``, points ``[N, P, D]``, weights ``[P]``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import gpflow
import tensorflow as tf
from gpflow.kernels import Kernel

from ..linalg import chunks
from ..linalg.chunks import map_rows, rows_per_chunk
from ..linalg.radial_sums import radial_cross, radial_quadratic
from ..linalg.radial_terms import (
    RadialTerm,
    ValueAndSlope,
    exponential,
    matern12,
    matern32,
    matern52,
)

_LARGEST_GROUP = 8
"""The largest number of kernel values of a single group, in multiples of the size of a chunk."""

_TYPICAL_ROWS = 1024
"""The number of rows that is assumed if it is not known before the graph runs."""


def cross_sums(kernel: Kernel, Z: tf.Tensor, points: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """``sum_p weights[p] k(Z[m], points[n, p])`` ``[M, N]``; k selects its ``active_dims``."""
    terms = radial_terms(kernel)
    sums = [partial(radial_cross, term) for term in terms or ()]
    if terms is None:
        sums = [partial(_generic_cross, kernel)]
    chunk = rows_per_chunk(points.shape[1] * (Z.shape[0] or _TYPICAL_ROWS))
    return tf.transpose(tf.add_n([cross(Z, points, weights, chunk) for cross in sums]))


def double_sums(
    kernel: Kernel, points: tf.Tensor, points2: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """``sum_pq weights[p] weights[q] k(points[n, p], points2[n', q])`` ``[N, N2]``."""
    num_points, dim = points.shape[1], points.shape[2]

    def group_sums(groups: tf.Tensor, points2: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        cross = cross_sums(kernel, tf.reshape(groups, [-1, dim]), points2, weights)
        by_group = tf.reshape(cross, [tf.shape(groups)[0], num_points, tf.shape(points2)[0]])
        return tf.tensordot(by_group, weights, [[1], [0]])

    chunk = rows_per_chunk(num_points * (points2.shape[0] or _TYPICAL_ROWS))
    return map_rows(group_sums, points, [points2, weights], chunk)


def quadratic_sums(kernel: Kernel, points: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """``sum_pq weights[p] weights[q] k(points[n, p], points[n, q])`` ``[N]``."""
    terms = radial_terms(kernel)
    if terms is None:
        return _generic_quadratic(kernel, points, weights)
    return tf.add_n([radial_quadratic(term, points, weights, _max_entries()) for term in terms])


def _max_entries() -> int:
    return _LARGEST_GROUP * chunks.CHUNK_ENTRIES


def _generic_cross(
    kernel: Kernel, Z: tf.Tensor, points: tf.Tensor, weights: tf.Tensor, chunk: int
) -> tf.Tensor:
    """The sums of a kernel without radial terms. The gradient computes each chunk again."""
    num_points, dim = points.shape[1], points.shape[2]

    def group_sums(groups: tf.Tensor, Z: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        values = kernel(Z, tf.reshape(groups, [-1, dim]))
        sums = tf.linalg.matvec(tf.reshape(values, [-1, num_points]), weights)
        # Both reshapes name the sizes instead of -1, because there may be no groups.
        return tf.transpose(tf.reshape(sums, [tf.shape(Z)[0], tf.shape(groups)[0]]))

    return map_rows(group_sums, points, [Z, weights], chunk)


def _generic_quadratic(kernel: Kernel, points: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """The sums of a kernel without radial terms. The gradient computes each chunk again."""
    num_points = points.shape[1]

    def group_sums(groups: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matvec(tf.tensordot(kernel(groups), weights, 1), weights)

    def large_group_sums(group: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """The sum of one group ``[1, P, D]``, over a few of its points at a time."""

        def row_sums(part: tf.Tensor, group: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
            return tf.linalg.matvec(kernel(part, group[0]), weights)

        sums = map_rows(row_sums, group[0], [group, weights], max(1, _max_entries() // num_points))
        return tf.tensordot(weights, sums, 1)[None]

    if num_points**2 <= _max_entries():
        return map_rows(group_sums, points, [weights], rows_per_chunk(num_points**2))
    return map_rows(large_group_sums, points, [weights], 1)


# Kernels that are sums of functions of a squared distance.

# The factor of the squared scaled distance, and the function rho. Types must match exactly, because
# a subclass may compute something else.
_CLOSED_FORMS: dict[type[Kernel], tuple[float, ValueAndSlope]] = {
    gpflow.kernels.SquaredExponential: (-0.5, exponential),
    gpflow.kernels.Matern12: (1.0, matern12),
    gpflow.kernels.Matern32: (3.0, matern32),
    gpflow.kernels.Matern52: (5.0, matern52),
}


def radial_terms(kernel: Kernel) -> list[RadialTerm] | None:
    """A kernel as a sum of radial terms; None if it is not known to be one. A kernel may define its
    terms by a method ``radial_terms``."""
    if hasattr(kernel, "radial_terms"):
        terms: list[RadialTerm] | None = kernel.radial_terms()
        return terms
    if type(kernel) is gpflow.kernels.Sum:
        return sum_of_terms([(part, lambda X: X) for part in kernel.kernels], kernel)
    if type(kernel) is gpflow.kernels.Product:
        return _product_term(kernel)
    if type(kernel) not in _CLOSED_FORMS:
        return None
    scale, value_and_slope = _CLOSED_FORMS[type(kernel)]

    def inputs(X: tf.Tensor) -> tf.Tensor:
        columns = kernel.slice(X, None)[0]
        return kernel.scale(columns) if kernel.ard else columns

    variance, lengthscales = tf.convert_to_tensor(kernel.variance), kernel.lengthscales
    shared = tf.ones_like(variance) if kernel.ard else tf.convert_to_tensor(lengthscales)
    return [RadialTerm(variance, value_and_slope, inputs, scale / tf.square(shared))]


def _product_term(kernel: gpflow.kernels.Product) -> list[RadialTerm] | None:
    """The term of a product of squared exponentials (such as patches times locations): a single one
    on the scaled columns of all factors. None for other factors."""
    if any(type(factor) is not gpflow.kernels.SquaredExponential for factor in kernel.kernels):
        return None
    terms = sum_of_terms([(factor, lambda X: X) for factor in kernel.kernels], kernel) or []
    variance = tf.reduce_prod(tf.stack([term.variance for term in terms]))

    def inputs(X: tf.Tensor) -> tf.Tensor:
        return tf.concat([term.scaled(X) for term in terms], axis=-1)

    return [RadialTerm(variance, exponential, inputs, -tf.ones_like(variance))]


def sum_of_terms(
    parts: list[tuple[Kernel, Callable[[tf.Tensor], tf.Tensor]]], whole: Kernel
) -> list[RadialTerm] | None:
    """The terms of all parts of a kernel; None if a part has no terms.

    :param parts: Each part with a function that selects its inputs from those of the whole kernel.
    :param whole: The whole kernel, which may itself have ``active_dims``.
    """

    def inside(inputs: Callable[[tf.Tensor], tf.Tensor], term: RadialTerm) -> RadialTerm:
        return replace(term, inputs=lambda X: term.inputs(inputs(whole.slice(X, None)[0])))

    terms = []
    for part, inputs in parts:
        inner = radial_terms(part)
        if inner is None:
            return None
        terms += [inside(inputs, term) for term in inner]
    return terms
