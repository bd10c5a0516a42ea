"""What a periodized kernel is not made of: errors that name the argument."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Kernel, Matern12, Matern32, SquaredExponential

from interdomain.inducing_variables import PeriodicFourierFeatures
from interdomain.kernels import Periodized, spectral_density

BOX = ([0.0, 0.0], [1.0, 2.0])
X = np.random.default_rng(0).uniform(size=(20, 2))


def test_kernels_without_a_known_density() -> None:
    """Alone, in a sum and in a product."""
    message = "base_kernel must have a known spectral density, found {}; pass Matern12"
    first, second = Matern32(active_dims=[0]), Matern32(active_dims=[1])
    for base in (gpflow.kernels.Periodic(SquaredExponential()), Periodized(Matern32(), *BOX)):
        for kernel in (base, Matern32() + base, first * second * base):
            for call in (lambda k: Periodized(k, *BOX), lambda k: spectral_density(k, X)):
                with pytest.raises(ValueError, match=message.format(type(base).__name__)):
                    call(kernel)


def ard(count: int) -> Kernel:
    return Matern32(lengthscales=np.ones(count))


def test_base_kernels_of_other_columns() -> None:
    wrong: list[tuple[Any, str]] = [
        (Matern32(active_dims=[0]), r"base_kernel must see all 2 columns.*found columns \[0\]"),
        (
            ard(2) + Matern12(active_dims=[0]),
            r"base_kernel must be a sum of kernels on the same columns, found Matern12 on columns "
            r"\[0\] of \[0, 1\]; .* SumInducingVariables",
        ),
        (
            ard(2) * Matern12(active_dims=[0]),
            r"base_kernel must be a product of kernels on different columns, each of \[0, 1\] once,"
            r" found columns \[0, 1, 0\]; pass active_dims to each factor",
        ),
    ]
    for base, message in wrong:
        with pytest.raises(ValueError, match=message):
            Periodized(base, *BOX)


def test_frequencies() -> None:
    with pytest.raises(ValueError, match=r"frequencies must be different, found \[0, 1\] twice"):
        PeriodicFourierFeatures(*BOX, [[0, 1], [1, 0], [0, 1]])
    # A wave in 30 columns is a billion products of sines and cosines.
    with pytest.raises(ValueError, match=r"frequencies .* one with 30, which has 2\*\*30 features"):
        PeriodicFourierFeatures(np.zeros(30), np.ones(30), np.ones([1, 30]))


def test_box_around_data() -> None:
    """Half of the margin on either side, in the longest lengthscale of each column."""
    low, high = X.min(axis=0), X.max(axis=0)
    kernel = Periodized.from_data(Matern32(lengthscales=[0.1, 0.5]), X, active_dims=[3, 1])
    np.testing.assert_allclose(kernel.lower, low - [0.2, 1.0])
    np.testing.assert_allclose(kernel.upper, high + [0.2, 1.0])
    np.testing.assert_allclose(kernel.periods, high - low + [0.4, 2.0])
    np.testing.assert_allclose(kernel.margin, [0.4, 2.0])
    np.testing.assert_array_equal(kernel.active_dims, [3, 1])
    both = Matern32(lengthscales=[0.1, 0.5]) + SquaredExponential(lengthscales=0.3)
    np.testing.assert_allclose(Periodized.from_data(both, X, margin=2).margin, [0.6, 1.0])
    product = Matern32(lengthscales=0.1, active_dims=[1]) * Matern12(active_dims=[0])
    np.testing.assert_allclose(Periodized.from_data(product, X).margin, [4.0, 0.4])
    assert Periodized(Matern32(), *BOX).margin is None
    with pytest.raises(ValueError, match=r"X must vary in every column, .* columns \[1\]; leave"):
        Periodized.from_data(Matern32(), X * [1, 0])
