"""Inner products of uniform B-splines in one column, as stencils ``[M, 2p + 1]``."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from scipy.special import roots_legendre

from ..._arguments import Array
from ...linalg.spline_grid import spline_pieces


def spline_derivatives(degree: int, places: Array, count: int) -> Array:
    """The splines of a cell and ``count - 1`` derivatives, ``[count, p + 1, n]``.

    :param places: In the cell, from 0 to 1, ``[n]``.
    """
    pieces, values = spline_pieces(degree), np.empty([count, degree + 1, len(places)])
    powers = np.power.outer(places, np.arange(degree + 1)).T
    for of_order in values:
        of_order[:] = pieces @ powers
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
