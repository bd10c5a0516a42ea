"""Functions of many rows, computed a few rows at a time: bounded memory, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from .._tracing import compiled, is_recorded, unconverted

CHUNK_ENTRIES = 2**18
"""The number of values in memory at the same time: as many as fit in a processor's cache."""

_PARALLEL_CHUNKS = 4
"""The most chunks that may be computed at once; each has its own intermediate results."""

_FEW_CHUNKS = 16
"""So many chunks are computed eagerly; for more, compiling takes less time than it saves."""


def rows_per_chunk(entries_per_row: int) -> int:
    """The number of rows to compute at a time, if each row needs ``entries_per_row`` numbers."""
    return max(1, CHUNK_ENTRIES // max(1, entries_per_row))


def map_rows(
    function: Callable[..., tf.Tensor],
    rows: tf.Tensor,
    shared: Sequence[tf.Tensor],
    chunk: int,
    gradient_of: Callable[..., Sequence[tf.Tensor]] | None = None,
) -> tf.Tensor:
    """``function(rows, *shared)``, computed for ``chunk`` rows at a time.

    The gradient computes each chunk again and keeps no intermediate results. It reaches the rows,
    the shared tensors and the variables that the function reads, and no other tensor.

    :param function: A function of each row by itself, from ``[n, ...]`` to ``[n, ...]``, for any n.
    :param rows: ``[N, ...]``.
    :param shared: Tensors that all rows use.
    :param chunk: The number of rows to compute at a time.
    :param gradient_of: The gradient of the function, TensorFlow's by default. It maps the gradient
        of the values, the rows and the shared tensors to the gradients of the rows and each shared
        tensor.
    """
    if rows.shape[0] is not None and rows.shape[0] <= chunk:
        if gradient_of is None:
            return function(rows, *shared)

        def with_gradient(*inputs: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
            return function(*inputs), lambda upstream: gradient_of(upstream, *inputs)

        return tf.custom_gradient(with_gradient)(rows, *shared)
    num_rows = tf.shape(rows)[0]
    chunks = into_chunks(rows, chunk)
    num_chunks = tf.shape(chunks)[0]

    @tf.custom_gradient
    def mapped(chunks: tf.Tensor, *shared: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
        def part_values(part: tf.Tensor) -> tf.Tensor:
            return function(part, *shared)

        values = map_chunks(part_values, chunks, chunks.dtype)

        def gradient(
            upstream: tf.Tensor, variables: Sequence[tf.Variable] | None = None
        ) -> tuple[Any, ...]:
            def body(i: tf.Tensor, parts: tf.TensorArray, totals: tuple[tf.Tensor, ...]) -> Any:
                # A tensor may be shared twice; its copies have separate gradients.
                inputs = [tf.identity(value) for value in (chunks[i], *shared)]
                if gradient_of is None:
                    with tf.GradientTape() as tape:
                        tape.watch(inputs)
                        values = function(*inputs)
                    sources = [*inputs, *(variables or ())]
                    first, *others = tape.gradient(values, sources, upstream[i], "zero")
                else:
                    first, *others = gradient_of(upstream[i], *inputs)
                summed = tuple(
                    total + tf.convert_to_tensor(other)
                    for total, other in zip(totals, others, strict=True)
                )
                return i + 1, parts.write(i, first), summed

            parts = tf.TensorArray(
                chunks.dtype, size=num_chunks, element_shape=chunks.shape[1:], infer_shape=False
            )
            zeros = tuple(tf.zeros_like(value) for value in (*shared, *(variables or ())))
            _, parts, totals = tf.while_loop(
                lambda i, *_: i < num_chunks,
                body,
                (tf.constant(0), parts, zeros),
                parallel_iterations=_PARALLEL_CHUNKS,
                maximum_iterations=num_chunks,
            )
            to_tensors = (parts.stack(), *totals[: len(shared)])
            return to_tensors if variables is None else (to_tensors, list(totals[len(shared) :]))

        return values, gradient

    return from_chunks(compiled_if_many(mapped, chunks, 1)(chunks, *shared), num_rows)


def map_chunks(function: Callable[[Any], Any], chunks: Any, dtypes: Any) -> Any:
    """``tf.map_fn`` over chunks, with a bound on the number of chunks that run at once."""
    return tf.map_fn(
        unconverted(function),
        chunks,
        fn_output_signature=dtypes,
        # An eager map_fn runs one at a time, and warns if more are requested.
        parallel_iterations=None if tf.executing_eagerly() else _PARALLEL_CHUNKS,
    )


def compiled_if_many(
    function: Callable[..., tf.Tensor], rows: tf.Tensor, chunk: int
) -> Callable[..., tf.Tensor]:
    """The function, which eager calls compile if it loops over many chunks of rows and no tape
    records it. A graph is faster for each chunk, and omits what only gradients need."""
    if not tf.executing_eagerly() or rows.shape[0] <= _FEW_CHUNKS * chunk or is_recorded():
        return function
    made: Callable[..., tf.Tensor] = compiled(function)
    return made


def into_chunks(rows: tf.Tensor, chunk: int) -> tf.Tensor:
    """The rows ``[N, ...]`` as chunks of equal size, ``[chunks, n, ...]`` with n <= chunk. Copies
    of the last row fill the last chunk."""
    if chunk == 1:
        return rows[:, None]
    num_rows = rows.shape[0] if rows.shape[0] is not None else tf.shape(rows)[0]
    num_chunks = -(-num_rows // chunk)
    # At least one chunk, also for no rows.
    num_chunks = tf.maximum(num_chunks, 1) if tf.is_tensor(num_chunks) else max(num_chunks, 1)
    size = -(-num_rows // num_chunks)
    # The last row is repeated: zeros may be outside of the domain of a kernel's gradient.
    missing = num_chunks * size - num_rows
    repeats = tf.concat([[missing], tf.ones([rows.shape.rank - 1], tf.int32)], axis=0)
    filled = tf.concat([rows, tf.tile(rows[-1:], repeats)], axis=0)
    shape = tf.concat([[num_chunks, size], tf.shape(rows)[1:]], axis=0)
    return tf.ensure_shape(
        tf.reshape(filled, shape), [None, None if tf.is_tensor(size) else size, *rows.shape[1:]]
    )


def from_chunks(values: tf.Tensor, num_rows: tf.Tensor | int) -> tf.Tensor:
    """The rows ``[num_rows, ...]`` of chunks ``[chunks, n, ...]``, without the last row's
    copies."""
    shape = tf.shape(values)
    # A shape with -1 would fail for no rows.
    flat = tf.reshape(values, tf.concat([[shape[0] * shape[1]], shape[2:]], axis=0))
    return flat[:num_rows]
