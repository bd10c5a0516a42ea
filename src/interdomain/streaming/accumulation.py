"""One pass over rows of data: reads and checks them, sums, and saves the sums so far."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, NoReturn

import numpy as np

from .._progress import bar_of_rows
from ..covariances.domains import Complaint, Extent
from ..sphere._typing import Array
from .archives import Position
from .content import PassContent, Statistics
from .first_pass import counted, no_rows
from .invalid_rows import not_finite, outside
from .pass_files import PassFile
from .sources import BoolArray, RowSource

Told = Callable[[Array, Array], None]
"""A function that is called with rows X and Y."""


def accumulate(
    content: PassContent[Statistics],
    source: RowSource,
    *,
    on_invalid: str,
    progress: bool,
    file: PassFile[Statistics] | None = None,
    name: str = "",
    told: Told | None = None,
) -> Statistics:
    """The statistics of all rows of a source.

    :param content: What is summed.
    :param on_invalid: "raise", or "skip" to leave out rows that are not finite.
    :param file: Where to keep the sums; rows whose sums it holds are not summed again.
    :param name: The name of the source, if there are several.
    :param told: Called with the finite rows X and Y of the first batch that has some.
    :raises InvalidRowsError: If rows are not finite and are not to be skipped; the sums before the
        first of them have been saved. Or if rows are outside of the box of the features; these
        cannot be skipped. The error names all such rows.
    :raises ValueError: If what is summed is not finite, no row is left, or the file belongs to
        other rows or features.
    """
    with bar_of_rows(f"pass {name}".strip(), source.num_rows, progress=progress) as bar:
        return _Pass(content, source, on_invalid, file, name, told).run(bar)


class _Pass(Generic[Statistics]):
    """The state of one pass.

    ``_position`` counts the batches that were read; ``_summed`` holds the sums of complete blocks,
    and the position up to which they go. The latter is saved, so that a resumed pass adds the same
    blocks, and gives the same bits, as one that was never interrupted.
    """

    def __init__(
        self,
        content: PassContent[Statistics],
        source: RowSource,
        on_invalid: str,
        file: PassFile[Statistics] | None,
        name: str,
        told: Told | None,
    ) -> None:
        self._name, self._told = name, told
        self._content, self._source, self._on_invalid = content, source, on_invalid
        self._file = file
        self._batches = source.read()
        self._seconds = {"read": 0.0, "features": 0.0, "products": 0.0}
        self._position = self._done = Position()
        self._tally = no_rows()
        self._extent: Extent | None = None

    def run(self, bar: Any) -> Statistics:
        self._restore()
        try:
            self._run(bar)
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                self._save()
            raise
        self._end_block()
        statistics = self._statistics()
        if statistics is None:
            raise ValueError(
                f"{self._source.what}: no row is left, {self._position.skipped} were skipped; "
                "pass rows with finite numbers."
            )
        self._save(complete=True)
        return statistics

    def _run(self, bar: Any) -> None:
        while True:
            start = time.perf_counter()
            batch = next(self._batches, None)
            if batch is None:
                break
            first_row = self._position.rows
            X, Y, valid = self._read(*batch)
            self._seconds["read"] += time.perf_counter() - start
            if self._position.batch > self._done.batch:
                self._add(X, Y, valid, first_row)
            bar.update(len(valid))
        self._source.first_pass.check(self._source.what, self._tally)
        if self._position.batch < self._done.batch:
            assert self._file is not None
            self._file.refuse(f"it has {self._done.rows} rows, the data {self._position.rows}")

    def _restore(self) -> None:
        found = None if self._file is None else self._file.load(self._content, self._source)
        statistics, self._done = (None, self._done) if found is None else found
        self._sums = self._content.begin(statistics)
        self._summed = self._sums.end_block(), self._done
        if self._file is not None and not self._done.complete:
            self._file.prepare()

    def _read(self, X: Array, Y: Array) -> tuple[Array, Array, BoolArray]:
        """Count one batch; rows that an earlier pass has read must be the same again."""
        before = self._position
        valid = self._source.valid(X, Y)
        num_invalid = len(X) - int(np.count_nonzero(valid))
        finite = (X[valid], Y[valid]) if num_invalid else (X, Y)
        if self._told is not None and len(finite[0]):
            told, self._told = self._told, None
            told(*finite)
        self._tally = counted(self._tally, *finite)
        self._extend(finite[0])
        checksum = 0
        if self._file is not None:
            checksum = zlib.crc32(_bytes(Y), before.checksum)
            checksum = zlib.crc32(_bytes(X), checksum)
        self._position = Position(
            before.batch + 1, before.rows + len(X), before.skipped + num_invalid, checksum
        )
        if self._position.batch == self._done.batch and not self._position.same(self._done):
            assert self._file is not None
            self._file.refuse("the rows that it is of are not those of the data")
        return X, Y, valid

    def _add(self, X: Array, Y: Array, valid: BoolArray, first_row: int) -> None:
        if self._done.complete:
            assert self._file is not None
            self._file.refuse(f"it is complete with {self._done.rows} rows, the data have more")
        if not np.all(valid):
            if self._on_invalid == "raise":
                self._raise_invalid(first_row + np.flatnonzero(~valid))
            X, Y = X[valid], Y[valid]
        beyond = self._content.outside(X)
        if np.any(beyond):
            self._raise_outside(first_row + np.flatnonzero(valid)[beyond])
        if len(X):
            self._add_valid(X, Y, first_row)
        if self._sums.is_full:
            self._end_block()
            if self._file is not None and self._file.due():
                self._save()

    def _end_block(self) -> None:
        self._summed = self._sums.end_block(), self._position

    def _add_valid(self, X: Array, Y: Array, first_row: int) -> None:
        wrong = self._sums.add(X, Y, self._seconds)
        if wrong is not None:
            raise ValueError(
                f"kernel: {wrong}, among rows {first_row} to {first_row + len(X) - 1}; check the "
                "kernel's parameters and the scale of X."
            )

    def _raise_invalid(self, rows: Any) -> NoReturn:
        """Read on, to report all such rows together."""
        self._source.first_pass.forget()  # they may be mended in place
        found, count = [rows], self._position.rows
        for X, Y in self._batches:
            found.append(count + np.flatnonzero(~self._source.valid(X, Y)))
            count += len(X)
        saved, done = "", self._summed[1]
        if self._file is not None and done.rows:
            saved = f" The first {done.rows} rows are done, and saved in {self._file.path}."
        raise not_finite(np.concatenate(found), saved, self._name)

    def _raise_outside(self, rows: Any) -> NoReturn:
        """The same, of finite rows."""
        self._source.first_pass.forget()
        # Other features are the remedy, for which a file of these would be in the way.
        self._summed = self._summed[0], self._done
        found, count = [rows], self._position.rows
        for X, Y in self._batches:
            valid = self._source.valid(X, Y)
            self._extend(X[valid])
            found.append(count + np.flatnonzero(valid)[self._content.outside(X[valid])])
            count += len(X)
        rows = np.concatenate(found)
        assert self._extent is not None
        complaint = Complaint.of(self._content.boxes, self._extent, len(rows), count)
        raise outside(complaint, rows, self._name)

    def _extend(self, X: Array) -> None:
        """Where the rows are that were read, if it matters."""
        if len(X) and self._content.boxes:
            extent = Extent.of(X)
            self._extent = extent if self._extent is None else self._extent.joined(extent)

    def _save(self, *, complete: bool = False) -> None:
        position = replace(self._summed[1], complete=complete)
        if self._file is not None and position.batch > self._done.batch:
            statistics = self._statistics()
            if statistics is not None:
                self._file.save(statistics, position, self._source)

    def _statistics(self) -> Statistics | None:
        sums, position = self._summed
        return self._sums.statistics(sums, position.skipped, self._seconds)


def _bytes(array: Array) -> Any:
    return np.ascontiguousarray(array)
