"""Uniform B-splines on the grid of a box, few of which are nonzero at a row, and sums of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import tensorflow as tf
from scipy.interpolate import BSpline, PPoly

from .._arguments import Array, IntArray
from .box_ends import slack_of
from .dissection import Dissection, dissection, strides_of


def spline_pieces(degree: int) -> Array:
    """The polynomial pieces of a uniform B-spline of spacing one, ``[p + 1, p + 1]``.

    Row o is for spline o of a cell. It has the coefficients of the powers 0 to p of the place in
    the cell, from 0 to 1. Spline 0 ends with the cell.
    """
    pieces = PPoly.from_spline(BSpline.basis_element(np.arange(degree + 2.0))).c
    # The highest power comes first; p pieces of zero length are before and after the others.
    return np.array(pieces[::-1, degree : 2 * degree + 1].T[::-1])


@dataclass(frozen=True, eq=False)
class SplineGrid:
    """Products of uniform B-splines, one for each column of a box.

    In each column p + 1 splines are nonzero in a cell; the first has the number of the cell.

    :ivar columns: The columns of X, ``[D]``.
    :ivar lower: The lower end of the box, ``[D]``.
    :ivar steps: The lengths of a cell, ``[D]``.
    :ivar shape: The numbers of splines, ``(M_1, ..., M_D)``.
    :ivar degree: p.
    """

    columns: IntArray
    lower: Array
    steps: Array
    shape: tuple[int, ...]
    degree: int

    @property
    def size(self) -> int:
        """The number M of products."""
        return int(np.prod(self.shape))

    @cached_property
    def dissection(self) -> Dissection:
        """The order in which matrices on the grid are factorised."""
        return dissection(self.shape, self.degree)

    @cached_property
    def _offsets(self) -> IntArray:
        """The splines of a cell, counted from the cell's number, ``[Q, D]``."""
        return np.array(list(itertools.product(range(self.degree + 1), repeat=len(self.shape))))

    def cells(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The cell of each row, ``[n, D]``, and the row's place in the cell, from 0 to 1; in
        float64. Rows outside of the box count as rows at its end."""
        rows = tf.cast(tf.gather(X, self.columns, axis=1), tf.float64)
        last = tf.constant(np.array(self.shape, float) - self.degree - 1, tf.float64)
        places = tf.clip_by_value((rows - self.lower) / self.steps, 0.0, last + 1)
        cells = tf.stop_gradient(tf.clip_by_value(tf.floor(places), 0.0, last))
        return tf.cast(cells, tf.int64), places - cells

    def in_box(self, X: tf.Tensor) -> tf.Tensor:
        """The rows ``[n, ...]``, after a check that all are in the box, up to rounding.

        :raises ValueError: If a row is outside; in a graph the error is an InvalidArgumentError.
        """
        upper = self.lower + self.steps * (np.array(self.shape) - self.degree)
        slack = slack_of(self.lower, upper, X.dtype)
        rows = tf.cast(tf.gather(X, self.columns, axis=1), tf.float64)
        is_beyond = (rows < self.lower - slack) | (rows > upper + slack)
        count = tf.math.count_nonzero(tf.reduce_any(is_beyond, axis=1))
        what = f"rows are outside of the box of the splines, from {self.lower} to {upper}"
        remedy = "make the features with a wider one, or leave the rows out"
        if tf.executing_eagerly():
            if count:
                raise ValueError(f"Xnew: {int(count)} {what}; {remedy}.")
            return X
        assertion = tf.debugging.Assert(tf.equal(count, 0), [f"Xnew: {what}; {remedy}.", count])
        with tf.control_dependencies([assertion]):
            return tf.identity(X)

    def __call__(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The numbers of the products that may be nonzero at rows ``[n, ...]`` of the box,
        ``[n, Q]``, and their values, in float64."""
        cells, places = self.cells(X)
        pieces = tf.constant(spline_pieces(self.degree), tf.float64)
        powers = [tf.ones_like(places)]
        for _ in range(self.degree):
            powers.append(powers[-1] * places)
        column_values = tf.tensordot(tf.stack(powers, axis=-1), pieces, [[2], [1]])  # [n, D, p + 1]
        values = column_values[:, 0]
        for factor in tf.unstack(column_values, axis=1)[1:]:
            products = values[:, :, None] * factor[:, None]
            values = tf.reshape(products, [-1, values.shape[1] * factor.shape[1]])
        strides = strides_of(self.shape)
        first = tf.linalg.matvec(cells, tf.constant(strides))
        return first[:, None] + self._offsets @ strides, values

    def dense(self, X: tf.Tensor) -> tf.Tensor:
        """The values of all products at rows ``[n, ...]``, ``[M, n]`` in float64."""
        numbers, values = self(X)
        rows = tf.broadcast_to(tf.range(tf.shape(X, tf.int64)[0])[:, None], tf.shape(numbers))
        shape = tf.stack([tf.constant(self.size, tf.int64), tf.shape(X, tf.int64)[0]])
        return tf.scatter_nd(tf.stack([numbers, rows], axis=-1), values, shape)

    @cached_property
    def _pair_steps(self) -> IntArray:
        """The place of each pair of a cell's splines in the row of a stencil, ``[Q, Q]``."""
        steps = self._offsets[None] - self._offsets[:, None] + self.degree
        return np.asarray(steps @ strides_of([2 * self.degree + 1] * len(self.shape)))

    def quadratic(self, stencils: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        """The quadratic form ``phi^T S phi`` at each row ``[n, ...]``, ``[n, L]``.

        :param stencils: S, ``[L, M_1, ..., 2p + 1]``.
        """
        numbers, values = self(X)
        flat = tf.reshape(stencils, [stencils.shape[0], -1])
        places = numbers[:, :, None] * (2 * self.degree + 1) ** len(self.shape) + self._pair_steps
        entries = tf.gather(flat, places, axis=1)
        return tf.einsum("lnab,na,nb->nl", entries, values, values)

    def gram(self, numbers: IntArray, values: Array, weights: Array) -> Array:
        """The sums ``sum_n w_n phi_n phi_n^T``, a stencil for each column of weights ``[n, L]``.

        :param numbers: The numbers of the splines at rows, returned by a call with the values.
        """
        counts = tuple(size - self.degree for size in self.shape)
        # A cell has the number of its first spline in each column.
        cells = np.ravel_multi_index(np.unravel_index(numbers[:, 0], self.shape), counts)
        stencils = np.zeros([weights.shape[1], *self.dissection.stencil_shape])
        width = [2 * self.degree + 1] * len(self.shape)
        for a, b in itertools.combinations_with_replacement(range(len(self._offsets)), 2):
            product = values[:, a] * values[:, b]
            for stencil, w in zip(stencils, weights.T, strict=True):
                sums = np.bincount(cells, product * w, np.prod(counts)).reshape(counts)
                for first, second in {(a, b), (b, a)}:
                    at = tuple(
                        slice(start, start + count)
                        for start, count in zip(self._offsets[first], counts, strict=True)
                    )
                    step = np.unravel_index(self._pair_steps[first, second], width)
                    stencil[at + tuple(step)] += sums
        return stencils
