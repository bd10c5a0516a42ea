"""Calling a function in a fresh process, where nothing has been built or compiled before.

from_child(function, environment={"NAME": "value"}, argument=1)
from_children(function, [Call({"argument": 1}, {}), Call({"argument": 2}, {})], timeout=60.0)
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

MARK = "returned="
ROOT = str(Path(__file__).parents[2])
POLL_SECONDS = 0.2


def from_child(
    function: Callable[..., Any], *, environment: Mapping[str, str] | None = None, **arguments: Any
) -> Any:
    """What `function(**arguments)` returns in a fresh process.

    :param function: at the top level of a module; takes JSON values by name and returns one.
    :param environment: environment variables of the child in addition to those of this process.
    :raises RuntimeError: when the child process fails; the message ends with its output.
    """
    child = subprocess.run(
        _command(function),
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env=_environment(environment),
    )
    return _returned(function, arguments, child.returncode, child.stdout, child.stderr)


@dataclass(frozen=True)
class Call:
    """The arguments of a function for one of several processes, and that process's variables."""

    arguments: Mapping[str, Any]
    environment: Mapping[str, str]


def from_children(
    function: Callable[..., Any], calls: Sequence[Call], *, timeout: float
) -> list[Any]:
    """What the calls return in fresh processes that run at the same time.

    All processes have ended when this returns or raises an error.

    :param timeout: the seconds that all of them may take together.
    :raises RuntimeError: when a process fails, because the others may wait for it, or when the time
        is over.
    """
    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(started(function, call)) for call in calls]
        while True:
            states = [child.process.poll() for child in children]
            ended = all(state is not None for state in states)
            # Where one has failed, the others may wait for it forever.
            if ended or any(states) or time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        if any(state != 0 for state in states):
            raise RuntimeError(
                f"{function.__name__} failed in {len(calls)} processes of its own within "
                f"{timeout:g} s, exit status {states} (None: stopped here):\n"
                + "\n".join(child.text(child.stderr)[-2000:] for child in children)
            )
        return [
            _returned(
                function, call.arguments, 0, child.text(child.stdout), child.text(child.stderr)
            )
            for call, child in zip(calls, children, strict=True)
        ]


@dataclass(frozen=True)
class Child:
    """A process that runs a function, and the files it writes to."""

    process: subprocess.Popen[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    @staticmethod
    def text(file: IO[bytes]) -> str:
        """The whole file; its position, where the child writes next, does not change."""
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


@contextlib.contextmanager
def started(function: Callable[..., Any], call: Call) -> Iterator[Child]:
    """Start a process that is killed at the end if it still runs. It writes to files, because pipes
    that nobody reads would fill up."""
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(json.dumps(dict(call.arguments)).encode())
        stdin.seek(0)
        process = subprocess.Popen(
            _command(function),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=ROOT,
            env=_environment(call.environment),
        )
        try:
            yield Child(process, stdout, stderr)
        finally:
            process.kill()
            process.wait()


def _command(function: Callable[..., Any]) -> list[str]:
    return [sys.executable, "-m", "benchmarks._lib.child", target_of(function)]


def _environment(more: Mapping[str, str] | None) -> dict[str, str]:
    search_path = [ROOT, *(entry for entry in sys.path if entry)]
    return {**os.environ, **(more or {}), "PYTHONPATH": os.pathsep.join(search_path)}


def _returned(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    status: int,
    stdout: str,
    stderr: str,
) -> Any:
    returned = [line for line in stdout.splitlines() if line.startswith(MARK)]
    if status != 0 or not returned:
        raise RuntimeError(
            f"{function.__name__}({dict(arguments)}) failed in a process of its own with exit "
            f"status {status}:\n{stderr[-2000:]}"
        )
    return json.loads(returned[-1][len(MARK) :])


def function_named(target: str) -> Callable[..., Any]:
    """The function that `module:name` names."""
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def target_of(function: Callable[..., Any]) -> str:
    """The text that `function_named` understands."""
    module = function.__module__
    if module == "__main__":  # python -m benchmarks.<name>: the child must import it by its name
        module = sys.modules["__main__"].__spec__.name  # type: ignore[union-attr]
    return f"{module}:{function.__name__}"


if __name__ == "__main__":
    print(f"{MARK}{json.dumps(function_named(sys.argv[1])(**json.load(sys.stdin)))}")
