"""Fourier features of a box: which they are, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpflow.kernels import Matern32

from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import Periodized
from tests.conformance.helpers import assert_refused

X = np.random.default_rng(0).uniform(size=(30, 2))
BOX = ([0.0, -1.0], [1.0, 2.0])


def kernel(**options: Any) -> Periodized:
    return Periodized(Matern32(lengthscales=[0.2, 0.7]), *BOX, **options)


def test_functions_of_frequencies() -> None:
    """All products of cosine and sine in the columns that are not constant, ordered."""
    features = BoxFourierFeatures(*BOX, [[2, 1], [0, 0], [0, 3]])
    expected = [[0, 0], [0, 5], [0, 6], [3, 1], [3, 2], [4, 1], [4, 2]]
    np.testing.assert_array_equal(features.functions, expected)
    np.testing.assert_array_equal(features.frequencies, [[2, 1], [0, 0], [0, 3]])
    assert (features.num_inducing, features.shape) == (7, (7, None, 1))
    np.testing.assert_array_equal(features.lower, BOX[0])
    np.testing.assert_array_equal(features.upper, BOX[1])
    three = BoxFourierFeatures([0, 0, 0], [1, 1, 1], [[1, 0, 2], [1, 1, 1]])
    assert three.num_inducing == 4 + 8
    one = BoxFourierFeatures(0.0, 1.0, [[0], [1]])
    np.testing.assert_array_equal(one.functions, [[0], [1], [2]])


def test_for_kernel_and_from_data() -> None:
    """The kernel's largest frequencies, which tests/families/waves is about."""
    for number in (1, 3, 50):
        features = BoxFourierFeatures.for_kernel(kernel(), number)
        expected = kernel().largest_frequencies(number)
        np.testing.assert_array_equal(features.frequencies, expected)
        features.validate_kernel(kernel())
    for inside in (X, np.array(BOX)):  # the ends are, too
        features = BoxFourierFeatures.from_data(kernel(), inside, 20)
        np.testing.assert_array_equal(features.frequencies, kernel().largest_frequencies(20))
    with pytest.raises(ValueError, match="X must be inside of .*, found 2 of 30 rows outside"):
        BoxFourierFeatures.from_data(kernel(), X + 2.0 * (np.arange(30) < 2)[:, None], 20)


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: BoxFourierFeatures.for_kernel(kernel(), 10**9), "num_inducing: .* 1,000,000,000"),
    (lambda: BoxFourierFeatures.for_kernel(Matern32(), 3), "kernel must be a Periodized"),
    (lambda: BoxFourierFeatures(0.0, 0.0, [[0]]), "upper must be above lower"),
]


def test_errors() -> None:
    assert_refused(ERRORS)
