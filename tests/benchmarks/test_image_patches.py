"""The benchmark of image patches: its models, its table, and a short run on made-up images."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from benchmarks import image_patches
from benchmarks._lib.image_models import LabelledRows


def look(seconds: float, steps: float, nll: float) -> dict[str, float]:
    return {"seconds": seconds, "steps": steps, "nll": nll, "accuracy": 0.9, "bound": -2 * nll}


def record(model: str, trace: list[dict[str, float]]) -> dict[str, Any]:
    run = {"data": "cifar10", "model": model, "num_inducing": 100, "images": 5_000, "seed": 0}
    run |= {"batch_size": 50, "learning_rate": 0.01, "variance": 1.0, "seconds": [10.0, 20.0]}
    return {"configuration": run, "result": {"trace": trace, "test_images": 900}}


def test_the_table_compares_equal_steps_and_equal_seconds() -> None:
    quick = [look(5, 50, 2.0), look(10, 100, 1.5), look(20, 200, 0.5)]
    slow = [look(10, 50, 1.0), look(20, 100, 0.75)]
    text = image_patches.table_of([record("m", quick), record("4xm", slow)])
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    first, second = ([cell.strip() for cell in row] for row in rows[1:])
    assert first == [
        *("M", "100", "65.70 ± 0.06", "1.65", "0.21", "0.100"),
        *("10.00", "1.500", "-3.000", "10.00", "0.500", "-1.000", "200"),
    ]
    assert second[:2] == ["4 x M", "400"] and second[6:9] == ["10.00", "0.750", "-1.500"]
    assert "Best by NLL after 10 s: 4 x M 1.000, M 1.500" in text
    assert "Best by NLL after 20 s: M 0.500, 4 x M 0.750" in text
    assert "Best by NLL after 100 steps: 4 x M 0.750, M 1.500" in text
    assert "at most 1.00% with so few images" in text


@pytest.mark.parametrize("name", image_patches.MODELS)
def test_models_have_the_patches_they_should(name: str) -> None:
    generator = np.random.default_rng(0)
    X, Y = generator.uniform(size=(12, 81)), np.arange(12)[:, None] % 3
    rows = LabelledRows(X, Y, X, Y, (9, 9), 3)
    model = image_patches.build_model(
        name, rows, num_inducing=4, variance=1.0, data="mnist", seed=0
    )
    kinds = {"m_plus_m": idm.models.OrthogonalSVGP, "2xm": idm.models.AdditiveSVGP}
    kinds["4xm"] = kinds["2xm"]
    assert type(model) is kinds.get(name, gpflow.models.SVGP)
    patches = int(model.inducing_variable.num_inducing)
    if name == "m_plus_m":
        patches += int(model.orthogonal_inducing_variable.num_inducing)
    assert patches == 4 * image_patches.SETS[name]
    if name in image_patches.HARMONIC:
        assert model.kernel.num_components == model.num_blocks == image_patches.SETS[name]
        np.testing.assert_allclose(
            sum(part(X[:3]) for part in model.kernel.kernels), model.kernel.base_kernel(X[:3])
        )


@pytest.mark.full
def test_short_run(tmp_path: Path, in_this_process: Callable[[ModuleType], None]) -> None:
    """Digits of nine by nine pixels whose class is where they are bright."""
    in_this_process(image_patches)
    generator = np.random.default_rng(0)
    labels = np.arange(320) % 10
    images = generator.integers(100, size=(320, 9, 9))
    images[np.arange(320), labels % 9] += 150
    split = {"X_train": images[:220], "Y_train": labels[:220]}
    np.savez(tmp_path / "mnist.npz", **split, X_test=images[220:], Y_test=labels[220:])
    options = ["--short", "--results", str(tmp_path), "--data-dir", str(tmp_path)]
    assert image_patches.ImagePatches().main([*options, "--models", "m_plus_m,4xm"]) == 0
    lines = (tmp_path / "image_patches.jsonl").read_text().splitlines()
    traces = [json.loads(line)["result"]["trace"] for line in lines]
    assert len(traces) == 2
    for trace in traces:
        assert trace[-1]["seconds"] >= 2.0 and np.isfinite(trace[-1]["nll"])
        assert all(np.isfinite(one["bound"]) for one in trace)
    assert (tmp_path / "image_patches.png").stat().st_size > 5_000
