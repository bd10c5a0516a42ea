"""Chosen spherical harmonics, without the other harmonics of their degrees.

A harmonic is a product of factors, one for each coordinate ``x_j`` that raises the degree. If the
degree rises from k to k + a, the factor depends only on ``(j, k, a)``. It is a polynomial in
``x_j`` and ``r_j^2``,

    p_a = first x_j p_{a-1} - second r_j^2 p_{a-2},     r_j^2 = x_1^2 + ... + x_j^2,

with the numbers of :func:`.harmonics.raise_factors`. The first two coordinates give the real and
imaginary parts of ``(x_1 + i x_2)^k``. Many harmonics share few different factors, and a harmonic
without its last factor is a harmonic of lower degree. So the factors are computed once, and each
harmonic by **one** multiplication of a factor and a harmonic. Harmonics with one factor come first,
then those with two, and so on. The cost depends only on the chosen harmonics and the harmonics that
they are multiples of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from ...._arguments import Array, IntArray
from ...._tracing import compiled, has_plain_operations, is_operation_by_operation
from .dimensions import raises_of
from .harmonics import planar_norms, raise_factors

Factor = tuple[int, int, int]
"""A tuple (j, k, a): coordinate j raises the degree from k to k + a. If j = 2, a has k_2's sign."""


@dataclass(frozen=True)
class _Plan:
    """The computation of some harmonics.

    The recurrences (j, k), for j > 2, are sorted by their largest a, in decreasing order. So the
    recurrences that continue at a step are a prefix.

    :ivar planar: For k = 1, 2, ..., the norm of the factors of the first two coordinates.
    :ivar axes: The index j - 1 of the coordinate of each of R recurrences (j, k), ``[R]``.
    :ivar steps: For a = 1, 2, ...: the coefficients of ``x_j p_{a-1}`` and ``r_j^2 p_{a-2}``,
        ``[number of recurrences that continue, 1]`` each.
    :ivar rounds: For each round, two rows for each harmonic: that of its last factor, and that of
        the harmonic of the previous round by which it is multiplied.
    :ivar order: The positions of the chosen harmonics in all rounds together; None if equal.
    """

    planar: Array
    axes: IntArray
    steps: list[tuple[Array, Array]]
    rounds: tuple[tuple[IntArray, IntArray], ...]
    order: IntArray | None

    @property
    def counts(self) -> list[int]:
        """The number of harmonics of each round; the first round is only the constant."""
        return [1, *(len(factors) for factors, _ in self.rounds)]


def product_order(chains: IntArray) -> IntArray:
    """The order in which chosen harmonics are cheapest: sorted by their number of factors."""
    raises = raises_of(chains)
    keys = np.column_stack([np.count_nonzero(raises, axis=1), np.abs(raises).sum(axis=1), raises])
    return np.asarray(np.lexsort(keys.T[::-1]))


def _plan(dimension: int, chains: IntArray) -> _Plan:
    rows: dict[tuple[int, ...], tuple[int, int]] = {(0,) * (dimension - 1): (0, 0)}
    rounds: list[list[tuple[Factor, int]]] = []

    def row_of(raises: tuple[int, ...]) -> tuple[int, int]:
        """The round of a harmonic, and its row in the round."""
        place = rows.get(raises)
        if place is None:
            last = max(np.flatnonzero(raises))
            rest = (*raises[:last], *(0,) * (dimension - 1 - last))
            number, row = row_of(rest)
            if number == len(rounds):
                rounds.append([])
            factor = (int(last) + 2, sum(map(abs, rest)), raises[last])
            place = rows[raises] = (number + 1, len(rounds[number]))
            rounds[number].append((factor, row))
        return place

    places = [row_of(tuple(raises)) for raises in raises_of(chains).tolist()]
    wanted = {factor for part in rounds for factor, _ in part}
    planar, axes, steps, row_of_factor = _factors(dimension, wanted)
    starts = np.cumsum([0, 1, *map(len, rounds)])
    order = np.array([starts[number] + row for number, row in places])
    pairs = [np.array([(row_of_factor[factor], row) for factor, row in part]).T for part in rounds]
    is_all = np.array_equal(order, np.arange(starts[-1]))
    products = tuple((factors, rests) for factors, rests in pairs)
    return _Plan(planar, axes, steps, products, None if is_all else order)


def _factors(
    dimension: int, wanted: set[Factor]
) -> tuple[Array, IntArray, list[tuple[Array, Array]], dict[Factor, int]]:
    """The recurrences of factors, including all lower factors, and the row of each factor."""
    turns = max((abs(a) for j, _, a in wanted if j == 2), default=0)
    signed = [sign * k for k in range(1, turns + 1) for sign in (1, -1)]
    rows = {(2, 0, a): row for row, a in enumerate(signed)}
    ends: dict[tuple[int, int], int] = {}
    for j, k, a in wanted:
        if j > 2:
            ends[j, k] = max(ends.get((j, k), 0), a)
    pairs = sorted(ends, key=lambda pair: (-ends[pair], pair))
    steps = []
    for a in range(1, max(ends.values(), default=0) + 1):
        going_on = [pair for pair in pairs if ends[pair] >= a]
        axes, degrees = np.array(going_on).T
        first, second = raise_factors(dimension, axes, degrees, a)
        steps.append((first[:, None], second[:, None]))
        rows |= {(j, k, a): len(rows) + row for row, (j, k) in enumerate(going_on)}
    axes = np.array([j - 1 for j, _ in pairs], np.int64)
    return planar_norms(dimension, turns), axes, steps, rows


def _evaluate_factors(plan: _Plan, x: tf.Tensor) -> tf.Tensor:
    """All factors at x ``[d, n]``, as the rows of one matrix."""
    tables = []
    if len(plan.planar):
        # The real and imaginary parts of ``(x_1 + i x_2)^k`` for k = 1, 2, ..., times the norms.
        # Powers are multiplied by the last power, so that each pass doubles their number.
        re, im = x[:1], x[1:2]
        while (count := re.shape[0]) < len(plan.planar):
            more = min(count, len(plan.planar) - count)
            a, b, last_re, last_im = re[:more], im[:more], re[-1:], im[-1:]
            re = tf.concat([re, a * last_re - b * last_im], axis=0)
            im = tf.concat([im, a * last_im + b * last_re], axis=0)
        pairs = tf.stack([re, im], axis=1) * tf.constant(plan.planar, x.dtype)[:, None, None]
        tables.append(tf.reshape(pairs, [2 * len(plan.planar), tf.shape(x)[1]]))
    if plan.steps:
        x_j = tf.gather(x, plan.axes)
        r2_j = tf.gather(tf.cumsum(tf.square(x), axis=0), plan.axes)
        before, last = x_j, tf.ones_like(x_j)
        for first, second in plan.steps:
            count = len(first)
            factor, correction = tf.constant(first, x.dtype), tf.constant(second, x.dtype)
            after = factor * (x_j[:count] * last[:count])
            if np.any(second):
                after -= correction * (r2_j[:count] * before[:count])
            before, last = last, after
            tables.append(after)
    return tf.concat(tables, axis=0)


def _multiply(
    plan: _Plan, factors: tf.Tensor, scale: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """The chosen harmonics, times ``scale``, and their gradient function."""
    rounds = [scale]
    for rows, rests in plan.rounds:
        rounds.append(tf.gather(factors, rows) * _rest(rounds[-1], rests))
    computed = tf.concat(rounds, axis=0)
    harmonics = computed if plan.order is None else tf.gather(computed, plan.order)

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if plan.order is not None:
            upstream = tf.math.unsorted_segment_sum(upstream, plan.order, sum(plan.counts))
        parts = tf.split(upstream, plan.counts, axis=0)
        factor_gradient = tf.zeros_like(factors)
        for number in range(len(plan.rounds), 0, -1):
            rows, rests = plan.rounds[number - 1]
            part, before, sums = parts[number], rounds[number - 1], tf.math.unsorted_segment_sum
            factor_gradient += sums(part * _rest(before, rests), rows, factors.shape[0])
            parts[number - 1] += sums(part * tf.gather(factors, rows), rests, before.shape[0])
        return factor_gradient, parts[0]

    return harmonics, gradient


def _rest(harmonics: tf.Tensor, rows: IntArray) -> tf.Tensor:
    """Some rows of the harmonics; the single row of the first round is returned unchanged."""
    return harmonics if harmonics.shape[0] == 1 else tf.gather(harmonics, rows)


@lru_cache(maxsize=128)
def _plan_of(dimension: int, chains: bytes) -> Any:
    return _plan(dimension, np.frombuffer(chains, np.int64).reshape([-1, dimension - 1]))


@lru_cache(maxsize=128)
def _compiled(dimension: int, chains: bytes, dtype: tf.DType) -> Any:
    """One traced function per (dimension, chains, dtype): ``[d, n]``, ``[1, n]`` to ``[M, n]``."""
    plan = _plan_of(dimension, chains)
    multiply = tf.custom_gradient(lambda *inputs: _multiply(plan, *inputs))

    def evaluate(x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
        if not plan.rounds:
            return scale
        return multiply(_evaluate_factors(plan, x), scale)

    signature = [tf.TensorSpec([dimension, None], dtype), tf.TensorSpec([1, None], dtype)]
    return compiled(evaluate, input_signature=signature)


@check_shapes(
    "X: [batch..., N, d]", "chains: [M, e]", "scale: [batch..., N]", "return: [M, batch..., N]"
)
def chosen_harmonics(
    X: tf.Tensor, chains: IntArray, *, scale: tf.Tensor | None = None
) -> tf.Tensor:
    """The chosen harmonics of :func:`.harmonics.spherical_harmonics`, in any order.

    :param X: Unit vectors; d is the last dimension, statically known. Outside the sphere, the
        harmonics are continued as homogeneous polynomials.
    :param chains: Valid chains of degrees ``[M, d - 1]``; see :mod:`.dimensions`.
    :param scale: A factor for each point, which multiplies all its harmonics.
    :return: One row for each harmonic, as in ``Kuf``.
    """
    X = tf.convert_to_tensor(X)
    dimension = X.shape[-1]
    flat = X if X.shape.rank == 2 else tf.reshape(X, [-1, dimension])
    scale = tf.ones_like(flat[:, 0]) if scale is None else tf.reshape(scale, [-1])
    key, inputs = chains.astype(np.int64).tobytes(), (tf.transpose(flat), scale[None])
    if has_plain_operations():
        plan = _plan_of(dimension, key)
        factors = _evaluate_factors(plan, inputs[0]) if plan.rounds else None
        rows = scale[None] if factors is None else _multiply(plan, factors, scale[None])[0]
    else:
        evaluate = _compiled(dimension, key, X.dtype)
        rows = (evaluate.python_function if is_operation_by_operation() else evaluate)(*inputs)
    return tf.reshape(rows, tf.concat([[rows.shape[0]], tf.shape(X)[:-1]], axis=0))
