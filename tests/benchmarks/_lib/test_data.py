"""The loaders of data sets, images and elevations; splits, normalisation, and categories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._lib import data
from benchmarks._lib.splits import Split, normalise, take_split


def write_table(folder: Path, name: str = "uci_yacht", **extra: Any) -> None:
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(20, 3)), generator.normal(size=(20, 1))
    np.savez(folder / f"{name}.npz", **{"X": X, "Y": Y, **extra})


def test_table_with_stored_splits(tmp_path: Path) -> None:
    train, test = np.arange(4, 20, dtype=np.int32), np.arange(4, dtype=np.int32)
    write_table(tmp_path, train_idx=train[None], test_idx=test[None])
    table = data.load_table("yacht", tmp_path)
    split = take_split(table, 0)
    np.testing.assert_array_equal(split.X_test, table.X[:4])
    np.testing.assert_array_equal(split.Y_train, table.Y[4:])
    with pytest.raises(ValueError, match="split 1 of 'yacht' does not exist"):
        take_split(table, 1)


def test_tables_with_folds_and_without_splits(tmp_path: Path) -> None:
    fold = np.arange(20) % 4
    write_table(tmp_path, name="uci_keggdirected", fold=fold.astype(np.uint8))
    table = data.load_table("keggdirected", tmp_path)
    assert len(table.splits) == 4
    np.testing.assert_array_equal(table.splits[2][1], np.flatnonzero(fold == 2))
    write_table(tmp_path)
    table = data.load_table("yacht", tmp_path)
    first, again, other = take_split(table, 3), take_split(table, 3), take_split(table, 4)
    assert first.X_test.shape == (2, 3) and first.X_train.shape == (18, 3)
    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert not np.array_equal(first.X_test, other.X_test)


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match=r"pass --data-dir, .* uci_power\.npz"):
        data.load_table("power", None)
    with pytest.raises(data.DataError, match=r"--data-dir holds no uci_power\.npz") as error:
        data.load_table("power", tmp_path)
    assert str(tmp_path) not in str(error.value)
    X = np.ones((20, 3))
    X[7, 1] = np.nan
    write_table(tmp_path, X=X)
    with pytest.raises(data.DataError, match="1 rows that are not finite, the first is row 7"):
        data.load_table("yacht", tmp_path)


def test_normalisation_uses_training_rows_and_survives_constant_columns() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(3.0, 2.0, size=(30, 3))
    X[:, 1] = 0.1  # its mean is not exactly 0.1, so its deviation is not exactly 0
    X[:, 2] = 0.0
    Y = generator.normal(-5.0, 0.5, size=(30, 1))
    split = normalise(Split(X[:20], Y[:20], X[20:], Y[20:]))
    np.testing.assert_allclose(split.X_train[:, 0].mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X_train[:, 0].std(), 1.0)
    np.testing.assert_allclose(split.X_train[:, 1:], 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X_test[:, 1:], 0.0, atol=1e-12)
    np.testing.assert_allclose(split.Y_test * split.Y_scale + split.Y_mean, Y[20:])
