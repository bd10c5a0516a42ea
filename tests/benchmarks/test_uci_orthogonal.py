"""The cells of the activation-feature paper's Tables 3 and 4, and the bound with the optimal q."""

from __future__ import annotations

import argparse
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from benchmarks._lib.optimal_q import OptimalQ
from benchmarks._lib.splits import NormalisedSplit, Split, normalise
from benchmarks.uci_orthogonal import models, paper, table
from benchmarks.uci_orthogonal.benchmark import UciOrthogonal, sizes


@pytest.fixture
def split() -> NormalisedSplit:
    generator = np.random.default_rng(0)
    X = generator.uniform(-2.0, 2.0, size=(60, 3))
    Y = 5.0 * np.sin(X[:, :1]) + X[:, 1:2] + 0.1 * generator.normal(size=(60, 1))
    return normalise(Split(X[:50], Y[:50], X[50:], Y[50:]))


def configurations(*options: str) -> list[dict[str, Any]]:
    benchmark = UciOrthogonal()
    return list(benchmark.configurations(benchmark._parser().parse_args(options)))


def test_every_cell_of_the_paper_is_there() -> None:
    assert len(paper.PAPER) == 5 * 3 * 6
    rmse, nlpd = paper.PAPER["kin8nm", "matern52", "points", 256, 0]
    assert str(rmse) == "0.08 ± 0.00" and str(nlpd) == "-1.10 ± 0.02"
    rmse, nlpd = paper.PAPER["yacht", "arc_cosine", "softplus", 128, 128]
    assert str(rmse) == "0.60 ± 0.23" and str(nlpd) == "0.92 ± 0.26"


def test_default_run_has_whole_splits_one_after_the_other() -> None:
    cells = configurations()
    assert len(cells) == 18 * (3 * 5 + 2)
    order = [cell["split"] for cell in cells]
    assert order == sorted(order)
    assert {c["split"] for c in cells if c["dataset"] in ("kin8nm", "power")} == {0}
    assert {c["kernel"] for c in cells} == {"arc_cosine", "matern52"}


def test_options_choose_cells() -> None:
    cells = configurations(
        *("--datasets", "power", "--kernels", "matern52_euclidean", "--sizes", "128+0,128+128"),
        *("--splits", "1-2", "--q", "unwhitened", "--max-iterations", "7"),
    )
    assert {cell["inducing"] for cell in cells} == {"points"}
    assert [(c["split"], c["M"], c["K"]) for c in cells] == [
        *((1, 128, 0), (1, 128, 128), (2, 128, 0), (2, 128, 128))
    ]
    assert {(c["q"], c["max_iterations"]) for c in cells} == {("unwhitened", 7)}
    with pytest.raises(argparse.ArgumentTypeError, match=r"128\+0"):
        sizes("128")


@pytest.mark.parametrize("activation", ["relu", "softplus"])
@pytest.mark.parametrize("kernel", ["arc_cosine", "matern52"])
def test_units_of_power_and_yacht_are_limited_by_their_rank(kernel: str, activation: str) -> None:
    for input_dim, expected in ((4, 75), (6, 217)):
        prior = models.build_kernel(kernel, input_dim)
        assert models.rank(prior, activation, input_dim + 1) == expected


@pytest.mark.full
@pytest.mark.parametrize(("iv", "K"), [("relu", 0), ("relu", 5), ("points", 0), ("points", 5)])
def test_optimal_q_is_the_optimum_of_the_models_bound(
    split: NormalisedSplit, iv: str, K: int
) -> None:
    data = (split.X_train, split.Y_train)
    model = models.build_model("arc_cosine", iv, 8, K, split, seed=0, whiten=True)
    model.likelihood.variance.assign(0.3)
    optimal = OptimalQ(model, data)
    assert model.elbo(data) < optimal.maximum_log_likelihood_objective()
    optimal.assign_q()
    np.testing.assert_allclose(
        model.elbo(data), optimal.maximum_log_likelihood_objective(), rtol=1e-10
    )
    q = [model.q_mu, model.q_sqrt]
    q += [model.q_mu_orthogonal, model.q_sqrt_orthogonal] if K else []
    gpflow.set_trainable(q, True)
    with tf.GradientTape() as tape:
        elbo = model.elbo(data)
    for gradient in tape.gradient(elbo, [part.unconstrained_variable for part in q]):
        np.testing.assert_allclose(gradient, np.zeros(gradient.shape), atol=1e-8)


def test_optimal_q_wants_whitened_variables(split: NormalisedSplit) -> None:
    model = models.build_model("matern52", "points", 4, 0, split, seed=0, whiten=False)
    with pytest.raises(ValueError, match="whitened"):
        OptimalQ(model, (split.X_train, split.Y_train))


@pytest.mark.full
@pytest.mark.parametrize("optimal_q", [True, False])
def test_first_phase_leaves_kernel_and_noise_alone(split: NormalisedSplit, optimal_q: bool) -> None:
    data = (split.X_train, split.Y_train)
    model = models.build_model("arc_cosine", "points", 4, 0, split, seed=0, whiten=True)
    trainable = len(model.kernel.trainable_parameters)
    ends = models.fit_in_two_phases(
        model, data, optimal_q=optimal_q, first_iterations=3, max_iterations=3
    )
    assert len(model.kernel.trainable_parameters) == trainable
    assert float(model.likelihood.variance.numpy()) != 1.0
    assert ends[0]["objective"] < ends[1]["objective"]
    assert ends[1]["objective"] == pytest.approx(float(model.elbo(data)), rel=1e-6)


def test_errors_in_original_units(split: NormalisedSplit) -> None:
    scale = split.Y_scale.item()
    errors = models.in_original_units({"mse": 0.25, "nlpd": -1.0}, split)
    assert errors == pytest.approx({"rmse": 0.5 * scale, "nlpd": np.log(scale) - 1.0})


def test_table_marks_what_is_outside_two_deviations() -> None:
    records = [
        {
            "configuration": cell,
            "result": {
                "rmse": 4.2 + 0.1 * cell["split"],
                "nlpd": None if cell["inducing"] == "softplus" else 9.0,
                "num_inducing": 75,
                "converged": cell["split"] == 0,
                "fit_seconds": 1.0,
            },
        }
        for cell in configurations(
            *("--datasets", "power", "--splits", "0-1", "--sizes", "256+0"),
            *("--inducing", "relu,softplus", "--kernels", "arc_cosine"),
        )
    ]
    lines = table.table_of(records).splitlines()
    relu, softplus = ([c.strip() for c in line.split("|")[1:-1]] for line in lines[6:8])
    assert relu[:7] == ["power", "arc_cosine", "relu", "256, 0 (75 used)"] + [
        *("4.250 ± 0.071", "4.20 ± 0.16", "yes")
    ]
    assert relu[7:10] == ["9.000 ± 0.000", "2.85 ± 0.04", "no, worse"]
    assert relu[-1] == "1 of 2 at 30" and softplus[7] == "not finite"
    assert lines[-1].endswith("RMSE 2 of 2, NLPD 0 of 2.")
