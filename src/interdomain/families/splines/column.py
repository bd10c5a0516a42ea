"""Uniform B-splines in one column: their inner products as stencils ``[M, 2p + 1]``, and the share
of a Matern process that they do not explain."""

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
from ...linalg.spline_rules import spline_pieces

EPS = float(np.finfo(float).eps)

_VISIBLE = 1e-6
"""The relative rounding error up to which unexplained shares are measured."""

_MOST_CELLS = 100_000
"""The largest number of cells of a column that is recommended."""


class SplineColumn(NamedTuple):
    """The splines of one column of a box, and its Matern kernel."""

    kernel: Stationary
    length: float
    cells: int
    degree: int

    def stencil(self) -> tf.Tensor:
        """The stencil ``[cells + p, 2p + 1]`` of Kuu, in float64.

        Let ``x`` be in units of a cell of length h, l the kernel's rate, r = l h, and C binomial
        coefficients. The inner product of two splines is ``r / q sum_ij C_i C_j r^(-i-j) int
        B_m^(i) B_m'^(j)``, plus that of their values and derivatives at the lower end."""
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
        """An estimate of Kuu's condition number, ``(l / h)^(2 nu + 1)`` for lengthscale l."""
        cells_of_lengthscale = float(self.kernel.lengthscales.numpy()) * self.cells / self.length
        return float(max(cells_of_lengthscale, 1.0) ** (2 * matern_order(self.kernel) + 2))

    def share_left(self) -> float:
        """The share of the prior variance that the splines do not explain."""
        inverse, _ = inverse_and_log_determinant(self.stencil())
        integrals = tf.constant(integrals_over_cell(self.degree, 0)[0, 0])
        products = over_cells(integrals, self.cells + self.degree)
        explained = float(tf.reduce_sum(inverse * products)) / self.cells
        return 1 - explained / float(tf.convert_to_tensor(self.kernel.variance))

    def enough(self, most: float) -> int:
        """The number of splines that leave a share of about ``most`` unexplained."""
        order, left, column = matern_order(self.kernel), 0.0, self
        rate = min(2 * order + 1, 2 * (self.degree - order))
        # Coarsen until the share left exceeds ``most``; ignore it while rounding errors are large.
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
    """The splines of a cell and their first ``count - 1`` derivatives, ``[count, p + 1, n]``.

    :param places: Positions in the cell, from 0 to 1, ``[n]``.
    """
    powers = np.power.outer(places, np.arange(degree + 1)).T
    return np.stack([spline_pieces(degree, order) @ powers for order in range(count)])


def integrals_over_cell(degree: int, count: int) -> Array:
    """The integrals over a cell of products of derivatives 0 to ``count`` of its splines, ``[count
    + 1, count + 1, p + 1, p + 1]``, by an exact quadrature rule."""
    nodes, weights = roots_legendre(degree + 1)
    values = spline_derivatives(degree, (nodes + 1) / 2, count + 1)
    integrals: Array = np.einsum("ian,jbn,n->ijab", values, values, weights / 2)
    return integrals


def sheared(matrix: tf.Tensor) -> tf.Tensor:
    """The entries a, b of a matrix ``[p + 1, p + 1]``, at ``a, b - a + p`` as in a stencil."""
    size = int(matrix.shape[0])
    steps = np.arange(size) - np.arange(size)[:, None] + size - 1
    return tf.einsum("ab,abd->ad", matrix, np.eye(2 * size - 1)[steps])


def over_cells(matrix: tf.Tensor, count: int) -> tf.Tensor:
    """The stencil ``[M, 2p + 1]`` of M splines in one column, a sum over cells; each cell adds the
    same matrix ``[p + 1, p + 1]`` to the entries of its splines."""
    size = int(matrix.shape[0])
    # Spline m is number o of the splines of cell m - o, if that cell exists.
    cells = np.arange(count)[:, None] - np.arange(size)
    is_there = (cells >= 0) & (cells <= count - size)
    return tf.matmul(tf.cast(is_there, tf.float64), sheared(matrix))
