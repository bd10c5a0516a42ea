"""Trainings that are interrupted and continued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

from benchmarks._lib.resumable import Curve, read_curve, train


def test_curve_forgets_what_a_resumed_training_does_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "curve.jsonl"
    values = iter(range(10))
    first = Curve(path, lambda model: {"loss": next(values)})
    for step in (10, 20, 30):
        first(step, None)
    second = Curve(path, lambda model: {"loss": next(values)})
    second(25, None)  # resumed at 20
    points = read_curve(path)
    assert [(point["step"], point["loss"]) for point in points] == [(10, 0), (20, 1), (25, 3)]
    assert all(np.diff([point["seconds"] for point in points]) >= 0)

    ended = Curve(path, lambda model: pytest.fail("evaluated again"))
    ended(25, None)
    assert read_curve(path) == points


@pytest.mark.slow
def test_train_continues(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20, 1))
    data = (X, np.sin(X))
    settings: dict[str, Any] = {"folder": tmp_path, "batch_size": 10, "progress": False}

    def model() -> gpflow.models.SVGP:
        kernel, likelihood = gpflow.kernels.Matern32(), gpflow.likelihoods.Gaussian()
        return gpflow.models.SVGP(kernel, likelihood, X[:3].copy(), num_data=20)

    def noise(model: gpflow.models.SVGP) -> dict[str, float]:
        return {"noise": float(model.likelihood.variance.numpy())}

    train(model(), data, noise, steps=2, points=2, **settings)
    trained = train(model(), data, noise, steps=4, points=4, **settings)
    assert [point["step"] for point in trained["curve"]] == [1, 2, 3, 4]
    assert trained["train_seconds"] > 0 and trained["seconds_per_step"] > 0
