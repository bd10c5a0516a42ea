"""The benchmark of tables with many columns: its verdicts, its made-up rows, and a short run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks import anisotropic

InThisProcess = Callable[[ModuleType], None]


def record(data: str, method: str, *points: tuple[float, float]) -> dict[str, Any]:
    return {
        "configuration": {"data": data, "method": method, "seconds": [10.0, 20.0]},
        "result": {
            "rows": 100,
            "num_inducing": int(method.partition("_")[2]),
            "trace": [{"seconds": seconds, "rmse": 0.5, "nll": nlpd} for seconds, nlpd in points],
        },
    }


def test_the_race_and_the_targets() -> None:
    stock = record("kin8nm", "svgp_500", (10.2, 0.5), (20.1, 0.3))
    whole = record("kin8nm", "whole_3", (4.0, 0.4))
    chosen = record("kin8nm", "data_700", (19.0, 0.16))
    table = anisotropic.table_of([whole, chosen, stock])
    assert "10 s: whole_3 0.400, SVGP 0.500; 20 s: data_700 0.160, SVGP 0.300" in table
    assert "on 1 of 1 data sets (target 5 of 7: met)" in table
    assert "kin8nm, M at most 700: data_700 0.1600 (target 0.17: met)" in table

    table = anisotropic.table_of([whole, stock])
    assert "20 s: whole_3 0.400, SVGP 0.300: not in front at every budget" in table
    assert "on 0 of 1 data sets (target 5 of 7: missed)" in table
    assert "M at most" not in table

    late = record("kin8nm", "data_1000", (19.0, 0.16))
    table = anisotropic.table_of([late, stock])
    assert "10 s: none of ours, SVGP 0.500; 20 s" in table
    assert "M at most" not in table  # more harmonics than the target allows


def test_four_of_thirty_columns_matter() -> None:
    split = anisotropic.split_of("made_up", 4_000, None, 0)
    assert split.X_train.shape == (3_600, 30)
    X, Y = split.X_train, split.Y_train[:, 0]
    squares = np.square(np.corrcoef(np.concatenate([X, X**3], axis=1).T, Y)[-1, :-1])
    assert set(np.flatnonzero(squares.reshape([2, 30]).max(axis=0) > 0.02)) <= {3, 11, 17, 26}


@pytest.mark.full
def test_short_run(tmp_path: Path, in_this_process: InThisProcess) -> None:
    in_this_process(anisotropic)
    options = ["--short", "--results", str(tmp_path)]
    assert anisotropic.Anisotropic().main(options) == 0
    lines = (tmp_path / "anisotropic.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    methods = [one["configuration"]["method"].partition("_")[0] for one in records]
    assert tuple(methods) == anisotropic.KINDS
    for one in records:
        last = one["result"]["trace"][-1]
        assert 0 < last["rmse"] < 1.2 and last["seconds"] > 0
