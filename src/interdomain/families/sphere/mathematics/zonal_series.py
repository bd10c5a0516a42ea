"""Zonal functions as series of Gegenbauer polynomials, evaluated by a stable recurrence.

The polynomials are normalised to one at t = 1: ``P_l(t) = C_l^alpha(t) / C_l^alpha(1)`` with
``alpha = (d - 2) / 2``. In d = 2 they are the Chebyshev polynomials, in d = 3 Legendre's. No
polynomial coefficients are formed, and nothing is singular at t = -1 or t = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from ...._arguments import Array
from .dimensions import num_harmonics


@lru_cache(maxsize=64)
def level_multiplicities(dimension: int, num_degrees: int) -> Array:
    """N(d, 0), ..., N(d, num_degrees - 1) as floats: ``P_l`` times N(d, l) is the level sum
    ``sum_j Y_lj(x) Y_lj(x')`` of orthonormal harmonics."""
    counts = np.array([num_harmonics(dimension, degree) for degree in range(num_degrees)], float)
    counts.setflags(write=False)
    return counts


def _next_polynomial(
    degree: tf.Tensor, dimension: int, t: tf.Tensor, p: tf.Tensor, p_before: tf.Tensor
) -> tf.Tensor:
    """P_{l+1} from P_l and P_{l-1}: (l + d - 2) P_{l+1} = (2l + d - 2) t P_l - l P_{l-1}."""
    if dimension == 2:  # the recurrence is 0 = 0 at l = 0; Chebyshev's has no such gap
        return tf.where(degree == 0, t * p, 2 * t * p - p_before)
    l = tf.cast(degree, t.dtype)
    return ((2 * l + dimension - 2) * t * p - l * p_before) / (l + dimension - 2)


@check_shapes("t: [any...]", "weights: [L, w...]", "num_levels: []", "return: [any...]")
def zonal_series(
    t: tf.Tensor, weights: tf.Tensor, dimension: int, *, num_levels: tf.Tensor | None = None
) -> tf.Tensor:
    """The sum ``sum_l weights[l] P_l(t)`` over the degrees l = 0, 1, ..., L - 1.

    The gradient with respect to ``t`` is again such a series, two dimensions higher, because
    ``P_l'(t) = l (l + d - 2) / (d - 1) P_{l-1}(t)`` with P_{l-1} taken in dimension d + 2. So
    memory stays at a few times the size of ``t``, whatever the number of degrees.

    :param t: Inner products of unit vectors, in [-1, 1].
    :param weights: One weight for each degree. A kernel with eigenvalues lambda_l has the weights
        ``lambda_l N(d, l)``, which add up to its value at t = 1. Parts of ``t`` have weights of
        their own with further axes, which broadcast to ``t``.
    :param dimension: Dimension d >= 2 of the space around the sphere.
    :param num_levels: Sum only the first ``num_levels`` degrees, a number that may be computed;
        the others do not contribute, and have zero gradient. All by default.
    """
    t, weights = tf.convert_to_tensor(t), tf.convert_to_tensor(weights)
    size = weights.shape[0]
    count = tf.constant(size) if num_levels is None else tf.minimum(num_levels, size)

    @tf.custom_gradient
    def evaluate(t: tf.Tensor, weights: tf.Tensor) -> Any:
        def add(l: tf.Tensor, p: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
            return total + weights[l] * p

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            slopes = derivative_weights(weights, dimension)
            dt = upstream * zonal_series(t, slopes, dimension + 2, num_levels=count - 1)
            return dt, _inner_products(upstream, t, dimension, count, weights)

        return _over_levels(add, tf.zeros_like(t), t, dimension, count, size), gradient

    return evaluate(t, weights)


def _over_levels(
    add: Callable[..., Any], sums: Any, t: tf.Tensor, dimension: int, count: tf.Tensor, most: int
) -> Any:
    """What ``add(l, P_l(t), sums)`` makes of the sums, for each l < count <= most in turn."""

    def add_level(l: tf.Tensor, p: tf.Tensor, p_before: tf.Tensor, sums: Any) -> tuple[Any, ...]:
        return l + 1, _next_polynomial(l, dimension, t, p, p_before), p, add(l, p, sums)

    start = (tf.constant(0), tf.ones_like(t), tf.zeros_like(t), sums)
    return tf.while_loop(lambda l, *_: l < count, add_level, start, maximum_iterations=most)[-1]


def derivative_weights(weights: tf.Tensor, dimension: int) -> tf.Tensor:
    """The weights of a series' derivative, which is a series in dimension d + 2, ``[L - 1]``; of
    weights ``[L, ...]`` of several series those of each."""
    l = tf.range(1, weights.shape[0], dtype=weights.dtype)
    factors = l * (l + dimension - 2) / (dimension - 1)
    return weights[1:] * tf.reshape(factors, [-1] + [1] * (weights.shape.rank - 1))


def _inner_products(
    values: tf.Tensor, t: tf.Tensor, dimension: int, count: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """The sums of ``values * P_l(t)`` over all entries that share a weight, for l < count; then
    zeros, in the shape of the weights."""
    shape = tf.shape(weights)[1:]
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=shape, s1=tf.shape(t))

    def add(l: tf.Tensor, p: tf.Tensor, sums: tf.TensorArray) -> tf.TensorArray:
        return sums.write(l, tf.reshape(tf.reduce_sum(values * p, axes), shape))

    sums = tf.TensorArray(t.dtype, size=weights.shape[0], element_shape=weights.shape[1:])
    return _over_levels(add, sums, t, dimension, count, weights.shape[0]).stack()


def zonal_matrix(
    zonal: Callable[..., tf.Tensor],
    first: tuple[tf.Tensor, tf.Tensor],
    second: tuple[tf.Tensor, tf.Tensor] | None = None,
) -> tf.Tensor:
    """A zonal function of all pairs of unit vectors ``[batch..., N, d]``, times the radial factors
    ``[batch..., N, 1]`` of both; of each batch with itself, if there are no others."""
    scale, unit = first
    if second is None:
        return tf.matmul(scale, scale, transpose_b=True) * zonal(unit)
    return products(scale, second[0]) * zonal(unit, second[1])


def cosines(unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
    """The inner products of all pairs of unit vectors; of each batch with itself without others."""
    if unit2 is not None:
        return products(unit, unit2)
    t = tf.matmul(unit, unit, transpose_b=True)
    # Exactly one: at one some shape functions have a root, which would turn a rounding error of
    # 1e-16 into one of 1e-8, and a diverging slope.
    return tf.linalg.set_diag(t, tf.ones_like(t[..., 0]))


def products(rows: tf.Tensor, rows2: tf.Tensor) -> tf.Tensor:
    """The inner products of all pairs of rows."""
    if rows.shape.rank == rows2.shape.rank == 2:  # a tenth of the operations
        return tf.matmul(rows, rows2, transpose_b=True)
    return tf.tensordot(rows, rows2, [[-1], [-1]])
