"""Fits that end before their steps are done: by the clock, or by a callback."""

from __future__ import annotations

import time
from typing import Any

import gpflow
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


class Slow(gpflow.models.BayesianModel, gpflow.models.ExternalDataTrainingLossMixin):
    """Not a quadratic, so that L-BFGS goes on for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = gpflow.Parameter(np.array([[-1.2], [1.0]]))

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        x, y = self.weights[0, 0], self.weights[1, 0]
        return -((1 - x) ** 2) - 100 * (y - x**2) ** 2 + 0.0 * tf.reduce_sum(data[0])


def test_seconds_are_over(data, arguments, tmp_path) -> None:
    """At the end of a step; with a checkpoint, from which the fit goes on."""

    def wait(step: int, model: Any) -> None:
        time.sleep(0.01)

    model = Slow()
    arguments |= {"checkpoint_dir": tmp_path, "callbacks": [wait], "callback_every": 1}
    result = fit(model, data, steps=20, max_seconds=1e-3, **arguments)
    assert result.reason == "max_seconds" and "max_seconds=0.001" in result.message
    assert result.steps == len(result.elbos) == 1 and not result.converged
    assert result.checkpoint is not None and result.checkpoint.endswith("step-1")
    assert result.metrics[-1]["step"] == 1
    rest = fit(model, data, steps=5, max_seconds=1e3, resume=True, **arguments)
    assert (rest.first_step, rest.steps, rest.reason) == (1, 5, "steps")


def test_exact_resume_after_seconds_were_over(data, make_line, tmp_path, assert_same_bits) -> None:
    arguments: dict[str, Any] = {"batch_size": 8, "progress": False}
    through, stopped = make_line(), make_line()
    fit(through, data, steps=4, **arguments)
    fit(stopped, data, steps=4, max_seconds=1e-3, checkpoint_dir=tmp_path, **arguments)
    fresh = make_line()
    result = fit(fresh, data, steps=4, checkpoint_dir=tmp_path, resume=True, **arguments)
    assert result.first_step == 1
    assert_same_bits(through, fresh)


def test_callback_ends_the_fit(data, arguments, tmp_path) -> None:
    seen: list[int] = []

    def stop(step: int, model: Any) -> None:
        if step == 3:
            raise StopFit("good enough", {"error": 0.5})

    def note(step: int, model: Any) -> dict[str, float]:
        seen.append(step)
        return {"seen": len(seen)}

    arguments |= {"callbacks": [stop, note], "callback_every": 1, "checkpoint_dir": tmp_path}
    model = Slow()
    result = fit(model, data, steps=20, checkpoint_every=50, **arguments)
    assert result.reason == "callback" and "good enough" in result.message
    assert result.steps == 3 == len(result.elbos) and seen == [1, 2, 3]
    assert result.metrics[-1] == {"step": 3, "error": 0.5, "seen": 3}
    assert result.checkpoint is not None and result.checkpoint.endswith("step-3")
    restored = Slow()
    tf.train.Checkpoint(model=restored).restore(result.checkpoint).expect_partial()
    np.testing.assert_array_equal(restored.weights, model.weights)
    rest = fit(model, data, steps=5, resume=True, checkpoint_every=50, **arguments)
    assert (rest.first_step, rest.steps, rest.reason) == (3, 5, "steps")


def test_callback_that_ends_at_a_checkpoint_writes_one(data, make_line, tmp_path) -> None:
    def stop(step: int, model: Any) -> None:
        raise StopFit

    arguments: dict[str, Any] = {"batch_size": 8, "progress": False, "checkpoint_dir": tmp_path}
    result = fit(
        make_line(),
        data,
        steps=9,
        callbacks=[stop],
        callback_every=2,
        checkpoint_every=2,
        **arguments,
    )
    assert (result.steps, result.reason) == (2, "callback")
    assert "no reason given" in result.message
    assert sorted(path.name for path in tmp_path.glob("*.index")) == [
        "step-0.index",
        "step-2.index",
    ]


def test_reasons_of_l_bfgs(data, make_line) -> None:
    assert fit(make_line(), data, progress=False).reason == "converged"
    result = fit(make_line(), data, options={"maxfun": 1}, progress=False)
    assert result.reason == "stalled" and not result.converged


def test_reason_of_a_fit_that_had_ended(data, make_line, tmp_path) -> None:
    arguments: dict[str, Any] = {"progress": False, "checkpoint_dir": tmp_path}
    model = make_line()
    assert fit(model, data, **arguments).reason == "converged"
    again = fit(model, data, resume=True, **arguments)
    assert again.reason == "converged" and again.converged and "had ended" in again.message


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf")])
def test_seconds_must_be_positive(data, make_line, seconds) -> None:
    rule = "positive" if np.isfinite(seconds) else "finite"
    with pytest.raises(ValueError, match=f"^max_seconds must be {rule}, found"):
        fit(make_line(), data, max_seconds=seconds, progress=False)


def test_stop_iteration_names_the_remedy(data, make_line) -> None:
    def stop(step: int, model: Any) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="raise interdomain.training.StopFit"):
        fit(make_line(), data, batch_size=8, steps=1, callbacks=[stop], progress=False)
