"""The benchmark of the globe: its rows, what it calls an edge of the map, and a short run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks import globe
from benchmarks._lib import elevations

InThisProcess = Callable[[ModuleType], None]


def test_rows() -> None:
    latitude, longitude, heights = elevations.grid("synthetic", None, 20)
    assert heights.shape == (len(latitude), len(longitude)) == (9, 18)
    X = elevations.rows_of(latitude, longitude)
    assert X.tolist()[1] == [latitude[0], longitude[1]]
    np.testing.assert_array_equal(globe.within("date line", X), np.abs(X[:, 1]) >= 170)
    train, test = elevations.split(1_000, 0)
    assert (len(train), len(test), len(set(train) & set(test))) == (720, 200, 0)


def test_jumps() -> None:
    """A mean that grows with the longitude, by a thousandth per degree."""
    found = globe.jumps(lambda X: X[:, 1:] / 1_000)
    assert found["jump_date_line"] == pytest.approx(0.36)
    assert found["jump_poles"] == pytest.approx(np.std(np.arange(360)) / 1_000)


@pytest.mark.full
def test_short_run(tmp_path: Path, in_this_process: InThisProcess) -> None:
    in_this_process(globe)
    options = ["--short", "--results", str(tmp_path), "--models", "harmonics_6,box_49"]
    assert globe.Globe().main(options) == 0
    lines = (tmp_path / "globe.jsonl").read_text().splitlines()
    sphere, box = (json.loads(line)["result"] for line in lines)
    assert sphere["all"]["rmse"] < box["all"]["rmse"] < 1
    assert max(sphere["jump_date_line"], sphere["jump_poles"]) < 1e-12 < box["jump_date_line"]
    assert (tmp_path / "globe.png").exists()
