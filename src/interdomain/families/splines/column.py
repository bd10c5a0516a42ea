"""Uniform B-splines in one column: their inner products as stencils ``[M, 2p + 1]``, and what they
leave of a Matern process."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.kernels import Stationary
from scipy.special import roots_legendre

from ..._arguments import Array
from ...core.matern import INVERSE_ROOTS, matern_order, noise_density, rate_of
from ...linalg.banded import inverse_and_log_determinant
from ...linalg.spline_grid import spline_pieces

EPS = float(np.finfo(float).eps)

_VISIBLE = 1e-6
"""Relative errors that are not taken for the features'."""

_MOST_CELLS = 100_000
"""Cells of a column that are recommended."""


class SplineColumn(NamedTuple):
    """The splines of one column of a box, and its Matern kernel."""

    kernel: Stationary
    length: float
    cells: int
    degree: int

    def stencil(self) -> tf.Tensor:
        """Kuu, ``[cells + p, 2p + 1]``, in float64.

        With ``x`` in units of a cell of length h, and r = l h, the inner product of two splines is
        ``r / q sum_ij C_i C_j r^(-i-j) int B_m^(i) B_m'^(j)`` and that of value and derivatives at
        the lower end, C being binomial coefficients.
        """
        order = matern_order(self.kernel)
        rate = tf.cast(rate_of(self.kernel), tf.float64) * (self.length / self.cells)
        powers = rate ** -tf.range(order + 2, dtype=tf.float64)
        weights = powers * [math.comb(order + 1, i) for i in range(order + 2)]
        integrals = tf.constant(integrals_over_cell(self.degree, order + 1))
        inner = tf.einsum("i,j,ijab->ab", weights, weights, integrals)
        at_end = powers[:-1, None] * spline_derivatives(self.degree, np.zeros(1), order + 1)[..., 0]
        end_root = tf.matmul(at_end, INVERSE_ROOTS[order], transpose_a=True)
        first = sheared(tf.matmul(end_root, end_root, transpose_b=True))
        first = tf.pad(first, [[0, self.cells - 1], [0, 0]])
        products = over_cells(inner, self.cells + self.degree)
        variance = tf.cast(self.kernel.variance, tf.float64)
        return (rate / noise_density(order) * products + first) / variance

    def condition(self) -> float:
        """About the condition number of Kuu, ``(l / h)^(2 nu + 1)``."""
        cells_of_lengthscale = float(self.kernel.lengthscales.numpy()) * self.cells / self.length
        return float(max(cells_of_lengthscale, 1.0) ** (2 * matern_order(self.kernel) + 2))

    def share_left(self) -> float:
        """The share of the prior variance that the splines leave."""
        inverse, _ = inverse_and_log_determinant(self.stencil())
        integrals = tf.constant(integrals_over_cell(self.degree, 0)[0, 0])
        products = over_cells(integrals, self.cells + self.degree)
        explained = float(tf.reduce_sum(inverse * products)) / self.cells
        return 1 - explained / float(tf.convert_to_tensor(self.kernel.variance))

    def enough(self, most: float) -> int:
        """The number of splines that leave about so much."""
        order, left, column = matern_order(self.kernel), 0.0, self
        rate = min(2 * order + 1, 2 * (self.degree - order))
        # From a spacing at which rounding does not show.
        while column.cells > 1 and not left > most:
            column = column._replace(cells=(column.cells + 1) // 2)
            if EPS * column.condition() < _VISIBLE:
                left = column.share_left()
        while left > most and column.cells < _MOST_CELLS:
            factor = max((left / most) ** (1 / rate), 1.1)
            column = column._replace(cells=math.ceil(column.cells * factor))
            left = column.share_left()
        return column.cells + self.degree


def spline_derivatives(degree: int, places: Array, count: int) -> Array:
    """The splines of a cell and ``count - 1`` derivatives, ``[count, p + 1, n]``.

    :param places: In the cell, from 0 to 1, ``[n]``.
    """
    pieces, values = spline_pieces(degree), np.empty([count, degree + 1, len(places)])
    powers = np.power.outer(places, np.arange(degree + 1)).T
    for derivative in values:
        derivative[:] = pieces @ powers
        pieces = np.pad(pieces[:, 1:] * np.arange(1, degree + 1), [(0, 0), (0, 1)])
    return values


def integrals_over_cell(degree: int, count: int) -> Array:
    """The integrals over a cell of products of derivatives 0 to ``count`` of its splines, ``[count
    + 1, count + 1, p + 1, p + 1]``, by a rule that is exact."""
    nodes, weights = roots_legendre(degree + 1)
    values = spline_derivatives(degree, (nodes + 1) / 2, count + 1)
    integrals: Array = np.einsum("ian,jbn,n->ijab", values, values, weights / 2)
    return integrals


def sheared(matrix: tf.Tensor) -> tf.Tensor:
    """Entries a, b of a matrix ``[p + 1, p + 1]`` where a stencil has them, at ``a, b - a + p``."""
    size = int(matrix.shape[0])
    steps = np.arange(size) - np.arange(size)[:, None] + size - 1
    return tf.einsum("ab,abd->ad", matrix, np.eye(2 * size - 1)[steps])


def over_cells(matrix: tf.Tensor, count: int) -> tf.Tensor:
    """The stencil ``[M, 2p + 1]`` of M splines in one column, to which every cell adds the same
    matrix ``[p + 1, p + 1]`` of its own."""
    size = int(matrix.shape[0])
    # Number o of the splines on a cell is m on cell m - o, if there is such a cell.
    cells = np.arange(count)[:, None] - np.arange(size)
    is_there = (cells >= 0) & (cells <= count - size)
    return tf.matmul(tf.cast(is_there, tf.float64), sheared(matrix))
