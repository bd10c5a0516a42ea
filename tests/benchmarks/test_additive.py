"""The benchmark of sums of effects: its verdicts, its rows, and a short run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks import additive
from benchmarks._lib.data import DataError
from benchmarks._lib.mixed_tables import Data, indicators
from benchmarks._lib.splits import Split

InThisProcess = Callable[[ModuleType], None]


def record(method: str, split: int, *points: tuple[float, float]) -> dict[str, Any]:
    return {
        "configuration": {
            **{"data": "power", "method": method, "split": split, "rows": None},
            **{"times": [1.0, 2.0], "source": "files", "seed": 0},
        },
        "result": {
            "rows": 100,
            "num_inducing": 7,
            "trace": [{"seconds": seconds, "rmse": 0.5, "nll": nlpd} for seconds, nlpd in points],
        },
        "finished_at": str(split),
    }


def test_the_race() -> None:
    ours = [record("additive_500", split, (3.0, 0.1 * split)) for split in range(3)]
    stock = record("svgp_500", 0, (3.0, 0.3), (6.0, 0.05))
    table = additive.table_of([*ours, stock])
    assert "0.500 ± 0.000 | 0.100 ± 0.082" in table
    assert "additive 0.000, SVGP 0.300, 0.050 after" in table and "in front of 2 of 2" in table
    assert additive.rival_of(stock["configuration"], ours) == 3.0
    with pytest.raises(DataError, match="run --methods additive first"):
        additive.rival_of(record("svgp_500", 9)["configuration"], ours)


def test_columns_of_stations() -> None:
    X = np.array([[1.0, 7], [2, 3], [3, 7], [4, 9]])
    found, _ = indicators(Data(Split(X, X[:, :1], X[:1], X[:1, :1]), (1,)))
    assert found.shape == (4, 4)
    np.testing.assert_array_equal(found[:, 1:].argmax(axis=1), [1, 0, 1, 2])


@pytest.mark.full
def test_short_run(tmp_path: Path, in_this_process: InThisProcess) -> None:
    """Without the two methods whose fits test_anisotropic.py has, and which take most seconds."""
    in_this_process(additive)
    kinds = [kind for kind in additive.KINDS if kind not in ("both", "harmonics")]
    options = ["--short", "--results", str(tmp_path), "--methods", ",".join(kinds)]
    assert additive.AdditiveTables().main(options) == 0
    lines = (tmp_path / "additive.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    methods = [one["configuration"]["method"].partition("_")[0] for one in records]
    assert methods == kinds
    for one in records:
        last = one["result"]["trace"][-1]
        assert 0 < last["rmse"] < 1 and last["seconds"] > 0
    assert [name for name, _ in records[0]["result"]["pairs"]][:1] == ["column 0 x column 1"]
