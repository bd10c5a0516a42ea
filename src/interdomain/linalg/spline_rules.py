"""Linear functionals of uniform B-splines in one column: values, slopes, means, Gaussian blurs.

Lengths are in units of a cell. A functional is a sum over cells. In a cell, the splines are
polynomials of the place from 0 to 1, so a functional needs only the moments of the place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from scipy.interpolate import BSpline, PPoly
from scipy.special import roots_legendre

from .._arguments import Array

_CUT = 8.0
"""The number of deviations at which a Gaussian is cut, which leaves out 1e-15 of its mass."""

_NO_WIDTH = 1e-30
"""The width of a mean that counts as zero: its square, in gradients, is a positive number."""

_ROUNDING = 1e-9
"""The share of a cell by which a mean may cover another cell that its window does not have."""


def spline_pieces(degree: int, order: int = 0) -> Array:
    """The polynomial pieces of a uniform B-spline of spacing one, ``[p + 1, p + 1]``.

    Row o is for spline o of a cell. It has the coefficients of the powers 0 to p of the place in
    the cell, from 0 to 1. Spline 0 ends with the cell.

    :param order: The order of the derivative whose pieces are returned.
    """
    pieces = PPoly.from_spline(BSpline.basis_element(np.arange(degree + 2.0))).c
    # The highest power comes first; p pieces of zero length are before and after the others.
    pieces = np.array(pieces[::-1, degree : 2 * degree + 1].T[::-1])
    for _ in range(order):
        pieces = np.pad(pieces[:, 1:] * np.arange(1, degree + 1), [(0, 0), (0, 1)])
    return pieces


class SplineRule(NamedTuple):
    """A functional along one column. By default it is the value at the row.

    :ivar order: The order of the derivative at the row.
    :ivar width: The width of a mean around the row: a number, or a tensor ``[n]``.
    :ivar deviation: The standard deviation of a Gaussian blur around the row.
    """

    order: int = 0
    width: Any = 0.0
    deviation: float = 0.0

    @property
    def is_mean(self) -> bool:
        """Whether the functional is a mean; widths that are a tensor may be zero."""
        return bool(tf.is_tensor(self.width) or self.width > 0)

    @property
    def half_width(self) -> Any:
        """The distance from the row that the functional covers, a number or ``[n]``."""
        return self.width / 2 if self.is_mean else _CUT * self.deviation

    @property
    def num_nodes(self) -> int:
        """The number of nodes in a cell for a blur: Gauss-Legendre rules of so many nodes have
        relative errors of about 1e-13."""
        return 8 + math.ceil(1.6 * min(2 * _CUT, 1 / self.deviation)) if self.deviation else 1

    def window(self, degree: int, place: tf.Tensor, first: tf.Tensor, count: Any) -> tf.Tensor:
        """The functional of the splines that are nonzero in some cells, ``[n, count + p]``.

        :param place: The rows' places in cells from the lower end of the box, ``[n]``.
        :param first: The number of the first of the cells, ``[n]``.
        :param count: The number of cells, which must contain what the functional covers. Beyond the
            box, a blur uses the value at the end.
        """
        edges = (first - place)[:, None] + tf.range(tf.cast(count, place.dtype) + 1)
        if self.is_mean:
            moments = self._moments_of_mean(degree, edges)
        elif self.deviation:
            moments = self._moments_of_blur(degree, edges)
        else:
            number = tf.minimum(tf.floor(place) - first, tf.cast(count - 1, place.dtype))
            cells = tf.one_hot(tf.cast(number, tf.int32), count, dtype=place.dtype)
            powers = _powers(-edges[:, :-1], degree)
            moments = [tf.stop_gradient(cells) * power for power in powers]
        pieces = spline_pieces(degree, self.order)
        by_cell = tf.tensordot(tf.stack(moments, axis=-1), pieces, [[2], [1]])
        # Spline o of a cell is spline o - 1 of the next cell.
        cells = tf.unstack(by_cell, axis=2)
        return tf.add_n([tf.pad(part, [[0, 0], [o, degree - o]]) for o, part in enumerate(cells)])

    def _moments_of_mean(self, degree: int, edges: tf.Tensor) -> list[tf.Tensor]:
        """The moments of the place in each cell under the mean, ``[n, count]``, without
        differences of large numbers: the integral of x^i over [a, b] is ``(b - a) / (i + 1)
        sum_k a^k b^(i-k)``."""
        width = tf.maximum(tf.convert_to_tensor(self.width, edges.dtype), _NO_WIDTH)
        half = tf.reshape(width / 2, [-1, 1]) * tf.ones_like(edges[:, :1])
        inner = tf.maximum(tf.minimum(edges[:, 1:-1], half), -half)
        ends = tf.concat([-half, inner, half], axis=1)  # no rounding error is left out
        share = (ends[:, 1:] - ends[:, :-1]) / (2 * half)
        a, b = ends[:, :-1] - edges[:, :-1], ends[:, 1:] - edges[:, :-1]
        sums = [tf.ones_like(a)]
        for power in _powers(b, degree)[1:]:
            sums.append(a * sums[-1] + power)
        return [share * part / (i + 1) for i, part in enumerate(sums)]

    def _moments_of_blur(self, degree: int, edges: tf.Tensor) -> list[tf.Tensor]:
        """The moments of the place in each cell under a Gaussian, ``[n, count]``."""
        nodes, weights = roots_legendre(self.num_nodes)
        deviation, most = self.deviation, _CUT * self.deviation
        ends = tf.clip_by_value(edges, -most, most)
        half, middle = (ends[:, 1:] - ends[:, :-1]) / 2, (ends[:, 1:] + ends[:, :-1]) / 2
        points = middle[..., None] + half[..., None] * nodes
        density = tf.exp(-tf.square(points / deviation) / 2) / (deviation * math.sqrt(2 * math.pi))
        density *= half[..., None] * weights
        powers = _powers(points - edges[:, :-1, None], degree)
        moments = [tf.reduce_sum(density * power, axis=2) for power in powers]
        scale = deviation * math.sqrt(2)
        below = tf.math.erfc(-edges[:, :1] / scale) / 2
        above = tf.math.erfc(edges[:, -1:] / scale) / 2
        zeros = tf.zeros_like(moments[0][:, 1:])
        at_upper = tf.concat([zeros, above], axis=1)
        moments = [part + at_upper for part in moments]
        moments[0] += tf.concat([below, zeros], axis=1)
        return moments


def num_cells(half_width: Any, cells: int) -> Any:
    """The number of cells that a functional can cover: an integer, or a tensor for widths that are
    a tensor.

    :param half_width: See :attr:`SplineRule.half_width`.
    :param cells: The number of all cells.
    """
    if not tf.is_tensor(half_width):
        return min(math.ceil(2 * half_width - _ROUNDING) + 1, cells)
    widest = tf.reduce_max(tf.concat([[0.0], 2 * half_width - _ROUNDING], axis=0))
    return tf.cast(tf.clip_by_value(tf.math.ceil(widest) + 1, 1, cells), tf.int32)


def _powers(values: tf.Tensor, degree: int) -> list[tf.Tensor]:
    """The powers 0 to ``degree``."""
    powers = [tf.ones_like(values)]
    for _ in range(degree):
        powers.append(powers[-1] * values)
    return powers
