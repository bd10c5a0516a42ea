"""A synthetic table of flights, with the size of the airline table that is no longer available
(Hensman, Fusi and Lawrence 2013).

Rows are independent. T = 1,440 minutes is a day.
age         of the aircraft, years: gamma with shape 3 and mean 12, at most 45.
distance    miles: log-normal, median 600, at most 5,000.
airtime     minutes: 18 + 0.118 distance + normal noise of standard deviation 8.
departure   minutes after midnight: 35% normal around 7:40, 40% normal around 17:20, the rest
            uniform between 6:00 and 22:00.
arrival     minutes after midnight, modulo T: departure + airtime + 25, shifted by -3 to 3 time
            zones, more often for long distances.
weekday     1 to 7, fewer on 6. day, 1 to 31, and month, 1 to 12, are uniform.

The delay, in minutes, is the sum of

    12 c(departure) (1 + 0.6 s(month))   delays grow during the day, more so in summer.
                                         c(t) = -cos(2 pi (t - 300) / T).
                                         s(m) = cos(2 pi (m - 7) / 12).
    4 cos(4 pi (month - 1) / 12)         winter and summer, not spring and autumn.
    5 tanh((distance - 800) / 500).
    4 s(month) tanh((distance - 800) / 500).
    -3 c(arrival).
    4 exp(-((weekday - 4.5) / 1.2)^2) (1 + c(departure))    Thursday and Friday evenings.
    2.5 sin(2 pi day / 31).
    3 log(1 + age / 5).
    6 if age is above 20 and departure is after 20:00    the only part that is not smooth.

and of noise with mean zero, standard deviation `NOISE` and a long tail to late flights: 0.8 times a
standard normal plus 0.6 times (an exponential minus one). Its variance is four times that of the
sum. So the mean squared error of a normalised delay cannot be much below 0.8.
"""

from __future__ import annotations

import numpy as np

from benchmarks._lib.data import Array

COLUMNS = ("age", "distance", "airtime", "departure", "arrival", "weekday", "day", "month")
TRAIN_ROWS = 3_952_942
NOISE = 22.0
DAY = 1_440.0
_BLOCK = 2**15  # rows that one generator draws


def flights(count: int, *, test: bool = False) -> tuple[Array, Array]:
    """The first rows, X [count, 8] and Y [count, 1], of the training or of the test table. A row
    depends only on its number and on `test`."""
    X, Y = np.empty((count, len(COLUMNS))), np.empty((count, 1))
    for start in range(0, count, _BLOCK):
        rng = np.random.default_rng([0, int(test), start // _BLOCK])
        rows = slice(start, min(start + _BLOCK, count))
        X[rows], Y[rows] = (values[: rows.stop - start] for values in _draw(rng, _BLOCK))
    return X, Y


def smooth_and_threshold(X: Array) -> Array:
    """The delay without its noise, minutes, [N]."""
    age, distance, _, departure, arrival, weekday, day, month = X.T
    summer = np.cos(2.0 * np.pi * (month - 7.0) / 12.0)
    piled, far = _daily(departure), np.tanh((distance - 800.0) / 500.0)
    return (
        12.0 * piled * (1.0 + 0.6 * summer)
        + 4.0 * np.cos(4.0 * np.pi * (month - 1.0) / 12.0)
        + 5.0 * far
        + 4.0 * summer * far
        - 3.0 * _daily(arrival)
        + 4.0 * np.exp(-np.square((weekday - 4.5) / 1.2)) * (1.0 + piled)
        + 2.5 * np.sin(2.0 * np.pi * day / 31.0)
        + 3.0 * np.log1p(age / 5.0)
        + 6.0 * ((age > 20.0) & (departure > 1_200.0))
    )


def _daily(minutes: Array) -> Array:
    return -np.cos(2.0 * np.pi * (minutes - 300.0) / DAY)


def _draw(rng: np.random.Generator, number: int) -> tuple[Array, Array]:
    age = np.minimum(rng.gamma(3.0, 4.0, number), 45.0)
    distance = np.minimum(600.0 * np.exp(0.65 * rng.normal(size=number)), 5_000.0)
    airtime = np.maximum(18.0 + 0.118 * distance + 8.0 * rng.normal(size=number), 12.0)
    wave = rng.random(number)
    departure = np.where(
        wave < 0.35,
        460.0 + 75.0 * rng.normal(size=number),
        np.where(
            wave < 0.75,
            1_040.0 + 120.0 * rng.normal(size=number),
            rng.uniform(360.0, 1_320.0, number),
        ),
    )
    departure = np.mod(departure, DAY)
    zones = np.clip(np.round(distance / 900.0 * rng.uniform(-1.0, 1.0, number)), -3.0, 3.0)
    arrival = np.mod(departure + airtime + 25.0 + 60.0 * zones, DAY)
    shares = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.8, 0.95])
    weekday = 1.0 + rng.choice(7, size=number, p=shares / shares.sum())
    day = 1.0 + rng.integers(31, size=number)
    month = 1.0 + rng.integers(12, size=number)
    X = np.stack([age, distance, airtime, departure, arrival, weekday, day, month], axis=1)
    skewed = 0.8 * rng.normal(size=number) + 0.6 * (rng.exponential(size=number) - 1.0)
    return X, (smooth_and_threshold(X) + NOISE * skewed)[:, None]
