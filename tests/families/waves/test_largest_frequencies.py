"""The frequencies that carry most of the variance, against all of a large grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential

from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import Periodized, spectral_density
from tests.conformance.helpers import assert_refused

from .references import LOWER, UPPER, stationary

KERNELS = {
    "one column": Periodized(stationary("Matern12"), LOWER[0], UPPER[0]),
    "two columns": Periodized(stationary("Matern32", 2), LOWER[:2], UPPER[:2]),
    "product": Periodized(
        Matern12(lengthscales=0.2, active_dims=[1]) * Matern52(lengthscales=0.3, active_dims=[0]),
        [0.0, 0.0],
        [1.0, 1.0],
    ),
    "very different lengthscales": Periodized(
        Matern32(lengthscales=[0.005, 2.0]), [0.0, 0.0], [1.0, 1.0]
    ),
}


def all_shares(kernel: Periodized) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a grid that is large enough: frequencies, shares, and how many features each has."""
    size = {1: 300, 2: 150}[kernel.num_columns]
    axes = [np.arange(size)] * kernel.num_columns
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, kernel.num_columns)
    shares = kernel.spectral_density(grid).numpy() / np.prod(kernel.periods)
    return grid, shares / float(kernel.total_variance()), 2 ** np.count_nonzero(grid, axis=1)


EACH = pytest.mark.parametrize("name", KERNELS)


@EACH
@pytest.mark.parametrize("num_features", [1, 37])
def test_greatest_density_first(name: str, num_features: int) -> None:
    kernel = KERNELS[name]
    chosen = kernel.largest_frequencies(num_features)
    features = 2 ** np.count_nonzero(chosen, axis=1)
    assert np.sum(features) <= num_features
    _, shares, _ = all_shares(kernel)
    own = kernel.spectral_density(chosen).numpy() / np.prod(kernel.periods)
    own /= float(kernel.total_variance())
    # The next one may be among equals, of which none may be left out but for the number.
    np.testing.assert_allclose(own, np.sort(shares)[::-1][: len(chosen)], rtol=1e-11)


def test_ties_are_broken_in_the_same_way_whatever_rounding() -> None:
    """Lower sums first, then the order of columns; for boxes and units that round differently."""
    expected = None
    for unit in (1.0, 0.3, 1e3, 1 / 7):
        base = Matern32(lengthscales=0.2 * unit, variance=unit)
        kernel = Periodized(base, [0.1, 0.1], [0.1 + unit, 0.1 + unit])
        chosen = kernel.largest_frequencies(100).tolist()
        expected = expected or chosen
        assert chosen == expected
    assert expected[:4] == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_order_where_densities_underflow() -> None:
    """All are zero there: the lowest frequencies are next."""
    kernel = Periodized(SquaredExponential(lengthscales=50.0), 0.0, 1.0)
    np.testing.assert_array_equal(kernel.largest_frequencies(21)[:, 0], np.arange(11))


@pytest.mark.parametrize("num_columns", [6, 10])
def test_more_columns_than_a_grid_is_for(num_columns: int) -> None:
    """Eight periods in each of ten columns would be a billion frequencies, 80 GB."""
    base = Matern32(lengthscales=np.linspace(0.5, 1.0, num_columns))
    kernel = Periodized(base, np.zeros(num_columns), np.ones(num_columns))
    chosen = kernel.largest_frequencies(100)
    assert 50 < np.sum(2 ** np.count_nonzero(chosen, axis=1)) <= 100
    density = kernel.spectral_density(chosen).numpy()
    assert np.all(np.diff(density) <= 1e-11 * density[:-1])


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


ARD = Matern32(lengthscales=[1.0, 1.0])
MANY = Periodized(Matern12(), np.zeros(30), np.ones(30))
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: Periodized(Matern32(active_dims=[0]), *BOX), r"base_kernel must see all 2"),
    (
        lambda: Periodized(ARD + Matern12(active_dims=[0]), *BOX),
        r"base_kernel must be a sum of kernels on the same columns, found Matern12 on columns "
        r"\[0\] of \[0, 1\]; .* SumInducingVariables",
    ),
    (
        lambda: Periodized(ARD * Matern12(active_dims=[0]), *BOX),
        r"base_kernel must be a product of kernels on different columns, each of \[0, 1\] once,"
        r" found columns \[0, 1, 0\]; pass active_dims to each factor",
    ),
    (
        lambda: BoxFourierFeatures(*BOX, [[0, 1], [1, 0], [0, 1]]),
        r"frequencies must be different, found \[0, 1\] twice",
    ),
    (  # a wave in 30 columns is a billion products of sines and cosines
        lambda: BoxFourierFeatures(np.zeros(30), np.ones(30), np.ones([1, 30])),
        r"frequencies .* one with 30, which has 2\*\*30 features",
    ),
    (lambda: Periodized.from_data(Matern32(), X * [1, 0]), r"X must vary in every column"),
    (lambda: MANY.largest_frequencies(100), "num_features.* too many to compare; leave out col"),
]


def test_errors() -> None:
    assert_refused(WRONG)


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
