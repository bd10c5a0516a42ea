"""Hourly readings of stations: sums of terms on splines of time, and other models."""

from __future__ import annotations

import time
from typing import Any

import gpflow
import numpy as np
from gpflow.kernels import Matern32, Matern52

import interdomain as idm
from benchmarks._lib import race
from benchmarks._lib.data import Array
from benchmarks.space_time.made_up import DAY, Hourly, hourly
from benchmarks.space_time.rows import (
    Clock,
    Pair,
    cycle,
    errors,
    fitted,
    plus,
    predicted,
    times,
    waves,
)

HOURS_OF_A_KNOT = 3.0
WAVES_OF_THE_CYCLE = {"space": 16, "day": 5}
LENGTH, HOURS = 0.5, 24.0
"""Starting values of the lengthscales."""
MARGIN = 2.0
"""The margin of the box of waves of space, in lengthscales."""
FIRST_HOURS = 500.0
"""Training starts with the rows before this hour."""
SCALES = np.array([LENGTH, LENGTH, HOURS])
"""Divisors of the columns for other models: for the distances of k-means."""


def space_time(here: Hourly, num_space: int, last: float) -> Pair:
    """The weather, waves of space times splines of time, and a daily cycle that varies in space:
    waves of space times waves of a day, without splines.

    :param last: the end of the splines' interval, in hours.
    """
    first = -1.0
    count = int((last - first) / HOURS_OF_A_KNOT) + 2
    splines = idm.inducing_variables.SplineFeatures(first, last, count, 2)

    def space(variance: float, count: int) -> Pair:
        base = Matern52(variance=variance, lengthscales=[LENGTH, LENGTH])
        return waves(base, here.places, [0, 1], count, MARGIN)

    weather = times(space(1.0, num_space), (Matern32(lengthscales=HOURS, active_dims=[2]), splines))
    few, harmonics = WAVES_OF_THE_CYCLE["space"], WAVES_OF_THE_CYCLE["day"]
    day = cycle(Matern52(lengthscales=DAY / 3), DAY, 2, harmonics)
    return plus([weather, times(space(0.5, few), day)])


def hours(
    *, model: str, stations: int, hours: int, num_inducing: int, seconds: float, seed: int, **_: Any
) -> dict[str, Any]:
    """The errors at unseen stations, in gaps of a day, and up to a day ahead.

    :param num_inducing: waves of space of "space_time", waves of "waves", points of "svgp", and
        neighbours of "neighbours" and "neighbours, cycle".
    :param seconds: the CPU seconds of the training of "svgp".
    """
    here = hourly(stations, hours, seed)
    if model in NAIVE:
        return {"all_rows": len(here.train[0])} | {
            name: errors(here.rows(name)[1], guess[:, None])
            for name in here.tests
            if (guess := NAIVE[model](here, *here.tests[name])) is not None
        }
    trained, found, scales = _trained(model, here, num_inducing, seconds, seed)
    clock = time.perf_counter()
    for name in here.tests:
        X, Y = here.rows(name)
        found[name] = errors(Y, *predicted(trained, X / scales))
    found["predict_seconds"] = time.perf_counter() - clock
    return {**found, "peak_bytes": Clock().figures()["peak_bytes"]}


def _trained(
    model: str, here: Hourly, num_inducing: int, seconds: float, seed: int
) -> tuple[Any, dict[str, Any], Array]:
    """The model, the figures of its training, and the divisors of its columns."""
    (X, Y), scales = here.train, np.ones(3)
    if model == "space_time":
        return *trained_twice(here, num_inducing), scales
    scales = SCALES
    data = X / scales, Y
    if model == "waves":
        box = [[*here.places.min(axis=0), 0.0], [*here.places.max(axis=0), len(here.grid)]]
        base = Matern32(lengthscales=np.ones(3))
        pair = waves(base, np.array(box) / scales, [0, 1, 2], num_inducing, 4.0)
        prior = idm.kernels.FiniteRank(*pair), pair[1]
        return *fitted(data, prior, noise_variance=0.1), scales
    clock = Clock()
    if model == "svgp":
        trained = in_minibatches(data, num_inducing, seconds, seed, time.process_time())
    else:
        features: Any = [None, None]
        if model == "neighbours, cycle":
            few, harmonics = WAVES_OF_THE_CYCLE["space"], WAVES_OF_THE_CYCLE["day"]
            base = Matern52(variance=0.5, lengthscales=[1.0, 1.0])
            of_space = waves(base, here.places / scales[:2], [0, 1], few, MARGIN)
            day = cycle(Matern52(lengthscales=DAY / 3 / HOURS), DAY / HOURS, 2, harmonics)
            features = times(of_space, day)
        trained = idm.models.VecchiaSGPR(data, *features, num_neighbours=num_inducing)
        idm.fit(trained, progress=False)
    return trained, {**clock.figures(), "num_inducing": num_inducing, "all_rows": len(X)}, scales


def trained_twice(here: Hourly, num_space: int) -> tuple[Any, dict[str, Any]]:
    """The model of all rows, whose training starts from the parameters of the first hours."""
    (X, Y), clock = here.train, Clock()
    few = X[:, 2] < FIRST_HOURS
    first = space_time(here, num_space, FIRST_HOURS)
    start, _ = fitted((X[few], Y[few]), first, noise_variance=0.1)
    pair = space_time(here, num_space, float(len(here.grid)))  # the forecast is inside
    gpflow.utilities.multiple_assign(pair[0], gpflow.utilities.parameter_dict(first[0]))
    model, found = fitted((X, Y), pair, noise_variance=start.likelihood.variance.numpy())
    return model, {**found, **clock.figures(), "all_hours_cpu": found["cpu_seconds"]}


def in_minibatches(
    data: race.Rows,
    num_inducing: int,
    seconds: float,
    seed: int,
    started: float,
    likelihood: Any = None,
) -> Any:
    """GPflow's SVGP of a kernel with the same terms, in minibatches, until the time has passed."""
    places = {"lengthscales": [1.0, 1.0], "active_dims": [0, 1]}
    weather = Matern52(**places) * Matern32(active_dims=[2])
    day = gpflow.kernels.Periodic(Matern52(active_dims=[2]), period=DAY / HOURS)
    kernel = weather + Matern52(variance=0.5, **places) * day
    for fixed in (weather.kernels[1].variance, day.base_kernel.variance, day.period):
        gpflow.set_trainable(fixed, False)
    model = race.stock(data, num_inducing, kernel, seed, likelihood)
    if likelihood is not None:
        model.mean_function = gpflow.functions.Constant(0.0)

    def stop(step: int, model: Any) -> None:
        if time.process_time() - started > seconds:
            raise idm.training.StopFit("the time has passed")

    size = min(race.BATCH_SIZE, len(data[0]))
    options = {"every": 5, "seed": seed}
    calls: dict[str, Any] = {"callbacks": [stop], "options": options, "progress": False}
    idm.fit(model, data, steps=10**6, batch_size=size, **calls)
    return model


def nearest(here: Hourly, hour: Any, station: Any) -> Array | None:
    """The mean of the four nearest stations with a reading at the same hour."""
    if hour.max() >= len(here.grid) - DAY:
        return None
    distances = np.linalg.norm(here.places[:, None] - here.places[None], axis=2)
    order = np.argsort(distances, axis=1)[:, 1:]
    known = here.kept[hour[:, None], order[station]]
    chosen = np.argsort(~known, axis=1, kind="stable")[:, :4]
    found = np.take_along_axis(order[station], chosen, axis=1)
    return np.asarray(here.grid[hour[:, None], found].mean(axis=1))


def yesterday(here: Hourly, hour: Any, station: Any) -> Array | None:
    """The last reading of the station at the same hour of a previous day."""
    if not here.kept[:, station].any(axis=0).all():
        return None
    before = hour - DAY
    while not (here.kept[before, station] | (before < 0)).all():
        before = np.where(here.kept[before, station] | (before < 0), before, before - DAY)
    return np.asarray(here.grid[np.where(before < 0, hour + DAY, before), station])


NAIVE = {"nearest": nearest, "yesterday": yesterday}
