"""The file in which a pass over the data keeps its sums, to continue after an interruption."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Generic, NoReturn

import numpy as np

from .archives import Position, position_of, read_archive, write_archive
from .content import PassContent, Statistics
from .sources import RowSource

SECONDS_BETWEEN = 60.0
"""Between two writes of an unfinished pass."""


class PassFile(Generic[Statistics]):
    """A file with the statistics of the rows that a pass has summed so far.

    A pass that finds such a file reads those rows again only to compare their checksum, and then
    continues.

    :param fresh: Whether to ignore and replace an existing file.
    """

    def __init__(self, path: str | os.PathLike[str], *, fresh: bool = False) -> None:
        self.path = Path(path)
        self._fresh = fresh
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() - self._last >= SECONDS_BETWEEN

    def save(self, statistics: Statistics, position: Position, source: RowSource) -> None:
        """Save the statistics, replacing those saved before.

        :raises OSError: If the file cannot be written; the previous one is unchanged.
        """
        found = {"position": asdict(position), "source": source.describe()}
        texts = {name: np.array(json.dumps(value)) for name, value in found.items()}
        with self._errors_named(f"the sums of the first {position.rows} rows cannot be written"):
            write_archive(self.path, {**statistics.to_arrays(), **texts})
        self._last = time.monotonic()

    def load(
        self, content: PassContent[Statistics], source: RowSource
    ) -> tuple[Statistics, Position] | None:
        """The saved statistics and their position; None if there is no file.

        :raises ValueError: If the file belongs to other features or data.
        """
        if self.path.is_dir():
            raise ValueError(
                f"checkpoint_path: {self.path} is a folder; of data that are one piece, pass the "
                "path of a file in it."
            )
        if self._fresh or not self.path.exists():
            return None
        arrays = read_archive(self.path)
        try:
            position, statistics = position_of(arrays), content.statistics_from(arrays)
            described = json.loads(str(arrays.get("source", "{}")))
        except ValueError as error:
            self.refuse(f"it is damaged: {error}")
        if position is None:
            self.refuse("it is not of a pass")
        if position.rows != statistics.num_rows + position.skipped:
            self.refuse(
                f"it is damaged: 'position': found {position.rows} rows, and sums of "
                f"{statistics.num_rows} beside {position.skipped} that were left out"
            )
        if content.supersedes(statistics):
            return None
        difference = content.difference(statistics)
        if difference is not None:
            self.refuse(f"its features are others: {difference}")
        for name, value in source.describe().items():
            if described.get(name) != value:
                self.refuse(f"{name} was {described.get(name)}, and is {value}")
        return statistics, position

    @contextmanager
    def _errors_named(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            message = f"checkpoint_path: {self.path}: {what} ({reason}); what it had before is kept"
            raise OSError(error.errno or errno.EIO, message) from error

    def prepare(self) -> None:
        """Check that the file can be written, before any time is spent on the pass.

        :raises ValueError: If the path of its folder is a file.
        :raises OSError: If it cannot be written.
        """
        folder = self.path.parent
        with self._errors_named("it cannot be written"):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError) as error:
                raise ValueError(
                    f"checkpoint_path: {folder} is, or lies in, a file, and has to be a folder; "
                    "pass another path."
                ) from error
            trial = self.path.with_name(f"{self.path.name}.{os.getpid()}.trial")
            write_archive(trial, {})
            trial.unlink(missing_ok=True)

    def refuse(self, reason: str) -> NoReturn:
        """:raises ValueError: Always."""
        raise ValueError(
            f"checkpoint_path: {self.path} does not belong to this model and these data: {reason}. "
            "Remove the file, or pass another path."
        )
