"""The sums of a pass for the collapsed bound: those of the products of stacked features."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from ..covariances.domains import Box
from ..sphere._typing import Array
from .compensated import Accumulator, Sums
from .contributions import Contributions
from .identity import Identity, identify, mismatch
from .sources import BoolArray
from .statistics import SufficientStatistics


class GramContent:
    """The content of passes whose result is :class:`SufficientStatistics`."""

    def __init__(self, contributions: Contributions) -> None:
        self._contributions = contributions

    @property
    def boxes(self) -> Sequence[Box]:
        """Where the rows have to be."""
        return self._contributions.boxes

    def outside(self, X: Array) -> BoolArray:
        """Which rows are outside of :attr:`boxes`, ``[n]``."""
        return self._contributions.outside(X)

    def begin(self, done: SufficientStatistics | None) -> GramSums:
        """The sums of a pass, after those of an earlier pass that was interrupted."""
        return GramSums(self._contributions, done)

    def statistics_from(self, arrays: Mapping[str, Array]) -> SufficientStatistics:
        """As :meth:`SufficientStatistics.from_arrays`."""
        return SufficientStatistics.from_arrays(arrays)

    def difference(self, statistics: SufficientStatistics) -> str | None:
        """How the features of the statistics differ from these; None if they do not."""
        return mismatch(statistics.identity, self._contributions)

    def supersedes(self, statistics: SufficientStatistics) -> bool:
        """Statistics of other features are refused."""
        return False


class GramSums:
    """The sums of a pass that is under way."""

    def __init__(self, contributions: Contributions, done: SufficientStatistics | None) -> None:
        self._contributions = contributions
        self._identity: Identity | None = None
        sums = Sums.empty(contributions.num_stacked, contributions.num_terms)
        if done is not None:
            self._identity = done.identity
            sums = Sums(done.gram, done.diagonal, done.num_rows)
        self._accumulator = Accumulator(sums)

    def add(self, X: Array, Y: Array, seconds: dict[str, float]) -> str | None:
        """Add a batch; see :class:`.content.RunningSums`."""
        start = time.perf_counter()
        if self._identity is None:
            self._identity = identify(self._contributions, X)
        stacked, terms = self._contributions.evaluate(X, Y)
        evaluated = time.perf_counter()
        seconds["features"] += evaluated - start
        if not self._accumulator.add(stacked, terms):
            squares = np.sum(np.square(stacked), axis=0) + np.sum(terms, axis=0)
            count = int(np.count_nonzero(~np.isfinite(squares)))
            return (
                f"the features of {count} finite rows are NaN, infinite, or too large for squares"
            )
        seconds["products"] += time.perf_counter() - evaluated
        return None

    @property
    def is_full(self) -> bool:
        """Whether the block has as many batches as it should."""
        return self._accumulator.is_full

    def end_block(self) -> Sums:
        """Add the block to the sums, and return these."""
        return self._accumulator.end_block()

    def statistics(
        self, sums: Sums, num_skipped: int, seconds: Mapping[str, float]
    ) -> SufficientStatistics | None:
        """The statistics of such sums; None before any batch."""
        if self._identity is None:
            return None
        return SufficientStatistics(
            num_rows=sums.num_rows,
            num_skipped=num_skipped,
            gram=sums.gram,
            diagonal=sums.diagonal,
            identity=self._identity,
            seconds=dict(seconds),
        )
