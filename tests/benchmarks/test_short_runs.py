"""One short run of three benchmarks: a model on one clock in a process of its own; sides that agree
and take turns; a training with looks on data from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import conv_covariances, image_patches, terrain
from benchmarks._lib.child import function_named, target_of
from benchmarks._lib.runner import Benchmark

pytestmark = pytest.mark.slow


def short_run(benchmark: Benchmark, folder: Path, *options: str) -> list[Any]:
    """The records of a short run that prints a table."""
    assert benchmark.main(["--short", "--results", str(folder), *options]) == 0
    lines = (folder / f"{benchmark.name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_model_in_a_process_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (record,) = short_run(terrain.Terrain(), tmp_path, "--models", "box_60")
    assert record["configuration"]["model"] == "box_60"
    last = record["result"]["trace"][-1]
    assert 0 < last["rmse"] < 1 and last["seconds"] > 0  # better than the mean
    assert "| box_60 " in capsys.readouterr().out
    assert (tmp_path / "terrain.png").stat().st_size > 5_000


def test_sides_take_turns_and_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conv_covariances, "WORK", (("K_diag", "gradient"),))
    options = ("--measures", "agreement,time", "--rounds", "1")
    agreement, timed = short_run(conv_covariances.ConvCovariances(), tmp_path, *options)
    assert agreement["result"]["disagreement"] < 1e-10
    assert set(timed["result"]["seconds"]) == set(conv_covariances.SIDES)
    assert all(one["median"] > 0 for one in timed["result"]["seconds"].values())
    assert timed["result"]["ratio"]["median"] > 0
    assert "K_diag" in capsys.readouterr().out


def test_a_training_with_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits of nine by nine pixels whose class is where they are bright. The model is trained in
    this process; arguments and results go through JSON as where there is another."""

    def called(function: Any, **arguments: Any) -> Any:
        given = json.loads(json.dumps(arguments))
        return json.loads(json.dumps(function_named(target_of(function))(**given)))

    monkeypatch.setattr(image_patches, "from_child", called)
    generator = np.random.default_rng(0)
    labels = np.arange(320) % 10
    images = generator.integers(100, size=(320, 9, 9))
    images[np.arange(320), labels % 9] += 150
    split = {"X_train": images[:220], "Y_train": labels[:220]}
    np.savez(tmp_path / "mnist.npz", **split, X_test=images[220:], Y_test=labels[220:])
    options = ("--data-dir", str(tmp_path), "--models", "m", "--seconds", "0.5,1")
    (record,) = short_run(image_patches.ImagePatches(), tmp_path, *options)
    trace = record["result"]["trace"]
    assert trace[-1]["seconds"] >= 1.0 and np.isfinite(trace[-1]["nll"])
    assert all(np.isfinite(one["bound"]) for one in trace)
    assert (tmp_path / "image_patches.png").stat().st_size > 5_000
