"""Matern features on an interval: the interval, and what is refused."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from gpflow.covariances import Kuf, Kuu

from interdomain.inducing_variables import IntervalFourierFeatures


def test_frequencies_of_whole_periods() -> None:
    features = IntervalFourierFeatures(-1, 3, 3)
    assert (features.length, features.num_inducing, features.shape) == (4.0, 7, (7, None, 1))
    np.testing.assert_allclose(features.angular_frequencies, np.pi / 2 * np.arange(1, 4))
    assert IntervalFourierFeatures(0.0, 1.0, 0).num_inducing == 1


def test_interval_around_data() -> None:
    for X in (np.array([[1.0], [3.0], [2.0]]), np.array([1.0, 3.0, 2.0])):
        features = IntervalFourierFeatures.from_data(X, 4)
        assert (features.lower, features.upper, features.num_frequencies) == (0.5, 3.5, 4)
    tight = IntervalFourierFeatures.from_data(X, 4, margin=0.0)
    assert (tight.lower, tight.upper) == (1.0, 3.0)


def test_bad_arguments() -> None:
    for build, message in (
        (
            lambda: IntervalFourierFeatures(1.0, -1.0, 3),
            "upper must be above lower = 1.0, found -1",
        ),
        (lambda: IntervalFourierFeatures(0.0, np.inf, 3), "upper must be finite"),
        (
            lambda: IntervalFourierFeatures(0.0, 1.0, -1),
            "num_frequencies must be an integer of 0 or more, found -1",
        ),
        (
            lambda: IntervalFourierFeatures.from_data(np.zeros([3, 2]), 3),
            r"X must be one column \[N, 1\], found shape \(3, 2\)",
        ),
        (
            lambda: IntervalFourierFeatures.from_data(np.ones([3, 1]), 3),
            "X must vary, found 1.0 in every row; pass a column that varies",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            build()


def test_wrong_kernels() -> None:
    features, X = IntervalFourierFeatures(0.0, 1.0, 2), np.zeros([3, 2])
    ard = gpflow.kernels.Matern32(lengthscales=[1.0, 2.0])
    message = r"kernel.lengthscales must be one number, found shape \(2,\); pass a sum of kernels"
    for covariance in (lambda: Kuu(features, ard), lambda: Kuf(features, ard, X)):
        with pytest.raises(ValueError, match=message):
            covariance()
    with pytest.raises(ValueError, match="X must have one column, found 2; .*active_dims"):
        Kuf(features, gpflow.kernels.Matern32(), X)
    no_covariance = "no covariance between IntervalFourierFeatures and SquaredExponential"
    with pytest.raises(ValueError, match=no_covariance):
        Kuu(features, gpflow.kernels.SquaredExponential())
    with pytest.raises(ValueError, match="the kernel is a sum of 2: pass SumInducingVariables"):
        Kuu(features, gpflow.kernels.Matern32() + gpflow.kernels.Matern12())
