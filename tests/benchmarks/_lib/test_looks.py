"""Trainings on the seconds of the processors, with looks, and their pictures."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interdomain as idm
from benchmarks._lib import looks


def test_looks_at_times_and_steps_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that is a second on whenever it is read; a look takes a hundred."""
    now = 0.0

    def process_time() -> float:
        nonlocal now
        now += 1.0
        return now

    def fit(model: Any, data: Any, *, steps: int, callbacks: Any, **arguments: Any) -> None:
        with contextlib.suppress(idm.training.StopFit):
            for step in range(1, steps + 1):
                callbacks[0](step, model)
        given.update(arguments)

    def evaluate(model: str) -> dict[str, float]:
        nonlocal now
        now += 100.0
        return {"found": float(len(model))}

    given: dict[str, Any] = {}
    monkeypatch.setattr(looks, "time", SimpleNamespace(process_time=process_time))
    monkeypatch.setattr(idm.training, "fit", fit)
    rows = np.zeros([2, 1])
    times = {"seconds": [3.0, 6.0], "steps": [2, 5], "started": 0.0}
    trace = looks.trained_with_looks("model", (rows, rows), evaluate, batch_size=7, **times)
    expected = [{"seconds": one, "steps": one, "found": 5.0} for one in (2.0, 3.0, 5.0, 6.0)]
    assert trace == expected
    assert given == {"batch_size": 7, "every": 1, "progress": False}
