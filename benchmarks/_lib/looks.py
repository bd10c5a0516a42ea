"""Training with evaluations ("looks") at given times, after given steps, or after every few steps.
The default clock counts CPU seconds of this process, which other programs hardly change."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Trace = list[dict[str, float]]
"""The "seconds", the "steps" and the figures of each evaluation, by name."""

MOST_STEPS = 10**6


def trained_with_looks(
    model: Any,
    data: tuple[NDArray[Any], NDArray[Any]],
    evaluate: Callable[[Any], Mapping[str, float]],
    *,
    seconds: Sequence[float],
    started: float,
    steps: Sequence[int] = (),
    clock: Callable[[], float] = time.process_time,
    options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Trace:
    """Train until all times have passed, and evaluate the model after each time and after each
    number of steps; the clock does not count evaluations.

    :param evaluate: returns the figures of the model, by name.
    :param seconds: the times, in rising order.
    :param started: when the clock started.
    :param options: options of `idm.fit`; `arguments` are arguments of `idm.fit`.
    """
    import interdomain as idm

    trace: Trace = []
    apart, over = 0.0, 0

    def look(step: int, model: Any) -> None:
        nonlocal apart, over
        before = clock()
        passed = before - started - apart
        due = sum(passed >= one for one in seconds)
        if due > over or step in steps:
            trace.append({"seconds": passed, "steps": float(step), **evaluate(model)})
            apart += clock() - before
        over = due
        if over == len(seconds):
            raise idm.training.StopFit("all times have passed")

    idm.fit(
        model,
        data,
        steps=MOST_STEPS,
        callbacks=[look],
        progress=False,
        options={"every": 1, **(options or {})},
        **arguments,
    )
    return trace


def train(
    model: Any,
    data: Any,
    evaluate: Callable[[Any], Mapping[str, float]],
    *,
    steps: int,
    points: int = 20,
    seed: int = 0,
    **settings: Any,
) -> dict[str, Any]:
    """Train by `fit`, and evaluate `points` times; the clock does not count evaluations.

    :param evaluate: returns figures of the model, by name.
    :param settings: settings of `fit`: batch_size, optimizer, ...
    :returns: "curve", "train_seconds" and "seconds_per_step": the median over the segments of the
        curve except the first, which includes the tracing.
    """
    import interdomain as idm

    curve: list[dict[str, float]] = []
    seconds, since = 0.0, time.perf_counter()

    def look(step: int, model: Any) -> None:
        nonlocal seconds, since
        seconds += time.perf_counter() - since
        if not curve or step > curve[-1]["step"]:
            curve.append({"step": step, "seconds": seconds, **evaluate(model)})
        since = time.perf_counter()

    options: dict[str, Any] = {"every": max(1, steps // points)}
    if settings.get("batch_size") is not None:
        options["seed"] = seed
    idm.fit(model, data, steps=steps, callbacks=[look], options=options, **settings)
    passed = np.diff([0.0, *(point["seconds"] for point in curve)])
    per_step = passed / np.diff([0, *(point["step"] for point in curve)])
    return {
        "curve": curve,
        "train_seconds": curve[-1]["seconds"],
        "seconds_per_step": float(np.median(per_step[1:] if len(per_step) > 1 else per_step)),
    }


def bound_per_row(
    model: Any, X: NDArray[Any], Y: NDArray[Any], num_data: int
) -> Callable[[], float]:
    """A function that estimates the ELBO for each row, always on the same rows; compiled once."""
    import tensorflow as tf

    rows = (tf.constant(X), tf.constant(Y))
    elbo = tf.function(lambda: model.elbo(rows))
    return lambda: float(elbo()) / num_data


def compared(
    traces: Sequence[Trace],
    steps: Sequence[int],
    seconds: Sequence[float],
    figures: Callable[[Mapping[str, float]], list[str]],
) -> tuple[int | None, list[dict[str, Any]]]:
    """The largest of `steps` that all trainings have reached, and a table row for each training.

    A row has the figures after that step ("then_0", ...) and the first figure at each time
    ("by_time"). It has the figures at the last time ("last_0", ...), its "steps", and "per_step".
    Figures without an evaluation are left out.
    :param figures: returns the figures of an evaluation, as text.
    """
    reached = [{one["steps"] for one in trace} for trace in traces]
    step = max((step for step in steps if all(step in one for one in reached)), default=None)
    rows = []
    for trace in traces:
        at_times = [next((p for p in trace if p["seconds"] >= time), None) for time in seconds]
        by_time = ("-" if one is None else figures(one)[0] for one in at_times)
        row: dict[str, Any] = {"by_time": " / ".join(by_time), "per_step": seconds_per_step(trace)}
        then = next((one for one in trace if one["steps"] == step), None)
        for name, look in (("then", then), ("last", at_times[-1])):
            if look is not None:
                row |= {f"{name}_{k}": text for k, text in enumerate(figures(look))}
        if at_times[-1] is not None:
            row["steps"] = f"{at_times[-1]['steps']:.0f}"
        rows.append(row)
    return step, rows


def seconds_per_step(trace: Trace) -> float:
    """Seconds per step between the first evaluation and the last, which excludes the start."""
    first, last = trace[0], trace[-1]
    if last["steps"] == first["steps"]:
        return last["seconds"] / max(last["steps"], 1.0)
    return (last["seconds"] - first["seconds"]) / (last["steps"] - first["steps"])
