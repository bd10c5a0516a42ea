"""The benchmark that recovers known kernels, at a size that says nothing about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from benchmarks._lib.results import ResultFile
from benchmarks.kernel_recovery import pictures, recovery, starts, table, targets
from benchmarks.kernel_recovery.benchmark import KernelRecovery


def configurations(*options: str) -> list[dict[str, Any]]:
    benchmark = KernelRecovery()
    return list(benchmark.configurations(benchmark._parser().parse_args(options)))


def cells_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_configurations() -> None:
    found = configurations()
    assert len(found) == 3 * 5 + 3 * 2
    assert found[0]["num_components"] == 6 and found[-1]["num_components"] == 48
    assert [run["seed"] for run in configurations("--kernels", "sm", "--seeds", "7")] == 3 * [7]


@pytest.mark.parametrize("name", list(targets.TARGETS))
def test_grids_lie_in_the_domains(name: str) -> None:
    target = targets.TARGETS[name]
    grid = target.grid(10)
    assert grid.shape == (10, 1) and grid[-1, 0] == pytest.approx(target.high)
    assert (grid[0, 0] > target.low) == (target.hurst is not None)
    assert np.all(np.isfinite(targets.target_kernel(name)(grid)))


def test_slope_is_the_derivative_of_the_phase() -> None:
    x = tf.constant(np.linspace(-1.0, 1.0, 5))
    with tf.GradientTape() as tape:
        tape.watch(x)
        phase = targets.gsm_frequency(x) * x
    np.testing.assert_allclose(tape.gradient(phase, x), targets.gsm_slope(x))


def test_sizes_have_equal_numbers() -> None:
    run = {"target": "gsm", "num_components": 3, "num_frequencies": 3, "seed": 1}
    harmonizable = starts.build_kernel({**run, "kernel": "hmk"})
    peaks = starts.stationary_size(3, 3)
    stationary = starts.build_kernel(
        {**run, "kernel": "sm", "num_components": peaks, "num_frequencies": 1}
    )
    counts = [
        sum(variable.shape.num_elements() for variable in kernel.trainable_variables)
        for kernel in (harmonizable, stationary)
    ]
    assert counts == [72, 72]


def test_least_stationary_error() -> None:
    lags = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    assert recovery.least_stationary_error(np.exp(-lags)) == pytest.approx(0.0, abs=1e-30)
    assert recovery.least_stationary_error(np.diag([1.0, 3.0])) == pytest.approx(0.5)


@pytest.mark.full
def test_a_start_a_record_and_the_pictures(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "kernel_recovery.jsonl")
    options = ("--short", "--targets", "gsm", "--num-components", "2", "--num-frequencies", "1")
    for run in configurations(*options):
        result = recovery.recover({**run, "steps": 3, "iterations": 2})
        assert result["mse"] < result["initial_mse"] and result["iterations"] == 2
        file.append({"configuration": run, "result": result})
    records = file.records()
    harmonizable, stationary = records
    kernel = pictures.recovered_kernel(harmonizable)
    grid = targets.TARGETS["gsm"].grid(targets.TESTED_GRID)
    difference = np.asarray(kernel(grid)) - targets.target_kernel("gsm")(grid)
    assert np.mean(np.square(difference)) == pytest.approx(harmonizable["result"]["mse"])
    text = table.table_of(records)
    rows = cells_of(text)
    assert [row[1] for row in rows] == ["hmk", "sm"]
    assert rows[0][7:9] == ["0.0033", "no"] and rows[1][7:9] == ["", ""]
    assert "from the slope of mu(x) x" in text
    pictures.draw(tmp_path, records)
    for name in ("kernel_recovery.png", "kernel_recovery_wigner.png"):
        assert (tmp_path / name).stat().st_size > 5_000
    pictures.draw(tmp_path / "no folder is needed without records", [])
