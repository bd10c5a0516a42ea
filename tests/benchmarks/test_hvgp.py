"""The pure parts of the benchmarks of HVGP: splits, transformed images, tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from benchmarks import elevation, nystrom
from benchmarks._lib.optimal_q import OptimalQ
from benchmarks._lib.prediction import gaussian_errors
from benchmarks.hvgp_scaling import benchmark as hvgp_scaling
from benchmarks.hvgp_scaling.sides import (
    COREGIONALIZATION,
    DISTINCT,
    GPYTORCH,
    SHARED,
    SIDES,
    SVGP_LARGE,
)
from benchmarks.transform_mnist import benchmark as transform_benchmark
from benchmarks.transform_mnist import digits as transformed_digits
from benchmarks.transform_mnist import table as transform_table
from benchmarks.transform_mnist.collapsed import trained_with_optimal_q
from benchmarks.transform_mnist.digits import Digits


def rows_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def spread(median: float) -> dict[str, float]:
    return {"median": median, "lower": median, "upper": median}


def test_fractions_of_the_elevation_split() -> None:
    train, validation, test = elevation.random_split(1_000, seed=3)
    assert [len(train), len(validation), len(test)] == [720, 80, 200]
    assert sorted(np.concatenate([train, validation, test])) == list(range(1_000))


def test_gaussian_errors() -> None:
    Y, mean = np.array([[1.0], [2.0]]), np.array([[1.0], [0.0]])
    errors = gaussian_errors(Y, mean, np.full((2, 1), 4.0))
    assert errors["rmse"] == pytest.approx(np.sqrt(2.0))
    assert errors["nll"] == pytest.approx(0.5 * np.log(8.0 * np.pi) + 0.25)


def test_images_are_flipped_and_shifted_whole() -> None:
    images = np.random.default_rng(0).normal(size=(40, 4, 4))
    flipped = transformed_digits.randomly_flipped(images, np.random.default_rng(1))
    shifted = transformed_digits.randomly_shifted(images, np.random.default_rng(1))
    turned = set()
    for i in range(len(images)):
        flips = [images[i][::up, ::left] for up in (1, -1) for left in (1, -1)]
        turned.add([bool((flip == flipped[i]).all()) for flip in flips].index(True))
        rolls = [np.roll(images[i], (a, b), axis=(0, 1)) for a in range(4) for b in range(4)]
        assert any((roll == shifted[i]).all() for roll in rolls)
    assert turned == {0, 1, 2, 3}


def test_images_are_halved_by_means() -> None:
    images = np.arange(32.0).reshape(2, 4, 4)
    (first, _) = transformed_digits.flattened(images, 2) * 255.0
    np.testing.assert_allclose(first, [2.5, 4.5, 10.5, 12.5])
    whole = transformed_digits.flattened(images, 4) * 255.0
    np.testing.assert_allclose(whole, images.reshape(2, 16))


def test_sides_of_the_scaling_benchmark() -> None:
    assert hvgp_scaling.sides_of(8, True) == list(SIDES)
    assert set(SIDES) - set(hvgp_scaling.sides_of(16, False)) == {COREGIONALIZATION, GPYTORCH}


def test_table_of_scaling_shows_the_targets() -> None:
    size = {"components": 8, "num_inducing": 250, "rows": 1_000, "seed": 0}
    sides = (SVGP_LARGE, SHARED, DISTINCT)
    measured: dict[str, dict[str, Any]] = {
        "time": {
            "seconds": {side: spread(1.0) for side in sides},
            "ratios": {SVGP_LARGE: spread(1.0), SHARED: spread(13.0), DISTINCT: spread(5.0)},
        },
        "memory": {"peak_bytes": {SVGP_LARGE: 2e8, SHARED: 1e8, DISTINCT: 3e8}},
        "tracing": {
            "tracing": {side: {"seconds": 2.0, "operations": 1_234} for side in sides},
        },
        "devices": {"seconds": {"one device": spread(2.0)}, "ratio": spread(1.7)},
    }
    records = [
        {"configuration": {"measure": name, **size}, "result": result}
        for name, result in measured.items()
    ]
    agreement = {"configuration": {"measure": "agreement"}, "result": {"disagreements": {"a": 0.0}}}
    text = hvgp_scaling.table_of([*records, agreement])
    shared = rows_of(text)[1]
    assert shared[3] == SHARED and shared[6:] == ["100", "2.0", "1,234"]
    assert "hvgp shared 13.0x as fast as svgp Tm (>= 12x: met)" in text
    assert "hvgp distinct 5.0x as fast as svgp Tm (>= 6x: NOT met)" in text
    assert "hvgp distinct 300 MB (below svgp Tm: NOT met)" in text
    assert "(<= 5 s: met)" in text and "1.7 [1.7, 1.7] (>= 1.6x: met)" in text
    assert "a 0.0e+00" in text
    assert len(rows_of(hvgp_scaling.table_of(records[1:2]))) == 3  # one measure alone


def test_table_of_elevation() -> None:
    run = {"model": "hvgp_7xm", "num_inducing": 300, "steps": 1_000, "seed": 0}
    run |= {"natural_gradient": 0.1}
    result = {"rmse": 0.2, "nll": None, "seconds_per_step": 0.5, "train_seconds": 500.0}
    (row,) = rows_of(elevation.table_of([{"configuration": run, "result": result}]))
    assert row[3:] == [
        *("natural 0.1", "0.200", "not finite", "0.500", "500"),
        *("7x1k", "0.189", "-0.246", "1.55"),
    ]


def test_table_of_nystrom_takes_means_over_seeds() -> None:
    run = {"dataset": "power", "model": "pca_8xm", "num_inducing": 100, "rows": 3_000}
    run |= {"max_iterations": 100, "source": "files"}
    records = [
        {
            "configuration": {**run, "seed": seed},
            "result": {"before": 0.2, "after": after, "converged": False, "fit_seconds": 2.0},
        }
        for seed, after in enumerate([0.1, 0.3])
    ]
    (row,) = rows_of(nystrom.table_of(records))
    assert row[4:] == ["0.2000 ± 0.0000", "0.2000 ± 0.1414", "0-1", "2", "2 of 2 at 100"]


def test_table_of_transformed_images_states_the_claim() -> None:
    run = {"task": "translate", "pixels": 14, "num_inducing": 50, "images": 1_000, "steps": 10}
    run |= {"seed": 0}
    run |= {"batch_size": 200, "learning_rate": 0.01, "source": "files"}
    records = [
        {
            "configuration": {**run, "model": model},
            "result": {
                "accuracy": accuracy,
                "nll": 1.0,
                "curve": [{"loss": 2.0}],
                "seconds_per_step": 0.1,
                "train_seconds": 1.0,
            },
        }
        for model, accuracy in [("negations", 0.5), ("matching", 0.75), ("svgp_Tm", 0.6)]
    ]
    text = transform_table.table_of(records)
    assert [row[1:3] for row in rows_of(text)] == [
        *(["svgp_Tm", "800"], ["matching", "16x50"], ["negations", "16x50"]),
    ]
    assert "beat negations by 0.2500 in accuracy: met; by 0.000 in NLL: NOT met" in text


def test_transformed_images_by_seconds() -> None:
    run = {"task": "flip", "pixels": 28, "num_inducing": 100, "images": 10_000, "seed": 0}
    run |= {"learning_rate": 0.01, "steps": 0, "seconds": [5.0, 10.0]}

    def record(model: str, accuracy: float, last: float) -> dict[str, Any]:
        looks = [(5.0, 100.0, 0.3), (10.0, last, accuracy)]
        trace = [
            {"seconds": seconds, "steps": steps, "accuracy": right, "nll": 1.0, "loss": 2.0}
            for seconds, steps, right in looks
        ]
        return {"configuration": {**run, "model": model}, "result": {"trace": trace}}

    text = transform_table.table_of_times(
        [record("negations", 0.6, 400), record("svgp_m", 0.5, 110)]
    )
    assert "flip, 28 x 28, 10,000 images, robust maximum, by seconds" in text
    first, second = rows_of(text)
    assert first[:3] == ["svgp_m", "100", "0.500"] and second[1] == "4x100"
    assert second[3] == "0.3000" and second[6:8] == ["0.3000 / 0.6000", "0.6000"]


@pytest.mark.full
def test_short_run_by_seconds(
    tmp_path: Path, in_this_process: Callable[[ModuleType], None]
) -> None:
    """Made-up images, bright in the half that their class says."""
    in_this_process(transform_benchmark)
    labels = np.arange(700) % 10
    images = np.random.default_rng(0).integers(100, size=(700, 28, 28))
    images[labels < 5, :14] += 100
    split = {"X_train": images[:500], "Y_train": labels[:500]}
    np.savez(tmp_path / "mnist.npz", **split, X_test=images[500:], Y_test=labels[500:])
    options = ["--short", "--results", str(tmp_path), "--data-dir", str(tmp_path)]
    options += ["--tasks", "flip", "--models", "svgp_m", "--seconds", "1,2", "--softmax"]
    assert transform_benchmark.TransformMnist().main([*options, "--natural-gradient", "0.02"]) == 0
    (line,) = (tmp_path / "transform_mnist.jsonl").read_text().splitlines()
    trace = json.loads(line)["result"]["trace"]
    assert trace[-1]["seconds"] >= 2.0 and trace[-1]["loss"] <= trace[0]["loss"]
    assert np.isfinite(trace[-1]["nll"])
    assert (tmp_path / "transform_mnist.png").stat().st_size > 5_000


@pytest.mark.full
@pytest.mark.parametrize("kind", ["svgp_m", "matching"])
def test_optimal_q_of_several_columns(kind: str) -> None:
    """The bound is the model's own there, its gradient for q is zero; training raises it."""
    generator = np.random.default_rng(0)
    X, labels = generator.uniform(size=(40, 16)), np.arange(40)[:, None] % 10
    digits = Digits(X, transform_benchmark.one_hot(labels), X, labels)
    run = {"task": "flip", "model": kind, "num_inducing": 3, "seed": 0, "one_hot": True}
    model = transform_benchmark.build_model(run, digits)
    data = (X, digits.Y_train)
    optimal = OptimalQ(model, data)
    optimal.assign_q()
    bound = optimal.maximum_log_likelihood_objective()
    np.testing.assert_allclose(model.elbo(data), bound, rtol=1e-10)
    pairs = getattr(model, "variational_parameters", [(model.q_mu, model.q_sqrt)])
    q = [parameter for pair in pairs for parameter in pair]
    gpflow.set_trainable(q, True)
    with tf.GradientTape() as tape:
        elbo = model.elbo(data)
    for gradient in tape.gradient(elbo, [part.unconstrained_variable for part in q]):
        np.testing.assert_allclose(gradient, np.zeros(gradient.shape), atol=1e-7)
    found = trained_with_optimal_q(model, digits, 5)
    assert found["loss_before"] == pytest.approx(-float(bound) / 40)
    assert found["loss"] < found["loss_before"] - 1e-3 and 0 < found["unexplained"] < 1
    assert float(model.elbo(data)) / 40 == pytest.approx(-found["loss"])


def test_table_of_the_optimal_q() -> None:
    run = {"task": "flip", "pixels": 14, "num_inducing": 100, "images": 5_000, "steps": 50}
    run |= {"collapsed": True, "one_hot": True, "seed": 0}
    result = {"iterations": 50, "loss_before": 5.0, "loss": 4.0, "unexplained": 0.1}
    result |= {"accuracy": 0.75, "nll": 0.5, "train_seconds": 60.0}
    records = [
        {"configuration": {**run, "model": model}, "result": result}
        for model in ("negations", "svgp_Tm")
    ]
    first, second = rows_of(transform_table.tables_of(records))
    assert first[1:3] == ["svgp_Tm", "400"] and second[1:3] == ["negations", "4x100"]
    assert second[5:] == ["50", "5.000", "4.000", "10.00", "0.7500", "0.500", "60"]
