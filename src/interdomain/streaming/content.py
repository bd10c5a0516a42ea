"""What a pass over rows can sum: the contract between a pass and those who know the summands.

:mod:`.gram_sums` sums the features of the rows, for a Gaussian likelihood; :mod:`.site_sums` those
of sites, for any other. :mod:`.accumulation` reads the rows, checks them and keeps what is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ..covariances.domains import Box
from ..sphere._typing import Array
from .sources import BoolArray

Statistics = TypeVar("Statistics", bound="RowStatistics")
"""The kind of statistics that one kind of pass returns."""

_Returned = TypeVar("_Returned", bound="RowStatistics", covariant=True)


class RowStatistics(Protocol):
    """Sums over rows, which can be added, taken away and written to a file."""

    @property
    def num_rows(self) -> int:
        """The number of rows that were summed."""

    @property
    def num_skipped(self) -> int:
        """The number of rows that were left out."""

    def __add__(self: Statistics, other: Statistics) -> Statistics:
        """Those of the rows of both."""

    def __sub__(self: Statistics, other: Statistics) -> Statistics:
        """Those without the rows of ``other``."""

    def to_arrays(self) -> dict[str, Array]:
        """The statistics as named arrays, for files and other workers."""


class RunningSums(Protocol[_Returned]):
    """The sums of a pass that is under way. Batches join the sums in blocks."""

    def add(self, X: Array, Y: Array, seconds: dict[str, float]) -> str | None:
        """Add a batch of finite rows.

        :param seconds: Those that "features" and "products" take are added here.
        :return: What is wrong with the batch, which was not added then; None if nothing is.
        """

    @property
    def is_full(self) -> bool:
        """Whether the block has as many batches as it should."""

    def end_block(self) -> Any:
        """Add the block to the sums; return what :meth:`statistics` makes of the sums so far. It
        does not change afterwards."""

    def statistics(
        self, sums: Any, num_skipped: int, seconds: Mapping[str, float]
    ) -> _Returned | None:
        """The statistics of what :meth:`end_block` returned; None before any batch."""


class PassContent(Protocol[Statistics]):
    """What is summed over rows, for certain features."""

    @property
    def boxes(self) -> Sequence[Box]:
        """Where the rows have to be."""

    def outside(self, X: Array) -> BoolArray:
        """Which rows are outside of :attr:`boxes`, ``[n]``."""

    def begin(self, done: Statistics | None) -> RunningSums[Statistics]:
        """The sums of a pass, after those of an earlier pass that was interrupted."""

    def statistics_from(self, arrays: Mapping[str, Array]) -> Statistics:
        """The opposite of ``to_arrays`` of the statistics.

        :raises ValueError: If an array is missing or impossible.
        """

    def difference(self, statistics: Statistics) -> str | None:
        """How what was summed differs from this content; None if it does not."""

    def supersedes(self, statistics: Statistics) -> bool:
        """Whether statistics that differ are those of an earlier pass of the same model, which
        nobody needs any more."""
