"""Uniform B-splines on the grid of a box, few of which are nonzero at a row, and sums of them."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from .._arguments import Array, IntArray
from .box_ends import slack_of
from .dissection import Dissection, dissection, strides_of
from .spline_rules import SplineRule, num_cells

Term: TypeAlias = tuple[float, tuple[SplineRule, ...]]
"""A factor, and a functional along each column of the box."""


@dataclass(frozen=True, eq=False)
class SplineGrid:
    """Products of uniform B-splines, one for each column of a box, under one functional.

    In each column p + 1 splines are nonzero in a cell; the first has the number of the cell. A
    functional that covers several cells has a window of as many more splines.

    :ivar columns: The columns of X, ``[D]``.
    :ivar lower: The lower end of the box, ``[D]``.
    :ivar steps: The lengths of a cell, ``[D]``.
    :ivar shape: The numbers of splines, ``(M_1, ..., M_D)``.
    :ivar degree: p.
    :ivar terms: The functional of rows as a sum of products over columns; None for values at rows.
    :ivar wider: The half-width of stencils, if it exceeds what the functional needs.
    """

    columns: IntArray
    lower: Array
    steps: Array
    shape: tuple[int, ...]
    degree: int
    terms: tuple[Term, ...] | None = None
    wider: int = 0

    @property
    def size(self) -> int:
        """The number M of products."""
        return int(np.prod(self.shape))

    @property
    def num_cells(self) -> IntArray:
        """The number of cells of each column, ``[D]``."""
        return np.array(self.shape) - self.degree

    @cached_property
    def _terms(self) -> tuple[Term, ...]:
        """The terms of the functional."""
        values = (1.0, (SplineRule(),) * len(self.shape))
        return (values,) if self.terms is None else self.terms

    @cached_property
    def _half_widths(self) -> list[Any]:
        """The distance from a row that its functional covers in each column, in cells."""
        columns = range(len(self.shape))
        rules = [[rules[column].half_width for _, rules in self._terms] for column in columns]
        return [_largest(widths) for widths in rules]

    @cached_property
    def _counts(self) -> list[Any]:
        """The number of cells of a row's window in each column."""
        cells = self.num_cells.tolist()
        return [num_cells(*pair) for pair in zip(self._half_widths, cells, strict=True)]

    @property
    def window(self) -> list[int]:
        """The number of splines in each column that may be nonzero at a row."""
        return [count + self.degree for count in self._counts]

    @property
    def row_entries(self) -> int:
        """The number of values in memory for the splines of a row."""
        nodes = [rule.num_nodes for _, rules in self._terms for rule in rules]
        most = max(self.window) * max(self.degree + 1, *nodes, 0)
        return max(int(np.prod(self.window)), most)

    @property
    def reach(self) -> int:
        """The half-width of stencils of products of splines."""
        return max(*self.window, self.wider + 1) - 1

    @cached_property
    def dissection(self) -> Dissection:
        """The order in which matrices on the grid are factorised."""
        return dissection(self.shape, self.reach)

    @cached_property
    def _offsets(self) -> IntArray:
        """The splines of a window, counted from its first, ``[Q, D]``."""
        return np.indices(self.window).reshape(len(self.shape), -1).T

    def in_box(self, X: tf.Tensor) -> tf.Tensor:
        """The rows ``[n, ...]``, after a check that all are in the box, up to rounding, with the
        boxes around them over which means are.

        :raises ValueError: If a row is outside; in a graph the error is an InvalidArgumentError.
        """
        upper = self.lower + self.steps * self.num_cells
        slack = slack_of(self.lower, upper, X.dtype)
        rows = tf.cast(tf.gather(X, self.columns, axis=1), tf.float64)
        halves = [
            _largest(
                [rules[column].half_width for _, rules in self._terms if rules[column].is_mean]
            )
            + tf.zeros_like(rows[:, column])
            for column in range(len(self.shape))
        ]
        half = tf.stack(halves, axis=1) * self.steps
        is_beyond = (rows - half < self.lower - slack) | (rows + half > upper + slack)
        count = tf.math.count_nonzero(tf.reduce_any(is_beyond, axis=1))
        what = f"rows are outside of the box of the splines, from {self.lower} to {upper}"
        remedy = (
            "make the features with a wider one, by SplineFeatures(lower, upper, ...) or a greater "
            "margin of from_data, or leave the rows out"
        )
        if tf.executing_eagerly():
            if count:
                raise ValueError(f"Xnew: {int(count)} {what}; {remedy}.")
            return X
        assertion = tf.debugging.Assert(tf.equal(count, 0), [f"Xnew: {what}; {remedy}.", count])
        with tf.control_dependencies([assertion]):
            return tf.identity(X)

    def __call__(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The numbers of the products that may be nonzero at rows ``[n, ...]`` of the box,
        ``[n, Q]``, and their values, in float64. Rows outside count as rows at its end."""
        rows = tf.cast(tf.gather(X, self.columns, axis=1), tf.float64)
        ends = tf.constant(self.num_cells, tf.float64)
        places = tf.unstack(tf.clip_by_value((rows - self.lower) / self.steps, 0.0, ends), axis=1)
        parts = list(zip(places, self._half_widths, self._counts, self.num_cells, strict=True))
        firsts = [_first(*part) for part in parts]
        numbers, values = tf.zeros([1, 1], tf.int64), tf.zeros([1, 1], tf.float64)
        strides = strides_of(self.shape)
        for first, count, stride in zip(firsts, self._counts, strides, strict=True):
            steps = tf.range(tf.cast(count + self.degree, tf.int64))
            column = (tf.cast(first, tf.int64)[:, None] + steps) * stride
            numbers = _flat(numbers[:, :, None] + column[:, None])
        for weight, rules in self._terms:
            term = tf.fill([1, 1], tf.constant(weight, tf.float64))
            for rule, place, first, count in zip(rules, places, firsts, self._counts, strict=True):
                window = rule.window(self.degree, place, first, count)
                term = _flat(term[:, :, None] * window[:, None])
            values += term
        return numbers, values if self._terms else tf.zeros(tf.shape(numbers), tf.float64)

    def dense(self, X: tf.Tensor) -> tf.Tensor:
        """The values of all products at rows ``[n, ...]``, ``[M, n]`` in float64."""
        numbers, values = self(X)
        rows = tf.broadcast_to(tf.range(tf.shape(X, tf.int64)[0])[:, None], tf.shape(numbers))
        shape = tf.stack([tf.constant(self.size, tf.int64), tf.shape(X, tf.int64)[0]])
        return tf.scatter_nd(tf.stack([numbers, rows], axis=-1), values, shape)

    @cached_property
    def _pair_steps(self) -> IntArray:
        """The place of each pair of a window's splines in the row of a stencil, ``[Q, Q]``."""
        steps = self._offsets[None] - self._offsets[:, None] + self.reach
        return np.asarray(steps @ strides_of([2 * self.reach + 1] * len(self.shape)))

    def quadratic(self, stencils: tf.Tensor, numbers: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
        """The quadratic form ``phi^T S phi`` at each row, ``[n, L]``.

        :param stencils: S, ``[L, M_1, ..., 2r + 1]``.
        :param numbers: The numbers of the splines at rows, returned by a call with the values.
        """
        flat = tf.reshape(stencils, [stencils.shape[0], -1])
        places = numbers[:, :, None] * (2 * self.reach + 1) ** len(self.shape) + self._pair_steps
        entries = tf.gather(flat, places, axis=1)
        return tf.einsum("lnab,na,nb->nl", entries, values, values)

    def add_gram(self, stencils: Array, numbers: IntArray, values: Array, weights: Array) -> None:
        """Add the sums ``sum_n w_n phi_n phi_n^T`` to stencils, one for each column of weights
        ``[n, L]``.

        :param numbers: The numbers of the splines at rows, returned by a call with the values.
        """
        if not len(numbers):
            return
        counts = tuple(np.array(self.shape) - self.window + 1)
        # A window has the number of its first spline in each column.
        first = np.ravel_multi_index(np.unravel_index(numbers[:, 0], self.shape), counts)
        width = [2 * self.reach + 1] * len(self.shape)
        columns = np.ascontiguousarray(values.T)
        for a, b in itertools.combinations_with_replacement(range(len(self._offsets)), 2):
            product = columns[a] * columns[b]
            for stencil, w in zip(stencils, weights.T, strict=True):
                sums = np.bincount(first, product * w, np.prod(counts)).reshape(counts)
                for one, other in {(a, b), (b, a)}:
                    at = tuple(
                        slice(start, start + count)
                        for start, count in zip(self._offsets[one], counts, strict=True)
                    )
                    step = np.unravel_index(self._pair_steps[one, other], width)
                    stencil[at + tuple(step)] += sums


def _first(place: tf.Tensor, half_width: Any, count: Any, cells: int) -> tf.Tensor:
    """The number of the first cell of each row's window, ``[n]`` in float64."""
    last = tf.cast(cells - count, tf.float64)
    return tf.stop_gradient(tf.clip_by_value(tf.floor(place - half_width), 0.0, last))


def _largest(widths: list[Any]) -> Any:
    """The largest of some numbers or tensors; zero if there are none."""
    if any(tf.is_tensor(width) for width in widths):
        return functools.reduce(tf.maximum, widths)
    return max(widths, default=0.0)


def _flat(values: tf.Tensor) -> tf.Tensor:
    """The tensor ``[n, A, B]`` as ``[n, A B]``."""
    if values.shape[1] is None or values.shape[2] is None:
        return tf.reshape(values, [tf.shape(values)[0], -1])
    return tf.reshape(values, [-1, values.shape[1] * values.shape[2]])
