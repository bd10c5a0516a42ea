"""Neighbours against sorted distances, and repeated places against a loop."""

import numpy as np
import pytest

from interdomain.models.vecchia_sgpr.merging import at_one_place
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
    new_distances = np.linalg.norm((new[:, None] - X) / lengthscales, axis=-1)
    np.testing.assert_array_equal(search.nearest(new, 7), np.argsort(new_distances, axis=1)[:, :7])
    assert search.nearest(new, 999).shape == (9, 150)
    np.testing.assert_array_equal(np.sort(search.nearby), np.arange(150))


def test_places_are_the_same_only_where_all_columns_are() -> None:
    """A grid of numbers with few digits has no repeated place; repeats are those of a loop."""
    axis = np.linspace(-1, 1, 65)
    grid = np.stack(np.meshgrid(axis, axis, [0.0, 0.5]), axis=-1).reshape(-1, 3)
    assert at_one_place(grid) is None
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 2, size=(200, 3)) * 0.25 * rng.choice([-1.0, 1.0], size=(200, 3))
    seen = dict[tuple[float, ...], int]()
    expected = [seen.setdefault(tuple((row + 0.0).tolist()), len(seen)) for row in rows]
    np.testing.assert_array_equal(at_one_place(rows), expected)
