"""The benchmark of banana by degree: harmonics raise the bound, up to that of the exact prior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

from benchmarks import banana_degree


def record(prior: str, degree: int, elbo: float) -> dict[str, Any]:
    fit = {"prior": prior, "degree": degree, "elbo": elbo, "accuracy": 0.9, "nll": 0.25}
    return {"result": {"fits": [{**fit, "seconds": 1.0}]}}


def test_the_table_says_whether_the_bound_rises(tmp_path: Path) -> None:
    records = [record("full", 2, -9.0), record("full", 4, -9.5), record("vgp", 27, -4.0)]
    records += [record("fixed", 14, -5.0), record("fixed", 2, -8.0)]
    text = banana_degree.table_of(records)
    assert "full: the bound rises with the degree: no (the least rise is -0.500)" in text
    assert "fixed: the bound rises with the degree: yes (the least rise is 3.000)" in text
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row[2].strip() for row in rows] == ["9", "25", "9", "225", ""]
    banana_degree.draw_degrees(tmp_path / "banana_degree.png", records)
    assert (tmp_path / "banana_degree.png").stat().st_size > 5_000


@pytest.mark.full
def test_bounds_under_the_same_kernel(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(90, 2))
    Y = (np.sin(2 * X[:, :1]) + 0.3 * generator.normal(size=(90, 1)) > X[:, 1:]).astype(np.uint8)
    np.savez(tmp_path / "banana.npz", X=X[:60], Y=Y[:60], X_test=X[60:], Y_test=Y[60:])
    train, held_out = banana_degree.banana(tmp_path)
    assert train[0].shape == (60, 2) and len(held_out[1]) == 30
    model, trained = banana_degree.fitted(train, 4, truncated=False)
    kernel = model.kernel
    at_start = gpflow.utilities.read_values(kernel)
    bounds = [
        banana_degree.under_the_same_kernel(train, kernel, degree)[1] for degree in (2, 4, None)
    ]
    assert bounds[0] < bounds[1] < bounds[2] < 0
    assert bounds[1] == pytest.approx(trained, abs=0.05)
    for name, value in gpflow.utilities.read_values(kernel).items():
        np.testing.assert_array_equal(value, at_start[name])
