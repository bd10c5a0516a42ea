"""The benchmark of many features: its tables and picture, and a short run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import many_features
from benchmarks._lib.child import function_named, target_of


def step(side: str, size: int, seconds: float, features: float, megabytes: int) -> dict[str, Any]:
    def of(value: float) -> dict[str, float]:
        return {"median": value, "lower": value, "upper": value}

    result = {
        "num_inducing": size,
        "choice_seconds": 1.0,
        "step_seconds": of(seconds),
        "features_seconds": of(features),
        "step_bytes": megabytes * 10**6,
        "process_bytes": 10**9,
    }
    return {"configuration": {"kind": "step", "side": side}, "result": result}


def test_growth_of_seconds_and_memory(tmp_path: Path) -> None:
    records = [
        step("frozen", 20_000, 0.8, 0.4, 640),  # in whatever order they were measured
        step("frozen", 10_000, 0.2, 0.2, 320),
        step("box", 10_000, 0.3, 0.2, 320),
    ]
    table = many_features.table_of(records)
    first, second = table.splitlines()[3:5]
    assert "| 10,000" in first and " 1.0 " in first and "| 20,000" in second and " 2.0 " in second
    assert "frozen: from M = 10,000 to 20,000 a step grows as M^2.00, its memory as M^1.00" in table
    assert "box: from" not in table  # one size grows as nothing
    many_features.draw_growth(many_features.of_kind(records, "step"), tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 1_000


def test_densities() -> None:
    measured = {"seconds": 30.2, "steps": 900.0, "log_density": -0.25}
    result = {"num_inducing": 500, "start_seconds": 0.31, **measured}
    run = {"kind": "density", "data": "kin8nm", "start": "prior", "num_inducing": 500}
    table = many_features.table_of([{"configuration": run, "result": result}])
    cells = [cell.strip() for cell in table.splitlines()[2].split("|")]
    assert cells[1:-1] == ["kin8nm", "500", "prior", "0.3", "30", "900", "-0.2500"]


@pytest.mark.full
def test_short_run(
    tmp_path: Path,
    in_this_process: Callable[[ModuleType], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call whose memory is measured is made here; _lib/test_measuring.py has a process."""
    in_this_process(many_features)
    measured: list[str] = []

    def peak_bytes(factory: Callable[..., Callable[[], Any]], **arguments: Any) -> int:
        given = json.loads(json.dumps(arguments))
        function_named(target_of(factory))(**given)()
        measured.append(given["side"])
        return 1_000

    monkeypatch.setattr(many_features, "peak_bytes", peak_bytes)
    options = ["--short", "--results", str(tmp_path)]
    assert many_features.ManyFeatures().main(options) == 0
    lines = (tmp_path / "many_features.jsonl").read_text().splitlines()
    results = [json.loads(line)["result"] for line in lines]
    assert measured == ["frozen", "box"]
    steps, densities, costs = results[:2], results[2:4], results[4:]
    assert all(0 < one["features_seconds"]["median"] for one in steps)
    assert all(one["steps"] >= 5 for one in densities)
    assert len(costs) == len(many_features.FEATURES)
    for one in costs:  # among the full ones are the diagonal ones
        assert one["full"]["bound"] > one["diagonal"]["bound"]
    assert (tmp_path / "many_features.png").exists()
