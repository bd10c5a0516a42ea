"""Compensated sums against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from interdomain.streaming import compensated
from interdomain.streaming.compensated import CompensatedSum


def exact(terms: list[np.ndarray]) -> np.ndarray:
    totals = [
        sum((Fraction(float(v)) for v in column), Fraction(0))
        for column in zip(*terms, strict=True)
    ]
    return np.array([float(total) for total in totals])


def test_large_terms_that_cancel_leave_the_small_ones() -> None:
    total = CompensatedSum.zeros(2)
    terms = [np.array([1e16, -1e300]), np.array([1.0, 3.0]), np.array([-1e16, 1e300])]
    for term in terms:
        total = total.plus(CompensatedSum(term))
    assert np.array_equal(total.value, [1.0, 3.0])
    assert not np.array_equal(np.sum(terms, axis=0), [1.0, 3.0])


def test_many_terms_of_many_sizes() -> None:
    rng = np.random.default_rng(0)
    terms = [rng.normal(size=3) * 10.0 ** rng.uniform(-12, 12, size=3) for _ in range(2_000)]
    total = CompensatedSum.zeros(3)
    for term in terms:
        total = total.plus(CompensatedSum(term))
    assert np.array_equal(total.value, exact(terms))


def test_a_part_that_is_taken_away_leaves_the_rest() -> None:
    rng = np.random.default_rng(1)
    rest, large = rng.normal(size=4), 1e12 * rng.normal(size=4)
    both, part = CompensatedSum.zeros(4), CompensatedSum.zeros(4)
    both = both.plus(CompensatedSum(rest))
    both = both.plus(CompensatedSum(large))
    part = part.plus(CompensatedSum(large))
    assert np.array_equal(both.plus(part, -1).value, rest)
    assert np.array_equal(both.value, exact([rest, large]))  # and both stay as they are
    assert np.array_equal(part.value, large)


def test_matrices_are_added_in_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    terms = [rng.normal(size=(7, 5)) * 10.0 ** rng.uniform(-9, 9, size=(7, 5)) for _ in range(50)]
    for entries in (1, 10, 1_000):
        monkeypatch.setattr(compensated, "_PANEL_ENTRIES", entries)
        total = CompensatedSum.zeros(7, 5)
        for term in terms:
            total = total.plus(CompensatedSum(term))
        expected = exact([term.ravel() for term in terms])
        assert np.array_equal(total.value.ravel(), expected), entries
