"""What is kept of a pass over the data, so that it can go on where it was interrupted."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from .features import StreamedFeatures
from .identity import mismatch
from .sources import RowSource
from .statistics import SufficientStatistics, read_archive, write_archive

SECONDS_BETWEEN = 60.0
"""Between two writes of an unfinished pass."""


@dataclass(frozen=True)
class Position:
    """How far a pass has come.

    :ivar batch: Batches that are done.
    :ivar rows: Their rows, valid or not.
    :ivar skipped: Those that were left out.
    :ivar checksum: Of all that was read.
    :ivar complete: Whether there is no more.
    """

    batch: int = 0
    rows: int = 0
    skipped: int = 0
    checksum: int = 0
    complete: bool = False

    def same(self, other: Position) -> bool:
        """Whether the same was read."""
        return replace(self, complete=False) == replace(other, complete=False)


class PassFile:
    """One file with the statistics of the rows that are done.

    A pass that finds it reads those rows again, to compare their checksum, and goes on.

    :param fresh: Whether to replace what is there.
    """

    def __init__(self, path: str | os.PathLike[str], *, fresh: bool = False) -> None:
        self.path = Path(path)
        self._fresh = fresh
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() - self._last >= SECONDS_BETWEEN

    def save(self, statistics: SufficientStatistics, position: Position, source: RowSource) -> None:
        """Replace what was saved before."""
        found = {"position": asdict(position), "source": source.describe()}
        texts = {name: np.array(json.dumps(value)) for name, value in found.items()}
        write_archive(self.path, {**statistics.to_arrays(), **texts})
        self._last = time.monotonic()

    def load(
        self, features: StreamedFeatures, source: RowSource
    ) -> tuple[SufficientStatistics, Position] | None:
        """What was saved, if anything.

        :raises ValueError: If it is of other features or data.
        """
        if self._fresh or not self.path.exists():
            return None
        arrays = read_archive(self.path)
        if "position" not in arrays:
            self.refuse("it is not of a pass")
        statistics = SufficientStatistics.from_arrays(arrays)
        difference = mismatch(statistics.identity, features)
        if difference is not None:
            self.refuse(f"its features are others: {difference}")
        for name, value in json.loads(str(arrays["source"])).items():
            if value != source.describe()[name]:
                self.refuse(f"{name} was {value}, and is {source.describe()[name]}")
        return statistics, Position(**json.loads(str(arrays["position"])))

    def refuse(self, reason: str) -> NoReturn:
        """:raises ValueError: Always."""
        raise ValueError(
            f"checkpoint_path: {self.path} does not belong to this model and these data: {reason}. "
            "Remove the file, or pass another path."
        )
