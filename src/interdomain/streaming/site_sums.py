"""The sums of a pass for any likelihood: those of the sites of all rows at a q."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..covariances.domains import Box
from ..sphere._typing import Array
from .contributions import Contributions
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
    """

    def __init__(self, contributions: SiteContributions, q: WhitenedQ, targets: Any) -> None:
        self._contributions, self._q, self._targets = contributions, q, targets

    @property
    def boxes(self) -> Sequence[Box]:
        """Where the rows have to be."""
        return self._contributions.boxes

    @property
    def features(self) -> Contributions:
        """The features of the rows."""
        return self._contributions.features

    def begin(self) -> SiteSums:
        """The sums of a pass."""
        return SiteSums(self)

    def sums(self, X: Array, Y: Array) -> SiteStatistics:
        """What a batch adds.

        :raises ValueError: For targets that the likelihood does not know.
        """
        self._targets(Y)
        return SiteStatistics(self._contributions.sums(X, Y, self._q), len(X))


class SiteSums:
    """The sums of a pass that is under way."""

    is_full = False

    def __init__(self, content: SiteContent) -> None:
        self._content = content
        self._total: SiteStatistics | None = None

    def add(self, X: Array, Y: Array, seconds: dict[str, float]) -> None:
        """Add a batch."""
        sums = self._content.sums(X, Y)
        self._total = sums if self._total is None else self._total + sums

    def end_block(self) -> None:
        """There are no blocks."""

    def statistics(self, sums: None, num_skipped: int, seconds: Any) -> SiteStatistics | None:
        """The sums so far; None before any batch."""
        total = self._total
        return None if total is None else SiteStatistics(total.parts, total.num_rows, num_skipped)
