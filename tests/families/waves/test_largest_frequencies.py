"""The frequencies that carry most of the variance, against all of a large grid."""

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Matern12, Matern32, SquaredExponential

from interdomain.families.waves.spectral_density import spectral_density
from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import Periodized
from tests.conformance.helpers import assert_refused

from .references import LOWER, UPPER, stationary

KERNELS = {
    "one column": Periodized(stationary("Matern12"), LOWER[0], UPPER[0]),
    "two columns": Periodized(stationary("Matern32", 2), LOWER[:2], UPPER[:2]),
    "very different lengthscales": Periodized(
        Matern32(lengthscales=[0.005, 2.0]), [0.0, 0.0], [1.0, 1.0]
    ),
}


def all_shares(kernel: Periodized) -> np.ndarray:
    """The shares of the frequencies of a grid that is large enough."""
    size = {1: 300, 2: 150}[kernel.num_columns]
    axes = [np.arange(size)] * kernel.num_columns
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, kernel.num_columns)
    shares = kernel.spectral_density(grid).numpy() / np.prod(kernel.periods)
    return shares / float(kernel.total_variance())


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("num_features", [1, 37])
def test_greatest_density_first(name: str, num_features: int) -> None:
    kernel = KERNELS[name]
    chosen = kernel.largest_frequencies(num_features)
    features = 2 ** np.count_nonzero(chosen, axis=1)
    assert np.sum(features) <= num_features
    own = kernel.spectral_density(chosen).numpy() / np.prod(kernel.periods)
    own /= float(kernel.total_variance())
    # The next one may be among equals, of which none may be left out but for the number.
    expected = np.sort(all_shares(kernel))[::-1][: len(chosen)]
    np.testing.assert_allclose(own, expected, rtol=1e-11)


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


def test_errors() -> None:
    make, base, zeros, ones = BoxFourierFeatures, Matern32(), np.zeros(30), np.ones(30)
    unknown, many = gpflow.kernels.Periodic(base), Periodized(Matern12(), zeros, ones)
    two, three = Matern32(active_dims=[0, 1]), Matern32(lengthscales=[1, 1, 1])
    repeated = r"frequencies must be different, found \[0, 1\] twice"
    size = "frequencies: the covariances of 1,073,741,824 features .* would take"
    assert_refused(
        [
            (
                lambda: Periodized(unknown, *BOX),
                "a known spectral density, found Periodic; pass Matern12",
            ),
            (lambda: spectral_density(base + base, X), "a known .* found Sum; pass Matern12"),
            (lambda: Periodized(two, *BOX), "all 2 columns .* found active_dims"),
            (lambda: Periodized(three, *BOX), "one for each of the 2 columns"),
            (lambda: make(*BOX, [[0, 1], [1, 0], [0, 1]]), repeated),
            # a wave in 30 columns is a billion products of sines and cosines
            (lambda: make(zeros, ones, np.ones([1, 30])), size),
            (
                lambda: many.largest_frequencies(100),
                "num_features.* too many to compare; leave out col",
            ),
            (lambda: make.for_kernel(base, 3), "kernel must be a Periodized"),
            (lambda: make(0.0, 0.0, [[0]]), "upper must be above lower"),
        ]
    )


def test_box_around_data() -> None:
    """Half of the margin on either side, in the lengthscale of each column."""
    low, high = X.min(axis=0), X.max(axis=0)
    kernel = Periodized.from_data(Matern32(lengthscales=[0.1, 0.5]), X, active_dims=[3, 1])
    np.testing.assert_allclose(kernel.lower, low - [0.2, 1.0])
    np.testing.assert_allclose(kernel.upper, high + [0.2, 1.0])
    np.testing.assert_array_equal(kernel.active_dims, [3, 1])
    kernel = Periodized.from_data(Matern12(), X, margin=2)
    np.testing.assert_allclose(kernel.periods, high - low + 2.0)


def test_functions_of_frequencies() -> None:
    """All products of cosine and sine in the columns that are not constant, ordered."""
    features = BoxFourierFeatures(*BOX, [[2, 1], [0, 0], [0, 3]])
    expected = [[0, 0], [0, 5], [0, 6], [3, 1], [3, 2], [4, 1], [4, 2]]
    np.testing.assert_array_equal(features.functions, expected)
    np.testing.assert_array_equal(features.frequencies, [[2, 1], [0, 0], [0, 3]])
    one = BoxFourierFeatures(0.0, 1.0, [[0], [1]])
    np.testing.assert_array_equal(one.functions, [[0], [1], [2]])
