"""The benchmarks of one pass: their verdicts, what they measure, and a short run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks import one_pass, terrain
from benchmarks.data_pass import DataPass

InThisProcess = Callable[[ModuleType], None]


def record(model: str, *points: tuple[float, float]) -> dict[str, Any]:
    trace = [{"seconds": seconds, "rmse": 0.5, "nll": nlpd} for seconds, nlpd in points]
    return {"configuration": {"model": model}, "result": {"num_inducing": 7, "trace": trace}}


def test_targets_of_the_terrain() -> None:
    stock = record("svgp_500", (50.0, 0.3), (250.0, 0.1))
    table = terrain.table_of([record("box_1080", (9.0, -0.05)), stock])
    assert "10 s, NLPD -0.03: met" in table
    assert "after 9.0 s, 28 times sooner (target 25: met)" in table
    table = terrain.table_of([record("box_1080", (11.0, -0.05)), stock])
    assert "10 s, NLPD -0.03: missed" in table
    assert "23 times sooner (target 25: missed)" in table
    table = terrain.table_of([record("box_1080", (9.0, 0.2)), stock])
    assert "10 s, NLPD -0.03: missed" in table
    assert "sooner" not in table  # never as good


def test_rows_of_the_terrain() -> None:
    X, Y, test = terrain.split(1, 0)
    assert X.shape == (344 * 403, 2)
    assert np.count_nonzero(~test) == 124_573
    np.testing.assert_allclose([Y[~test].mean(), Y[~test].std()], [0, 1], atol=1e-12)
    north_west = X[0]
    assert north_west[0] == X[:, 0].min() and north_west[1] == X[:, 1].max()


def test_made_up_rows_have_a_third_of_noise() -> None:
    X, Y = one_pass.made_up(20_000, 0)
    waves = np.concatenate(
        [wave(2 * np.pi * np.arange(1, 201) * X) for wave in (np.cos, np.sin)], axis=1
    )
    fitted = waves @ np.linalg.lstsq(waves, Y, rcond=None)[0]
    assert np.var(Y - fitted) / np.var(Y) == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.full
@pytest.mark.parametrize(
    ("benchmark", "options", "models"),
    [
        (terrain.Terrain, ["--models", "box_60"], ["box_60"]),
        (one_pass.OnePass, [], ["box", "interval", "svgp"]),
    ],
    ids=["terrain", "one_pass"],
)
def test_short_runs(
    benchmark: Any,
    options: list[str],
    models: list[str],
    tmp_path: Path,
    in_this_process: InThisProcess,
) -> None:
    """That of the terrain in a process of its own."""
    if benchmark is one_pass.OnePass:
        in_this_process(one_pass)
    assert benchmark().main(["--short", "--results", str(tmp_path), *options]) == 0
    lines = (tmp_path / f"{benchmark.name}.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [one["configuration"]["model"] for one in records] == models
    for one in records:
        last = one["result"]["trace"][-1]
        assert 0 < last["rmse"] < 1 and last["seconds"] > 0  # better than the mean


@pytest.mark.full
def test_short_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert DataPass().main(["--short", "--results", str(tmp_path)]) == 0
    table = capsys.readouterr().out
    assert table.count("| box ") == table.count("| sphere ") == 1
