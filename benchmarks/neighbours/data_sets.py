"""The data sets, with their test rows: what a method is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks._lib.data import load_arrays
from benchmarks._lib.elevations import mountains, mountains_with_holes
from benchmarks._lib.flight_table import NOISE, flights, smooth_and_threshold
from benchmarks._lib.mixed_tables import grouped, made, rows_of_fold, standardised
from benchmarks._lib.race import Rows
from benchmarks._lib.splits import Split, normalise

TABLES = ("kin8nm", "power", "protein", "keggdirected", "beijing_pm25")
MADE = ("made_10000", "made_100000", "made_1000000")
GLOBE = "folds_precipitation"
FOLDS = (*(f"folds_{name}" for name in ("kin8nm", "power", "protein", "tetouan")), GLOBE)
FLIGHTS = ("flights", "flights_tails")
HOUSE = tuple(f"house_{part}{more}" for more in ("", "_covs") for part in ("inter", "extra"))
FROM_FILES = (*TABLES, *FOLDS, *HOUSE)
"""The other data sets need no `--data-dir`."""
TWO_COLUMNS = ("terrain", "holes", *MADE)
DATA = ("terrain", *TABLES, *MADE, *FOLDS, "holes", "stations", *FLIGHTS, "groups", *HOUSE)

MOST_ROWS, MOST_TESTED = 100_000, 10_000
"""Of a table."""
HOLES = np.linspace(10, 60, 20)
"""Their diameters in pixels."""
STATIONS, READINGS = 80, 300


@dataclass(frozen=True)
class Task:
    """What a method is given.

    :ivar known: What is known of the data, by name: the parameters that they were drawn with, or
        the answers of an exact GP.
    """

    data: str
    train: Rows
    test: Rows
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def on_globe(self) -> bool:
        return self.data == GLOBE


def task_of(data: str, data_dir: str | None, fold: int | None, rows: int | None) -> Task:
    """The rows of a data set.

    :param rows: to train with, at most.
    """
    if data == "stations":
        return stations()
    if data in HOUSE:
        return house(data, data_dir)
    (X, Y), test = _rows_of(data, data_dir, fold)
    return Task(data, (X[:rows], Y[:rows]), test)


def _rows_of(data: str, data_dir: str | None, fold: int | None) -> tuple[Rows, Rows]:
    """Rows to train with and test rows, without columns that are constant."""
    if data == "terrain":
        return mountains(1, 0)
    if data == "holes":
        return mountains_with_holes(0, HOLES)
    if data in MADE:
        return made(int(data.removeprefix("made_")))
    if data in FLIGHTS:
        return late_flights(tails=data == "flights_tails")
    if data == "groups":
        return grouped()
    if fold is not None:
        return rows_of_fold(data.removeprefix("folds_"), data_dir, fold)
    (X, Y), (X_test, Y_test) = standardised(data, data_dir)
    chosen = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    varies = X[chosen].std(axis=0) > 0
    held_out = X_test[:MOST_TESTED, varies], Y_test[:MOST_TESTED]
    return (X[chosen][:, varies], Y[chosen]), held_out


def stations() -> Task:
    """Readings at few places, with noise of variance one, of a GP with a Matern-3/2; test rows are
    values of the function at 2,000 places."""
    import gpflow

    rng, law = np.random.default_rng(0), {"variance": 1.0, "lengthscales": 0.55}
    places, new = (rng.uniform(-1, 1, (number, 2)) for number in (STATIONS, 2_000))
    covariance = np.asarray(gpflow.kernels.Matern32(**law)(np.r_[places, new]))
    root = np.linalg.cholesky(covariance + 1e-9 * np.eye(len(covariance)))
    f = root @ rng.normal(size=(len(root), 1))
    X, values = np.repeat(places, READINGS, axis=0), np.repeat(f[:STATIONS], READINGS, axis=0)
    Y = values + rng.normal(size=values.shape)
    return Task("stations", (X, Y), (new, f[STATIONS:]), {**law, "noise_variance": 1.0})


def late_flights(*, tails: bool) -> tuple[Rows, Rows]:
    """The made-up table of `pareto`: 100,000 rows and 10,000 to test, standardised.

    :param tails: whether noise is Student-t with three degrees of freedom, of the same scale.
    """
    parts, rng = [], np.random.default_rng(0)
    for number, test in ((MOST_ROWS, False), (MOST_TESTED, True)):
        X, Y = flights(number, test=test)
        if tails:
            Y = (smooth_and_threshold(X) + NOISE * rng.standard_t(3, len(X)))[:, None]
        parts += [X, Y]
    own = normalise(Split(*parts))
    return (own.X_train, own.Y_train), (own.X_test, own.Y_test)


def house(data: str, data_dir: str | None) -> Task:
    """Prices of houses with the answers of an exact GP, whose parameters are of these units: places
    in metres, with covariates in 10,000 m; y less its mean, with covariates y."""
    arrays = {name: np.asarray(part) for name, part in load_arrays("house_exact", data_dir).items()}
    part, more = data.split("_")[1], "_with_covs" if data.endswith("_covs") else ""
    offset = 0.0 if more else arrays["y_train"].mean()

    def rows(part: str) -> Rows:
        X, Y = arrays[f"xy_{part}"], arrays[f"y_{part}"][:, None] - offset
        if more:
            X = np.c_[X / 1e4, arrays[f"covs_{part}"].astype(float)]
        return X, Y

    noise, variance, length = arrays[f"exact_params{more}_noise_var_range"]
    answers = {each: arrays[f"exact_{each}_{part}{more}"].astype(float) for each in ("mean", "var")}
    known = {"variance": variance, "lengthscales": length, "noise_variance": noise, **answers}
    if more:  # the linear mean is not stored; it is the exact one far from all rows
        (X, _), means, variances = (
            rows("extra"),
            *(arrays[f"exact_{e}_extra{more}"] for e in answers),
        )
        far = variances >= (1 - 1e-5) * variances.max()
        columns = np.c_[X, np.ones(len(X))]
        known["slopes"], *_ = np.linalg.lstsq(columns[far], means[far].astype(float), rcond=None)
    return Task(data, rows("train"), rows(part), known)
