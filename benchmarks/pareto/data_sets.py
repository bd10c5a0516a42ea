"""The nine data sets, with their test rows; columns and targets of a regression standardised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import load_arrays, load_images, only_classes
from benchmarks._lib.flight_table import flights
from benchmarks._lib.image_models import labelled_rows
from benchmarks._lib.mixed_tables import BEIJING, data_of, indicators
from benchmarks._lib.race import Rows
from benchmarks._lib.splits import Split, normalise, seeded_rows

TABLES = ("kin8nm", "power", "protein", "keggdirected", BEIJING)
CLASSES = ("banana", "mnist")
DATA = (*TABLES, "flights", "terrain", *CLASSES)
MADE = ("terrain", "flights")
"""Those that need no file."""
FLIGHTS = 200_000


def rows_of(data: str, folder: Path | None) -> tuple[Rows, Rows]:
    """Rows to train with and test rows, in the order of the data."""
    train, test = _READERS.get(data, _table)(data, folder)
    return train, test


def _table(name: str, folder: Path | None) -> tuple[Rows, Rows]:
    found = data_of(name, 0, None, None if folder is None else str(folder))
    X_train, X_test = indicators(found)
    own = normalise(found.split)
    return (X_train, own.Y_train), (X_test, own.Y_test)


def _halves(split: Split) -> tuple[Rows, Rows]:
    own = normalise(split)
    return (own.X_train, own.Y_train), (own.X_test, own.Y_test)


def _flights(_: str, __: Path | None) -> tuple[Rows, Rows]:
    parts = [
        [np.concatenate(part) for part in zip(*flights(0, count, test=test), strict=True)]
        for count, test in ((FLIGHTS, False), (FLIGHTS // 10, True))
    ]
    return _halves(Split(*parts[0], *parts[1]))


def _terrain(_: str, __: Path | None) -> tuple[Rows, Rows]:
    from matplotlib.cbook import get_sample_data

    with get_sample_data("jacksboro_fault_dem.npz") as file:
        height = file["elevation"].astype(float)
    X, Y = np.argwhere(np.isfinite(height)) / 100.0, height.reshape(-1, 1)
    train, test = seeded_rows(len(X), 0)
    return _halves(Split(X[train], Y[train], X[test], Y[test]))


def _banana(_: str, folder: Path | None) -> tuple[Rows, Rows]:
    arrays = {name: values.astype(float) for name, values in load_arrays("banana", folder).items()}
    mean, scale = arrays["X"].mean(axis=0), arrays["X"].std(axis=0)
    return (
        ((arrays["X"] - mean) / scale, arrays["Y"]),
        ((arrays["X_test"] - mean) / scale, arrays["Y_test"]),
    )


def _zeros_and_ones(_: str, folder: Path | None) -> tuple[Rows, Rows]:
    images = only_classes(load_images("mnist", folder), 2)
    rows = labelled_rows(images, train=len(images.X_train), test=10_000, seed=0)
    return (rows.X_train, rows.Y_train), (rows.X_test, rows.Y_test)


_READERS: Mapping[str, Any] = {
    "flights": _flights,
    "terrain": _terrain,
    "banana": _banana,
    "mnist": _zeros_and_ones,
}
