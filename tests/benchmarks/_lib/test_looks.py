"""Trainings on the seconds of the processors, with looks, and their pictures."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

from benchmarks._lib import looks
from benchmarks._lib.curves import draw_traces

TRACE = [
    {"seconds": 2.0, "steps": 10.0, "nll": 3.0},
    {"seconds": 4.5, "steps": 20.0, "nll": 2.0},
    {"seconds": 8.0, "steps": 30.0, "nll": 1.0},
]


def test_looks_at_times_and_steps_do_not_count() -> None:
    X = np.random.default_rng(0).uniform(size=(40, 1))
    model = gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Gaussian(), X[:3], num_data=40
    )
    bound = looks.bound_per_row(model, X, np.sin(X), 40)
    seen: list[Any] = []

    def evaluate(now: Any) -> dict[str, float]:
        seen.append(now)
        until = time.process_time() + 0.5
        while time.process_time() < until:
            pass
        return {"bound": bound()}

    started = time.process_time()
    trace = looks.trained_with_looks(
        model,
        (X, np.sin(X)),
        evaluate,
        seconds=[0.01, 3.0],
        steps=[2, 5],
        started=started,
        batch_size=10,
        learning_rate=0.1,
    )
    assert [one["steps"] for one in trace[:3]] == [1.0, 2.0, 5.0] and len(trace) == 4
    assert seen == 4 * [model]
    assert trace[2]["seconds"] - trace[0]["seconds"] < 0.5  # two looks of half a second between
    assert 3.0 <= trace[-1]["seconds"] < 3.5 < time.process_time() - started
    expected = model.elbo((X, np.sin(X))).numpy() / 40
    assert trace[-1]["bound"] == pytest.approx(expected) and expected > trace[0]["bound"]


def test_what_is_found_when() -> None:
    assert looks.at_time(TRACE, 4.0) == TRACE[1] and looks.at_time(TRACE, 9.0) is None
    assert looks.at_step(TRACE, 30) == TRACE[2] and looks.at_step(TRACE, 25) is None
    assert looks.common_steps([TRACE, TRACE[:2]], (10, 20, 30)) == 20
    assert looks.common_steps([TRACE, TRACE[2:]], (10, 20)) is None
    assert looks.seconds_per_step(TRACE) == pytest.approx(6 / 20)
    assert looks.seconds_per_step(TRACE[:1]) == pytest.approx(0.2)


def test_times_rise() -> None:
    assert looks.rising_times("30,60") == [30.0, 60.0]
    with pytest.raises(argparse.ArgumentTypeError, match="rising"):
        looks.rising_times("60,30")


def test_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "curves.png"
    draw_traces(
        path, {"a": {"one": TRACE, "other": TRACE[1:]}, "b": {"one": TRACE}}, {"nll": "NLL"}
    )
    assert 5_000 < path.stat().st_size < 150_000
