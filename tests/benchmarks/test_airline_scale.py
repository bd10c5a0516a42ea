"""The pure parts of the benchmark on millions of rows: the made-up table, the race, the tables."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._lib.data import DataError
from benchmarks._lib.flight_table import COLUMNS, flights, smooth_and_threshold
from benchmarks._lib.row_files import open_rows
from benchmarks.airline_scale import benchmark as airline_scale
from benchmarks.airline_scale import data as airline_data
from benchmarks.airline_scale import table as airline_table
from benchmarks.airline_scale import workers as airline_workers
from benchmarks.airline_scale.svgp import Race, RaceOverError, minibatches


def joined(*ranges: tuple[int, int], **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    pieces = [piece for start, stop in ranges for piece in flights(start, stop, **settings)]
    X, Y = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return X, Y


def test_flights_do_not_depend_on_the_pieces() -> None:
    whole = joined((0, 70_000))
    parts = joined((0, 300), (300, 40_000), (40_000, 70_000))
    assert whole[0].shape == (70_000, len(COLUMNS)) and whole[1].shape == (70_000, 1)
    for expected, found in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(found, expected)
    for other in (joined((0, 300), seed=1), joined((0, 300), test=True)):
        assert not np.any(np.all(other[0] == whole[0][:300], axis=1))


def test_four_fifths_of_the_delays_are_noise() -> None:
    X, Y = joined((0, 60_000))
    rest = Y[:, 0] - smooth_and_threshold(X)
    assert rest.var() / Y.var() == pytest.approx(0.8, abs=0.02)


def test_files_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airline_data, "MOMENT_ROWS", 2_000)
    folder = airline_data.prepare("synthetic", 2_000, seed=0, work_dir=tmp_path)
    rows = open_rows(folder)
    assert rows.X_train.shape == (2_000, 8) and rows.Y_test.shape == (1_000, 1)
    np.testing.assert_allclose(rows.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(rows.Y_train.std(), 1.0, rtol=1e-12)
    before = (folder / "X_train.npy").stat().st_mtime_ns
    assert airline_data.prepare("synthetic", 2_000, seed=0, work_dir=tmp_path) == folder
    assert (folder / "X_train.npy").stat().st_mtime_ns == before
    (folder / "complete.json").unlink()  # as after an interruption
    airline_data.prepare("synthetic", 2_000, seed=0, work_dir=tmp_path)
    assert (folder / "X_train.npy").stat().st_mtime_ns != before


@pytest.mark.parametrize(
    ("densities", "steps", "reached"), [([1.5, 1.2, 1.0], 2, True), ([1.5] * 9, 4, False)]
)
def test_the_race_ends(densities: list[float], steps: int, reached: bool) -> None:
    now = 0.0
    values = iter(densities)

    def evaluate() -> dict[str, float]:
        nonlocal now
        now += 100.0  # does not count
        return {"nlpd": next(values)}

    race = Race(evaluate, target=1.2, budget=12.0, clock=lambda: now)
    with pytest.raises(RaceOverError):
        for step in range(1, 10):
            now += 3.0
            race(step, None)
    assert race.reached is reached
    assert [(point["step"], point["seconds"]) for point in race.curve] == [
        (step, 3.0 * step) for step in range(1, steps + 1)
    ]


def test_every_epoch_has_every_batch_once() -> None:
    X = np.arange(14.0).reshape(7, 2)
    batches = list(minibatches(X, X[:, :1], 2, seed=0).take(6).as_numpy_iterator())
    for epoch in (batches[:3], batches[3:]):
        assert sorted(int(Y[0, 0]) for _, Y in epoch) == [0, 4, 8]
    np.testing.assert_array_equal(batches[0][0][:, :1], batches[0][1])


def given(**options: Any) -> argparse.Namespace:
    parsed = airline_scale.AirlineScale()._parser().parse_args([])
    return argparse.Namespace(**{**vars(parsed), **options})


def vish(configuration: dict[str, Any], **result: Any) -> dict[str, Any]:
    parts = ("build", "subset", "read", "features", "products", "pass", "floor", "full_product")
    others = ("optimisation", "fit", "predict")
    return {
        "configuration": configuration,
        "result": {
            **{f"{name}_seconds": 2.0 for name in (*parts, *others)},
            **dict.fromkeys(("peak_bytes", "peak_bytes_of_fit", "peak_bytes_before"), 1000000000.0),
            **dict.fromkeys(("mse", "nlpd", "sample_nlpd", "bound"), 1.25),
            **{"num_rows": 1_000, "test_rows": 500, "num_inducing": 210, "products_over_floor": 1},
            **{"subset_steps": 9, "steps": 9, "subset_converged": False, "converged": True},
            "step_seconds": {"median": 0.1, "lower": 0.1, "upper": 0.1},
            **result,
        },
    }


@pytest.mark.full
def test_tables_and_picture(tmp_path: Path) -> None:
    runs = list(airline_scale.AirlineScale().configurations(given()))
    assert [run["data"] for run in runs if run["kind"] == "additive"] == ["synthetic", "beijing"]
    runs = [run for run in runs if run["kind"] != "additive"]
    assert [run["kind"] for run in runs if run["kind"] != "workers"] == (
        4 * ["vish"] + 16 * ["growth"] + 4 * ["svgp"]
    )
    shared = [run for run in runs if run["kind"] == "workers"]
    assert [(run["max_degree"], run["workers"]) for run in shared] == [(3, 2), (4, 2)]
    runs = runs[:24]
    race = {"reached": False, "ratio": 10.2, "seconds": 20.4, "budget_seconds": 20.0}
    own = {**race, "vish_seconds": 2.0, "target_nlpd": 1.25, "sample_nlpd": 1.3}
    records = [
        vish(runs[0], products_over_floor=1.62, num_rows=3_952_942, fit_seconds=24.9),
        *(vish(run, num_rows=run["num_rows"], num_inducing=run["max_degree"]) for run in runs[4:8]),
        vish(runs[-1], **own),
        vish(runs[-2], **{**own, "reached": True, "ratio": 120.0}),
    ]
    text = airline_table.table_of(records)
    assert "bare ones 1.62 (<= 1.5: NOT met)" in text
    assert "peak 0.93 GiB (<= 2: met); fit 24.9 s (<= 25: met)" in text
    assert "synthetic, Adam: svgp's seconds to vish's log density / vish's seconds >= 10.2" in text
    assert "undecided, the budget ended first" in text
    assert "vish's seconds 120.0 (>= 100: met)" in text
    airline_table.draw(tmp_path, records)
    assert (tmp_path / "airline_scale.png").stat().st_size > 5_000
    airline_table.draw(tmp_path / "no folder is needed without records", records[:1])


def test_svgp_is_compared_with_the_newest_fit_of_the_same_rows() -> None:
    runs = list(airline_scale.AirlineScale().configurations(given()))
    rival = next(run for run in runs if run["kind"] == "svgp" and run["data"] == "synthetic")
    stored = [
        {**vish(run, fit_seconds=float(i)), "finished_at": str(i)} for i, run in enumerate(runs)
    ]
    again = {**vish({**runs[0], "steps": 7}, fit_seconds=50.0), "finished_at": "9"}
    assert airline_scale.rival_of(rival, [again, *stored])["fit_seconds"] == 50.0
    with pytest.raises(DataError, match="run --kinds vish first"):
        airline_scale.rival_of(rival, stored[1:])


def test_sums_of_workers_beside_those_of_one_process() -> None:
    gram, terms = np.array([[4.0, 1e-9], [1e-9, 9.0]]), np.array([2.0, 5.0])
    assert airline_workers.difference((gram, terms), (gram, terms)) == 0.0
    # Of an entry beside what it could be (6), not beside the little that it is.
    moved = gram + np.array([[0.0, 6e-13], [0.0, 0.0]])
    assert airline_workers.difference((gram, terms), (moved, terms)) == pytest.approx(1e-13)
    assert airline_workers.difference((gram, terms), (gram, terms * (1 + 1e-9))) > 0.9e-9
    spread = {"median": 2.0, "lower": 1.9, "upper": 2.1}
    record = {
        "configuration": {"kind": "workers", "data": "synthetic", "workers": 2, "truncated": True},
        "result": {
            "num_rows": 1000,
            "num_inducing": 210,
            "seconds": {"one": spread, "shared": spread},
            "ratio": spread,
            "difference": 3e-16,
            "same_bits_on_all_workers": True,
            "bytes_shared": 2e6,
        },
    }
    assert re.search(r"3.0e-16 \(met\) +\| yes", airline_table.table_of([record]))
    record["result"] |= {"difference": 2e-12, "same_bits_on_all_workers": False}  # type: ignore[operator]
    assert re.search(r"2.0e-12 \(NOT met\) +\| NO", airline_table.table_of([record]))
