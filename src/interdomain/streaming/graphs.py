"""Passes over the data inside of compiled functions: statistics that are due, and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..sphere._typing import Array
from .compensated import Accumulator, Sums
from .contributions import Contributions
from .first_pass import Tally, counted, no_rows
from .sources import RowSource

SignedSources = Sequence[tuple[RowSource, int]]
"""Rows that are added (1) and taken away (-1)."""


def streamed_sums(
    contributions: Contributions,
    sources: SignedSources,
    keep: Callable[..., tuple[Array, Array, Array]],
    values: Sequence[tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The matrix ``[K, K]``, the diagonal's terms ``[T]`` and the number of rows, all in float64.

    Batches are read and their features computed in the graph. The sums are those of
    :class:`Accumulator`, kept in Python between batches under a number that is passed along; Python
    calls nothing of TensorFlow there, which could wait for a thread that waits for it.

    Features that are not finite make the sums NaN.

    :param keep: Called with the sums and the values; gives the result.
    :param values: What ``keep`` has to know besides.
    """
    running: dict[int, list[tuple[Accumulator, int]]] = {}
    failed: set[int] = set()
    numbers = itertools.count()

    def empty() -> Sums:
        return Sums.empty(contributions.num_stacked, contributions.num_terms)

    def start() -> int:
        number = next(numbers)
        running[number] = []
        return number

    def begin_source(number: int, sign: int) -> int:
        running[int(number)].append((Accumulator(empty()), int(sign)))
        return number

    def add(number: int, stacked: Array, terms: Array) -> int:
        accumulator, _ = running[int(number)][-1]
        if stacked.shape[1] and not accumulator.add(stacked, terms):
            failed.add(int(number))
        if accumulator.is_full:
            accumulator.end_block()
        return number

    def finish(number: int, *values: Array) -> tuple[Array, Array, Array]:
        total = empty()
        for accumulator, sign in running.pop(int(number)):
            total = total.plus(accumulator.end_block(), sign)
        if int(number) in failed:  # an optimiser that tried such values finds that they are none
            failed.discard(int(number))
            return np.full_like(total.gram.high, np.nan), total.diagonal.value, np.asarray(np.nan)
        return keep(total, *values)

    def step(number: tf.Tensor, batch: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return tf.numpy_function(add, [number, *contributions.stack(*batch)], tf.int64)

    number = tf.numpy_function(start, [], tf.int64)
    for source, sign in sources:
        number = tf.numpy_function(begin_source, [number, tf.constant(sign, tf.int64)], tf.int64)
        number = _over_batches(source, step, number)
    sums = tf.numpy_function(finish, [number, *values], [tf.float64, tf.float64, tf.float64])
    gram, diagonal, num_rows = sums
    return gram, diagonal, num_rows


def streamed_gradients(
    contributions: Contributions,
    sources: SignedSources,
    gram_gradient: tf.Tensor,
    diagonal_gradient: tf.Tensor,
) -> list[tf.Tensor]:
    """From the gradients to the sums, those to the features' variables; each batch of features is
    computed again, and forgotten.

    :return: One for each of ``features.variables``; zero for those that are not trainable.
    """
    variables = [v for v in contributions.variables if v.trainable]
    upstream = gram_gradient + tf.linalg.matrix_transpose(gram_gradient)

    def step(totals: tuple[tf.Tensor, ...], batch: tuple[tf.Tensor, tf.Tensor]) -> Any:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            stacked, terms = contributions.stack(*batch)
        from_gram = tf.matmul(tf.cast(upstream, stacked.dtype), stacked)
        from_terms = tf.cast(diagonal_gradient, terms.dtype)[:, None] * tf.ones_like(terms)
        gradients = tape.gradient(
            [stacked, terms],
            variables,
            output_gradients=[from_gram, from_terms],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return tuple(
            total + tf.cast(tf.convert_to_tensor(gradient), total.dtype)
            for total, gradient in zip(totals, gradients, strict=True)
        )

    totals = tuple(tf.zeros(v.shape, tf.float64) for v in variables)
    for source, sign in sources:
        zeros = tuple(tf.zeros_like(total) for total in totals)
        sums = _over_batches(source, step, zeros)
        totals = tuple(total + sign * one for total, one in zip(totals, sums, strict=True))
    found = {id(v): total for v, total in zip(variables, totals, strict=True)}
    return [
        tf.cast(found[id(v)], v.dtype) if id(v) in found else tf.zeros(v.shape, v.dtype)
        for v in contributions.variables
    ]


def _over_batches(source: RowSource, step: Callable[[Any, Any], Any], state: Any) -> Any:
    """``Dataset.reduce`` as a loop of the graph itself: tf.data would prepare the step anew at each
    call, which takes longer than thousands of rows, and run it on one thread.

    At the end the rows are compared with those of the first pass.
    """
    batches = iter(source.dataset())

    def body(batch: tf.experimental.Optional, tally: tf.Tensor, state: Any) -> Any:
        X, Y = batch.get_value()
        tally = tf.ensure_shape(tf.numpy_function(counted, [tally, X, Y], tf.uint64), [2])
        return batches.get_next_as_optional(), tally, step(state, (X, Y))

    def compare(tally: Tally) -> Tally:
        return source.first_pass.check(source.what, tally)

    _, tally, state = tf.while_loop(
        lambda batch, *_: batch.has_value(),
        body,
        (batches.get_next_as_optional(), tf.constant(no_rows()), state),
        parallel_iterations=1,
    )
    with tf.control_dependencies([tf.numpy_function(compare, [tally], tf.uint64)]):
        return tf.nest.map_structure(tf.identity, state)


def with_shapes(
    contributions: Contributions, gram: tf.Tensor, diagonal: tf.Tensor, num_rows: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The shapes that ``tf.numpy_function`` has forgotten."""
    return (
        tf.ensure_shape(gram, [contributions.num_stacked] * 2),
        tf.ensure_shape(diagonal, [contributions.num_terms]),
        tf.ensure_shape(num_rows, []),
    )
