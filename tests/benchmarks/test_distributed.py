"""The pure parts of the benchmark of strategies: the cost model, the tables, the processes."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks._lib.child import Call, from_children
from benchmarks._lib.processes import worker_variables
from benchmarks.distributed import benchmark as distributed
from benchmarks.distributed.cost import (
    Network,
    StepCost,
    reduced_bytes,
    ring_bytes,
    strong_scaling,
    weak_scaling,
)
from benchmarks.distributed.table import table_of
from benchmarks.distributed.worker import Clock, carried_bytes


def given(*options: str) -> argparse.Namespace:
    return distributed.Distributed()._parser().parse_args(options)


def test_a_ring() -> None:
    """Each worker sends a W-th of the bytes W - 1 times for the sums, and again for the result."""
    for workers in (1, 2, 5, 64):
        messages = 2 * (workers - 1)
        assert ring_bytes(workers, 640.0) == pytest.approx(messages * 640.0 / workers)
        network = Network(bandwidth=8e3, latency=0.5, all_reduces=3)
        expected = 3 * messages * 0.5 + messages * (640.0 / workers) / 1e3
        assert network.seconds(workers, 640.0) == pytest.approx(expected)
    assert reduced_bytes(100) == 8 * 102


def test_the_cost_of_a_step_is_recovered() -> None:
    rows = [1_024, 4_096, 16_384]
    cost = StepCost.fit(rows, [0.01 + 2e-5 * n for n in rows])
    assert (cost.fixed, cost.per_row) == (pytest.approx(0.01), pytest.approx(2e-5))
    assert cost.seconds(500) == pytest.approx(0.02)
    # Steps that grow faster than their rows: what is fixed does not become negative.
    assert StepCost.fit([1_000, 2_000], [1.0, 3.0]).fixed == 0.0
    # The relative errors are the least: a slow step counts as much as a quick one.
    noisy = StepCost.fit(rows, [0.01 + 2e-5 * rows[0], 0.01 + 2e-5 * rows[1], 0.4])
    assert noisy.seconds(rows[0]) == pytest.approx(0.01 + 2e-5 * rows[0], rel=0.05)
    with pytest.raises(ValueError, match="two different numbers are needed"):
        StepCost.fit([1_000, 1_000], [1.0, 1.1])


def test_predictions() -> None:
    cost, network = StepCost(0.1, 1e-3), Network(bandwidth=8e6, latency=0.01, all_reduces=1)
    # 8 workers: 0.14 s of latency, and 1.75 times 100,000 bytes at a million a second.
    strong = strong_scaling(cost, network, 8, 800, 100_000)
    assert strong.speedup == pytest.approx(0.9 / (0.2 + 0.14 + 0.175))
    weak = weak_scaling(cost, network, 8, 800, 100_000)
    assert weak.speedup == pytest.approx(8 * 0.9 / (0.9 + 0.14 + 0.175))
    assert weak.efficiency == pytest.approx(weak.speedup / 8)
    free = Network(bandwidth=1e30, latency=0.0)
    assert str(strong_scaling(StepCost(0.0, 1e-3), free, 64, 640, 8)) == "64.00 (100%)"
    assert str(weak_scaling(cost, free, 2, 800, 8)) == "2.00 (100%)"


def test_configurations_are_one_for_each_model_and_batch() -> None:
    benchmark = distributed.Distributed()
    runs = list(benchmark.configurations(given()))
    assert [(run["model"], run["batch_sizes"]) for run in runs] == [
        (model, [rows]) for model in ("svgp", "hvgp") for rows in (1_024, 4_096, 16_384)
    ]
    (short,) = benchmark.configurations(given("--short"))
    assert len(short["batch_sizes"]) == 2  # so that there is a cost model
    (chosen,) = benchmark.configurations(given("--models", "hvgp", "--batch-sizes", "512"))
    assert chosen["batch_sizes"] == [512] and "max_degree" not in chosen


def test_a_core_for_each_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 3}, raising=False)
    cores = {name: distributed.processes_of(side) for name, side in distributed.SIDES.items()}
    assert cores["no strategy"] == cores["1 device"] == cores["1 worker"] == [[3]]
    assert cores["2 devices"] == [[3, 5]]
    assert cores["2 workers"] == cores["2 halves"] == [[3], [5]]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    with pytest.raises(RuntimeError, match="2 cores are needed, this process may use 1"):
        distributed.processes_of(distributed.SIDES["2 workers"])


def test_the_environment_of_workers() -> None:
    found = [json.loads(one["TF_CONFIG"]) for one in worker_variables(3)]
    assert [one["task"] for one in found] == [{"type": "worker", "index": k} for k in range(3)]
    assert all(one["cluster"] == found[0]["cluster"] for one in found)
    assert len(set(found[0]["cluster"]["worker"])) == 3


def process(*seconds: float, carried: float | None) -> dict[str, Any]:
    return {"fits": [{"seconds": list(seconds), "loopback_bytes": carried}]}


def test_medians_of_processes_and_ratios_of_rounds() -> None:
    rounds = {name: [process(4.0, 2.0, 3.0, carried=None)] * 3 for name in distributed.SIDES}
    rounds["2 workers"] = [process(second, carried=100.0 * second) for second in (1.0, 2.0, 3.0)]
    summary = distributed.summary_of(rounds, 0)
    assert summary["samples"]["1 worker"] == [3.0, 3.0, 3.0]
    assert summary["ratios"]["1 worker / 2 workers"]["median"] == 1.5
    assert summary["loopback_bytes"] == 200.0
    rounds["2 workers"] = rounds["1 worker"]
    assert distributed.summary_of(rounds, 0)["loopback_bytes"] is None


def test_the_slower_half_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Call] = []

    def started(function: Any, given: list[Call], timeout: float) -> list[dict[str, Any]]:
        calls.extend(given)
        return [{"replicas": 1, **process(float(k), carried=None)} for k in range(1, 3)]

    monkeypatch.setattr(distributed, "from_children", started)
    monkeypatch.setattr(distributed, "cores_of_this_process", lambda number: [3, 5][:number])
    side, settings = distributed.SIDES["2 halves"], {"device_threads": 2, "batch_sizes": [512, 64]}
    assert distributed.run_side(side, settings)["fits"][0]["seconds"] == [2.0]
    assert [call.arguments["cores"] for call in calls] == [[3], [5]]
    assert all(call.arguments["batch_sizes"] == [256, 32] for call in calls)
    assert not any("TF_CONFIG" in call.environment for call in calls)
    with pytest.raises(RuntimeError, match="ran on 1 replicas"):
        distributed.run_side(distributed.SIDES["2 workers"], settings)


def test_the_bytes_of_an_interface(tmp_path: Path) -> None:
    counters = tmp_path / "dev"
    assert carried_bytes(counters) is None
    counters.write_text(
        "Inter-|   Receive            |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n"
        "    lo: 7 1 0 0 0 0 0 0 5668365 29625 0 0 0 0 0 0\n"
        "  eth0:9 1 0 0 0 0 0 0 4 2 0 0 0 0 0 0\n"
    )
    assert carried_bytes(counters) == 5_668_365
    assert carried_bytes(counters, "eth0") == 4
    assert carried_bytes(counters, "eth1") is None


def test_the_clock_leaves_out_the_first_steps_and_the_last() -> None:
    clock = Clock()
    clock.times, clock.bytes = [9.0, 10.0, 11.0, 13.0, 99.0], [0, 5, 7, 12, 50]
    assert clock.between(2, 4) == ([1.0, 2.0], 7)
    clock.bytes[3] = None
    assert clock.between(2, 4)[1] is None


def record(rows: int, **medians: float) -> dict[str, Any]:
    (run,) = distributed.Distributed().configurations(
        given("--models", "svgp", "--batch-sizes", str(rows))
    )
    seconds = {side: medians.get(side.replace(" ", "_"), 1.0) for side in distributed.SIDES}
    batch = {
        "batch_size": rows,
        "seconds": {
            side: dict.fromkeys(("median", "lower", "upper"), s) for side, s in seconds.items()
        },
        "ratios": {
            f"{one} / {two}": dict.fromkeys(
                ("median", "lower", "upper"), seconds[one] / seconds[two]
            )
            for one, two in distributed.PAIRS
        },
        "loopback_bytes": None if rows > 1_024 else 5_000.0,
    }
    return {"configuration": run, "result": {"numbers": 1_000, "batches": [batch]}}


def test_the_tables() -> None:
    records = [
        record(16_384, **{"2_devices": 0.5, "2_workers": 0.6, "1_worker": 0.9}),
        record(1_024, **{"2_workers": 0.1, "1_worker": 0.1}),
    ]
    text = table_of(records, Network())
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    (devices,) = [row for row in cells if row[1:3] == ["16,384", "2 devices"]]
    assert devices[4:] == ["32,768", "2 [2, 2]", "2 [2, 2]", "met; met"]
    (workers,) = [row for row in cells if row[1:3] == ["16,384", "2 workers"]]
    assert workers[-1] == "NOT met; NOT met"
    assert ["1,024", "1,000", "8,016", "8,016", "2,500"] in [row[1:] for row in cells]
    assert ["16,384", "1,000", "8,016", "8,016", ""] in [row[1:] for row in cells]
    # Of the steps of 0.1 and 0.9 s: 0.05 s for every step, and 0.48 with half of the rows.
    (check,) = [row for row in cells if row[1:3] == ["16,384", "0.9"]]
    assert check[3:] == ["0.9", "0.4733", "0.6", "126.67", "+27%"]
    assert "1 x 2 (W - 1) 50 microseconds" in text and "(10 Gbit/s)" in text
    assert "needs one worker's steps with two batch sizes" in table_of(records[:1], Network())


def test_the_network_of_the_options(tmp_path: Path) -> None:
    benchmark = distributed.Distributed()
    assert benchmark.main(["--table", "--results", str(tmp_path), "--bandwidth", "25"]) == 0
    assert benchmark.network == Network(bandwidth=25e9)


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "children.py").write_text(
        "import os, pathlib, sys, time\n\n\n"
        "def meet(index, folder):\n"
        "    here = pathlib.Path(folder)\n"
        "    (here / f'{index}').write_text(str(os.getpid()))\n"
        "    while len(list(here.iterdir())) < 2:\n"
        "        time.sleep(0.01)\n"
        "    return [index, os.environ['NAME']]\n\n\n"
        "def fail_or_wait(index, folder):\n"
        "    meet(index, folder)\n"
        "    if index == 1:\n"
        "        sys.exit('out of luck')\n"
        "    time.sleep(600)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import children  # type: ignore[import-not-found]

    return children


def calls(folder: Path, count: int = 2) -> list[Call]:
    folder.mkdir()
    return [Call({"index": i, "folder": str(folder)}, {"NAME": f"n{i}"}) for i in range(count)]


@pytest.mark.full
def test_children_run_at_the_same_time(scripts: Any, tmp_path: Path) -> None:
    assert from_children(scripts.meet, calls(tmp_path / "met"), timeout=60.0) == [
        [0, "n0"],
        [1, "n1"],
    ]


@pytest.mark.full
def test_no_child_is_left(scripts: Any, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"exit status \[None, 1\](.|\n)*out of luck"):
        from_children(scripts.fail_or_wait, calls(tmp_path / "failing"), timeout=60.0)
    with pytest.raises(RuntimeError, match=r"within 1 s, exit status \[None\]"):
        from_children(scripts.meet, calls(tmp_path / "late", count=1), timeout=1.0)
    assert time.monotonic() - started < 60.0
    for file in [*(tmp_path / "failing").iterdir(), *(tmp_path / "late").iterdir()]:
        assert not Path("/proc", file.read_text()).exists()
