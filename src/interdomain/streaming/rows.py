"""The rows of a model: the parts that this worker reads, and sums over the rows of all workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ..distributed import Workers
from ..sphere._typing import Array
from .accumulation import Told, accumulate
from .content import PassContent, Statistics
from .first_pass import FirstPass
from .pass_files import PassFile
from .shards import Shards
from .sources import (
    WHOLE,
    ArraySource,
    RowSource,
    compared,
    draw_rows,
    errors_named,
    make_source,
)

_REMEDY = "Start all workers again with the same data: parts that are done are in {}."


@dataclass(frozen=True)
class PassSettings:
    """How rows are read.

    :ivar batch_size: The number of rows to read at a time.
    :ivar on_invalid: What to do with rows that are not finite: "raise" or "skip".
    :ivar progress: Whether long passes show a progress bar.
    :ivar workers: The workers that share the rows.
    :ivar missing: Whether NaN in Y stands for a value that is missing.
    """

    batch_size: int
    on_invalid: str
    progress: bool
    workers: Workers
    missing: bool = False


class Rows:
    """Data in one piece, or in parts that are divided among the workers.

    :param data: Arrays, a ``tf.data.Dataset``, or :class:`Shards`. Arrays are divided among
        several workers into blocks of consecutive rows.
    :param columns: The required numbers of columns of X and of Y; None for any.
    :raises ValueError: If the data are of another type or have other numbers of columns, or if they
        are one dataset for several workers.
    """

    def __init__(
        self, data: Any, settings: PassSettings, columns: tuple[int, int] | None = None
    ) -> None:
        self._settings, self._columns = settings, columns
        number = settings.workers.number
        if number > 1 and isinstance(data, tf.data.Dataset):
            raise ValueError(
                f"data: found one tf.data.Dataset for {number} workers; pass interdomain.streaming."
                "Shards, a dataset for each file or group of files."
            )
        if number > 1 and isinstance(data, (tuple, list)) and len(data) == 2:
            num_rows = ArraySource(data[0], data[1], 1).num_rows
            data = Shards.split((data[0], data[1]), min(number, num_rows))
        self._shards = data if isinstance(data, Shards) else None
        self._first_passes: dict[str, FirstPass] = {}
        self._whole = None if isinstance(data, Shards) else self._source(WHOLE, data)
        first = self._whole
        if first is None:
            assert self._shards is not None
            name = (*self._own_names(), *self._shards.names)[0]  # a worker may have no part
            first = self._opened(name)
        self._columns = (first.num_columns, first.num_outputs)

    @property
    def columns(self) -> tuple[int, int]:
        """The numbers of columns of X and of Y."""
        assert self._columns is not None
        return self._columns

    @property
    def in_parts(self) -> bool:
        """Whether the sums of each part are kept in a file of a folder."""
        return self._shards is not None

    def sources(self) -> Iterator[tuple[str, RowSource]]:
        """The name and rows of each part of this worker; data in one piece have an empty name."""
        if self._whole is not None:
            yield "", self._whole
            return
        for name in self._own_names():
            yield name, self._opened(name)

    def accumulate(
        self,
        content: PassContent[Statistics],
        path: str | os.PathLike[str] | None,
        *,
        fresh: bool,
        told: Told | None = None,
    ) -> Statistics:
        """The statistics of all rows.

        :param content: What is summed.
        :param path: The file in which to keep the sums, or the folder for the files of the parts.
        :param fresh: Whether to sum again the rows whose sums are in a file.
        :param told: Called with the rows of the first batch.
        :raises WorkerLostError: If another worker ends or cannot be reached.
        """
        workers = self._settings.workers
        if workers.number == 1:
            total = self._own_sums(content, path, fresh, told)
        else:
            total = None
            named = workers.losses_named(
                "the pass over the data", lambda: None if path is None else os.fspath(path), _REMEDY
            )
            with named:
                for arrays in workers.share(lambda: self._own_arrays(content, path, fresh, told)):
                    if arrays:
                        part = content.statistics_from(arrays)
                        total = part if total is None else total + part
        assert total is not None, "there is a part, and an empty one has raised an error"
        return total

    def sums_of(self, function: Callable[[Array, Array], Mapping[str, Array]]) -> dict[str, Array]:
        """Sums over the finite rows of all workers.

        :param function: Of X ``[n, D]`` and Y ``[n, P]``, a batch: named arrays, summed over rows.
        :raises ValueError: If a source returns other rows than at its first pass.
        :raises WorkerLostError: If another worker ends or cannot be reached.
        """

        def own() -> dict[str, Array]:
            batches = (batch for _, source in self.sources() for batch in compared(source))
            return _added(function(X[valid], Y[valid]) for X, Y, valid in batches)

        with self._settings.workers.losses_named("a pass over the data"):
            return _added(self._settings.workers.share(own))

    def _own_arrays(self, *arguments: Any) -> dict[str, Array]:
        own = self._own_sums(*arguments)
        return {} if own is None else own.to_arrays()

    def _own_sums(
        self,
        content: PassContent[Statistics],
        path: str | os.PathLike[str] | None,
        fresh: bool,
        told: Told | None,
    ) -> Statistics | None:
        total: Statistics | None = None
        for name, source in self.sources():
            file: PassFile[Statistics] | None = None
            if path is not None:
                where = Path(path)
                file = PassFile(where / f"{name}.npz" if name else where, fresh=fresh)
            part = accumulate(
                content,
                source,
                on_invalid=self._settings.on_invalid,
                progress=self._settings.progress and self._settings.workers.is_chief,
                file=file,
                name=name,
                told=told if total is None else None,
            )
            total = part if total is None else total + part
        return total

    def _own_names(self) -> tuple[str, ...]:
        assert self._shards is not None
        workers = self._settings.workers
        return self._shards.of_worker(workers.index, workers.number)

    def _opened(self, name: str) -> RowSource:
        assert self._shards is not None
        what = f"data[{name!r}]"
        with errors_named(what, "its function failed"):
            data = self._shards.open(name)
        try:
            source = self._source(what, data)
        except ValueError as error:
            message = str(error).removeprefix(f"{what}: ").removeprefix(f"{WHOLE}: ")
            raise ValueError(f"{what}: {message}") from error
        source.first_pass = self._first_passes.setdefault(name, source.first_pass)
        return source

    def _source(self, what: str, data: Any) -> RowSource:
        source = make_source(data, self._settings.batch_size)
        source.what, source.missing = what, self._settings.missing
        found = (source.num_columns, source.num_outputs)
        for name, number, known in zip(("X", "Y"), found, self._columns or found, strict=True):
            if number != known:
                raise ValueError(
                    f"{what}: {name} has {number} columns, the model's has {known}; pass rows of "
                    "the same kind."
                )
        return source


def _added(parts: Iterable[Mapping[str, Array]]) -> dict[str, Array]:
    total: dict[str, Array] = {}
    for part in parts:
        for name, array in part.items():
            total[name] = total[name] + array if name in total else np.asarray(array, np.float64)
    return total


def draw(parts: list[Rows], size: int, seed: int, workers: Workers) -> tuple[Array, Array]:
    """Rows of all workers drawn at random, the same on each; see :func:`draw_rows`.

    :raises ValueError: If no row is finite.
    """

    def own() -> dict[str, Array]:
        rng = np.random.default_rng(seed if workers.number == 1 else (seed, workers.index))
        numbers, X, Y = draw_rows((s for rows in parts for _, s in rows.sources()), size, rng)
        return {"numbers": numbers, "X": X, "Y": Y}

    with workers.losses_named("drawing rows"):
        drawn = [arrays for arrays in workers.share(own) if len(arrays["numbers"])]
    if not drawn:
        raise ValueError("data: no row is finite; pass rows with finite numbers.")
    numbers, X, Y = (np.concatenate([one[k] for one in drawn]) for k in ("numbers", "X", "Y"))
    smallest = np.sort(np.argsort(numbers)[:size])
    return X[smallest], Y[smallest]
