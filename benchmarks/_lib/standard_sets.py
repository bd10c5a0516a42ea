"""Sets of tables and maps with test rows; columns and targets of regressions standardised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks._lib.data import load_images, only_classes
from benchmarks._lib.elevations import jacksboro
from benchmarks._lib.flight_table import flights
from benchmarks._lib.image_models import labelled_rows
from benchmarks._lib.mixed_tables import BEIJING, banana, rows_of_fold, standardised
from benchmarks._lib.race import Rows
from benchmarks._lib.splits import Split, normalise, seeded_rows

TABLES = ("kin8nm", "power", "protein", "keggdirected", BEIJING)
UNSEEN = ("tetouan", "precipitation", "magic")
"""Of GPBoost's paper: `recommend` was finished before these were tried."""
CLASSES = ("banana", "mnist", "magic")
IMAGES = ("mnist",)
DATA = (*TABLES, "flights", "terrain", "banana", "mnist", *UNSEEN)
TWO_COLUMNS = ("terrain", "banana", "precipitation")
MADE = ("terrain", "flights")
"""Those that need no file."""
FLIGHTS = 200_000


def rows_of(data: str, folder: str | None) -> tuple[Rows, Rows]:
    """Rows to train with and test rows, in the order of the data."""
    train, test = _READERS.get(data, standardised)(data, folder)
    return train, test


def _halves(split: Split) -> tuple[Rows, Rows]:
    own = normalise(split)
    return (own.X_train, own.Y_train), (own.X_test, own.Y_test)


def _terrain(_: str, __: str | None) -> tuple[Rows, Rows]:
    heights = jacksboro()
    X, Y = np.argwhere(np.isfinite(heights)) / 100.0, heights.reshape(-1, 1)
    train, test = seeded_rows(len(X), 0)
    return _halves(Split(X[train], Y[train], X[test], Y[test]))


def _zeros_and_ones(_: str, folder: str | None) -> tuple[Rows, Rows]:
    images = only_classes(load_images("mnist", folder), 2)
    rows = labelled_rows(images, train=len(images.X_train), test=10_000, seed=0)
    return (rows.X_train, rows.Y_train), (rows.X_test, rows.Y_test)


_READERS: Mapping[str, Any] = {
    "flights": lambda _, __: _halves(Split(*flights(FLIGHTS), *flights(FLIGHTS // 10, test=True))),
    "terrain": _terrain,
    "banana": lambda _, folder: banana(folder),
    "mnist": _zeros_and_ones,
    **dict.fromkeys(UNSEEN, lambda name, folder: rows_of_fold(name, folder, 0)),
}
