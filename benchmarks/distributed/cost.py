"""The cost of a training step on W workers, from steps of one worker and an assumed network.

The seconds of a step on B rows that W workers share are

    t(W, B) = a + b B / W + c(W)
    c(W)    = k 2 (W - 1) latency + 2 (W - 1) / W * bytes / bandwidth

a     what every worker repeats: Kuu and its factor, the KL divergence, the optimizer, overheads;
b     what each row costs;
c(W)  a ring all-reduce of the gradients: each worker sends 2 (W - 1) messages, one after the other,
      of the W-th part of the bytes. A step has k of them: one, of the number of rows, the loss and
      all gradients together (natural gradients have another).

a and b are fitted to the steps of one worker at several B by least squares of the relative errors;
neither is negative. Assumed are workers as quick as the core measured, each with a core, caches and
memory of its own, and the same link to its neighbours whatever W is. Left out: that the slowest
worker sets the pace, computing while waiting for the network, and what each worker does for rows
of others (it draws the order of all rows of a batch and takes its part).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

ITEM_BYTES = 8  # float64
SCALARS = 2  # that are reduced beside the gradients: the number of rows and the loss
PREDICTED_WORKERS = (2, 8, 64)


@dataclass(frozen=True)
class Network:
    """The network that is assumed.

    :param bandwidth: bits per second of each worker's link, in either direction.
    :param latency: seconds from the start of a message until the next worker has it.
    :param all_reduces: the number of all-reduces of a step, one after the other.
    """

    bandwidth: float = 10e9
    latency: float = 50e-6
    all_reduces: int = 1

    def seconds(self, workers: int, num_bytes: float) -> float:
        """The seconds of the all-reduces of a step."""
        waiting = self.all_reduces * 2 * (workers - 1) * self.latency
        return waiting + 8.0 * ring_bytes(workers, num_bytes) / self.bandwidth


@dataclass(frozen=True)
class StepCost:
    """The cost of a step on one worker.

    :param fixed: the seconds of a step that do not depend on its rows.
    :param per_row: the seconds for each row.
    """

    fixed: float
    per_row: float

    @classmethod
    def fit(cls, rows: Sequence[int], seconds: Sequence[float]) -> StepCost:
        """
        :param rows: of the steps of one worker, with the seconds that they took.
        :raises ValueError: with fewer than two different numbers of rows.
        """
        if len(set(rows)) < 2:
            raise ValueError(f"rows is {list(rows)}: two different numbers are needed")
        measured = np.asarray(seconds, dtype=np.float64)
        columns = np.stack([np.ones(len(measured)), np.asarray(rows, dtype=np.float64)], axis=1)
        scale = columns[:, 1].max()  # columns of like size: the problem is well conditioned
        columns[:, 1] /= scale
        (fixed, per_scale), _ = nnls(columns / measured[:, None], np.ones(len(measured)))
        return cls(float(fixed), float(per_scale / scale))

    def seconds(self, rows: float) -> float:
        """The seconds of a step on the rows of one worker, without the network."""
        return self.fixed + self.per_row * rows


@dataclass(frozen=True)
class Scaling:
    """What a number of workers reaches.

    :param speedup: the rows a second, relative to those of one worker.
    :param workers: the number of workers.
    """

    speedup: float
    workers: int

    @property
    def efficiency(self) -> float:
        return self.speedup / self.workers

    def __str__(self) -> str:
        return f"{self.speedup:.2f} ({self.efficiency:.0%})"


def reduced_bytes(numbers: int) -> int:
    """The bytes that enter the all-reduces of a step: those of the gradients and the scalars."""
    return ITEM_BYTES * (numbers + SCALARS)


def ring_bytes(workers: int, num_bytes: float) -> float:
    """The bytes that each worker sends in a ring all-reduce of `num_bytes` on each."""
    return 2.0 * (workers - 1) / workers * num_bytes


def strong_scaling(
    cost: StepCost, network: Network, workers: int, rows: int, num_bytes: float
) -> Scaling:
    """The same batch of `rows` shared by all workers."""
    together = cost.seconds(rows / workers) + network.seconds(workers, num_bytes)
    return Scaling(cost.seconds(rows) / together, workers)


def weak_scaling(
    cost: StepCost, network: Network, workers: int, rows: int, num_bytes: float
) -> Scaling:
    """A batch of `rows` for each worker."""
    alone = cost.seconds(rows)
    together = alone + network.seconds(workers, num_bytes)
    return Scaling(workers * alone / together, workers)
