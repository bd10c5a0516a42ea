"""Tables in their units, some with columns of categories; banana, and functions made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks._lib.data import Array, Table, load_arrays, load_table
from benchmarks._lib.race import Rows
from benchmarks._lib.splits import Split, normalise, take_split

FRIEDMAN, BEIJING = "friedman", "beijing_pm25"
LEVELS, UNSEEN, PER_LEVEL = 5_000, 50, 10
"""Groups in training rows, further ones among test rows, and the mean number of rows of each."""
MADE_TESTED = 10_000


@dataclass(frozen=True)
class Data:
    """A split in its units, columns that vary only, and which of these are categories."""

    split: Split
    categorical: tuple[int, ...]


def data_of(data: str, split: int, rows: int | None, data_dir: str | None) -> Data:
    """The rows of a split.

    :param rows: of the table that is made up.
    """
    categorical: tuple[int, ...] = ()
    if data == FRIEDMAN:
        table = Table(data, *friedman(int(rows or 0), 0))
    elif data == BEIJING:
        arrays = load_arrays(data, data_dir)
        X = np.column_stack([np.asarray(arrays["X"], float), arrays["station"]])
        table = Table(data, X, np.log(np.asarray(arrays["Y"], float)))
        categorical = (X.shape[1] - 1,)
    else:
        table = load_table(data, data_dir)
    found = take_split(table, split)
    varies = np.ptp(found.X_train, axis=0) > 0
    parts = found.X_train[:, varies], found.Y_train, found.X_test[:, varies], found.Y_test
    return Data(Split(*parts), categorical)


def standardised(data: str, data_dir: str | None) -> tuple[Rows, Rows]:
    """Rows to train with and test rows of the first split, as numbers."""
    found = data_of(data, 0, None, data_dir)
    X_train, X_test = indicators(found)
    own = normalise(found.split)
    return (X_train, own.Y_train), (X_test, own.Y_test)


def rows_of_fold(name: str, data_dir: str | None, fold: int) -> tuple[Rows, Rows]:
    """Rows to train with and test rows as in GPBoost's full-scale Vecchia paper: one of five
    shuffled folds of seed 10, columns in [0, 1].

    :param name: a table, "tetouan" or "precipitation", whose targets are standardised (the latter's
        logarithms; columns are degrees of latitude and longitude); or "magic", classes 0 and 1.
    """
    from sklearn.model_selection import KFold

    if name in ("kin8nm", "power", "protein"):
        table = load_table(name, data_dir)
        X, Y = table.X, table.Y
    elif name == "precipitation":
        arrays = load_arrays(name, data_dir)
        X, Y = np.c_[arrays["lat"], arrays["lon"]], np.log(arrays["value"].astype(float))
    else:
        arrays = load_arrays(name, data_dir)
        X, Y = arrays["X"], arrays["y"]
    X, Y = X.astype(float), Y.astype(float).reshape(len(X), -1)
    if name != "precipitation":
        X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    train, test = list(KFold(5, shuffle=True, random_state=10).split(X))[fold]
    if name != "magic":
        Y = (Y - Y[train].mean(axis=0)) / Y[train].std(axis=0)
    return (X[train], Y[train]), (X[test], Y[test])


def banana(data_dir: str | None) -> tuple[Rows, Rows]:
    """Of two inputs: training and test rows, inputs standardised; classes 0 and 1."""
    arrays = {name: part.astype(float) for name, part in load_arrays("banana", data_dir).items()}
    own = normalise(Split(*(arrays[name] for name in ("X", "Y", "X_test", "Y_test"))))
    return (own.X_train, arrays["Y"]), (own.X_test, arrays["Y_test"])


def friedman(rows: int, seed: int) -> tuple[Array, Array]:
    """Friedman's function of the first five of ten columns, with noise of variance one."""
    generator = np.random.default_rng([seed, 1])  # not the one that draws the rows for testing
    X = generator.uniform(size=(rows, 10))
    a, b, c, d, e = X[:, :5].T
    f = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return X, (f + generator.normal(size=rows))[:, None]


def rough_function(rng: np.random.Generator) -> Callable[[Array], Array]:
    """A smooth function of two columns, and a Matern-1/2-like sum of waves."""
    frequencies, phases = rng.standard_cauchy((2, 2_000)) * 10, rng.uniform(0, 2 * np.pi, 2_000)

    def function(X: Array) -> Array:
        parts = np.array_split(X, max(1, len(X) // 10_000))
        waves = [np.cos(part @ frequencies + phases).mean(axis=1) for part in parts]
        rough = np.sqrt(2_000) * np.concatenate(waves)
        return np.asarray(2 * np.sin(2 * X[:, 0] + X[:, 1]) + 0.5 * rough)

    return function


def made(number: int) -> tuple[Rows, Rows]:
    """Rows of a smooth and a rough function, and 10,000 to test."""
    rng = np.random.default_rng(0)
    function = rough_function(rng)
    X = rng.uniform(-1, 1, (number + MADE_TESTED, 2))
    Y = (function(X) + 0.05 * rng.normal(size=len(X)))[:, None]
    return (X[:number], Y[:number]), (X[number:], Y[number:])


def grouped() -> tuple[Rows, Rows]:
    """Rows of two columns of places and one of groups: `made`, an intercept of deviation one for
    each group, and noise of deviation 0.3. Of the test rows 1% are of groups without rows."""
    rng = np.random.default_rng(0)
    function, intercepts = rough_function(rng), rng.normal(size=LEVELS + UNSEEN)
    parts = []
    for number, levels in ((LEVELS * PER_LEVEL, LEVELS), (MADE_TESTED, LEVELS + UNSEEN)):
        X, groups = rng.uniform(-1, 1, (number, 2)), rng.integers(levels, size=number)
        y = function(X) + intercepts[groups] + 0.3 * rng.normal(size=number)
        parts.append((np.c_[X, groups], y[:, None]))
    return parts[0], parts[1]


def indicators(data: Data) -> tuple[Array, Array]:
    """X of training and of test rows, normalised, with one column for each category."""
    split = data.split
    parts = []
    for X in (split.X_train, split.X_test):
        columns = [X[:, k] for k in range(X.shape[1]) if k not in data.categorical]
        for k in data.categorical:
            columns += list((X[:, k] == np.unique(split.X_train[:, k])[:, None]).astype(float))
        parts.append(np.stack(columns, axis=1))
    own = normalise(Split(parts[0], split.Y_train, parts[1], split.Y_test))
    return own.X_train, own.X_test
