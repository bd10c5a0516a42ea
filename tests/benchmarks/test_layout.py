"""Where the benchmarks' files may import from, and that every command has the name it states."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import benchmarks
from benchmarks.__main__ import BENCHMARKS

FOLDER = Path(benchmarks.__file__).parent


def imported(path: Path) -> Iterator[str]:
    """The second part of each `benchmarks.<part>` that a file imports, functions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if parts[0] == "benchmarks":
                yield from parts[1:2] or [alias.name for alias in node.names]


def test_a_question_imports_helpers_and_its_own_files_only() -> None:
    for path in FOLDER.rglob("*.py"):
        part = path.relative_to(FOLDER).parts[0]
        if part != "__main__.py":
            foreign = set(imported(path)) - {"_lib", part.removesuffix(".py")}
            assert not foreign, f"{path.relative_to(FOLDER)} imports {sorted(foreign)}"


def test_every_benchmark_is_a_command() -> None:
    for name in BENCHMARKS:
        folder = (FOLDER / name).is_dir()
        command = f"benchmarks.{name}.__main__" if folder else f"benchmarks.{name}"
        assert importlib.util.find_spec(command) is not None, f"python -m benchmarks.{name}"
