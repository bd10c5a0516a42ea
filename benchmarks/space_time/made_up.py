"""Made-up hourly readings of stations: a daily cycle that varies in space, weather, and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks._lib.data import Array
from benchmarks._lib.race import Rows

DAY = 24
"""The hours of a day: the length of gaps, and of the time after the last training row."""
MISSING, GAPS_OF_A_STATION, UNSEEN = 0.05, 2, 0.1
"""The share of readings that are missing at random; the number of gaps of a day at each station;
and the stations without training rows, as a share of the others."""
NOISE = 0.2
"""The standard deviation of the noise; the standard deviation of the weather is one."""
WEATHER_HOURS, WEATHER_LENGTH, CYCLE_LENGTH = 24.0, 0.5, 0.7
"""The lengthscales of the weather in time and space, and of the cycle in space. The stations are in
a square with sides of one."""
MOST_TEST_ROWS = 20_000


@dataclass(frozen=True)
class Hourly:
    """Readings of stations by the hour: X has the columns place (two) and time.

    :ivar places: The places of all stations ``[S, 2]``; the last ones have no training rows.
    :ivar grid: All readings, also missing and future ones, ``[T + 24, S]``.
    :ivar rate: The readings without noise, ``[T + 24, S]``.
    :ivar tests: The test rows by name, as indices (hour, station): "unseen" stations, "gap" for
        gaps of a day, and "ahead" for the 24 hours after the last training row.
    """

    train: Rows
    kept: NDArray[np.bool_]
    places: Array
    grid: Array
    rate: Array
    tests: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]

    def rows(self, name: str) -> Rows:
        """The test rows of that name."""
        hour, station = self.tests[name]
        return rows_at(self.places, hour, station), self.grid[hour, station, None]


def rows_at(places: Array, hour: NDArray[np.int64], station: NDArray[np.int64]) -> Array:
    return np.column_stack([places[station], hour.astype(float)])


def hourly(stations: int, hours: int, seed: int) -> Hourly:
    """Readings of stations in a square, and the test rows.

    The weather is an AR(2)-like process by the hour, whose states are mixed over space by a
    Cholesky factor: no features of this library are used.
    """
    rng = np.random.default_rng(seed)
    count = stations + max(round(UNSEEN * stations), 1)
    places = rng.uniform(size=(count, 2))
    signal = cycle(places, hours + DAY, rng) + weather(places, hours + DAY, rng)
    grid = signal + NOISE * rng.normal(size=signal.shape)
    kept = rng.uniform(size=grid.shape) >= MISSING
    gaps = np.zeros_like(kept)
    for number in range(stations):
        for start in rng.integers(hours - DAY, size=GAPS_OF_A_STATION):
            gaps[start : start + DAY, number] = True
    kept &= ~gaps
    kept[:, stations:], kept[hours:] = False, False
    unseen = np.zeros_like(kept)
    unseen[:hours, stations:] = True
    ahead = np.zeros_like(kept)
    ahead[hours:, :stations] = True
    tests = {}
    for name, mask in (("unseen", unseen), ("gap", gaps), ("ahead", ahead)):
        found = np.argwhere(mask)
        found = found[rng.permutation(len(found))[:MOST_TEST_ROWS]]
        tests[name] = (found[:, 0], found[:, 1])
    hour, station = np.nonzero(kept)
    train = rows_at(places, hour, station), grid[hour, station, None]
    return Hourly(train, kept, places, grid, signal, tests)


def smooth(places: Array, length: float) -> Array:
    """The Cholesky factor of a Matern-5/2 covariance between places."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=2) * np.sqrt(5) / length
    covariance = (1 + distances + np.square(distances) / 3) * np.exp(-distances)
    return np.linalg.cholesky(covariance + 1e-8 * np.eye(len(places)))


def cycle(places: Array, hours: int, rng: np.random.Generator) -> Array:
    """A level and a daily cycle by place, ``[hours, S]``; amplitude and phase vary in space."""
    parts = smooth(places, CYCLE_LENGTH) @ rng.normal(size=(len(places), 5))
    level, cosine, sine, *half = parts.T
    angles = 2 * np.pi * np.arange(hours)[:, None] / DAY
    values = 0.5 * level + (1 + 0.5 * cosine) * np.cos(angles) + 0.5 * sine * np.sin(angles)
    return np.asarray(
        values + 0.2 * half[0] * np.cos(2 * angles) + 0.2 * half[1] * np.sin(2 * angles)
    )


def weather(places: Array, hours: int, rng: np.random.Generator) -> Array:
    """A Matern-3/2 process of time at each place, correlated in space, ``[hours, S]``.

    The state of value and slope follows its exact transition from hour to hour.
    """
    rate = np.sqrt(3) / WEATHER_HOURS
    decay = np.exp(-rate)
    transition = decay * np.array([[1 + rate, 1.0], [-(rate**2), 1 - rate]])
    stationary = np.diag([1.0, rate**2])
    innovation = np.linalg.cholesky(stationary - transition @ stationary @ transition.T)
    factor = smooth(places, WEATHER_LENGTH)
    state = np.linalg.cholesky(stationary) @ rng.normal(size=(2, len(places)))
    values = np.empty([hours, len(places)])
    for hour in range(hours):
        values[hour] = state[0]
        state = transition @ state + innovation @ rng.normal(size=(2, len(places)))
    return np.asarray(values @ factor.T)
