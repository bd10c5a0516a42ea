"""The pure parts of the benchmark on Snelson's data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import snelson
from benchmarks._lib.data import DataError


def arguments(**given: Any) -> argparse.Namespace:
    defaults = dict.fromkeys(("kernels", "activations", "variants", "max_iterations", "seeds"))
    return argparse.Namespace(**{**defaults, "short": False, "data_dir": Path("x"), **given})


def record(variant: str, elbo: float, seed: int, kernel: str = "matern52") -> dict[str, Any]:
    names = "prior explained uncertain orthogonal_explained orthogonal_uncertain mean".split()
    return {
        "configuration": {
            "kernel": kernel,
            "activation": "relu",
            "variant": variant,
            "max_iterations": 200,
            "seed": seed,
            "source": "files",
        },
        "result": {
            "elbo": elbo,
            "iterations": 100 + seed,
            "converged": seed == 0,
            "noise_variance": 0.2,
            "iterations_per_second": 50.0,
            **({"curves": {name: [1.0, 0.5] for name in names}} if seed == 0 else {}),
        },
    }


TIMES = {
    "configuration": {"variant": snelson.STEP_TIMES, "source": "files"},
    "result": {"seconds": {"matern52/relu/L8": {"median": 0.01, "lower": 0.009, "upper": 0.012}}},
}


def test_configurations_cover_every_combination_before_the_next_seed() -> None:
    found = list(snelson.Snelson().configurations(arguments()))
    assert len(found) == 2 * 2 * 3 * 5 + 1
    assert found[0]["variant"] == snelson.STEP_TIMES
    assert [run["seed"] for run in found[1:14]] == 12 * [0] + [1]
    chosen = snelson.Snelson().configurations(arguments(variants=["L16"], seeds=[3]))
    assert {(run["variant"], run["seed"]) for run in chosen} == {("L16", 3)}


def test_table() -> None:
    records = [
        record("L16", -50.0, 0, "arc_cosine"),
        record("L8", -120.0, 1),
        TIMES,
        record("L8", -100.0, 0),
    ]
    lines = [line for line in snelson.table_of(records).splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert [row[0] for row in rows] == ["Matern-5/2", "arc-cosine"]
    assert rows[0][1:5] == ["relu", "L8", "-110.0 ± 14.1", "-100.0"]
    assert rows[0][7] == "1 of 2 at 200" and rows[0][9] == "10 [9, 12]" and rows[0][10] == "0-1"
    assert rows[1][9] == ""


def test_picture(tmp_path: Path) -> None:
    records = [record("L8", -100.0, 0), record("L8", -120.0, 1), record("L8_K8", -90.0, 0)]
    X = np.linspace(-1.0, 1.0, 5)[:, None]
    snelson.draw(tmp_path, records, (X, X), X[:2])
    assert (tmp_path / "snelson.png").stat().st_size > 5_000
    snelson.draw(tmp_path / "no folder is needed without records", [], (X, X), X)


def test_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no library fetches the data set 'snelson1d'"):
        snelson.standardised(None)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(3.0, 2.0, size=(2, 20, 1))
    np.savez(tmp_path / "snelson1d.npz", X=X, Y=Y)
    with pytest.raises(DataError, match=r"lacks the arrays \['X_test'\]"):
        snelson.standardised(tmp_path)
    np.savez(tmp_path / "snelson1d.npz", X=X, Y=Y, X_test=X[:3])
    inputs, outputs, test = snelson.standardised(tmp_path)
    for values in (inputs, outputs):
        np.testing.assert_allclose([values.mean(), values.std()], [0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(test, inputs[:3])
