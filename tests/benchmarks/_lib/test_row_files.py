"""Made-up tables of collisions and of flights, and tables in files."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._lib import flight_table
from benchmarks._lib.event_table import COLUMNS, collisions, probability
from benchmarks._lib.flight_table import flights
from benchmarks._lib.prediction import two_class_scores
from benchmarks._lib.row_files import open_rows, write_table, written_once


def joined(rows: Any, *ranges: tuple[int, int], **settings: Any) -> list[np.ndarray]:
    pieces = [piece for start, stop in ranges for piece in rows(start, stop, **settings)]
    return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


def test_rows_do_not_depend_on_the_pieces() -> None:
    whole = joined(flights, (0, 70_000))
    parts = joined(flights, (0, 300), (300, 40_000), (40_000, 70_000))
    assert whole[0].shape == (70_000, len(flight_table.COLUMNS)) and whole[1].shape == (70_000, 1)
    for expected, found in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(found, expected)
    for other in (joined(flights, (0, 300), seed=1), joined(flights, (0, 300), test=True)):
        assert not np.any(np.all(other[0] == whole[0][:300], axis=1))


def test_the_classes_have_their_probabilities_and_the_area_of_susy() -> None:
    X, Y = joined(collisions, (0, 200_000))
    assert X.shape == (200_000, len(COLUMNS)) and Y.shape == (200_000, 1)
    known = probability(X)
    assert two_class_scores(Y, known)["auc"] == pytest.approx(0.88, abs=0.005)
    for low in np.arange(0.0, 1.0, 0.1):
        among = (known >= low) & (known < low + 0.1)
        assert np.mean(Y[among]) == pytest.approx(np.mean(known[among]), abs=0.02)


def test_files_of_collisions(tmp_path: Path) -> None:
    write = functools.partial(
        write_table,
        rows=collisions,
        num_rows={"train": 40_000, "test": 100},
        moment_rows=30_000,
        classes=True,
        dtype=np.float32,
    )
    folder = written_once(tmp_path / "table", {"rows": 40_000}, write)
    rows = open_rows(folder)
    assert rows.X_train.shape == (40_000, 18) and rows.Y_test.shape == (100, 1)
    assert rows.X_train.dtype == np.float32 and isinstance(rows.X_train, np.memmap)
    np.testing.assert_allclose(rows.X_train[:30_000].mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(rows.X_train[:30_000].std(axis=0), 1.0, rtol=1e-4)
    np.testing.assert_array_equal(rows.Y_test, joined(collisions, (0, 100), test=True)[1])
    before = (folder / "X_train.npy").stat().st_mtime_ns
    assert written_once(folder, {"rows": 40_000}, write) == folder
    assert (folder / "X_train.npy").stat().st_mtime_ns == before
    written_once(folder, {"rows": 40_001}, write)
    assert (folder / "X_train.npy").stat().st_mtime_ns != before
    (folder / "complete.json").unlink()  # as after an interruption
    before = (folder / "X_train.npy").stat().st_mtime_ns
    written_once(folder, {"rows": 40_001}, write)
    assert (folder / "X_train.npy").stat().st_mtime_ns != before
