"""Covariances of values, slopes and averages of f under a stationary kernel."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.kernels import SquaredExponential

from .averages import Average, Blur, Mean
from .functionals import Derivative, LinearFunctional, Places, Value
from .interval_integrals import antiderivative, are_long, mean_over_intervals
from .lag_rules import Error, lag_rule
from .radial import Lag, check_smooth, has_slopes, radial_derivative


def is_exact(kernel: Any, functional: LinearFunctional, num_inputs: int) -> bool:
    """Whether :func:`stationary_covariance` supports a functional, in the kernel's numbering.

    An average over several columns is exact only under a squared exponential, whose columns are
    separate factors.
    """
    if isinstance(functional, Derivative):
        check_smooth(kernel, functional)
        return has_slopes(kernel)
    is_one = isinstance(kernel, SquaredExponential) or len(averaged(functional, num_inputs)) < 2
    return isinstance(functional, (Blur, Mean, Value)) and is_one


def averaged(functional: LinearFunctional, num_inputs: int) -> set[int]:
    """The columns over which a functional averages."""
    if not isinstance(functional, Average):
        return set()
    return set(np.flatnonzero(functional.is_averaged(num_inputs)).tolist())


def stationary_covariance(
    kernel: Any,
    functionals: tuple[LinearFunctional, LinearFunctional],
    first: Places,
    second: Places | None,
) -> tf.Tensor:
    """The covariances ``[n, n2]`` of two functionals that :func:`is_exact` accepts; the covariances
    of both at the same rows, ``[n]``, if ``second`` is None.

    :param functionals: In the kernel's numbering of columns.
    :param first: The places of the first functional, whose inputs the kernel selected.
    """
    count, dtype = int(first.inputs.shape[1]), first.inputs.dtype
    if second is None:
        lags = [tf.zeros([1], dtype)] * count
        errors = [_errors(functionals[k], first, count) for k in (0, 1)]
        shape = tf.shape(first.inputs)[:1]
    else:
        pairs = zip(*(tf.unstack(side.inputs, axis=1) for side in (first, second)), strict=True)
        lags = [one[:, None] - other[None] for one, other in pairs]
        sides = zip(functionals, (first, second), (1, 0), strict=True)
        errors = [_errors(part, places, count, axis) for part, places, axis in sides]
        shape = tf.stack([tf.shape(first.inputs)[0], tf.shape(second.inputs)[0]])
    lengthscales = tf.unstack(tf.broadcast_to(kernel.lengthscales, [count]))
    orders = [
        [
            part.order if isinstance(part, Derivative) and part.column == k else 0
            for part in functionals
        ]
        for k in range(count)
    ]
    columns = [
        _Column(lags[k], lengthscales[k], [side[k] for side in errors if k in side], sum(orders[k]))
        for k in range(count)
    ]
    groups = [columns]
    if isinstance(kernel, SquaredExponential):  # a product of kernels of one column
        alone = [column for column in columns if column.errors]
        rest = [column for column in columns if not column.errors]
        groups = [*([column] for column in alone), *([rest] if rest else [])]
    sign = (-1.0) ** sum(order for _, order in orders)
    values = math.prod((_expectation(kernel, group) for group in groups), start=sign)
    return tf.broadcast_to(kernel.variance * values, shape)


class _Column:
    """A column of a kernel: lags, a lengthscale, errors of the rows, and the order of slopes."""

    def __init__(
        self, lag: tf.Tensor, scale: tf.Tensor, errors: Sequence[Error], order: int
    ) -> None:
        self.lag, self.scale, self.errors, self.order = lag, scale, errors, order


def _errors(
    functional: LinearFunctional, places: Places, count: int, axis: int | None = None
) -> dict[int, Error]:
    """The errors of rows in the columns of an average, each a vector, or along an axis of two."""
    if not isinstance(functional, Average):
        return {}
    scales = functional.scales(places)
    columns = {k: scales[:, k] for k in averaged(functional, count)}
    if axis is not None:
        columns = {k: tf.expand_dims(one, axis) for k, one in columns.items()}
    is_box = isinstance(functional, Mean)
    return {k: Error(width=s) if is_box else Error(deviation=s) for k, s in columns.items()}


def _expectation(kernel: Any, columns: Sequence[_Column]) -> tf.Tensor:
    """The expectation of the (derivative of the) kernel of variance one over the errors."""
    if len(columns) > 1 or not columns[0].errors:
        return _by_quadrature(kernel, columns)
    (column,) = columns
    if isinstance(kernel, SquaredExponential):  # a Gaussian error makes the lengthscale longer
        widths = [error for error in column.errors if error.width is not None]
        spread = [tf.square(e.deviation) for e in column.errors if e.deviation is not None]
        scale = tf.sqrt(reduce(operator.add, spread, tf.square(column.scale)))
        smoother = _Column(column.lag, scale, widths, column.order)
        values = _over_intervals(kernel, smoother) if widths else _by_quadrature(kernel, [smoother])
        return values * column.scale / scale
    return _over_intervals(kernel, column)


def _over_intervals(kernel: Any, column: _Column) -> tf.Tensor:
    """The expectation over uniform errors in one column, in closed form if it is known."""
    known = antiderivative(kernel, column.scale)
    widths = [error.width for error in column.errors if error.width is not None]
    by_quadrature = partial(_by_quadrature, kernel, [column])
    if known is None or len(widths) < len(column.errors):
        return by_quadrature()

    def differences() -> tf.Tensor:
        if not column.order:
            return mean_over_intervals(known, widths, column.lag)
        ends = [
            _Column(column.lag + sign * widths[0] / 2, column.scale, [], column.order - 1)
            for sign in (1, -1)
        ]
        upper, lower = (_by_quadrature(kernel, [end]) for end in ends)
        return (upper - lower) / widths[0]

    return tf.cond(are_long(known, widths), differences, by_quadrature)


def _by_quadrature(kernel: Any, columns: Sequence[_Column]) -> tf.Tensor:
    steps = [column.lag for column in columns]
    weights: list[tf.Tensor] = []
    for place, column in enumerate(columns):
        if column.errors:
            nodes, weight = _rule(column, len(weights), alone=len(columns) == 1)
            steps = [part[..., None] for part in steps]
            steps[place] = nodes
            weights = [*(part[..., None] for part in weights), weight]
    lags = [
        Lag(step / column.scale, column.scale, column.order)
        for step, column in zip(steps, columns, strict=True)
    ]
    squares = reduce(operator.add, [tf.square(lag.steps) for lag in lags])
    values = reduce(operator.mul, weights, radial_derivative(kernel, squares, lags))
    for _ in weights:
        values = tf.reduce_sum(values, axis=-1)
    return values


def _rule(column: _Column, depth: int, *, alone: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """The rule of a column, after ``depth`` axes of the nodes of other columns."""
    nodes, weights = lag_rule(column.errors, column.lag, column.scale, alone=alone)
    for _ in range(depth):
        nodes, weights = (tf.expand_dims(part, -2) for part in (nodes, weights))
    return nodes, weights
