"""The benchmark of HVGP on tables: its models, its table, and a short run on a made-up table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks import hvgp_tables
from benchmarks._lib.splits import Split, normalise


def test_parts() -> None:
    parts = {name: hvgp_tables.parts_of(name) for name in hvgp_tables.MODELS}
    assert [parts[f"svgp_{size}"] for size in ("m", "2m", "4m")] == [(1, 1), (1, 2), (1, 4)]
    assert [parts[f"hvgp_{size}"] for size in ("2xm", "4xm", "8xm")] == [(2, 1), (4, 1), (8, 1)]


def test_models_have_the_points_they_should() -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    rows = normalise(Split(X, X[:, :1], X[:20], X[:20, :1]))
    points = hvgp_tables.build_model("svgp_2m", rows, 6, seed=0)
    assert points.inducing_variable.Z.shape == (12, 4)
    harmonic = hvgp_tables.build_model("hvgp_4xm", rows, 6, seed=0)
    assert harmonic.num_blocks == 4 and int(harmonic.inducing_variable.num_inducing) == 24
    own, other = points.kernel, harmonic.kernel.base_kernel
    assert own.lengthscales.numpy() == other.lengthscales.numpy()


def test_the_table_compares_equal_steps_and_equal_seconds() -> None:
    def record(model: str, nll: float, steps: float) -> dict[str, object]:
        run = {"data": "protein", "model": model, "num_inducing": 200, "split": 0}
        looks = [(1.0, 50.0, 2.0), (10.0, 100.0, nll + 1), (20.0, steps, nll)]
        trace = [
            {"seconds": s, "steps": n, "nll": value, "rmse": 0.7, "bound": -1.1}
            for s, n, value in looks
        ]
        result = {"trace": trace, "rows": 1_000, "test_rows": 100}
        return {"configuration": {**run, "seconds": [10.0, 20.0]}, "result": result}

    text = hvgp_tables.table_of([record("svgp_m", 1.0, 300), record("hvgp_4xm", 0.5, 150)])
    first, second = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith("| ")
    ][1:]
    assert first[:2] == ["svgp_m", "200"] and second[:2] == ["hvgp_4xm", "4 x 200"]
    assert first[3] == "2.000" and second[3] == "1.500"
    assert first[6:8] == ["2.000 / 1.000", "1.000"] and second[-1] == "150"
    assert "NLL after 100 steps" in text


@pytest.mark.full
def test_short_run(tmp_path: Path, in_this_process: Callable[[ModuleType], None]) -> None:
    in_this_process(hvgp_tables)
    X = np.random.default_rng(0).normal(size=(300, 3))
    np.savez(tmp_path / "uci_protein.npz", X=X, Y=np.sin(X[:, :1]) * X[:, 1:2])
    options = ["--short", "--results", str(tmp_path), "--data-dir", str(tmp_path)]
    assert hvgp_tables.HvgpTables().main(options) == 0
    lines = (tmp_path / "hvgp_tables.jsonl").read_text().splitlines()
    traces = [json.loads(line)["result"]["trace"] for line in lines]
    assert len(traces) == 2
    for trace in traces:
        assert trace[-1]["seconds"] >= 3.0 and np.isfinite(trace[-1]["nll"])
    assert (tmp_path / "hvgp_tables.png").stat().st_size > 5_000
