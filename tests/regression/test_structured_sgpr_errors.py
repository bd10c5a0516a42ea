"""What StructuredSGPR refuses, and what it says."""

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm

X, Y = np.zeros((6, 2)), np.zeros((6, 1))


def dataset(*arrays: Any) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays)


def heteroskedastic() -> gpflow.likelihoods.Gaussian:
    return gpflow.likelihoods.Gaussian(scale=gpflow.functions.Linear(np.ones((2, 1))))


def test_arguments() -> None:
    defaults = {"data": (X, Y), "kernel": gpflow.kernels.Matern32(), "inducing_variable": X[:3]}
    several = gpflow.kernels.SharedIndependent(gpflow.kernels.Matern32(), output_dim=2)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"data": X}, "data: found a ndarray; pass a pair"),
        ({"data": (X[:, 0], Y)}, r"data: X has shape \(6,\).*X\[:, None\]"),
        ({"data": (X, Y[:5])}, "data: X has 6 rows and Y has 5"),
        ({"data": dataset(X, Y)}, "pass pairs of batches .* with known D"),
        ({"data": dataset(X, Y).batch(2).repeat()}, r"never ends; take away .repeat\(\)"),
        ({"batch_size": 0}, "batch_size must be an integer of 1 or more, found 0"),
        ({"on_invalid": "drop"}, "on_invalid must be 'raise' or 'skip', found 'drop'"),
        (
            {"likelihood": gpflow.likelihoods.Gaussian(np.array([0.1, 0.4]))},
            "its noise is 2 variances",
        ),
        ({"likelihood": heteroskedastic()}, "likelihood: its noise is a Linear of X"),
        (
            {"likelihood": gpflow.likelihoods.Gaussian(), "noise_variance": 0.1},
            "noise_variance: found 0.1 beside a likelihood",
        ),
        ({"kernel": several}, "kernel must have one output, found SharedIndependent"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            idm.models.StructuredSGPR(**(defaults | arguments))


def test_other_rows_have_the_same_columns() -> None:
    model = idm.models.StructuredSGPR((X, Y), gpflow.kernels.Matern32(), X[:3] + np.eye(3)[:, :2])
    with pytest.raises(ValueError, match="data: X has 1 columns, the model's has 2"):
        model.extend((X[:, :1], Y))
    with pytest.raises(ValueError, match="data: Y has 2 columns, the model's has 1"):
        model.accumulate((X, X))


def rows(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(number, 2)), rng.normal(size=(number, 1))


def test_rows_that_the_model_never_had_cannot_be_taken_away(tmp_path: Path) -> None:
    """Where that would leave sums of no rows: before, the bound was NaN."""
    data, others = rows(50, 0), rows(30, 1)
    data = data[0], 1e3 * data[1]  # so that rounding shows
    points = data[0][:5].copy()
    model = idm.models.StructuredSGPR(data, gpflow.kernels.Matern32(), points, progress=False)
    before = model.elbo()
    message = "data: found 30 rows that are not all among these 50: .* pass the statistics of rows"
    with pytest.raises(ValueError, match=message):
        model.remove((others[0], 1e4 * others[1]))
    with pytest.raises(ValueError, match="other: found 30 rows that are not all among"):
        model.statistics - model.accumulate((others[0], 1e4 * others[1]))
    with pytest.raises(ValueError, match="data: found 60 rows to take away from 50"):
        model.remove(rows(60, 2))
    assert model.elbo() == before and model.num_data == 50
    # Those that it had can: in other batches, down to the last and beyond rounding.
    for part in (slice(0, 7), slice(7, 43), slice(43, 50)):
        model.remove((data[0][part], data[1][part]))
        model.statistics.save(tmp_path / "rest.npz")
        loaded = idm.regression.SufficientStatistics.load(tmp_path / "rest.npz")
        assert loaded.num_rows == model.num_data == 50 - part.stop
    assert abs(float(model.elbo())) < 1e-6


def test_a_saved_model_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    """It was written, and failed in the process that served it."""
    kernel, Z = gpflow.kernels.Matern32(), rows(3, 1)[0]
    model = idm.models.StructuredSGPR(rows(20, 0), kernel, Z, progress=False)
    poisson = gpflow.likelihoods.Poisson()
    of_sites = idm.models.DualSVGP(rows(20, 0), kernel, poisson, Z, progress=False)
    holder = tf.Module()
    holder.model = model
    for saved, message in (
        (model, r"StructuredSGPR cannot be in a SavedModel.*model.to_svgp\(\), or a"),
        (holder, "StructuredSGPR cannot be in a SavedModel"),
        (of_sites, "DualSVGP cannot be in a SavedModel"),
    ):
        with pytest.raises(ValueError, match=message):
            tf.saved_model.save(saved, str(tmp_path / "saved"))


def test_points_without_the_columns_of_the_kernel() -> None:
    """They were taken, and predict_f failed with the name of an operation of TensorFlow."""
    X, Y = rows(20, 0)
    kernel = gpflow.kernels.Coregion(3, 1, active_dims=[1])
    message = "data: X has 2 columns, which do not fit InducingPoints and Coregion; pass X with 1"
    for build in (
        lambda: idm.models.StructuredSGPR((X, Y), kernel, np.zeros([3, 1]), progress=False),
        lambda: idm.models.DualSVGP(
            (X, Y), kernel, gpflow.likelihoods.Poisson(), np.zeros([3, 1]), progress=False
        ),
    ):
        with pytest.raises(ValueError, match=message):
            build()
