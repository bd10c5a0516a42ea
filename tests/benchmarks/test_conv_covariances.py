"""The pure parts of the benchmark of convolutional kernels; no timings are asserted."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pytest

from benchmarks.conv_covariances import NUM_IMAGES, WORK, ConvCovariances, disagreement, work


def arguments(**given: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"short": True, "rounds": None, "measures": None, **given})


def test_each_measure_has_all_work() -> None:
    runs = list(ConvCovariances().configurations(arguments(measures=["time"], rounds=7)))
    assert [(run["quantity"], run["direction"]) for run in runs] == list(WORK)
    assert {run["rounds"] for run in runs} == {7}


@pytest.mark.full
@pytest.mark.parametrize("quantity", ["K_diag", "Kuf", "elbo"])
def test_both_sides_compute_the_same(quantity: str) -> None:
    sides = [
        work(
            side=side,
            kernel="Matern52",
            quantity=quantity,
            direction="gradient",
            images=2,
            num_inducing=5,
            seed=0,
        )()
        for side in ("ours", "gpflow")
    ]
    assert disagreement(*sides) < 1e-10


def test_differences_are_relative_to_the_largest_entry() -> None:
    ours = [np.array([4.0, 2.2]), np.array([1.0]), np.array([100.0])]
    theirs = [np.array([4.0, 2.0]), np.array([0.0]), np.array([100.0])]
    assert disagreement(ours, theirs) == pytest.approx(0.05)
    with pytest.raises(RuntimeError, match="3 tensors against 1"):
        disagreement(ours, theirs[:1])


def test_targets_are_for_the_full_size() -> None:
    def table(images: int) -> str:
        run = {"measure": "memory", "kernel": "Matern52", "quantity": "K_diag", "images": images}
        result = {"peak_bytes": {"ours": 3e6, "gpflow": 100e6}}
        record = {"configuration": {**run, "direction": "gradient"}, "result": result}
        return ConvCovariances().table([record])

    assert "memory 3.0% <= 5%: met" in table(NUM_IMAGES)
    assert "met" not in table(5)
