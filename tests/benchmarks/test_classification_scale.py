"""The benchmark of two classes at scale: whose seconds its methods get, its table, a short run."""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import classification_scale
from benchmarks._lib import table_models
from benchmarks._lib.data import DataError

Benchmark = classification_scale.ClassificationScale


def given(**options: Any) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(Benchmark()._parser().parse_args([])), **options})


def record(run: dict[str, Any], **result: Any) -> dict[str, Any]:
    one = {"seconds": 90.0, "auc": 0.871, "log_density": -0.4321}
    return {
        "configuration": run,
        "result": {"trace": [one], "num_inducing": 500, "peak_bytes": 1.5 * 2**30, **result},
    }


def test_rivals_get_the_seconds_of_collapsed() -> None:
    truth, collapsed, diagonal, svgp = Benchmark().configurations(given())
    assert truth["test_rows"] == 500_000 and svgp["times"] == [1, 2, 4]
    older = {**record(collapsed), "finished_at": "1"}
    newer = {**record(collapsed, trace=[{"seconds": 80.0}]), "finished_at": "2"}
    other = {**record({**collapsed, "num_inducing": 7}), "finished_at": "3"}
    for rival in (diagonal, svgp):
        found = classification_scale.seconds_of_collapsed(rival, [newer, older, other])
        assert found == 80.0
        with pytest.raises(DataError, match="run --methods collapsed"):
            classification_scale.seconds_of_collapsed(rival, [other])


def test_the_table() -> None:
    truth, collapsed, diagonal, _ = Benchmark().configurations(given())
    trace = [
        {"seconds": 90.0 * k, "steps": 1e3 * k, "auc": 0.85, "log_density": -0.5} for k in (1, 2)
    ]
    seconds = dict.fromkeys(("scales_seconds", "subset_seconds", "pass_seconds"), 4.0)
    records = [
        record(diagonal, trace=trace, peak_bytes=3 * 2**30),
        record(collapsed, elbos=[-3e6, -2.5e6], reason="converged", **seconds),
        {"configuration": truth, "result": {"auc": 0.88, "log_density": -0.42}},
    ]
    table, note = classification_scale.table_of(records).split("\n\n")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert lines == [
        ["5,000,000", "truth", "", "", "", "0.8800", "-0.4200", ""],
        ["5,000,000", "collapsed", "500", "90", "2 passes", "0.8710", "-0.4321", "1.50 (met)"],
        ["5,000,000", "diagonal", "500", "90", "1,000", "0.8500", "-0.5000", ""],
        ["5,000,000", "diagonal", "500", "180", "2,000", "0.8500", "-0.5000", "3.00 (NOT met)"],
    ]
    assert "(converged)" in note and "Bounds a row: -0.600000, -0.500000" in note


@pytest.mark.full
def test_short_run(
    tmp_path: Path,
    in_this_process: Callable[[ModuleType], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Harmonics are chosen once for both methods, with few steps for the scales."""
    in_this_process(classification_scale)
    found: list[Any] = []

    def chosen(*rows: Any, **arguments: Any) -> Any:
        if not found:
            found.append(table_models.chosen_harmonics(*rows, **arguments, subset_steps=3))
        return copy.deepcopy(found[0])

    monkeypatch.setattr(classification_scale, "chosen_harmonics", chosen)
    options = ["--short", "--results", str(tmp_path), "--work-dir", str(tmp_path / "work")]
    assert Benchmark().main(options) == 0
    lines = (tmp_path / "classification_scale.jsonl").read_text().splitlines()
    found = {one["configuration"]["method"]: one["result"] for one in map(json.loads, lines)}
    assert tuple(found) == classification_scale.METHODS
    for method in classification_scale.METHODS[1:]:
        assert found[method]["trace"][-1]["auc"] > 0.6
    assert found["truth"]["auc"] > 0.8
