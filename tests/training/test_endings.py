"""Fits that end before their steps are done: by the clock, or by a callback."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from interdomain.training import StopFit, fit

METHODS: dict[str, dict[str, Any]] = {
    "adam": {"batch_size": 8},
    "l-bfgs": {"options": {"ftol": 0.0, "gtol": 0.0}},
}


@pytest.fixture(params=list(METHODS))
def arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"progress": False, **METHODS[request.param]}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes between two looks at it: one when a fit begins, and one after each step."""
    ticks = itertools.count()
    fake = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    for module in ("loop", "progress"):
        monkeypatch.setattr(f"interdomain.training.{module}.time", fake)


def test_seconds_are_over(data, make_valley, arguments, tmp_path, clock, assert_same_bits) -> None:
    """At the end of a step; with a checkpoint, from which the fit goes on: of minibatches exactly
    as if it had not been stopped."""
    model, through = make_valley(), make_valley()
    fit(through, data, steps=5, **arguments)
    seen: list[int] = []
    arguments |= {"checkpoint_dir": tmp_path, "callbacks": [lambda step, model: seen.append(step)]}
    result = fit(model, data, steps=20, max_seconds=3, **arguments)
    assert result.reason == "max_seconds" and "max_seconds=3 were over after step 3" in (
        result.message
    )
    assert result.steps == len(result.elbos) == 3 and not result.converged
    assert result.checkpoint is not None and result.checkpoint.endswith("step-3")
    assert seen == [3] and result.metrics[-1]["step"] == 3
    resumed = make_valley()
    rest = fit(resumed, data, steps=5, max_seconds=1e3, resume=True, **arguments)
    assert (rest.first_step, rest.steps, rest.reason) == (3, 5, "steps")
    if "batch_size" in arguments:
        assert_same_bits(through, resumed)


def test_callback_ends_the_fit(data, make_valley, arguments, tmp_path) -> None:
    seen: list[int] = []

    def stop(step: int, model: Any) -> None:
        if step == 3:
            raise StopFit("good enough", {"error": 0.5})

    def note(step: int, model: Any) -> dict[str, float]:
        seen.append(step)
        return {"seen": len(seen)}

    arguments |= {"callbacks": [stop, note], "every": 1, "checkpoint_dir": tmp_path}
    model = make_valley()
    result = fit(model, data, steps=20, **arguments)
    assert result.reason == "callback" and "good enough" in result.message
    assert result.steps == 3 == len(result.elbos) and seen == [1, 2, 3]
    assert result.metrics[-1] == {"step": 3, "error": 0.5, "seen": 3}
    assert result.checkpoint is not None and result.checkpoint.endswith("step-3")
    restored = make_valley()
    tf.train.Checkpoint(model=restored).restore(result.checkpoint).expect_partial()
    np.testing.assert_array_equal(restored.weights, model.weights)
    rest = fit(model, data, steps=5, resume=True, **arguments)
    assert (rest.first_step, rest.steps, rest.reason) == (3, 5, "steps")


def test_reasons_of_l_bfgs(data, make_line, tmp_path) -> None:
    """The same after a resume, which has nothing to do."""
    arguments: dict[str, Any] = {"progress": False, "resume": True}
    for reason, options in {"converged": {}, "stalled": {"maxfun": 1}}.items():
        arguments |= {"checkpoint_dir": tmp_path / reason, "options": options}
        model = make_line()
        result = fit(model, data, **arguments)
        assert result.reason == reason and result.converged == (reason == "converged")
        again = fit(model, data, **arguments)
        assert again.reason == reason and "had ended" in again.message


def test_stop_iteration_names_the_remedy(data, make_line) -> None:
    def stop(step: int, model: Any) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="raise interdomain.training.StopFit"):
        fit(make_line(), data, batch_size=8, steps=1, callbacks=[stop], progress=False)
