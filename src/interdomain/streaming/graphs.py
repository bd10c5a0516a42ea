"""Passes over the data from within compiled functions: sums, and the gradients of sums."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .._tracing import compiled, python_errors
from ..sphere._typing import Array
from .compensated import Accumulator, Sums
from .contributions import Contributions
from .first_pass import Tally, counted, no_rows
from .sources import RowSource

SignedSources = Sequence[tuple[RowSource, int]]
"""Sources of rows, each with 1 if its rows are added or -1 if they are taken away."""


def streamed_sums(
    contributions: Contributions,
    sources: SignedSources,
    keep: Callable[..., tuple[Array, Array, Array]],
    values: Sequence[tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The matrix ``[K, K]``, the diagonal's terms ``[T]`` and the number of rows, all in float64.

    Batches are read and their features computed in the graph. The sums are those of
    :class:`Accumulator`. They are kept in Python from batch to batch; the graph passes on a number
    under which to find them. That Python code must not call TensorFlow, or the two could wait for
    each other forever.

    If a feature is not finite, the sums are NaN.

    :param keep: Called with the sums and ``values``; what it returns is the result.
    :param values: Tensors whose values ``keep`` needs.
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
        number = _over_batches(contributions, source, step, number)
    sums = tf.numpy_function(finish, [number, *values], [tf.float64, tf.float64, tf.float64])
    gram, diagonal, num_rows = sums
    return gram, diagonal, num_rows


def streamed_gradients(
    contributions: Contributions,
    sources: SignedSources,
    gram_gradient: tf.Tensor,
    diagonal_gradient: tf.Tensor,
) -> list[tf.Tensor]:
    """Gradients with respect to the features' variables, from those with respect to the sums. The
    features of each batch are computed again and then discarded.

    :return: One gradient for each of ``contributions.variables``; zero if it is not trainable.
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
        sums = _over_batches(contributions, source, step, zeros)
        totals = tuple(total + sign * one for total, one in zip(totals, sums, strict=True))
    found = {id(v): total for v, total in zip(variables, totals, strict=True)}
    return [
        tf.cast(found[id(v)], v.dtype) if id(v) in found else tf.zeros(v.shape, v.dtype)
        for v in contributions.variables
    ]


class StreamedGradients:
    """:func:`streamed_gradients`, compiled, and kept while the rows and the trainable parameters
    are the same."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Compile again at the next use."""
        self._compiled: tuple[Any, Callable[..., Any]] | None = None

    def attached(
        self,
        contributions: Contributions,
        sources: Callable[[], SignedSources],
        version: int,
        gram: tf.Tensor,
        diagonal: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The two sums, with gradients to the features' variables.

        :param sources: returns the rows; called only where something is compiled.
        :param version: of the rows and the features.
        """
        key = (version, *contributions.trainable())
        if self._compiled is None or self._compiled[0] != key:
            rows = sources()
            # Traced once, also where gradients are taken eagerly.
            gradients = compiled(
                lambda *upstream: streamed_gradients(contributions, rows, *upstream)
            )
            self._compiled = key, gradients
        compiled_gradients = self._compiled[1]

        def streamed(*upstream: tf.Tensor) -> Any:
            with python_errors():
                return compiled_gradients(*upstream)

        @tf.custom_gradient
        def attach(*_: tf.Tensor) -> Any:
            return (tf.identity(gram), tf.identity(diagonal)), streamed

        gram, diagonal = attach(*[tf.convert_to_tensor(v) for v in contributions.variables])
        return gram, diagonal


def _over_batches(
    contributions: Contributions,
    source: RowSource,
    step: Callable[[Any, Any], Any],
    state: Any,
) -> Any:
    """Like ``Dataset.reduce``, as a loop in the graph. tf.data would prepare the function again at
    every call, which takes longer than thousands of rows do, and run it on one thread.

    The rows have to be where the features are made for; at the end they are compared with those of
    the first pass.
    """
    batches = iter(source.dataset())

    def checked(tally: Tally, X: Array, Y: Array) -> Tally:
        contributions.check(X)
        return counted(tally, X, Y)

    def body(batch: tf.experimental.Optional, tally: tf.Tensor, state: Any) -> Any:
        X, Y = batch.get_value()
        tally = tf.ensure_shape(tf.numpy_function(checked, [tally, X, Y], tf.uint64), [2])
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
    """Set the static shapes, which ``tf.numpy_function`` does not know."""
    return (
        tf.ensure_shape(gram, [contributions.num_stacked] * 2),
        tf.ensure_shape(diagonal, [contributions.num_terms]),
        tf.ensure_shape(num_rows, []),
    )
