"""A pass over rows: the sums of batches, and the statistics of all rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array
from .features import Features
from .row_batches import RowsInBatches
from .statistics import SufficientStatistics


def total_over(
    batches: Iterable[tuple[Array, ...]], function: Callable[..., Mapping[str, Any]]
) -> dict[str, Array]:
    """The sums over batches of the arrays or tensors that a function of a batch returns by name."""
    total: dict[str, Array] = {}
    for batch in batches:
        for name, part in function(*batch).items():
            array = np.asarray(part)
            if name in total:
                total[name] += array
            else:
                total[name] = array.copy()
    return total


def joined(batches: Iterable[tuple[Array, ...]], size: int) -> Iterator[tuple[Array, ...]]:
    """Join batches to at least ``size`` rows each; the last batch may have fewer."""
    parts, count = list[tuple[Array, ...]](), 0
    for batch in batches:
        parts.append(batch)
        count += len(batch[0])
        if count >= size:
            yield _one(parts)
            parts, count = [], 0
    if parts:
        yield _one(parts)


def _one(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    return parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))


def statistics_of(rows: RowsInBatches, features: Features) -> SufficientStatistics:
    """The statistics of rows, in one pass over them.

    The pass runs eagerly, also while the caller is traced. It pauses the caller's gradient tapes,
    which would keep every batch.

    :raises ValueError: See :meth:`Rows.batches`; for rows outside of the domains of the features;
        if a feature of a row is not finite; for weights that the sums do not support.
    """
    sums, reference = features.sums, np.zeros(features.num_outputs)

    def batch_sums(X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        features.check(X)
        return features.batch(X, features.less(X, Y, reference), *more)

    with tf.init_scope():
        batches = joined(rows.batches(), sums.rows_at_once)
        first = next(batches, ())
        if first:
            reference, batches = features.reference(*first[:2]), itertools.chain([first], batches)
        total = features.total(total_over(batches, batch_sums))
        require_weights(features, first, total)
        if not all(np.all(np.isfinite(array)) for array in total.values()):
            raise ValueError(
                "kernel: the features of finite rows are NaN, infinite, or too large for squares; "
                "check the kernel's parameters and the scale of X."
            )
        parameters = features.values()
    described = features.description()
    return SufficientStatistics(rows.count(), total, described, parameters, reference)


def require_weights(features: Features, rows: tuple[Array, ...], total: Mapping[str, Any]) -> None:
    """:raises ValueError: If rows have weights, and the sums over the rows do not use them."""
    if len(rows) > len(features.signature()) and "log_weights" not in total:
        raise ValueError(
            f"noise_weights: found weights of rows, which {type(features.sums).__name__} leaves "
            "out of its sums; pass features of another structure, or rows without weights."
        )
