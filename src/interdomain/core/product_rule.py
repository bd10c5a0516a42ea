"""The product rule: a functional of a product of functions, as functionals of the factors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf
from gpflow.kernels import Combination, Kernel

from .._arguments import IntArray, refusal, short
from .averages import Average
from .columns import select_columns
from .functionals import Derivative, LinearFunctional, Value

Terms: TypeAlias = list[tuple[float, tuple[LinearFunctional, ...]]]


def columns_seen(kernel: Kernel, inputs: tf.Tensor) -> IntArray:
    """The columns of inputs ``[n, D]`` that a kernel uses, in its order."""
    if isinstance(kernel, Combination):
        parts = [columns_seen(part, inputs) for part in kernel.kernels]
        return np.unique(np.concatenate(parts))
    with tf.init_scope():  # gives numbers also while a graph is built
        columns: IntArray = select_columns(kernel, np.arange(int(inputs.shape[1]))[None]).numpy()[0]
    return columns


def check_categories(functional: LinearFunctional, columns: IntArray) -> None:
    """Check that a functional does not act along columns of categories; a ValueError otherwise."""
    if len(columns) and isinstance(functional.seen_by(columns), (Average, Derivative)):
        rule = f"not act along the columns {short(columns)}, which hold categories"
        remedy = "pass widths of zero there, Value() or Areas"
        raise refusal("functionals", rule, functional, remedy)


def product_rule(functional: LinearFunctional, seen: Sequence[IntArray]) -> Terms | None:
    """The terms of a functional of a product: a factor, and a functional of each function. All
    functionals are in the numbering of all inputs. None if the functional does not separate.

    Averages separate if no two functions see the same averaged column. Slopes always do.

    :param seen: The columns that each function sees.
    """
    if isinstance(functional, Value):
        return [(1.0, (functional,) * len(seen))]
    if isinstance(functional, Average):
        moved = np.concatenate([_averaged(functional, columns) for columns in seen])
        is_shared = len(np.unique(moved)) < len(moved)
        return None if is_shared else [(1.0, (functional,) * len(seen))]
    if not isinstance(functional, Derivative):
        return None
    column, order = functional.column, functional.order
    ranges = [range(order + 1) if column in columns else range(1) for columns in seen]
    return [
        (
            math.factorial(order) / math.prod(map(math.factorial, orders)),
            tuple(Derivative(column, k) if k else Value() for k in orders),
        )
        for orders in itertools.product(*ranges)
        if sum(orders) == order
    ]


def _averaged(average: Average, columns: IntArray) -> IntArray:
    """The columns, among those that a function sees, along which an average moves."""
    seen = average.seen_by(columns)
    return columns[seen.is_averaged(len(columns))] if isinstance(seen, Average) else columns[:0]
