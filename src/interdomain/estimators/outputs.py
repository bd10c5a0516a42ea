"""Functions that scale Y for models, and that return predictions in the units of Y.

:mod:`.programs` prints the source of these functions, and of :mod:`.recipes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray, TensorType

import interdomain as idm


def matrix(Y: TensorType) -> AnyNDArray:
    """Y as a matrix of numbers [N, P]."""
    return np.asarray(Y, gpflow.default_float()).reshape(len(Y), -1)


def standardised(Y: TensorType) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
    """Y [N, P] minus its mean, in standard deviations; the mean; and the standard deviation."""
    rows = matrix(Y)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    return (rows - mean) / deviation, mean, deviation


def labelled(Y: TensorType) -> tuple[AnyNDArray, AnyNDArray]:
    """Labels [N] as zeros and ones [N, P], one column for two classes and P columns for P classes;
    and the classes."""
    classes, numbers = np.unique(np.asarray(Y), return_inverse=True)
    columns = np.asarray(np.eye(len(classes), dtype=gpflow.default_float())[numbers])
    return columns[:, 1:] if len(classes) == 2 else columns, classes


def probabilities(mean: AnyNDArray) -> AnyNDArray:
    """The probability of each class, [N, C]. With more than two classes, each class has a GP
    against all others; the probabilities are then scaled to the sum one."""
    columns = np.hstack([1 - mean, mean]) if mean.shape[1] == 1 else mean
    return columns / columns.sum(axis=1, keepdims=True)


def predictor(model: Any, scaler: Any) -> Any:
    """The function ``predict`` of a program that keeps Y as it is."""

    def predict(X_new: TensorType) -> tuple[AnyNDArray, AnyNDArray]:
        """The mean and the standard deviation of y at new rows."""
        rows = scaler(X_new)
        mean, variance = idm.predict_in_batches(model, rows, method="predict_y", progress=False)
        return mean, np.sqrt(variance)

    return predict


def predictor_in_units(model: Any, scaler: Any, Y_mean: Any, Y_std: Any) -> Any:
    """The function ``predict`` of a program that standardises Y."""

    def predict(X_new: TensorType) -> tuple[AnyNDArray, AnyNDArray]:
        """The mean and the standard deviation of y at new rows, in the units of Y."""
        rows = scaler(X_new)
        mean, variance = idm.predict_in_batches(model, rows, method="predict_y", progress=False)
        return mean * Y_std + Y_mean, np.sqrt(variance) * Y_std

    return predict


def predictor_of_classes(model: Any, scaler: Any) -> Any:
    """The function ``predict`` of a program for labels."""

    def predict(X_new: TensorType) -> AnyNDArray:
        """The probability of each class at new rows."""
        rows = scaler(X_new)
        return probabilities(
            idm.predict_in_batches(model, rows, method="predict_y", progress=False)[0]
        )

    return predict


PREDICTORS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    matrix: predictor,
    standardised: predictor_in_units,
    labelled: predictor_of_classes,
}
"""The maker of ``predict`` for each function that brings Y to the scale of models."""
