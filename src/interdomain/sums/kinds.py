"""Sums over rows kept apart by the functionals of the rows, whose noise variances may differ.

Let s_b be the noise variance of the rows with functional b, and G_b the sum of products of features
over these rows. The
bound then has ``G = sum_b G_b / s_b`` for a noise variance of one, because a row of noise variance
s_b is a row of weight 1 / s_b. All s_b are therefore trained without another pass over the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array
from ..core.functional_rows import FunctionalRows
from .protocol import Sums

ROWS = "rows"
"""The name, among the sums, of the counts of rows with each functional, ``[F]``."""


def batch_by_kind(sums: Sums, kinds: FunctionalRows, *rows: Array) -> dict[str, Array]:
    """The sums of :meth:`.Sums.batch` over one batch, for the rows of each functional, ``[F,
    ...]``.

    :param rows: X, the targets, and weights if there are any.
    """
    numbers = kinds.kinds(rows[0])
    found = [
        sums.batch(*(part[rows_of] for part in rows)) if len(rows_of) else {} for rows_of in numbers
    ]
    some = next(part for part in found if part)
    zeros = {name: np.zeros_like(array) for name, array in some.items()}
    stacked = {name: np.stack([(part or zeros)[name] for part in found]) for name in some}
    return {**stacked, ROWS: np.array([len(k) for k in numbers], np.float64)}


def total_by_kind(sums: Sums, added: Mapping[str, Array]) -> dict[str, Array]:
    """The sums by the names of :meth:`.Sums.in_graph`, ``[F, ...]``, from the total of batches."""
    others = dict(added)
    counts = others.pop(ROWS)
    parts = [
        sums.total({name: array[kind] for name, array in others.items()})
        for kind in range(len(counts))
    ]
    return {name: np.stack([part[name] for part in parts]) for name in parts[0]} | {ROWS: counts}


def tensors_by_kind(sums: Sums, kinds: FunctionalRows, *rows: tf.Tensor) -> dict[str, tf.Tensor]:
    """The sums of :meth:`.Sums.tensors` for the rows of each functional, ``[F, ...]``."""
    numbers = kinds.split(rows[0])[1]
    assert numbers is not None
    parts, counts = [], []
    for kind in range(len(kinds.functionals)):
        places = tf.where(tf.equal(numbers, tf.cast(kind, numbers.dtype)))[:, 0]
        parts.append(sums.tensors(*(tf.gather(part, places) for part in rows)))
        counts.append(tf.cast(tf.size(places), tf.float64))
    stacked = {name: tf.stack([part[name] for part in parts]) for name in parts[0]}
    return {**stacked, ROWS: tf.stack(counts)}


def combined(sums: Mapping[str, tf.Tensor], noise_variances: tf.Tensor) -> dict[str, tf.Tensor]:
    """The sums over all rows, each with the inverse of its noise variance as a weight.

    :param sums: Sums by functional, with "num_rows" and "reference", which are for all rows.
    :param noise_variances: ``[F]``, in float64.
    """
    shared = {name: sums[name] for name in ("num_rows", "reference") if name in sums}
    others = {name: part for name, part in sums.items() if name not in shared}
    counts = others.pop(ROWS)
    log_weights: Any = tf.reduce_sum(others.pop("log_weights", tf.zeros([1], tf.float64)))
    added = {name: tf.tensordot(1 / noise_variances, part, 1) for name, part in others.items()}
    log_weights -= tf.reduce_sum(counts * tf.math.log(noise_variances))
    return {**added, **shared, "log_weights": log_weights}
