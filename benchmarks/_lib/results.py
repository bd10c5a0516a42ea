"""Files of results in JSON lines: one record for each finished configuration of a benchmark, and
one line for each environment in which records were measured."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]

RESULTS_FOLDER = Path(__file__).parents[1] / "results"


def configuration_key(configuration: Mapping[str, Any]) -> str:
    """The text that identifies a configuration: its JSON with sorted names."""
    return json.dumps(configuration, sort_keys=True, separators=(",", ":"), allow_nan=False)


def environment_key(environment: Mapping[str, Any]) -> str:
    """A short text that identifies an environment: eight hexadecimal digits of its SHA-256."""
    return hashlib.sha256(configuration_key(environment).encode()).hexdigest()[:8]


def finite_or_none(value: Any) -> Any:
    """`value` with every number that is not finite replaced by None: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {str(name): finite_or_none(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):  # NumPy scalars
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def significant(values: Any) -> Any:
    """`values` as nested lists of numbers with nine significant digits."""
    if np.ndim(values) == 0:
        return float(f"{float(values):.9g}")
    return [significant(entry) for entry in values]


def runs(records: Iterable[Record]) -> Iterator[tuple[Any, Any]]:
    """The configuration and the result of each record."""
    return ((record["configuration"], record["result"]) for record in records)


def figures(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """The entries of the configuration and the result of each record, by name."""
    return ({**run, **result} for run, result in runs(records))


def points(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """`figures`, with the entries of each point of the result's trace."""
    return ({**figure, **point} for figure in figures(records) for point in figure["trace"])


@dataclass(frozen=True)
class ResultFile:
    """The records of one benchmark, in `path`.

    A line is a record, or an environment: `{"environment": key, ...}` with the entries of
    `describe_environment`. A record names its environment by the key, and is below that line. The
    records that this class returns have the whole environment.

    Each record is appended by one write, so that an interruption can tear only the last line. A
    torn last line is skipped when reading and removed when appending. If a configuration has
    several records, the newest counts.
    """

    path: Path

    def records(self) -> list[Record]:
        """The newest record of every configuration, in the order in which they first finished.

        :raises ValueError: if a line other than the last is broken, or names an environment that
            no line above it describes.
        """
        return list(self._read()[0].values())

    def finished(self) -> set[str]:
        """The keys of the configurations that have a record."""
        return set(self._read()[0])

    def append(self, record: Record) -> None:
        """Write one record, below its environment; it is on disk when this returns."""
        lines = [finite_or_none(record)]
        if "environment" in record:
            environment = lines[0]["environment"]
            key = environment_key(environment)
            lines[0]["environment"] = key
            if key not in self._read()[1]:
                lines.insert(0, {"environment": key, **environment})
        text = "".join(json.dumps(line, sort_keys=True, allow_nan=False) + "\n" for line in lines)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._mend_last_line()
        with self.path.open("ab") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> tuple[dict[str, Record], dict[str, Any]]:
        """The newest record of every configuration, and the environments, by their keys."""
        newest: dict[str, Record] = {}
        environments: dict[str, Any] = {}
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
        last = max((i for i, line in enumerate(lines) if line.strip()), default=-1)
        for i, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                entry = dict(json.loads(line))
                key = entry.pop("environment", None)
                if "configuration" not in entry and key is None:
                    raise ValueError("neither a record nor an environment")
            except (ValueError, TypeError) as error:
                if i == last:
                    continue
                raise ValueError(
                    f"line {i + 1} of {self.path.name} is not a record: remove that line"
                ) from error
            if "configuration" not in entry:
                environments[key] = entry
                continue
            if key is not None and key not in environments:
                raise ValueError(
                    f"line {i + 1} of {self.path.name} names the environment {key!r}, which no "
                    "line above it describes: put that line back"
                )
            record = entry if key is None else {**entry, "environment": environments[key]}
            newest[configuration_key(entry["configuration"])] = record
        return newest, environments

    def _mend_last_line(self) -> None:
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        if not content or content.endswith(b"\n"):
            return
        start = content.rfind(b"\n") + 1
        try:
            json.loads(content[start:])
        except ValueError:
            os.truncate(self.path, start)
        else:
            with self.path.open("ab") as file:
                file.write(b"\n")
