"""Tables of millions of rows: made up a piece at a time, and kept in memory-mapped files.

The folder of a table holds X_train.npy, Y_train.npy, X_test.npy and Y_test.npy, and complete.json,
which describes the table and is written last.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks._lib.data import Array

ARRAYS = ("X_train", "Y_train", "X_test", "Y_test")
Pieces = Iterator[tuple[Array, Array]]
_BLOCK = 2**15  # rows that are drawn from one generator


@dataclass(frozen=True)
class RowFiles:
    """Memory-mapped arrays of normalised rows in random order."""

    X_train: Array
    Y_train: Array
    X_test: Array
    Y_test: Array


def open_rows(folder: Path) -> RowFiles:
    """The arrays of a folder that `written_once` returned."""
    return RowFiles(*(np.load(folder / f"{array}.npy", mmap_mode="r") for array in ARRAYS))


def written_once(
    folder: Path, description: Mapping[str, Any], write: Callable[[Path], None]
) -> Path:
    """The folder of a table, which is written if it does not exist, is not complete or is of
    another table.

    :param description: What the table is; JSON values.
    :param write: Writes the arrays into the folder.
    """
    complete = folder / "complete.json"
    if complete.exists() and json.loads(complete.read_text()) == dict(description):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write(folder)
    complete.write_text(json.dumps(dict(description)))
    return folder


def drawn_in_blocks(
    draw: Callable[[np.random.Generator, int], tuple[Array, Array]],
    start: int,
    stop: int,
    *,
    seed: int,
    test: bool,
) -> Pieces:
    """Rows `start` to `stop` (excluded) of a table in pieces (X [n, D], Y [n, P]), in order.

    A row depends on its number and the seed only, not on where a request starts or ends.

    :param draw: Returns so many independent rows.
    :param test: Rows of another, independent table.
    """
    for block in range(start // _BLOCK, -(-stop // _BLOCK)):
        first = block * _BLOCK
        X, Y = draw(np.random.default_rng([seed, int(test), block]), _BLOCK)
        kept = slice(max(0, start - first), min(_BLOCK, stop - first))
        yield X[kept], Y[kept]


def write_table(
    folder: Path,
    rows: Callable[..., Pieces],
    num_rows: Mapping[str, int],
    *,
    moment_rows: int,
    classes: bool = False,
    dtype: Any = np.float64,
) -> None:
    """Write the arrays of a table, normalised by the moments of its first training rows.

    :param rows: `rows(start, stop, test=...)`, as `drawn_in_blocks`. The rows of a smaller table
        are the beginning of a larger one's, and normalised alike.
    :param num_rows: Of "train" and of "test".
    :param classes: Whether Y stays as it is.
    """
    sample = [np.concatenate(part) for part in zip(*rows(0, moment_rows, test=False), strict=True)]
    moments = [(values.mean(axis=0), values.std(axis=0)) for values in sample]
    if classes:
        moments[1] = (np.zeros(1), np.ones(1))
    for part, number in num_rows.items():
        files = [
            np.lib.format.open_memmap(
                folder / f"{name}_{part}.npy", "w+", dtype=dtype, shape=(number, values.shape[1])
            )
            for name, values in zip("XY", sample, strict=True)
        ]
        with tqdm(total=number, desc=f"rows, {part}", unit="row", unit_scale=True) as bar:
            start = 0
            for piece in rows(0, number, test=part == "test"):
                stop = start + len(piece[0])
                for file, values, (mean, scale) in zip(files, piece, moments, strict=True):
                    file[start:stop] = (values - mean) / scale
                bar.update(stop - start)
                start = stop
        for file in files:
            file.flush()
