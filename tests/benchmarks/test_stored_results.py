"""The schema of the stored results: what tables, pages and pictures need of them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks._lib.results import RESULTS_FOLDER, ResultFile

FILES = sorted(RESULTS_FOLDER.glob("*.jsonl"))
ENVIRONMENT = {"python", "system", "processor", "cores", "packages", "commit"}
NO_MODEL_IS_FITTED = (
    *("airline_scale", "banana_degree", "hvgp_tables", "image_patches", "many_features"),
    *("pareto", "transform_mnist"),
    pytest.param("kernel_recovery", marks=pytest.mark.slow),  # evaluates its kernels on grids
)
"""Benchmarks whose pictures show records alone. Those of the others need data, or fit a model."""


def no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def texts(value: Any) -> list[str]:
    """All texts in a JSON value."""
    if isinstance(value, dict):
        return [*value, *(text for one in value.values() for text in texts(one))]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


def check(record: Any, name: str) -> None:
    assert record["benchmark"] == name
    configuration, result = record["configuration"], record["result"]
    assert configuration and isinstance(result, dict) and result
    for value in configuration.values():  # flat: the key of finished work
        parts = value if isinstance(value, list) else [value]
        assert all(part is None or isinstance(part, str | int | float) for part in parts), value
    assert record["seconds"] >= 0
    assert record["load_before"] is None or record["load_before"] >= 0
    assert datetime.fromisoformat(record["finished_at"]).utcoffset() == timedelta(0)
    environment = record["environment"]
    assert set(environment) == ENVIRONMENT and environment["cores"] >= 1
    assert {"gpflow", "tensorflow", "numpy"} <= set(environment["packages"])
    assert not any(text.startswith(("/", "~")) for text in texts(record))  # no path of a machine


def test_every_record_is_complete() -> None:
    assert len(FILES) > 40
    for path in FILES:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            record = json.loads(line, parse_constant=no_constant)
            try:
                check(record, path.stem)
            except (AssertionError, KeyError, ValueError) as error:
                raise AssertionError(f"{path.name}, line {number}: {error!r}") from error


def test_every_file_has_its_benchmark_and_its_table() -> None:
    for path in FILES:
        records = ResultFile(path).records()
        text = BENCHMARKS[path.stem]().table(records)
        assert text.count("\n|") >= 2, f"{path.name} makes no table"


@pytest.mark.parametrize("name", NO_MODEL_IS_FITTED)
def test_records_can_be_drawn(name: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS[name]()
    records = ResultFile(RESULTS_FOLDER / f"{name}.jsonl").records()
    benchmark.draw(tmp_path, records, benchmark._parser().parse_args([]))
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn and all((tmp_path / one).stat().st_size > 5_000 for one in drawn)
    assert drawn >= {path.name for path in RESULTS_FOLDER.glob(f"{name}*.png")}
