"""Counts per hour and place: Poisson counts whose log rate has a daily cycle and weather."""

from __future__ import annotations

import time
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks.space_time.hours import SCALES, in_minibatches, space_time
from benchmarks.space_time.made_up import hourly
from benchmarks.space_time.rows import Clock, errors, predicted

LEVEL, SIZE = 0.5, 0.7
"""The log rate is this level plus this multiple of the signal of the hourly readings."""


def counts(
    *, model: str, stations: int, hours: int, num_inducing: int, seconds: float, seed: int, **_: Any
) -> dict[str, Any]:
    """The errors of the log rate, the coverage of its bands, and the negative log density of
    counts, at unseen stations, in gaps, and ahead.

    :param num_inducing: waves of space of "space_time", points of "svgp".
    :param seconds: the CPU seconds of the training of "svgp".
    """
    here = hourly(stations, hours, seed)
    log_rate = LEVEL + SIZE * here.rate
    number = np.random.default_rng(seed).poisson(np.exp(log_rate)).astype(float)
    X, (hour, station) = here.train[0], np.nonzero(here.kept)
    data = X, number[hour, station, None]
    likelihood, clock = gpflow.likelihoods.Poisson(), Clock()
    scales = np.ones(3)
    if model == "space_time":
        kernel, features = space_time(here, num_inducing, float(len(here.grid)))
        level = gpflow.functions.Constant(0.0)
        trained = idm.models.DualSVGP(
            data, kernel, likelihood, features, mean_function=level, progress=False
        )
        fit = idm.fit(trained, progress=False)
        found: dict[str, Any] = {"steps": fit.steps}
    else:
        scales, started = SCALES, time.process_time()
        data = X / scales, data[1]
        trained = in_minibatches(data, num_inducing, seconds, seed, started, likelihood)
        found = {}
    found |= {**clock.figures(), "num_inducing": num_inducing, "all_rows": len(X)}
    clock = Clock()
    for name, (hour, station) in here.tests.items():
        rows = here.rows(name)[0] / scales
        mean, variance = predicted(trained, rows, "predict_f")
        density = trained.likelihood.predict_log_density(
            rows, mean, variance, number[hour, station, None]
        )
        truth = log_rate[hour, station, None]
        found[name] = errors(truth, mean, variance) | {"nll": -float(np.mean(density))}
    return {**found, "predict_seconds": clock.figures()["seconds"]}
