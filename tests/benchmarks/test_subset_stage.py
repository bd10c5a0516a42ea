"""The benchmark of the subset stage: its verdict, and what it measures."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import subset_stage


def record(seconds: float) -> dict[str, Any]:
    spread = {"median": seconds, "lower": seconds, "upper": seconds}
    names = ("label", "data", "source", "blas_threads")
    return {
        "configuration": {**dict.fromkeys(names, ""), "rows": 3_000},
        "result": {
            "num_inducing": 7,
            "iterations": 50,
            "bound_per_row": -1.07,
            "seconds": dict.fromkeys(subset_stage.PARTS, spread),
        },
    }


def test_the_verdict() -> None:
    assert "8 s: met" in subset_stage.table_of([record(7.9)])
    assert "8 s: missed" in subset_stage.table_of([record(8.1)])


def test_the_parts_are_the_whole() -> None:
    found = subset_stage.measured(
        data="beijing_pm25", degree=1, rows=50, iterations=3, seed=0, data_dir=None
    )
    assert found["iterations"] == 3 and found["num_inducing"] == 11
    parts = sum(found[part] for part in ("build", "trace", "steps"))
    np.testing.assert_allclose(parts, found["whole"])
