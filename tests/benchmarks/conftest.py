from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from benchmarks._lib.child import function_named, target_of


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], None]:
    """Lets a benchmark measure in this process, which has imported TensorFlow already: what its
    models do is the same. Arguments and results go through JSON and functions are found by their
    names, as where it starts processes of its own; test_one_pass.py has one that does."""

    def called(function: Callable[..., Any], **arguments: Any) -> Any:
        given = json.loads(json.dumps(arguments))
        return json.loads(json.dumps(function_named(target_of(function))(**given)))

    def replace(module: ModuleType) -> None:
        monkeypatch.setattr(module, "from_child", called)

    return replace
