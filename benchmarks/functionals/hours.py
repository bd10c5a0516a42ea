"""Means over hours and days: a million hourly bins, and daily means of air quality."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays
from benchmarks.functionals.rows import errors, fitted, numbered, predicted
from interdomain.functionals import Mean, Value

HOURS_FOR_WAVES = 2.0
"""The box has an hour for each two waves: periods down to an hour."""
MARGIN = 10.0  # hours
SHORTEST, TYPICAL = 1.2, 4.0
"""The periods of the rate: the shortest, and a typical one, in hours."""
DAY, FEWEST_READINGS = 24, 20


def bins(*, model: str, rows: int, num_inducing: int, seed: int, **_: Any) -> dict[str, Any]:
    """Means over an hour at random times, used as means or as values; or values ("rate"), which
    are the reference for the cost of rows.

    The rate is a sum of 300 waves with normal frequencies. Its bands are compared with the rate at
    2,000 other times.
    """
    rng = np.random.default_rng(seed)
    length = num_inducing / HOURS_FOR_WAVES
    times = rng.uniform(MARGIN, length - MARGIN, (rows, 1))
    frequencies = np.clip(rng.normal(size=300) / TYPICAL, -1 / SHORTEST, 1 / SHORTEST)
    phases = rng.uniform(0, 2 * np.pi, 300)

    def rate(times: Array, width: float) -> Array:
        """The mean of the rate over bins."""
        values = [
            np.sinc(one * width) * np.cos(2 * np.pi * one * times + phase)
            for one, phase in zip(frequencies, phases, strict=True)
        ]
        return np.sqrt(2 / 300) * sum(values)  # type: ignore[no-any-return]

    width = 0.0 if model == "rate" else 1.0
    X, Y = times, rate(times, width) + rng.normal(size=times.shape)
    base = gpflow.kernels.Matern52(lengthscales=1.0)
    kernel = idm.kernels.Periodized(base, 0.0, length)
    waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, num_inducing)
    functionals = [Value(), Mean([1.0])] if model == "means" else []
    data = numbered(X, 1) if functionals else X, Y
    prior = idm.kernels.FiniteRank(kernel, waves)
    trained, found = fitted(data, prior, waves, functionals, noise_variance=1.0)
    new = rng.uniform(MARGIN, length - MARGIN, (2_000, 1))
    return found | errors(rate(new, 0.0), *predicted(trained, new, 0))


def days(*, model: str, num_days: int, seed: int, data_dir: str | None) -> dict[str, Any]:
    """Daily means of fine dust at a station, and the hours that they are means of.

    Days of fewer than 20 readings are no rows. A Matern-1/2 prior has splines of two hours.
    """
    arrays = load_arrays("beijing_pm25", data_dir)
    here = arrays["station"] == seed
    hours = np.asarray(arrays["X"], float)[here, 0]
    dust = np.asarray(arrays["Y"], float)[here, 0]
    hours, dust = hours[hours < DAY * num_days], dust[hours < DAY * num_days]
    which = (hours // DAY).astype(int)
    counts = np.bincount(which, minlength=num_days)
    sums = np.bincount(which, dust, minlength=num_days)
    known = np.flatnonzero(counts >= FEWEST_READINGS)
    centres, means = DAY * (known + 0.5), sums[known] / counts[known]
    new, truth = (hours + 0.5)[:, None], dust[:, None]
    if model in ("repeat", "linear"):
        step = known[np.abs(known[None] - which[:, None]).argmin(axis=1)]  # the nearest day
        repeated = np.interp(DAY * (step + 0.5), centres, means)
        guess = repeated if model == "repeat" else np.interp(new[:, 0], centres, means)
        return {"all_rows": len(known)} | errors(truth, guess[:, None])
    level, scale = means.mean(), means.std()
    prior = gpflow.kernels.Matern12(lengthscales=48.0)
    splines = idm.inducing_variables.SplineFeatures(0.0, DAY * num_days, DAY * num_days // 2, 1)
    day = Mean([DAY]) if model == "means" else Value()
    data = numbered(centres[:, None], 0), ((means - level) / scale)[:, None]
    trained, found = fitted(
        data,
        idm.kernels.FiniteRank(prior, splines),
        splines,
        [day, Mean([1.0])],
        noise_variance=0.01,
    )
    mean, variance = predicted(trained, new, 1)
    return found | errors(truth, level + scale * mean, scale**2 * variance)
