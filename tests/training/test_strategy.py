"""Fits under tf.distribute: the same numbers as on one device, however the rows are spread."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def start(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
    )


def finish(process: subprocess.Popen[str], timeout: float = 240.0) -> dict[str, Any]:
    """The last line of its output, as JSON."""
    output, errors = process.communicate(timeout=timeout)
    lines = output.strip().splitlines()
    assert lines, f"exit {process.returncode}: {errors[-2000:]}"
    found: dict[str, Any] = json.loads(lines[-1])
    return found


@pytest.mark.parametrize("num_devices", [2, 4])
def test_devices_of_one_process(num_devices: int) -> None:
    found = finish(start("strategy_process.py", str(num_devices)))
    assert found["replicas"] == num_devices
    cases = {name: value for name, value in found.items() if name.startswith("case ")}
    assert len(cases) >= 5
    for name, difference in cases.items():
        assert difference < 1e-10, name
    assert "created outside of its scope" in found["model outside"]
    assert "created outside of the strategy's scope" in found["optimizer outside"]
    assert "L-BFGS runs on one device" in found["l-bfgs"]


def start_workers(folder: Path, die_at: int) -> list[subprocess.Popen[str]]:
    workers = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    return [
        start(
            "strategy_worker.py",
            *(str(folder), str(die_at)),
            TF_CONFIG=json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            ),
        )
        for index in range(2)
    ]


def test_two_workers_one_of_which_is_killed(tmp_path: Path) -> None:
    """The other one stops and says so; started again, they end where one device ends."""
    chief, other = start_workers(tmp_path / "run", die_at=25)
    found = finish(chief)
    other.communicate(timeout=60)
    assert other.returncode == -9
    assert found["error"] == "WorkerLostError"
    assert "resume=True" in found["message"] and "step-20" in found["message"]
    results = [finish(worker) for worker in start_workers(tmp_path / "run", die_at=0)]
    for result in results:
        assert result["replicas"] == 2
        assert result["first_step"] == 20
        assert result["difference"] < 1e-10
    assert [result["bar"] for result in results] == [True, False]  # of the chief alone
    assert sorted(path.name for path in (tmp_path / "run").glob("*.index")) == [
        "step-20.index",
        "step-30.index",
        "step-40.index",
    ]
