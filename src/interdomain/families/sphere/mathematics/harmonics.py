"""The real spherical harmonics of any dimension and degree, without angles.

The basis is built dimension by dimension (Dai & Xu, *Approximation Theory and Harmonic Analysis on
Spheres and Balls*, Theorem 1.5.1), but in "solid" form: every column is a homogeneous polynomial
of the Cartesian coordinates. So nothing is divided by a radius, and no angle is computed. Gradients
are finite everywhere, also at the poles and on zero sub-vectors.

A harmonic of degree ``l`` is a path of degrees ``k_2 <= k_3 <= ... <= k_d = l``, where ``k_j`` is
its degree in the first ``j`` coordinates. Let ``j`` be the last dimension that raises the degree
(``k_j > k_{j-1}``), and ``k = k_{j-1}``. With orthonormal columns, the three-term recurrence is

    Y_l = a x_j Y_{l-1} - c r_j^2 Y_{l-2},      r_j^2 = x_1^2 + ... + x_j^2,

where the two earlier columns have the same path below ``j``. So each column is computed once, from
two columns of lower degree. The columns of one degree are ordered by ``j``. The parents of block
``(l, j)`` are then a *prefix* of degree ``l - 1``, and the grandparents of its tail are a prefix of
degree ``l - 2``. So slices suffice, and nothing is gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from ...._arguments import Array, IntArray
from ...._tracing import compiled, has_plain_operations
from .dimensions import num_harmonics, validate_degrees, validate_dimension


@dataclass(frozen=True)
class _Block:
    """The harmonics of one degree whose last raise is by coordinate ``axis``.

    The first ``num_heads`` rows raise the degree by one: they have no grandparent, and share one
    factor. Each other row has a separate factor.
    """

    axis: int
    num_heads: int
    factor: Array  # a, [rows, 1]
    correction: Array  # c, [rows - num_heads, 1]


_Level: TypeAlias = tuple[float, list[_Block]]
"""The recurrence of one degree's harmonics from the two degrees below: the factor of the two rows
that depend only on x_1 and x_2, and the blocks of the other rows."""


def _level(dimension: int, degree: int) -> _Level:
    blocks = []
    seeds = np.arange(degree - 1, -1, -1)
    for j in range(3, dimension + 1):
        counts = [num_harmonics(j - 1, seed) for seed in seeds]
        factors = raise_factors(dimension, j, seeds, degree - seeds)
        factor, correction = (np.repeat(part, counts)[:, None] for part in factors)
        blocks.append(_Block(j - 1, counts[0], factor, correction[counts[0] :]))
    norms = np.append(1.0, planar_norms(dimension, degree))
    return float(norms[-1] / norms[-2]), blocks


def _ascend(
    levels: tuple[_Level, ...], x: list[tf.Tensor], r2: list[tf.Tensor], scale: tf.Tensor
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """The harmonics of each degree except the last, ``[N(d, l), n]``, and the rows of the last.

    The last degree, the largest, has no children, so its rows are concatenated only once.

    :param x: The d coordinates, ``[1, n]`` each.
    :param r2: The squared norms of the first j coordinates, ``[1, n]`` each.
    :param scale: The harmonic of degree zero, ``[1, n]``; all other harmonics are multiples of it.
    """
    rows, harmonics = [scale], list[tf.Tensor]()
    for degree, (planar_factor, blocks) in enumerate(levels, start=1):
        harmonics.append(parents := tf.concat(rows, axis=0))
        x_1, x_2 = planar_factor * x[0], planar_factor * x[1]
        if degree == 1:
            rows = [x_1 * parents, x_2 * parents]
        else:
            re, im = parents[:1], parents[1:2]
            rows = [x_1 * re - x_2 * im, x_1 * im + x_2 * re]
        for block in blocks:
            x_j = x[block.axis]
            rows.append((float(block.factor[0, 0]) * x_j) * parents[: block.num_heads])
            if len(block.correction):
                factor = tf.constant(block.factor[block.num_heads :], x_j.dtype)
                correction = tf.constant(block.correction, x_j.dtype)
                rows.append(
                    factor * (x_j * parents[block.num_heads : len(block.factor)])
                    - correction * (r2[block.axis] * harmonics[-2][: len(block.correction)])
                )
    return harmonics, rows


def _descend(
    levels: tuple[_Level, ...],
    x: list[tf.Tensor],
    r2: list[tf.Tensor],
    harmonics: list[tf.Tensor],
    upstream: dict[int, tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradients of ``_ascend`` with respect to the coordinates, ``[d, n]``, and ``scale``, for
    the gradients ``upstream`` of the degrees."""
    gradients = [[upstream[l]] if l in upstream else [] for l in range(len(levels) + 1)]
    dx, dr2 = ([[tf.zeros_like(x_j)] for x_j in x] for _ in range(2))
    for degree in range(len(levels), 0, -1):
        (planar_factor, blocks), parents = levels[degree - 1], harmonics[degree - 1]
        gradient = _sum_of_prefixes(gradients[degree])
        sizes = [1, 1, *(len(block.factor) for block in blocks)]
        g_re, g_im, *g_blocks = tf.split(gradient, sizes, axis=0)
        g_re, g_im = planar_factor * g_re, planar_factor * g_im
        if degree == 1:
            dx[0].append(parents * g_re)
            dx[1].append(parents * g_im)
            gradients[0].append(x[0] * g_re + x[1] * g_im)
        else:
            re, im = parents[:1], parents[1:2]
            dx[0].append(re * g_re + im * g_im)
            dx[1].append(re * g_im - im * g_re)
            both = [x[0] * g_re + x[1] * g_im, x[0] * g_im - x[1] * g_re]
            gradients[degree - 1].append(tf.concat(both, axis=0))
        for block, g_block in zip(blocks, g_blocks, strict=True):
            j = block.axis
            g = tf.constant(block.factor, gradient.dtype) * g_block
            rows = g * parents[: len(block.factor)]
            dx[j].append(tf.reduce_sum(rows, axis=0, keepdims=True))
            gradients[degree - 1].append(x[j] * g)
            if len(block.correction):
                g = tf.constant(-block.correction, gradient.dtype) * g_block[block.num_heads :]
                rows = g * harmonics[degree - 2][: len(block.correction)]
                dr2[j].append(tf.reduce_sum(rows, axis=0, keepdims=True))
                gradients[degree - 2].append(r2[j] * g)
    direct, radial = (tf.concat(list(map(tf.add_n, rows)), axis=0) for rows in (dx, dr2))
    # r_j^2 contains x_i^2 for every i <= j.
    radial = 2 * tf.concat(x, axis=0) * tf.cumsum(radial, axis=0, reverse=True)
    return direct + radial, _sum_of_prefixes(gradients[0])


def _sum_of_prefixes(terms: list[tf.Tensor]) -> tf.Tensor:
    """The sum of tensors that are aligned at their first rows and have different lengths.

    A short term is added to its rows only. So the cost is the number of all entries, not the number
    of terms times the largest length.
    """
    terms = sorted(terms, key=lambda term: int(term.shape[0]))
    total = terms.pop()
    finished = []
    while terms:
        term = terms.pop()
        count = term.shape[0]
        if count < total.shape[0]:
            finished.append(total[count:])
            total = total[:count]
        total += term
    return tf.concat([total, *reversed(finished)], axis=0)


@lru_cache(maxsize=128)
def _levels(dimension: int, highest: int) -> tuple[_Level, ...]:
    return tuple(_level(dimension, degree) for degree in range(1, highest + 1))


def _columns_and_radii(x: tf.Tensor) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """The coordinates of x ``[d, n]``, and the squared norms of the first j, ``[1, n]`` each."""
    squares = tf.cumsum(tf.square(x), axis=0)
    return tf.split(x, x.shape[0], axis=0), tf.split(squares, x.shape[0], axis=0)


def _by_plain_operations(
    dimension: int, degrees: tuple[int, ...], x: tf.Tensor, scale: tf.Tensor
) -> tf.Tensor:
    harmonics, last_rows = _ascend(_levels(dimension, degrees[-1]), *_columns_and_radii(x), scale)
    return tf.concat([*(harmonics[degree] for degree in degrees[:-1]), *last_rows], axis=0)


@lru_cache(maxsize=128)
def _compiled(dimension: int, degrees: tuple[int, ...], dtype: tf.DType) -> Any:
    """One traced function per (dimension, degrees, dtype): ``[d, n]``, ``[1, n]`` to ``[M, n]``."""
    levels = _levels(dimension, degrees[-1])

    @tf.custom_gradient
    def evaluate(x: tf.Tensor, scale: tf.Tensor) -> Any:
        columns, radii = _columns_and_radii(x)
        harmonics, last_rows = _ascend(levels, columns, radii, scale)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            counts = [num_harmonics(dimension, degree) for degree in degrees]
            parts = dict(zip(degrees, tf.split(upstream, counts, axis=0), strict=True))
            return _descend(levels, columns, radii, harmonics, parts)

        lower = [harmonics[degree] for degree in degrees[:-1]]
        return tf.concat([*lower, *last_rows], axis=0), gradient

    signature = [tf.TensorSpec([dimension, None], dtype), tf.TensorSpec([1, None], dtype)]
    return compiled(evaluate, input_signature=signature)


@check_shapes("X: [batch..., N, D]", "scale: [batch..., N]", "return: [M, batch..., N]")
def spherical_harmonics(
    X: tf.Tensor, degrees: Sequence[int], *, scale: tf.Tensor | None = None
) -> tf.Tensor:
    """Evaluate all real spherical harmonics of the given degrees on S^{d-1}.

    They are orthonormal under the uniform probability measure of the sphere, so that
    ``sum_j Y_lj(x) Y_lj(x') = N(d, l) P_l(x . x')`` (the addition theorem; Dai & Xu eq. 1.2.7).

    All points are processed together; features are the first axis, so operations use long rows.

    :param X: Unit vectors; d is the last dimension, and 2 or more. Outside the sphere, the
        harmonics are continued as homogeneous polynomials ("solid harmonics").
    :param scale: A factor for each point, which multiplies all its harmonics. It costs nothing,
        because the recurrence starts from it.
    :return: One row for each harmonic, degree by degree, as in ``Kuf``.
    :raises ValueError: If ``degrees`` is not increasing or d is not statically known.
    """
    degrees = validate_degrees(degrees)
    X = tf.convert_to_tensor(X)
    dimension = X.shape[-1]
    validate_dimension(dimension)
    flat = X if X.shape.rank == 2 else tf.reshape(X, [-1, dimension])
    scale = tf.ones_like(flat[:, 0]) if scale is None else tf.reshape(scale, [-1])
    if has_plain_operations():
        rows = _by_plain_operations(dimension, degrees, tf.transpose(flat), scale[None])
    else:
        rows = _compiled(dimension, degrees, X.dtype)(tf.transpose(flat), scale[None])
    return tf.reshape(rows, tf.concat([[rows.shape[0]], tf.shape(X)[:-1]], axis=0))


# A harmonic is a product of one factor p_a for each coordinate x_j that raises the degree, from k
# to k + a. It is a Gegenbauer polynomial, ``x p_m = b_{m+1} p_{m+1} + b_m p_{m-1}`` with
# ``b_m^2 = m (m - 1 + 2 lambda) / (4 (m + lambda) (m + lambda - 1))``, lambda = k + (j - 2) / 2.
# With its squared norm, ``(k + d/2)_a / (k + j/2)_a`` (Pochhammer symbols), the products are
# orthonormal on S^{d-1}, also without their last factor.


def raise_factors(
    dimension: int, j: int | IntArray, k: int | IntArray, a: int | IntArray
) -> tuple[Array, Array]:
    """The factors of ``x_j p_{a-1}`` and ``-r_j^2 p_{a-2}`` in p_a, for j > 2."""

    def squared_b(m: int | IntArray) -> Array:
        centre = m + k + (j - 2) / 2
        return np.asarray(m * (2 * centre - m - 1) / (4 * centre * (centre - 1)))

    def norm(last: int | IntArray) -> Array:
        return np.asarray(np.sqrt((k + last + dimension / 2) / (k + last + j / 2)))

    before = np.maximum(np.asarray(a) - 1, 1)
    factor = norm(a - 1) / np.sqrt(squared_b(a))
    correction = norm(before - 1) * np.sqrt(squared_b(before)) * factor
    return factor, np.where(np.asarray(a) > 1, correction, 0.0)


def planar_norms(dimension: int, count: int) -> Array:
    """The factors of the real and imaginary parts of ``(x_1 + i x_2)^k``, k = 1, ..., count."""
    k = np.arange(count)
    return np.asarray(np.sqrt(2 * np.cumprod((k + dimension / 2) / (k + 1))))
