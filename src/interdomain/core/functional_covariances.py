"""Covariances between linear functionals of f, under any prior of one output.

Slopes are exact under GPflow's stationary kernels, their sums and their products. Averages are
exact if each stationary kernel is averaged in one column at most, and always under a squared
exponential. Other averages are sums over weighted points
(:meth:`interdomain.core.averages.Average.points`). These are the points of the default features,
so that all covariances of a model fit each other.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeAlias, cast

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Product, Sum
from gpflow.kernels.stationaries import IsotropicStationary

from .._arguments import refusal
from ..linalg.chunks import map_rows
from .areas import Areas
from .averages import Average
from .columns import as_rows, select_columns
from .decomposed import DecomposedKernel
from .functional_rows import FunctionalRows
from .functionals import ByDegree, LinearFunctional, Places, Value
from .lag_rules import EVALUATIONS
from .linear_functionals import is_linear, linear_features
from .product_rule import columns_seen, product_rule
from .stationary_functionals import averaged, is_exact, stationary_covariance

_ENTRIES = 2**23
"""The count of kernel values that are in memory at the same time."""

_SEVERAL = 1_000
"""The number of rows that is assumed if it is not known before the graph runs."""

Two: TypeAlias = tuple[LinearFunctional, LinearFunctional]


def covariances(
    prior: Kernel, rows: FunctionalRows, X: TensorType, X2: TensorType | None
) -> tf.Tensor:
    """The covariances of rows ``[..., N, D]`` with X2, or with each other.

    :raises ValueError: If the prior does not support the functionals.
    """
    X = tf.convert_to_tensor(X)
    if X2 is not None:
        X2 = tf.convert_to_tensor(X2)
        matrix = _matrix(prior, rows, as_rows(X), as_rows(X2))
        return tf.reshape(matrix, tf.concat([tf.shape(X)[:-1], tf.shape(X2)[:-1]], axis=0))
    if X.shape.rank == 2:
        return _symmetric(prior, rows, X)
    batches = tf.reshape(X, tf.concat([[-1], tf.shape(X)[-2:]], axis=0))
    batches = tf.ensure_shape(batches, [None, *X.shape[-2:]])
    matrices = map_rows(lambda part: _symmetric(prior, rows, part[0])[None], batches, [], 1)
    return tf.reshape(matrices, tf.concat([tf.shape(X)[:-1], tf.shape(X)[-2:-1]], axis=0))


def _symmetric(prior: Kernel, rows: FunctionalRows, X: tf.Tensor) -> tf.Tensor:
    matrix = _matrix(prior, rows, X, X)
    return (matrix + tf.linalg.matrix_transpose(matrix)) / 2


def _matrix(prior: Kernel, rows: FunctionalRows, X: tf.Tensor, X2: tf.Tensor) -> tf.Tensor:
    """The covariances of the rows of each functional with those of each other functional."""

    def of_kind(number: int, places: Places) -> tf.Tensor:
        def with_kind(number2: int, places2: Places) -> tf.Tensor:
            terms = _terms(rows.functionals[number], rows.functionals[number2])
            values = [weight * _in_parts(prior, two, places, places2) for weight, two in terms]
            return tf.transpose(tf.add_n(values))

        return tf.transpose(rows.by_kind(X2, with_kind))

    return rows.by_kind(X, of_kind)


def variances(prior: Kernel, rows: FunctionalRows, X: TensorType) -> tf.Tensor:
    """The variances of rows, ``[..., N]``; for the errors see :func:`covariances`."""
    X = tf.convert_to_tensor(X)

    def of_kind(number: int, places: Places) -> tf.Tensor:
        functional = rows.functionals[number]
        terms = _terms(functional, functional)

        def total(some: Places) -> tf.Tensor:
            values = [weight * _in_parts(prior, two, some, None) for weight, two in terms]
            return tf.add_n(values)[:, None]

        if not isinstance(functional, Areas):
            return total(places)
        regions, region_of_rows = tf.unique(functional.numbers(places.inputs))
        each = tf.range(tf.size(region_of_rows))
        first = tf.math.unsorted_segment_min(each, region_of_rows, tf.size(regions))
        return tf.gather(total(places.at(first)), region_of_rows)

    return tf.reshape(rows.by_kind(as_rows(X), of_kind), tf.shape(X)[:-1])


def _terms(first: LinearFunctional, second: LinearFunctional) -> list[tuple[float, Two]]:
    return [(a * b, (one, other)) for a, one in first.terms for b, other in second.terms]


def point_covariances(
    kernel: Kernel, Z: TensorType, functional: LinearFunctional, places: Places
) -> tf.Tensor | None:
    """The covariances of values at Z with a functional at places, ``[M, n]``; None if they have no
    closed form."""
    if isinstance(functional, (Areas, ByDegree)) or not _is_known(kernel):
        return None
    Z = tf.convert_to_tensor(Z)
    return tf.transpose(_in_parts(kernel, (functional, Value()), places, Places(Z, Z)))


def _is_known(kernel: Any) -> bool:
    """Whether slopes and averages of the kernel have closed forms."""
    if isinstance(kernel, (Sum, Product)):
        return all(map(_is_known, kernel.kernels))
    return isinstance(kernel, IsotropicStationary) or is_linear(kernel)


def _in_parts(kernel: Kernel, two: Two, first: Places, second: Places | None) -> tf.Tensor:
    """The result of :func:`covariance`, a few rows at a time."""
    width = int(first.inputs.shape[1])
    each = _cost(two, width)
    if second is None and any(isinstance(part, Areas) for part in two):
        return _row_by_row(kernel, two, first)
    if each == 1:
        return covariance(kernel, two, first, second)

    def part(rows: tf.Tensor, *others: tf.Tensor) -> tf.Tensor:
        some = Places(rows[:, :width], rows[:, width:])
        return covariance(kernel, two, some, Places(*others) if others else None)

    if second is None:
        return map_rows(part, tf.concat(first, axis=1), [], max(1, _ENTRIES // (4 * each)))
    each *= second.inputs.shape[0] or _SEVERAL
    return map_rows(part, tf.concat(first, axis=1), list(second), max(1, _ENTRIES // each))


def _cost(two: Two, num_inputs: int) -> int:
    """A count of the kernel values for a covariance of two functionals."""
    columns = [averaged(part, num_inputs) for part in two]
    together = len(columns[0] | columns[1])
    if not together:
        return 1
    counts = [
        cast(Average, part).num_points ** len(moved) if moved else 1
        for part, moved in zip(two, columns, strict=True)
    ]
    is_nested = together == 2 and all(len(moved) == 1 for moved in columns)
    return max(EVALUATIONS ** (2 if is_nested else 1), counts[0] * counts[1])


def covariance(kernel: Any, two: Two, first: Places, second: Places | None) -> tf.Tensor:
    """The covariances of two functionals, ``[n, n2]``; of both at the same rows, ``[n]``, if
    ``second`` is None. Only the first form supports areas.

    :raises ValueError: If the kernel does not support the functionals.
    """
    if any(isinstance(part, Areas) for part in two):
        return _of_areas(kernel, two, first, cast(Places, second))
    if all(isinstance(part, Value) for part in two):
        return _of_values(kernel, first, second)
    if isinstance(kernel, (Sum, DecomposedKernel)):
        return tf.add_n([covariance(part, two, first, second) for part in kernel.kernels])
    if isinstance(kernel, Product):
        columns_of = [columns_seen(part, first.inputs) for part in kernel.kernels]
        rules = [product_rule(part, columns_of) for part in two]
        if None not in rules:
            return _of_products(kernel.kernels, rules, first, second)
    if is_linear(kernel):
        left, right = (
            linear_features(kernel, part, places)
            for part, places in zip(two, (first, second or first), strict=True)
        )
        if second is None:
            return tf.reduce_sum(left * right, axis=0)
        return tf.matmul(left, right, transpose_a=True)
    columns = columns_seen(kernel, first.inputs)
    acting = [seen for part in two if (seen := part.seen_by(columns)) is not None]
    if len(acting) < 2:
        return _zeros(first, second)
    is_stationary = isinstance(kernel, IsotropicStationary)
    exact = [is_stationary and is_exact(kernel, part, len(columns)) for part in acting]
    if all(exact):
        at = first._replace(inputs=select_columns(kernel, first.inputs))
        at2 = second and second._replace(inputs=select_columns(kernel, second.inputs))
        return stationary_covariance(kernel, (acting[0], acting[1]), at, at2)
    one, other = (
        seen if isinstance(seen, Value) else part for seen, part in zip(acting, two, strict=True)
    )
    if second is None and exact[0] != exact[1]:
        return _row_by_row(kernel, (one, other), first)
    if second is not None and exact[0] and not exact[1]:
        return tf.transpose(_of_points(kernel, (other, one), second, first))
    return _of_points(kernel, (one, other), first, second)


def _of_values(kernel: Kernel, first: Places, second: Places | None) -> tf.Tensor:
    if second is None:
        return kernel(first.inputs, full_cov=False)
    return kernel(first.inputs, second.inputs)


def _zeros(first: Places, second: Places | None) -> tf.Tensor:
    sizes = [tf.shape(places.inputs)[0] for places in (first, second) if places is not None]
    return tf.zeros(sizes, first.inputs.dtype)


def _of_products(
    kernels: Sequence[Kernel], rules: Sequence[Any], first: Places, second: Places | None
) -> tf.Tensor:
    """The covariances under a product of kernels, by the terms of the product rule."""
    values = [
        weight
        * weight2
        * reduce(
            operator.mul,
            [
                covariance(part, (one, other), first, second)
                for part, one, other in zip(kernels, parts, parts2, strict=True)
            ],
        )
        for weight, parts in rules[0]
        for weight2, parts2 in rules[1]
    ]
    return tf.add_n(values) if values else _zeros(first, second)


def _of_areas(kernel: Kernel, two: Two, first: Places, second: Places) -> tf.Tensor:
    """The covariances if a functional is of areas: sums over values at the points of regions."""
    if not isinstance(two[0], Areas):
        return tf.transpose(_of_areas(kernel, (two[1], two[0]), second, first))
    points, total = two[0].at_points(first.inputs)
    return total(_in_parts(kernel, (Value(), two[1]), Places(points, points), second))


def _of_points(kernel: Kernel, two: Two, first: Places, second: Places | None) -> tf.Tensor:
    """The covariances if an average is a sum over weighted points."""
    if all(isinstance(part, Value) for part in two):
        return _of_values(kernel, first, second)
    if not any(isinstance(part, Average) for part in two):
        part = two[0] if isinstance(two[1], Value) else two[1]
        raise refusal(
            "functionals",
            f"be known under the prior, which has no closed form with {type(kernel).__name__}",
            part,
            "pass Functional(FiniteRank(prior, features), functionals), or values and means",
        )
    if second is None:
        return _of_same_points(kernel, two, first)
    if not isinstance(two[0], Average):
        return tf.transpose(_of_points(kernel, (two[1], two[0]), second, first))
    points, weights = two[0].points(first)
    flat = tf.reshape(points, [-1, points.shape[-1]])
    values = covariance(kernel, (Value(), two[1]), Places(flat, flat), second)
    values = tf.reshape(values, [-1, len(weights), tf.shape(values)[1]])
    return tf.einsum("nqm,q->nm", values, tf.constant(weights, values.dtype))


def _row_by_row(kernel: Kernel, two: Two, places: Places) -> tf.Tensor:
    """The covariances of two functionals of the same rows, from matrices of single rows."""
    width = int(places.inputs.shape[1])

    def of_row(row: tf.Tensor) -> tf.Tensor:
        one = Places(row[:, :width], row[:, width:])
        return covariance(kernel, two, one, one)[:, 0]

    return map_rows(of_row, tf.concat(places, axis=1), [], 1)


def _of_same_points(kernel: Kernel, two: Two, places: Places) -> tf.Tensor:
    """The covariances of averages or values of the same rows."""
    if not all(isinstance(part, (Average, Value)) for part in two):
        return _row_by_row(kernel, two, places)
    parts = [
        part.points(places) if isinstance(part, Average) else (places.inputs[:, None], [1.0])
        for part in two
    ]
    size = len(parts[0][1])
    values = kernel(tf.concat([points for points, _ in parts], axis=1))[:, :size, size:]
    factors = [tf.constant(weights, values.dtype) for _, weights in parts]
    return tf.einsum("nqr,q,r->n", values, *factors)
