"""Long trainings that can be interrupted: `training.fit` with checkpoints and a stored curve.

The folder of a training holds fit's checkpoints and `curve.jsonl`, one line per evaluation: the
step, the seconds trained until then (evaluations and checkpoints of earlier lines excluded), and
what the evaluation returned. A training that is run again continues from its last checkpoint; lines
after that step are dropped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.results import configuration_key

Point = dict[str, float]  # "step", "seconds", and what the evaluation returned


def training_folder(
    results: Path, name: str, configuration: Mapping[str, Any], *, start_afresh: bool
) -> Path:
    """Where the training of one configuration keeps its checkpoints; git ignores it."""
    key = hashlib.sha256(configuration_key(configuration).encode()).hexdigest()[:12]
    folder = results / "checkpoints" / f"{name}_{key}"
    if start_afresh and folder.exists():
        shutil.rmtree(folder)
    return folder


class Curve:
    """A callback of `fit` that keeps the curve of a training in a file."""

    def __init__(self, path: Path, evaluate: Callable[[Any], Mapping[str, float]]) -> None:
        self._path, self._evaluate = path, evaluate
        self._points: list[Point] | None = None
        self._clock = time.perf_counter()

    def __call__(self, step: int, model: Any) -> Mapping[str, float]:
        seconds = time.perf_counter() - self._clock
        stored = read_curve(self._path)
        if self._points is None:  # the first evaluation of this run: forget what was undone
            if any(point["step"] == step for point in stored):
                return {}  # the training had ended
            self._points = [point for point in stored if point["step"] < step]
        if self._points:
            seconds += self._points[-1]["seconds"]
        values = dict(self._evaluate(model))
        self._points.append({"step": step, "seconds": seconds, **values})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("".join(json.dumps(point) + "\n" for point in self._points))
        self._clock = time.perf_counter()
        return values


def read_curve(path: Path) -> list[Point]:
    """The points in a file; none when there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def seconds_per_step(curve: Sequence[Point]) -> float:
    """The median over the segments but the first, which holds the tracing."""
    steps = np.diff([0, *(point["step"] for point in curve)])
    seconds = np.diff([0.0, *(point["seconds"] for point in curve)])
    per_step = seconds / steps
    return float(np.median(per_step[1:] if len(per_step) > 1 else per_step))


def train(
    model: Any,
    data: Any,
    evaluate: Callable[[Any], Mapping[str, float]],
    *,
    folder: Path,
    steps: int,
    points: int = 20,
    **settings: Any,
) -> dict[str, Any]:
    """Train by `fit`, evaluating `points` times; continues what `folder` holds.

    :param evaluate: returns figures of the model, by name.
    :param settings: for `fit`: batch_size, learning_rate, seed, ...
    :returns: "curve", "train_seconds" and "seconds_per_step".
    """
    import interdomain as idm

    every = max(1, steps // points)
    curve_file = folder / "curve.jsonl"
    idm.fit(
        model,
        data,
        steps=steps,
        callbacks=[Curve(curve_file, evaluate)],
        every=every,
        checkpoint_dir=folder / "checkpoints",
        resume=True,
        **settings,
    )
    found = read_curve(curve_file)
    return {
        "curve": found,
        "train_seconds": found[-1]["seconds"],
        "seconds_per_step": seconds_per_step(found),
    }
