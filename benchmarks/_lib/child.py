"""Calls of a function in a fresh process, where nothing has been built or compiled before.

from_child(function, environment={"NAME": "value"}, argument=1)
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MARK = "returned="
ROOT = str(Path(__file__).parents[2])


def from_child(
    function: Callable[..., Any],
    *,
    environment: Mapping[str, str] | None = None,
    most_seconds: float | None = None,
    **arguments: Any,
) -> Any:
    """Return the value of `function(**arguments)` in a fresh process.

    :param function: a function at the top level of a module; its arguments and value are JSON.
    :param environment: environment variables of the child in addition to those of this process.
    :param most_seconds: the limit after which the child is killed; the value is then
        ``{"not_done_after": most_seconds}``.
    :raises RuntimeError: if the child process fails; the message ends with its output.
    """
    search_path = [ROOT, *(entry for entry in sys.path if entry)]
    variables = {**(environment or {}), "PYTHONPATH": os.pathsep.join(search_path)}
    try:
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks._lib.child", target_of(function)],
            input=json.dumps(arguments),
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
            env=os.environ | variables,
            timeout=most_seconds,
        )
    except subprocess.TimeoutExpired:
        return {"not_done_after": most_seconds}
    returned = [line for line in child.stdout.splitlines() if line.startswith(MARK)]
    if child.returncode != 0 or not returned:
        raise RuntimeError(
            f"{function.__name__}({arguments}) failed in a process of its own with exit "
            f"status {child.returncode}:\n{child.stderr[-2000:]}"
        )
    return json.loads(returned[-1][len(MARK) :])


def function_named(target: str) -> Callable[..., Any]:
    """The function that `module:name` names."""
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def target_of(function: Callable[..., Any]) -> str:
    """The text `module:name` that `function_named` reads."""
    return f"{module_of(function)}:{function.__name__}"


def module_of(defined: Callable[..., Any]) -> str:
    """The name by which the module of a function or a class is imported, even if
    ``python -m benchmarks.<name>`` runs it as ``__main__``."""
    if defined.__module__ == "__main__":
        return str(sys.modules["__main__"].__spec__.name)  # type: ignore[union-attr]
    return defined.__module__


if __name__ == "__main__":
    print(f"{MARK}{json.dumps(function_named(sys.argv[1])(**json.load(sys.stdin)))}")
