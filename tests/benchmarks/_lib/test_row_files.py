"""Made-up tables in files, and the table of collisions."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from benchmarks._lib.event_table import COLUMNS, collisions, probability
from benchmarks._lib.prediction import two_class_scores
from benchmarks._lib.row_files import open_rows, write_table, written_once


def joined(stop: int, *, test: bool = False) -> list[np.ndarray]:
    pieces = zip(*collisions(0, stop, test=test), strict=True)
    return [np.concatenate(parts) for parts in pieces]


def test_the_classes_have_their_probabilities_and_the_area_of_susy() -> None:
    X, Y = joined(200_000)
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
    np.testing.assert_array_equal(rows.Y_test, joined(100, test=True)[1])
    before = (folder / "X_train.npy").stat().st_mtime_ns
    assert written_once(folder, {"rows": 40_000}, write) == folder
    assert (folder / "X_train.npy").stat().st_mtime_ns == before
    written_once(folder, {"rows": 40_001}, write)
    assert (folder / "X_train.npy").stat().st_mtime_ns != before


def test_area_under_the_curve_against_all_pairs() -> None:
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(0.05, 0.95, size=200), 2)  # with ties
    Y = (rng.random(200) < p) * 1.0
    pairs = [(one > zero) + 0.5 * (one == zero) for one in p[Y == 1] for zero in p[Y == 0]]
    found = two_class_scores(Y[:, None], p[:, None])
    assert found["auc"] == pytest.approx(np.mean(pairs), rel=1e-12)
    expected = np.mean([np.log(b if y else 1 - b) for y, b in zip(Y, p, strict=True)])
    assert found["log_density"] == pytest.approx(expected, rel=1e-12)
