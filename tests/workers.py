"""Processes that tests start: scripts with several devices, and workers on the loopback
interface."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).parent.parent)  # scripts import tests.*, of which there are others

UNCHECKED = """
from check_shapes import ShapeCheckingState, set_enable_check_shapes
set_enable_check_shapes(ShapeCheckingState.DISABLED)
"""
"""To begin a script with: GPflow reads its shapes for seconds when imported; other tests check."""

RUN = """
import runpy, sys
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""To run then the script that the first argument names."""


def start(script: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    search_path = os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-c", f"{UNCHECKED}\n{RUN}", str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": search_path, **environment},
    )


def finish(process: subprocess.Popen[str], timeout: float = 240.0) -> dict[str, Any]:
    """The last line of its output, as JSON."""
    try:
        output, errors = process.communicate(timeout=timeout)
    finally:
        process.kill()
    lines = output.strip().splitlines()
    assert lines, f"exit {process.returncode}: {errors[-2000:]}"
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def start_workers(script: Path, *arguments: str) -> list[subprocess.Popen[str]]:
    """Two, the chief first, at ports of 127.0.0.1 that are free now."""
    with socket.socket() as chief, socket.socket() as other:
        for listener in (chief, other):
            listener.bind(("127.0.0.1", 0))
        workers = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in (chief, other)]
    tasks = [{"type": "worker", "index": index} for index in range(2)]
    variables = [json.dumps({"cluster": {"worker": workers}, "task": task}) for task in tasks]
    return [start(script, *arguments, TF_CONFIG=variable) for variable in variables]
