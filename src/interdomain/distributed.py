"""Sums over the worker processes of a ``tf.distribute`` strategy: :func:`all_reduce`.

Training on several workers is :func:`interdomain.fit` with a ``strategy``; for several
devices of one process, see ``devices=`` of :class:`interdomain.models.AdditiveSVGP`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from ._tracing import compiled

__all__ = ["all_reduce"]

Statistics = TypeVar("Statistics", bound=Any)


def all_reduce(statistics: Statistics, strategy: tf.distribute.Strategy) -> Statistics:
    """The sum of the statistics of all workers of a strategy, the same on each of them.

    Every worker takes the statistics of its own part of the rows, with a model of the same features
    and parameter values, and calls this. The sum is what one process would have found in all rows::

        local = make_model(rows_of_this_worker).statistics
        model = make_model(interdomain.distributed.all_reduce(local, strategy))

    :param statistics: :class:`interdomain.regression.SufficientStatistics` of this worker's rows.
    :param strategy: The strategy of all workers, such as a ``MultiWorkerMirroredStrategy``.
    :raises ValueError: If workers have statistics of different features.
    """
    key = statistics.checksum() % 2**20  # so that sums of squares are exact
    rows = np.array([statistics.num_rows, 1, key, key**2], np.float64)

    def of_replica(*arrays: tf.Tensor) -> list[tf.Tensor]:
        context = tf.distribute.get_replica_context()
        return [context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(a)) for a in arrays]

    run = compiled(lambda *arrays: strategy.run(of_replica, args=arrays))
    arrays = [tf.constant(array, tf.float64) for array in (rows, *statistics.sums.values())]
    of_replicas = run(*arrays)
    # All replicas of a worker have brought its sums.
    local = [strategy.experimental_local_results(array) for array in of_replicas]
    rows, *sums = (results[0].numpy() / len(results) for results in local)
    num_rows, workers, *keys = rows.tolist()
    if keys != [workers * key, workers * key**2]:
        raise ValueError(
            "statistics: workers have statistics of different features; give all models the same "
            "features and values of their parameters."
        )
    return dataclasses.replace(
        statistics,
        num_rows=int(num_rows),
        sums=dict(zip(statistics.sums, sums, strict=True)),
    )
