"""What OutOfCoreSGPR refuses, and what it says."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm

X, Y = np.zeros((6, 2)), np.zeros((6, 1))


def dataset(*arrays: Any) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X, "data: found a ndarray; pass a pair"),
        ((X,), "data: found a tuple"),
        ((X[:, 0], Y), r"data: X has shape \(6,\).*X\[:, None\]"),
        ((X, Y[:, 0]), r"data: Y has shape \(6,\).*Y\[:, None\]"),
        ((X, Y[:5]), "data: X has 6 rows and Y has 5"),
        ((X[:0], Y[:0]), "data: X and Y have no rows"),
        ((X.tolist(), Y), "data: X is a list"),
        (dataset(X, Y), "pass a Dataset of batches"),
        (dataset(X).batch(2), "pass a Dataset of batches"),
        (dataset(X, Y).batch(2).repeat(), r"never ends; take away .repeat\(\)"),
    ],
)
def test_data(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        idm.models.OutOfCoreSGPR(data, gpflow.kernels.Matern32(), X[:3])


def heteroskedastic() -> gpflow.likelihoods.Gaussian:
    return gpflow.likelihoods.Gaussian(scale=gpflow.functions.Linear(np.ones((2, 1))))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be an integer of 1 or more, found 0"),
        ({"batch_size": 2.5}, "batch_size must be an integer of 1 or more, found 2.5"),
        ({"on_invalid": "drop"}, "on_invalid must be 'raise' or 'skip', found 'drop'"),
        ({"likelihood": gpflow.likelihoods.StudentT()}, "likelihood must be .*Gaussian"),
        ({"likelihood": heteroskedastic()}, "likelihood: its noise is a Linear of X"),
        (
            {"likelihood": gpflow.likelihoods.Gaussian(), "noise_variance": 0.1},
            "noise_variance: found 0.1 beside a likelihood",
        ),
        (
            {"kernel": gpflow.kernels.SharedIndependent(gpflow.kernels.Matern32(), output_dim=2)},
            "kernel must have one output, found SharedIndependent",
        ),
        ({"inducing_variable": object()}, "inducing_variable"),
    ],
)
def test_arguments(arguments: dict[str, Any], message: str) -> None:
    defaults: dict[str, Any] = {
        "data": (X, Y),
        "kernel": gpflow.kernels.Matern32(),
        "inducing_variable": X[:3],
    }
    with pytest.raises(ValueError, match=message):
        idm.models.OutOfCoreSGPR(**(defaults | arguments))


def test_a_kernel_of_another_family() -> None:
    harmonics = idm.inducing_variables.SphericalHarmonics(3, [0, 1])
    model = idm.models.OutOfCoreSGPR((X, Y), gpflow.kernels.Matern32(), harmonics)
    with pytest.raises(ValueError, match="no covariance between SphericalHarmonics and Matern32"):
        model.elbo()


def test_other_rows_have_the_same_columns() -> None:
    model = idm.models.OutOfCoreSGPR((X, Y), gpflow.kernels.Matern32(), X[:3] + np.eye(3)[:, :2])
    with pytest.raises(ValueError, match="data: X has 1 columns, the model's has 2"):
        model.extend((X[:, :1], Y))
    with pytest.raises(ValueError, match="data: Y has 2 columns, the model's has 1"):
        model.accumulate((X, X))
