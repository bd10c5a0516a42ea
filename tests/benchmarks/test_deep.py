"""The benchmarks of deep GPs: their tables, and short runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gpflux", reason="the extra `deep` is not installed")

from benchmarks import deep_conv, deep_step, deep_uci

InThisProcess = Callable[[ModuleType], None]


def records_of(folder: Path, name: str) -> list[Any]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_tables_have_the_papers_figures() -> None:
    run = {"data": "yacht", "features": "points", "layers": 2, "split": 0}
    text = deep_uci.table_of(
        [{"configuration": run, "result": {"rmse": 0.5, "log_density": -0.25}}]
    )
    assert "0.500" in text and "(0.34, -0.33)" not in text and "0.34, -0.33" in text
    run = {"data": "cifar10", "model": "2xM", "num_inducing": 64}
    point = {"seconds": 12.0, "steps": 5, "accuracy": 0.5, "nll": 1.5}
    text = deep_conv.table_of([{"configuration": run, "result": {"trace": [point]}}])
    assert "77.09" in text and "50.0 (12 s)" in text


@pytest.mark.full
def test_short_step(tmp_path: Path) -> None:
    assert deep_step.DeepStep().main(["--short", "--results", str(tmp_path)]) == 0
    results = [record["result"] for record in records_of(tmp_path, "deep_step")]
    assert len(results) == 2
    assert all(set(result["seconds"]) == set(deep_step.SIDES) for result in results)


@pytest.mark.full
def test_both_sides_compute_the_same_bound() -> None:
    """GPflux's layers and ours with points: the same numbers of parameters, alike in size."""
    sizes = {}
    for side in ("gpflux", "points"):
        bound, gradients = deep_step.training_step(
            side=side, num_inducing=6, q="full", rows=50, seed=0
        )()
        assert np.isfinite(bound)
        sizes[side] = sorted(tuple(gradient.shape) for gradient in gradients)
    assert sizes["gpflux"] == sizes["points"]


@pytest.mark.full
def test_short_tables(
    tmp_path: Path, in_this_process: InThisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_this_process(deep_uci)
    measure = deep_uci.from_child
    monkeypatch.setattr(
        deep_uci, "from_child", lambda function, environment, **given: measure(function, **given)
    )
    options = ["--short", "--results", str(tmp_path), "--features", "harmonics,harmonics_diagonal"]
    assert deep_uci.DeepUci().main(options) == 0
    results = [record["result"] for record in records_of(tmp_path, "deep_uci")]
    assert len(results) == 4 and all(np.isfinite(result["log_density"]) for result in results)


@pytest.mark.full
def test_short_images(tmp_path: Path, in_this_process: InThisProcess) -> None:
    in_this_process(deep_conv)
    options = ["--short", "--results", str(tmp_path), "--models", "2xM"]
    assert deep_conv.DeepConv().main(options) == 0
    (record,) = records_of(tmp_path, "deep_conv")
    assert all(np.isfinite(point["nll"]) for point in record["result"]["trace"])
