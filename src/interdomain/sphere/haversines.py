"""The angles between unit vectors, as accurately as the vectors determine them.

Rounding the inner product ``t = cos(angle)`` of two vectors, by 1e-16, moves a small angle by
1e-16 divided by the angle: a kernel of a short lengthscale sees that. The haversine,
``sin(angle / 2)^2``, is a quarter of the squared distance between the vectors. It tells small
angles apart.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_GRID = 2.0**26
_COINCIDENT = 2.5e-21
"""An angle of 1e-10. Below, two vectors count as the same: the error is some 1e-24."""


def angles_of(haversines: tf.Tensor) -> tf.Tensor:
    """The angles in [0, pi] of some haversines; rounding errors beyond [0, 1] are clipped."""
    return 2 * tf.asin(tf.sqrt(tf.clip_by_value(haversines, 0, 1)))


def haversines(unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
    """The haversines of all pairs of rows of two arrays of unit vectors, or of each batch with
    itself.

    :param unit: ``[batch..., N, d]``, in float64.
    :param unit2: ``[batch2..., N2, d]``.
    :return: ``[batch..., N, batch2..., N2]``, or ``[batch..., N, N]``.
    """
    if unit2 is None:
        return _between(unit, unit)
    if unit.shape.rank == unit2.shape.rank == 2:
        return _between(unit, unit2)
    size = unit.shape[-1]
    flat = _between(tf.reshape(unit, [-1, size]), tf.reshape(unit2, [-1, size]))
    return tf.reshape(flat, tf.concat([tf.shape(unit)[:-1], tf.shape(unit2)[:-1]], axis=0))


@tf.custom_gradient
def _between(unit: tf.Tensor, unit2: tf.Tensor) -> Any:
    """``(1 - u.v) / 2``, in which nothing is rounded that is large.

    A vector is split into ``u = a + b``, a being multiples of 2^-26. Products of these, and their
    sums up to two, are numbers of float64. So are, in ``1 - u.v = (1 - a.a') - (a.b' + b.v)``, the
    terms of the first bracket, and those of the second are small.
    """
    coarse, rest = _split(unit)
    coarse2, rest2 = (coarse, rest) if unit2 is unit else _split(unit2)
    left = tf.concat([coarse, rest], axis=-1)
    right = tf.concat([rest2, unit2], axis=-1)
    gaps = 1 - tf.matmul(coarse, coarse2, transpose_b=True)
    halves = 0.5 * (gaps - tf.matmul(left, right, transpose_b=True))

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        upstream *= -0.5
        return tf.matmul(upstream, unit2), tf.matmul(upstream, unit, transpose_a=True)

    return tf.where(halves < _COINCIDENT, tf.zeros([], halves.dtype), halves), gradient


def _split(unit: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """a and b, by which the length is one to twice the digits of float64."""
    coarse = tf.round(unit * _GRID) * (1 / _GRID)
    rest = unit - coarse
    # |u|^2 = |a|^2 + b.(a + u)
    excess = tf.reduce_sum(tf.square(coarse), axis=-1, keepdims=True) - 1
    excess += tf.reduce_sum(rest * (coarse + unit), axis=-1, keepdims=True)
    return coarse, rest - 0.5 * excess * unit
