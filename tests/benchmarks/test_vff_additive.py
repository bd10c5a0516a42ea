"""A-VFF beside VISH: what is run, the models and their bounds, and the tables."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from benchmarks._lib.optimal_q import OptimalQ
from benchmarks._lib.splits import NormalisedSplit, Split, normalise
from benchmarks._lib.vish_table import PAPER, SIZES
from benchmarks.vff_additive import models, steps
from benchmarks.vff_additive.benchmark import STEP_TIMES, VffAdditive


@pytest.fixture
def split() -> NormalisedSplit:
    generator = np.random.default_rng(0)
    X = generator.uniform(-2.0, 2.0, size=(60, 3))
    X[:, 1] = 7.0  # says nothing
    Y = np.sin(2 * X[:, :1]) + X[:, 2:] + 0.1 * generator.normal(size=(60, 1))
    return normalise(Split(X[:50], Y[:50], X[50:], Y[50:]))


def configurations(*options: str) -> list[dict[str, Any]]:
    benchmark = VffAdditive()
    return list(benchmark.configurations(benchmark._parser().parse_args(options)))


def configuration(method: str, **changes: Any) -> dict[str, Any]:
    chosen = {"dataset": "yacht", "method": method, "frequencies": 10, "margin": 1.0}
    return chosen | {"max_iterations": 5} | changes


def test_default_run_has_all_data_sets_and_both_extras() -> None:
    runs = configurations()
    trainings = [run for run in runs if run["method"] != STEP_TIMES]
    assert {run["dataset"] for run in trainings} == set(SIZES)
    assert {(r["frequencies"], r["margin"]) for r in trainings if r["method"] == "a_vff"} == {
        (30, 1.0)
    }
    assert {r["dataset"] for r in trainings if r["method"] == "a_gpr"} == {
        *("yacht", "energy", "concrete")
    }
    assert sum(run["method"] == "a_vff_mean_field" for run in trainings) == 1
    assert {r["frequencies"] for r in runs if r["method"] == STEP_TIMES} == {30, 120}


def test_options_choose_runs() -> None:
    runs = configurations("--datasets", "power", "--methods", "a_vff", "--splits", "1-2")
    assert [(run["dataset"], run["method"], run["split"]) for run in runs] == [
        ("power", "a_vff", 1),
        ("power", "a_vff", 2),
    ]
    runs = configurations("--datasets", "power", "--methods", "step_times")
    assert {run["method"] for run in runs} == {"step_times"}


def test_paper_has_the_additive_models_of_every_data_set() -> None:
    for dataset in SIZES:
        assert {(dataset, "a_vff"), (dataset, "a_gpr")} <= set(PAPER)
    assert [str(figure) for figure in PAPER["kin8nm", "a_vff"]] == ["0.561 ± 0.02", "1.129 ± 0.01"]


def test_inputs_are_in_the_unit_interval_and_vary(split: NormalisedSplit) -> None:
    unit = models.unit_inputs(split)
    assert unit.X_train.shape == (50, 2) and unit.X_test.shape == (10, 2)
    np.testing.assert_allclose(unit.X_train.min(axis=0), 0.0)
    np.testing.assert_allclose(unit.X_train.max(axis=0), 1.0)
    slope = np.diff(split.X_test[:, [0, 2]], axis=0) / np.diff(unit.X_test, axis=0)
    np.testing.assert_allclose(slope, np.broadcast_to(slope[:1], slope.shape))


def test_a_vff_reaches_exact_regression_from_below(split: NormalisedSplit) -> None:
    unit = models.unit_inputs(split)
    evidence = float(
        models.additive_model("a_gpr", unit, None, None).maximum_log_likelihood_objective()
    )
    gaps = []
    for frequencies in (5, 30, 120):
        model = models.additive_model("a_vff", unit, frequencies, 1.0)
        gaps.append(evidence - float(model.elbo()))
    assert gaps[0] > gaps[1] > gaps[2] > 0 and gaps[2] < 0.1


@pytest.mark.parametrize(("margin", "lost"), [(1.0, 0.15), (2.0, 0.015), (2.5, 0.004)])
def test_what_a_margin_costs(margin: float, lost: float) -> None:
    """The figures of IntervalFourierFeatures.from_data: a margin in lengthscales."""
    lengthscale = 0.4
    X = np.array([[0.0], [1.0]])
    features = models.fourier_features(X, 500, margin * lengthscale)
    kernel = gpflow.kernels.Sum([gpflow.kernels.Matern32(1.0, lengthscale)])
    columns = gpflow.covariances.Kuf(features, kernel, X)
    prior = gpflow.covariances.Kuu(features, kernel)
    explained = np.sum(columns * np.linalg.solve(prior, columns), axis=0)
    np.testing.assert_allclose(1 - explained, lost, rtol=0.1)


def test_mean_field_is_optimal_and_below_the_joint_bound(split: NormalisedSplit) -> None:
    unit = models.unit_inputs(split)
    data = (unit.X_train, unit.Y_train)
    joint = models.additive_model("a_vff", unit, 6, 1.0)
    model = models.additive_model("a_vff_mean_field", unit, 6, 1.0)
    model.likelihood.variance.assign(0.1)
    optimal = OptimalQ(model, data)
    optimal.assign_q()
    bound = optimal.maximum_log_likelihood_objective()
    np.testing.assert_allclose(model.elbo(data), bound, rtol=1e-8)
    assert bound < joint.elbo()
    q = [parameter for pair in model.variational_parameters for parameter in pair]
    gpflow.set_trainable(q, True)
    with tf.GradientTape() as tape:
        elbo = model.elbo(data)
    for gradient in tape.gradient(elbo, [part.unconstrained_variable for part in q]):
        np.testing.assert_allclose(gradient, np.zeros(gradient.shape), atol=1e-6)
    # The means of a product of Gaussians at its optimum are those of the joint posterior.
    np.testing.assert_allclose(
        model.predict_f(unit.X_test)[0], joint.predict_f(unit.X_test)[0], atol=1e-4
    )


@pytest.mark.full
@pytest.mark.parametrize("method", ["a_vff", "a_vff_mean_field", "a_gpr"])
def test_a_short_training(split: NormalisedSplit, method: str) -> None:
    result = models.train(configuration(method), split)
    assert result["mse"] < 1 and np.isfinite(result["nlpd"]) and result["num_columns"] == 2
    assert result["num_inducing"] == (None if method == "a_gpr" else 42)
    assert len(result["lengthscales"]) == 2


@pytest.mark.full
@pytest.mark.parametrize(("model", "q"), [("additive", "full"), ("joint", "diagonal")])
def test_steps_to_be_timed_are_the_same(model: str, q: str) -> None:
    work = {"model": model, "q": q, "whiten": False, "frequencies": 2, "rows": 20, "columns": 2}
    (loss, gradient), (other_loss, other_gradient) = (
        steps.step(side, **work, seed=0)() for side in ("structured", "dense")
    )
    np.testing.assert_allclose(loss, other_loss, rtol=1e-6)
    for ours, other in zip(gradient, other_gradient, strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-4, atol=1e-4)


def test_tables() -> None:
    trained = {
        "benchmark": "vff_additive",
        "configuration": configuration("a_vff", split=0, source="files"),
        "result": {
            **{"mse": 0.011, "nlpd": -0.9, "objective": 200.0, "fit_seconds": 2.0},
            **{"num_train": 277, "num_columns": 6, "num_inducing": 126, "converged": True},
        },
    }
    seconds = {"median": 1.0, "lower": 0.9, "upper": 1.1}
    timed = {
        "benchmark": "vff_additive",
        "configuration": configurations("--methods", "step_times")[0],
        "result": {
            "seconds": {"structured": seconds, "dense": seconds},
            "ratio": seconds,
            "difference": None,
        },
    }
    benchmark = VffAdditive()
    text = benchmark.table([trained, timed])
    assert text == f"{benchmark.table([trained])}\n\n{benchmark.table([timed])}"
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert rows[2][:9] == [
        *("yacht", "277", "6", "a_vff", "126", "10, 1", "0.011", "0.010 ± 0.01", "yes")
    ]
    assert rows[2][9:13] == ["-0.900", "-0.861 ± 0.36", "yes", "200.0"]
    assert rows[5][:5] == ["30", "244", "AdditiveSVGP", "full", "yes"]
