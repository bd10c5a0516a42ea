"""Fits under tf.distribute: the same numbers as on one device, however the rows are spread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.strategy_models import difference
from tests.workers import finish, start, start_workers

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def arrays(lists: list[Any]) -> list[np.ndarray]:
    return [np.array(one) for one in lists]


def test_devices_of_one_process() -> None:
    """Three; most batches are not divided evenly, and one has fewer rows than there are devices."""
    found = finish(start(HERE / "strategy_process.py"))
    assert found["replicas"] == 3
    cases = {name: value for name, value in found.items() if name.startswith("case ")}
    assert len(cases) == 3
    for name, found_difference in cases.items():
        assert found_difference < 1e-10, name
    assert found["model outside"].startswith("model: ")
    assert "created outside of the strategy's scope" in found["optimizer outside"]
    assert "L-BFGS runs on one device" in found["l-bfgs"]
    assert "GPR holds its data" in found["data held"]
    assert found["no strategy"].startswith("strategy: found 'mirrored'")
    assert "step 1" in found["not finite"] and "after step 0" in found["not finite"]
    assert found["as before"]


def test_two_workers_one_of_which_is_killed(tmp_path: Path) -> None:
    """The other one stops with an error; started again, they end where one device ends."""
    script = HERE / "strategy_worker.py"
    chief, other = start_workers(script, str(tmp_path), "25")
    found = finish(chief)
    other.communicate(timeout=60)
    assert other.returncode == -9
    assert found["lost"]
    results = [finish(worker) for worker in start_workers(script, str(tmp_path), "0")]
    assert len(results[0]["single"]) == 3
    for result in results:
        assert result["replicas"] == 2
        assert result["moves"].keys() == results[0]["single"].keys()
        assert result["first_step"] == 25
        assert result["checkpoint"].endswith("step-40")
        for name, moves in result["moves"].items():
            single = results[0]["single"][name]  # the chief alone has fitted on one device
            assert difference(*map(arrays, (moves, single))) < 1e-10, name
        steps, reason, message = result["ends"]["callback"]
        assert (steps, reason) == (4, "callback") and "ended the fit after step 4" in message
        assert result["ends"]["max_seconds"][:2] == [3, "max_seconds"]
    assert "already holds the checkpoint" in results[0]["refused"]
    assert [result["bar"] for result in results] == [True, False]  # of the chief alone
    assert results[1]["refused"].startswith("RuntimeError: another worker cannot start")
    assert sorted(path.name for path in (tmp_path / "killed").glob("*.index")) == [
        "step-30.index",
        "step-35.index",
        "step-40.index",
    ]
