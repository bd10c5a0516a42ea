"""The benchmark on banana, at a size that says nothing about the models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._lib.data import Array, DataError
from benchmarks._lib.results import ResultFile
from benchmarks.banana_hmk import grid, models, pictures, table
from benchmarks.banana_hmk.benchmark import BananaHmk

OPTIONS = ("--short", "--data-dir", "somewhere")


def configurations(*options: str) -> list[dict[str, Any]]:
    benchmark = BananaHmk()
    return list(benchmark.configurations(benchmark._parser().parse_args(options)))


@pytest.fixture(scope="module")
def data() -> dict[str, Array]:
    generator = np.random.default_rng(0)
    X = generator.uniform(-2.0, 2.0, size=(40, 2))
    Y = (X[:, :1] ** 2 > 1.0 + X[:, 1:]).astype(float)
    return {"X": X[:30], "Y": Y[:30], "X_test": X[30:], "Y_test": Y[30:]}


def record(model: str, size: int, seed: int, accuracy: float, elbo: float) -> dict[str, Any]:
    (run,) = (
        run
        for run in configurations("--data-dir", "x", "--kernels", "fixed", "--seeds", str(seed))
        if (run["model"], run.get("size")) == (model, size)
    )
    result = {
        "train_accuracy": accuracy,
        "elbo": elbo,
        "num_variational": 10 * size,
        "test_error": 0.1 + 0.01 * seed,
        "test_nlpd": 0.25,
        "train_seconds": 3.0,
    }
    return {"configuration": run, "result": result}


def test_configurations_begin_with_the_full_model_and_restart_after_all_sizes() -> None:
    found = configurations("--data-dir", "x", "--kernels", "trained")
    assert found[0]["model"] == "full" and "seed" not in found[0]
    assert [run["seed"] for run in found[1:]] == [seed for seed in range(5) for _ in range(13)]
    assert len(configurations("--data-dir", "x")) == 1 + 2 * 5 * 13


@pytest.mark.full
def test_every_model_trains_and_is_drawn(data: dict[str, Array], tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "banana_hmk.jsonl")
    full, *sparse = (
        {**run, "full_steps": 3, "q_steps": 2, "rounds": 2} for run in configurations(*OPTIONS)
    )
    with pytest.raises(DataError, match="no record of the full model"):
        models.full_record(sparse[0], [])
    file.append({"configuration": full, "result": models.train_full(full, data)})
    for run in sparse:
        found = models.full_record(run, file.records())
        result = models.train_sparse({**run, "seed": 1}, data, found)
        assert result["num_variational"] in {"points": (27,), "fourier": range(32, 57)}.get(
            run["model"], range(77, 153)
        )
        assert grid.unpacked(result["probabilities"]).shape == (60, 60)
        file.append({"configuration": run, "result": result})
    assert table.table_of(file.records()).count("\n| ") == 4 + 1
    pictures.draw(tmp_path, file.records(), data)
    assert (tmp_path / "banana_hmk.png").stat().st_size > 5_000


@pytest.mark.full
def test_phases(data: dict[str, Array]) -> None:
    """Only q moves in the first phase; a fixed kernel moves in neither."""
    full, points, *_ = configurations(*OPTIONS)
    kernel = models.initial_kernel(full, data)
    import gpflow

    parameters = gpflow.utilities.parameter_dict(kernel)
    found = {
        "configuration": full,
        "result": {
            "kernel_parameters": {name: p.numpy().tolist() for name, p in parameters.items()}
        },
    }
    model = models.build_sparse(points, data, found)
    start = model.inducing_variable.Z.numpy()
    for rounds, moved in ((0, False), (1, True)):
        result = models.train_sparse({**points, "rounds": rounds}, data, found)
        assert np.allclose(result["points"], start, atol=1e-8) != moved
        centres = [part.centre.numpy() for part in kernel.kernels]
        np.testing.assert_allclose(result["centres"], centres, rtol=1e-8)


def test_probabilities_are_packed() -> None:
    values = np.random.default_rng(0).uniform(size=(60, 60))
    text = grid.packed(values)
    np.testing.assert_allclose(grid.unpacked(text), values, atol=0.5 / 255)
    assert len(grid.packed(np.ones((60, 60)))) < 100


def test_table_takes_the_restart_that_fits_the_training_rows_best() -> None:
    records = [
        record("points", 6, 0, 0.90, -80.0),
        record("points", 6, 1, 0.92, -90.0),
        record("points", 6, 2, 0.92, -85.0),
    ]
    assert table.chosen(records) is records[2]
    (row,) = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.table_of(records).splitlines()
        if line.startswith("| points")
    )
    assert row[:4] == ["points, kernel fixed", "6", "60", "12.00"] and row[-1] == "0-2"


def test_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no library fetches the data set 'banana'"):
        models.banana(None)
    np.savez(tmp_path / "banana.npz", X=np.zeros((3, 2)), Y=np.zeros((3, 1)))
    with pytest.raises(DataError, match=r"lacks the arrays \['X_test', 'Y_test'\]"):
        models.banana(tmp_path)
