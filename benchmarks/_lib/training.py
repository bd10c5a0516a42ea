"""Trainings by minibatches or L-BFGS with a curve of what is evaluated on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import interdomain as idm


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
    """Train by `fit`, evaluating `points` times, which does not count.

    :param evaluate: returns figures of the model, by name.
    :param settings: for `fit`: batch_size, optimizer, ...
    :returns: "curve", "train_seconds" and "seconds_per_step": the median over the segments of the
        curve but the first, which holds the tracing.
    """
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
