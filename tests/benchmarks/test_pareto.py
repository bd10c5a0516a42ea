"""What benchmarks/pareto runs, and what its table says of when ours are in front."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks._lib.results import Record
from benchmarks.pareto import benchmark, methods, pictures, verdicts
from benchmarks.pareto.data_sets import rows_of
from benchmarks.pareto.pictures import draw_curves


def record(method: str, trace: list[tuple[float, float]], **result: Any) -> Record:
    points = [{"seconds": s, "log_density": value, "rmse": 0.5} for s, value in trace]
    return {
        "configuration": {"data": "power", "method": method, "seconds": [10.0, 40.0]},
        "result": {"trace": points, **result},
    }


def summary(records: list[Record]) -> list[str]:
    line = verdicts.table_of(records).splitlines()[-1]
    return [cell.strip() for cell in line.strip("|").split("|")]


STOCK = [record("svgp_500", [(10.0, -0.5), (41.0, -0.2)]), record("svgp_200", [(9.0, -0.4)])]


def test_a_model_that_arrives_late_is_in_front_from_then_on() -> None:
    found = summary([*STOCK, record("harmonics", [(33.0, -0.1)])])
    assert found[1:6] == ["-0.2000", "harmonics", "33 s", "40", "harmonics -0.1000"]


def test_any_stock_model_can_be_in_front() -> None:
    """At 10 s ours is better than 500 points, and worse than 200."""
    found = summary([*STOCK, record("blocks", [(10.0, -0.45), (40.0, -0.3)])])
    assert found[2:5] == ["never", "-", "none"]


def test_trees_are_neither_ours_nor_stock() -> None:
    found = summary([*STOCK, record("boosting", [(1.0, 1.0)]), record("effects", [(5.0, -0.2)])])
    assert found[2:6] == ["effects", "5 s", "10", "effects -0.2000"]


def test_how_far_the_recommended_model_is_behind() -> None:
    """Of the candidates, each at its last; 200 points are none, and "points" are 500."""
    others = [record("harmonics", [(60.0, -0.05)]), record("boosting", [(1.0, 1.0)])]
    named = record("recommend", [], named="points")
    assert summary([*STOCK, *others, named])[6:] == ["points", "0.1500"]
    assert summary([*STOCK, *others])[6:] == ["-", "-"]


def test_what_does_not_fit_is_left_out() -> None:
    fitting = {
        data: {name for name, one in methods.METHODS.items() if one.fits(data)}
        for data in ("kin8nm", "banana", "mnist")
    }
    assert "waves" not in fitting["kin8nm"] and "waves" in fitting["banana"]
    assert "patches" in fitting["mnist"] and "harmonics" not in fitting["mnist"]
    assert "boosting" not in fitting["banana"] and all("svgp_500" in s for s in fitting.values())


def test_each_of_ours_has_a_colour() -> None:
    assert len(set(pictures.COLOURS)) == len(pictures.COLOURS) == len(methods.OURS)


@pytest.mark.full
def test_short_run(tmp_path: Path, in_this_process: Callable[[ModuleType], None]) -> None:
    in_this_process(benchmark)
    options = ["--short", "--results", str(tmp_path)]
    assert benchmark.Pareto().main(options) == 0
    lines = (tmp_path / "pareto.jsonl").read_text().splitlines()
    found = {one["configuration"]["method"]: one["result"] for one in map(json.loads, lines)}
    assert set(found) == {"svgp_200", "waves"}
    assert all(one["trace"] and one["error"] is None for one in found.values())
    assert found["waves"]["num_rows"] == 500
    assert (tmp_path / "pareto_terrain.png").stat().st_size > 5_000


def test_recommended_has_what_the_small_versions_predicted() -> None:
    train, _ = rows_of("terrain", None)
    few = (train[0][:200], train[1][:200])
    task = methods.Task("recommend", "terrain", few, few, [1.0], None)
    found = methods.recommended(task, limit=1.0)
    assert found["named"] == "exact" and not found["trace"]
    assert found["tried"] == {} and "waves" in found["not_tried"]


def test_a_picture_for_each_set_that_has_curves(tmp_path: Path) -> None:
    draw_curves(tmp_path, [*STOCK, record("recommend", [], named="points")])
    assert [path.name for path in tmp_path.iterdir()] == ["pareto_power.png"]


@pytest.mark.parametrize("classes", [False, True])
def test_gpytorch(classes: bool) -> None:
    """It learns, and a prediction's density is that of the targets as they are."""
    pytest.importorskip("gpytorch")
    from benchmarks.pareto.gpytorch_side import trained

    X = np.random.default_rng(0).uniform(-2, 2, size=(300, 2))
    Y = np.sin(3 * X[:, :1])
    Y = (Y > 0).astype(float) if classes else Y
    found = trained((X, Y), (X[:50], Y[:50]), 20, [0.5, 5.0], classes=classes)
    first, last = found["trace"]
    assert first["seconds"] < last["seconds"] and first["log_density"] < last["log_density"]
    assert last["rmse"] < 0.3 and last["log_density"] > -0.4
