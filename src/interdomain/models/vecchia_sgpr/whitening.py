"""Rows that are whitened by their neighbours, and the sums over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from ..._arguments import Array, IntArray
from ..._progress import bar_of_rows
from ...core.pairs import structure_of
from ...sums.features import Features
from ...sums.whitened import WhitenedSums
from ..noise import noise_variance_of
from .local_kernel import LocalKernel, conditional_weights
from .search import Neighbours

_EARLY = 16
"""The number of rows divided by the number of rows in the earlier part of the order."""


class NeighbourRows:
    """Rows (X, Y) with their neighbours, a batch at a time.

    Near rows are in one batch, so that it has few neighbours, whose features are computed once.

    :param noise_weights: Weights w of the noise variances ``s / w`` of rows, ``[N]``.
    :param search: The search of neighbours, which runs when the first batch is read.
    :param number: The largest number of neighbours of a row.
    :param which: The numbers of the rows to read; None for all rows.
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        noise_weights: Array,
        search: Neighbours,
        number: int,
        *,
        which: IntArray | None = None,
        batch_size: int = 1,
        progress: bool = False,
    ) -> None:
        self._X, self._Y, self._noise_weights, self._progress = X, Y, noise_weights, progress
        self._search, self._number, self._which = search, number, which
        self.num_rows: int | None = len(X if which is None else which)
        self._batch_size = batch_size
        self._scratch: IntArray | None = None

    def batches(self) -> Iterator[tuple[Array, Array, IntArray, Array]]:
        """Batches of B rows: X ``[U, D]`` and Y ``[U, P]`` of the rows that they need; the places
        in X of the neighbours of each row and, last, of the row, ``[B, m + 1]``, -1 for missing
        neighbours; and the noise weights ``[U]``."""
        order = self._search.nearby if self._which is None else self._which
        with bar_of_rows("pass", self.num_rows, progress=self._progress) as bar:
            for rows in self._cells(order):
                yield self.batch(rows, self._search.before_all(self._number)[rows])
                bar.update(len(rows))

    def _cells(self, rows: IntArray) -> Iterator[IntArray]:
        """Batches of the rows, each in a small box. Early rows, whose neighbours are far, have
        batches of their own. Boxes are split into halves along their widest side."""
        stop, size = int(np.max(rows, initial=-1)) + 1, self._batch_size
        while stop:
            start = stop // _EARLY if stop > size else 0
            within = rows[(start <= rows) & (rows < stop)]
            yield from _halves(self._search.points, within, size)
            stop = start

    def batch(self, rows: IntArray, neighbours: IntArray) -> tuple[Array, Array, IntArray, Array]:
        """The batch of the given rows ``[B]`` with the given neighbours ``[B, m]``."""
        places = np.concatenate([neighbours, rows[:, None]], axis=1)
        missing = places < 0
        places = np.where(missing, rows[:, None], places)
        needed, within = self._distinct(places.ravel())
        within = np.where(missing, -1, within.reshape(places.shape))
        return self._X[needed], self._Y[needed], within, self._noise_weights[needed]

    def _distinct(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The distinct rows, in the order of ``rows``, and the place of each of ``rows`` among
        them. Near rows stay near in memory, and nothing is sorted."""
        if self._scratch is None:
            self._scratch = np.empty(len(self._X), np.int64)
        scratch = self._scratch
        scratch[rows] = np.arange(len(rows))
        distinct: IntArray = rows[scratch[rows] == np.arange(len(rows))]
        scratch[distinct] = np.arange(len(distinct))
        return distinct, scratch[rows]

    def count(self) -> int:
        """The number of rows."""
        return self.num_rows or 0

    def in_memory(self) -> tuple[Array, Array, IntArray, Array]:
        """All rows in one batch."""
        rows = np.arange(self.count())
        places = np.concatenate([self._search.before_all(self._number), rows[:, None]], axis=1)
        return self._X, self._Y, places, self._noise_weights

    def __deepcopy__(self, memo: dict[int, Any]) -> NeighbourRows:
        """This object itself: rows are never changed."""
        return self


def _halves(points: Array, rows: IntArray, size: int) -> Iterator[IntArray]:
    """Rows in boxes of ``size`` rows or slightly fewer, in their order within a box."""
    if len(rows) <= size:
        if len(rows):
            yield rows
        return
    inside = points[rows]
    side = inside[:, np.argmax(np.ptp(inside, axis=0))]
    number = -(-len(rows) // size)
    middle = len(rows) * (number // 2) // number
    order = np.argpartition(side, middle)
    for half in np.split(order, [middle]):
        yield from _halves(points, rows[np.sort(half)], size)


class WhitenedFeatures(Features):
    """The features of rows, whitened by their neighbours.

    With the weights w of :func:`.conditional_weights`, a row has the features ``psi = sum_j w_j
    phi_j`` and the targets ``sum_j w_j t_j``, over its neighbours and itself. The noise has
    variance one, and is independent of the noise of other rows: regression applies to such rows.

    The features also depend on the parameters of the local kernel and on the noise variance. The
    sums have one more entry, "log_variances": the sum of ``log 2 pi d``.

    :param arguments: The arguments of :class:`Features`.
    :param num_neighbours: The largest number of neighbours of a row.
    """

    sums: WhitenedSums

    def __init__(
        self, *arguments: Any, local: LocalKernel, likelihood: Gaussian, num_neighbours: int
    ) -> None:
        self.local, self.likelihood, self.num_neighbours = local, likelihood, num_neighbours
        super().__init__(*arguments)

    def _modules(self) -> dict[str, tf.Module]:
        own = {"local_kernel": self.local.kernel, "likelihood": self.likelihood}
        return super()._modules() | own

    def signature(self) -> list[tf.TensorSpec]:
        places, noise_weights = (
            tf.TensorSpec([None, None], tf.int64),
            tf.TensorSpec([None], tf.float64),
        )
        return [*super().signature(), places, noise_weights]

    @property
    def numbers_per_row(self) -> int:
        return (self.num_neighbours + 1) * (self.num_stacked + 4 * self.num_neighbours)

    def description(self) -> dict[str, Any]:
        local = {"local kernel": type(self.local.kernel).__name__, "inputs": self.local.inputs}
        return super().description() | local | {"number of neighbours": self.num_neighbours}

    def _make_sums(self) -> WhitenedSums:
        """The sums of whitened rows, dense unless the structure of the features has its own."""
        structure = structure_of(self.inducing_variable, self.kernel)
        sums: Any = structure and structure.whitened_sums(self, self.weights)
        return sums or WhitenedSums(self, self.weights)

    def weights(
        self, X: tf.Tensor, places: tf.Tensor, noise_weights: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The weights ``[B, m + 1]`` and ``log d`` ``[B]`` of rows whose neighbours and, last,
        themselves are at ``places`` of X ``[U, D]``; and the places, 0 for missing neighbours.

        :param noise_weights: The noise weights of the rows X, ``[U]``.
        """
        known, places = places >= 0, tf.maximum(places, 0)
        points = tf.gather(self.local.coordinates(X), places)
        noise = noise_variance_of(self.likelihood) / tf.gather(noise_weights, places)
        return *conditional_weights(self.local.covariance(points), known, noise), places
