"""The sums of a pass for any likelihood: those of the sites of all rows at a q."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from ..covariances.domains import Box
from ..regression.rows import Rows
from ..sphere._typing import Array
from .site_contributions import SiteContributions, WhitenedQ


@dataclass(frozen=True)
class SiteStatistics:
    """Sums over rows of sites at a q.

    :ivar parts: The sums by name: see :meth:`.site_contributions.SiteContributions.sums`.
    :ivar num_rows: The number of rows.
    :ivar num_skipped: The number of rows left out because they had NaN or infinite numbers.
    """

    parts: Mapping[str, Array]
    num_rows: int
    num_skipped: int = 0

    def __add__(self, other: SiteStatistics) -> SiteStatistics:
        return self._combined(other, 1)

    def __sub__(self, other: SiteStatistics) -> SiteStatistics:
        return self._combined(other, -1)

    def _combined(self, other: SiteStatistics, sign: int) -> SiteStatistics:
        parts = dict(self.parts)
        for name, part in other.parts.items():
            parts[name] = parts.get(name, np.zeros_like(part)) + sign * part
        return SiteStatistics(
            parts,
            self.num_rows + sign * other.num_rows,
            max(0, self.num_skipped + sign * other.num_skipped),
        )


class SiteContent:
    """The content of passes that sum sites.

    :param targets: Raises an error for targets that the likelihood does not know.
    :param told: Called with the rows of each batch.
    """

    def __init__(
        self,
        contributions: SiteContributions,
        q: WhitenedQ,
        targets: Any,
        told: Callable[[Array, Array], None] = lambda X, Y: None,
    ) -> None:
        self._contributions, self._q, self._targets = contributions, q, targets
        self._told = told

    @property
    def boxes(self) -> Sequence[Box]:
        """Where the rows have to be."""
        return self._contributions.boxes

    def take(self, rows: Rows) -> SiteStatistics:
        """The sums over rows, in one pass."""
        total: SiteStatistics | None = None
        with tf.init_scope():  # gradient tapes of the caller would keep every batch
            for X, Y in rows.batches(self.boxes):
                self._told(X, Y)
                sums = self.sums(X, Y)
                total = sums if total is None else total + sums
        assert total is not None, "a pass without rows has raised an error"
        return SiteStatistics(total.parts, total.num_rows, rows.num_skipped)

    def sums(self, X: Array, Y: Array) -> SiteStatistics:
        """What a batch adds.

        :raises ValueError: For targets that the likelihood does not know.
        """
        self._targets(Y)
        return SiteStatistics(self._contributions.sums(X, Y, self._q), len(X))
