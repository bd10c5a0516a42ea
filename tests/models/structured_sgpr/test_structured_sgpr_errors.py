"""The errors of StructuredSGPR, and their messages."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm

X, Y = np.zeros((6, 2)), np.zeros((6, 1))


def dataset(*arrays: Any) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays)


HETEROSKEDASTIC = gpflow.likelihoods.Gaussian(scale=gpflow.functions.Linear(np.ones((2, 1))))


def test_arguments() -> None:
    defaults = {"data": (X, Y), "kernel": gpflow.kernels.Matern32(), "inducing_variable": X[:3]}
    several = gpflow.kernels.SharedIndependent(gpflow.kernels.Matern32(), output_dim=2)
    both = {"likelihood": gpflow.likelihoods.Gaussian(), "noise_variance": 0.1}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"data": X}, "data: found a ndarray; pass a pair"),
        ({"data": (X[:, 0], Y)}, r"data: X has shape \(6,\).*X\[:, None\]"),
        ({"data": dataset(X, Y)}, r"pass pairs of batches X \[B, D\]"),
        ({"data": dataset(X, Y).batch(2).repeat()}, r"never ends; take away .repeat\(\)"),
        ({"charge": "lag"}, "charge must be 'trace' or 'log', found 'lag'"),
        ({"batch_size": 0}, "batch_size must be an integer of 1 or more, found 0"),
        ({"likelihood": gpflow.likelihoods.Poisson()}, "found Poisson with densities of its own"),
        ({"likelihood": HETEROSKEDASTIC}, "found another; pass it to"),
        (both, "noise_variance: found 0.1 beside a likelihood"),
        ({"kernel": several}, "kernel must have one output, found SharedIndependent"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            idm.models.StructuredSGPR(**(defaults | arguments))


def test_other_rows_have_the_same_columns() -> None:
    model = idm.models.StructuredSGPR((X, Y), gpflow.kernels.Matern32(), X[:3] + np.eye(3)[:, :2])
    with pytest.raises(ValueError, match=r"data: X and Y have \(2, 2\) columns, .* have \(2, 1\)"):
        model.accumulate((X, X))


def test_points_without_the_columns_of_the_kernel() -> None:
    kernel = gpflow.kernels.Coregion(3, 1, active_dims=[1])
    message = "data: X has 2 columns, which do not fit InducingPoints and Coregion; pass X with 1"
    counts, points = gpflow.likelihoods.Poisson(), np.zeros([3, 1])
    for build in (
        lambda: idm.models.StructuredSGPR((X, Y), kernel, points, progress=False),
        lambda: idm.models.DualSVGP((X, Y), kernel, counts, points, progress=False),
    ):
        with pytest.raises(ValueError, match=message):
            build()
