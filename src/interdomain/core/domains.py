"""Domains of features: the boxes that must contain the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array, BoolArray, finite_array, refusal, short
from ..linalg.box_ends import slack_of
from .columns import select_columns
from .functional_rows import FunctionalRows, rows_of
from .pairs import boxed_parts


def check_box(lower: TensorType, upper: TensorType) -> tuple[Array, Array]:
    """The ends of a box, ``[D]`` each.

    :raises ValueError: If they are not finite, of different shapes, or not in order.
    """
    ends, form = (("lower", lower), ("upper", upper)), "a number or a vector [D]"
    first, last = (np.atleast_1d(finite_array(*end, (0, 1), form)) for end in ends)
    if first.shape != last.shape or not first.size or not np.all(first < last):
        remedy = "pass a box with a width, such as from_data(..., X) makes"
        rule = f"be above lower = {short(first)} in every column"
        raise refusal("upper", rule, short(last), remedy)
    return first, last


class Box(NamedTuple):
    """The domain of one block, in columns of X.

    :ivar kind: The class of the inducing variable.
    :ivar columns: The columns of the box, ``[D]``; for other attributes see :class:`.Domain`.
    :ivar rows: The functionals of rows, whose inputs have the columns; None if rows are values.
    """

    kind: type
    columns: Array
    lower: Array
    upper: Array
    repeats: bool
    remedy: str
    continues: bool
    rows: FunctionalRows | None

    def places(self, X: Array) -> list[tuple[Any, Array]]:
        """The places that must be inside, in columns of the box, each with the rows that need
        them, one place for a row."""
        if self.rows is None:
            return [(slice(None), X[:, self.columns])]
        needed = self.rows.needed(X, centres=self.continues)
        return [(rows, places[:, self.columns]) for rows, places in needed]

    def outside(self, X: Array) -> BoolArray:
        """Whether each row is outside, ``[N]``; NaN and rounding errors do not count."""
        outside = np.zeros(len(X), np.bool_)
        for rows, places in self.places(X):
            outside[rows] |= np.any(self.beyond(places), axis=1)
        return outside

    def beyond(self, seen: Array) -> BoolArray:
        """Whether each number of the columns ``[..., D]`` is outside by more than rounding."""
        dtype = gpflow.default_float()  # Kuf compares the numbers in this type
        with np.errstate(over="ignore"):
            seen = np.asarray(seen).astype(dtype, copy=False).astype(np.float64, copy=False)
        slack = slack_of(self.lower, self.upper, dtype)
        return np.asarray((seen < self.lower - slack) | (seen > self.upper + slack))

    def __str__(self) -> str:
        sides = [f"[{a:.10g}, {b:.10g}]" for a, b in zip(self.lower, self.upper, strict=True)]
        word = "interval" if len(sides) == 1 else "box"
        return f"the {word} {' x '.join(sides)} of {self.kind.__name__}"


def boxes(inducing_variable: InducingVariables, kernel: Kernel, num_columns: int) -> list[Box]:
    """The domains of all parts that have a domain: blocks of sums, and factors of products.

    :raises ValueError: If there is not one block per summand of a sum, or one inducing variable per
        factor of a product; if a domain and its kernel differ in the number of columns.
    """
    boxes, functionals = [], rows_of(kernel)
    if functionals is not None:
        num_columns = len(functionals.seen_inputs(num_columns))
    for block, part in boxed_parts(inducing_variable, kernel):
        domain = block.domain(part)
        if domain is None:
            continue
        with tf.init_scope():  # gives numbers also while a graph is built
            columns = select_columns(part, np.arange(num_columns)[None]).numpy()[0]
        lower, upper = (np.reshape(np.asarray(end, np.float64), [-1]) for end in domain[:2])
        if not len(lower) == len(upper) == len(columns):
            remedy = "select them with the kernel's active_dims, or pass a sum of kernels"
            rule = f"have as many columns as {type(block).__name__} is made for, {len(lower)}"
            raise refusal("X", rule, f"{len(columns)} that {type(part).__name__} sees", remedy)
        boxes.append(Box(type(block), columns, lower, upper, *domain[2:], functionals))
    return boxes


def outside_of_any(boxes: Sequence[Box], X: Array) -> BoolArray:
    """Whether each row is outside of at least one box, ``[N]``."""
    return np.asarray(np.any([np.zeros(len(X), np.bool_), *(b.outside(X) for b in boxes)], axis=0))


def complaint(
    boxes: Sequence[Box], X: Array, count: int, total: int, rows: str = "rows of X"
) -> tuple[str, str]:
    """The message about rows outside, such as "3 of 500 rows of X are outside of the interval
    [-2, 12] of VariationalFourierFeatures: column 0 goes from -3 to 11"; and the remedy.

    :param boxes: Boxes, at least one of which does not contain all rows.
    :param X: All rows, or the lowest and the highest number of each column.
    :param count: The number of rows outside, of ``total`` rows; the message calls them ``rows``.
    """
    messages: dict[str, str] = {}  # without repetition: latent GPs may have the same message
    for box in boxes:
        places = np.concatenate([part for _, part in box.places(X)])
        # fmin and fmax ignore NaN.
        low, high = (extreme.reduce(places, axis=0) for extreme in (np.fmin, np.fmax))
        ends = zip(box.columns, low, high, box.beyond(low) | box.beyond(high), strict=True)
        ranges = [f"column {k} goes from {a:.10g} to {b:.10g}" for k, a, b, out in ends if out]
        if ranges:
            messages.setdefault(f"{box}: {', '.join(ranges)}", box.remedy)
    verb = "is" if count == 1 else "are"
    what = f"{count} of {total} {rows} {verb} outside of {'; and of '.join(messages)}"
    return what, next(iter(messages.values()))
