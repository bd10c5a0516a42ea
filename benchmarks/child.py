"""Calling a function in a process of its own: nothing built or compiled before can help or hinder.

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


def from_child(
    function: Callable[..., Any], *, environment: Mapping[str, str] | None = None, **arguments: Any
) -> Any:
    """What `function(**arguments)` returns in a fresh process.

    :param function: at the top level of a module; takes JSON values by name and returns one.
    :param environment: variables that the child has beside those of this process.
    :raises RuntimeError: when the child process fails; the message ends with its output.
    """
    root = str(Path(__file__).parent.parent)
    search_path = [root, *(entry for entry in sys.path if entry)]
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", target_of(function)],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        cwd=root,
        check=False,
        env={**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(search_path)},
    )
    returned = [line for line in child.stdout.splitlines() if line.startswith(MARK)]
    if child.returncode != 0 or not returned:
        raise RuntimeError(
            f"{function.__name__}({arguments}) failed in a process of its own with exit status "
            f"{child.returncode}:\n{child.stderr[-2000:]}"
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
