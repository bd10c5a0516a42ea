"""Neighbours against sorted distances."""

import numpy as np
import pytest

from interdomain.models.vecchia_sgpr.search import Neighbours


@pytest.mark.parametrize("num_columns", [1, 4])
def test_neighbours_are_the_nearest(num_columns: int) -> None:
    rng = np.random.default_rng(num_columns)
    X, new = rng.normal(size=(150, num_columns)), rng.normal(size=(9, num_columns))
    lengthscales = np.linspace(0.5, 2, num_columns)
    search = Neighbours(X, lengthscales)
    distances = np.linalg.norm((X[:, None] - X) / lengthscales, axis=-1)
    for number in (1, 7):
        before = search.before(np.arange(150), number)
        assert before.shape == (150, number)
        for row in range(150):
            nearest = set(np.argsort(distances[row, :row])[:number])
            assert set(before[row]) - {-1} == nearest
            assert np.sum(before[row] == -1) == number - len(nearest)
    some = np.array([3, 140, 77])
    np.testing.assert_array_equal(search.before(some, 7), search.before_all(7)[some])
    of_new = np.linalg.norm((new[:, None] - X) / lengthscales, axis=-1)
    np.testing.assert_array_equal(search.nearest(new, 7), np.argsort(of_new, axis=1)[:, :7])
    assert search.nearest(new, 999).shape == (9, 150)
    np.testing.assert_array_equal(np.sort(search.nearby), np.arange(150))
