"""The sums of a pass for the collapsed bound: those of the products of stacked features."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from ..covariances.domains import Box
from ..sphere._typing import Array
from .compensated import Accumulator, Sums
from .contributions import Contributions
from .identity import Identity, identify
from .statistics import SufficientStatistics


class GramContent:
    """The content of passes whose result is :class:`SufficientStatistics`."""

    def __init__(self, contributions: Contributions) -> None:
        self.features = contributions

    @property
    def boxes(self) -> Sequence[Box]:
        """Where the rows have to be."""
        return self.features.boxes

    def begin(self) -> GramSums:
        """The sums of a pass."""
        return GramSums(self.features)


class GramSums:
    """The sums of a pass that is under way."""

    def __init__(self, contributions: Contributions) -> None:
        self._contributions = contributions
        self._identity: Identity | None = None
        sums = Sums.empty(contributions.num_stacked, contributions.num_terms)
        self._accumulator = Accumulator(sums)

    def add(self, X: Array, Y: Array, seconds: dict[str, float]) -> str | None:
        """Add a batch of finite rows.

        :param seconds: Those that "features" and "products" take are added here.
        :return: What is wrong with the batch, which was not added then; None if nothing is.
        """
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
