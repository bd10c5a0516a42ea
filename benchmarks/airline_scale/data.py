"""The tables in memory-mapped files (float64): shuffled, normalised, written once."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from benchmarks._lib.data import load_table, source_of
from benchmarks._lib.flight_table import flights
from benchmarks._lib.row_files import ARRAYS, write_table, written_once
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split

SYNTHETIC, BEIJING = "synthetic", "beijing"
TABLES = (SYNTHETIC, BEIJING)
MOMENT_ROWS = 100_000  # of the flights, whose moments normalise all of them
# All columns of beijing_pm25 but the direction of the wind: an angle jumps where it is north, and
# of five that were left out in turn (degree 3, 10,000 rows) the bound misses it least.
BEIJING_COLUMNS = (0, 1, 2, 3, 4, 5, 6, 7)
_FORMAT = 1


def source_of_table(name: str, data_dir: Path | None) -> str:
    """Where a table came from, to be recorded."""
    return "generated" if name == SYNTHETIC else source_of(data_dir)


def prepare(
    name: str, train_rows: int | None, *, seed: int, work_dir: Path, data_dir: Path | None = None
) -> Path:
    """The folder of a table, which is written if it does not exist or is not complete.

    :param train_rows: the number of training rows; flights have half as many test rows. Beijing's
        air always has all test rows of its split (90/10, drawn with `seed`); None takes all
        training rows as well.
    :raises DataError: when the table is not available.
    """
    if name == SYNTHETIC and train_rows is None:
        raise ValueError("train_rows: found None; say how many flights to make up")
    rows = "all" if train_rows is None else str(train_rows)
    description = {"format": _FORMAT, "table": name, "train_rows": rows, "seed": seed}

    def write(folder: Path) -> None:
        if train_rows is not None and name == SYNTHETIC:
            num_rows = {"train": train_rows, "test": train_rows // 2}
            made_up = functools.partial(flights, seed=seed)
            write_table(folder, made_up, num_rows, moment_rows=MOMENT_ROWS)
            return
        split = beijing_split(train_rows, seed, data_dir)
        for array in ARRAYS:
            np.save(folder / f"{array}.npy", getattr(split, array))

    return written_once(work_dir / f"{name}_{rows}_seed{seed}", description, write)


def beijing_split(train_rows: int | None, seed: int, data_dir: Path | None) -> NormalisedSplit:
    """Beijing's air, normalised by its training rows, all rows in random order."""
    split = normalise(take_split(load_table("beijing_pm25", data_dir), seed))
    rng = np.random.default_rng(seed)
    train = rng.permutation(len(split.X_train))[:train_rows]
    test = rng.permutation(len(split.X_test))
    columns = list(BEIJING_COLUMNS)
    return NormalisedSplit(
        split.X_train[train][:, columns],
        split.Y_train[train],
        split.X_test[test][:, columns],
        split.Y_test[test],
        split.Y_mean,
        split.Y_scale,
    )
