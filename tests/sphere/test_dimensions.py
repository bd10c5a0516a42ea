from __future__ import annotations

from typing import Any

import pytest
from mpmath import mp

from interdomain.sphere import num_harmonics
from interdomain.sphere.dimensions import validate_degrees
from tests.sphere.references import count_monomials_free_of_r2, legendre_in, multiplicity


def test_num_harmonics_is_the_dimension_of_harmonic_polynomials() -> None:
    for dimension in range(2, 7):
        for degree in range(7):
            expected = count_monomials_free_of_r2(dimension, degree)
            assert num_harmonics(dimension, degree) == expected
    known = {(2, 60): 2, (3, 62): 125, (9, 4): 450, (20, 3): 1520}
    assert {case: num_harmonics(*case) for case in known} == known


def test_validate_degrees_returns_a_tuple_of_ints() -> None:
    degrees = validate_degrees([0.0, 2, 5])  # type: ignore[list-item]
    assert degrees == (0, 2, 5)
    assert all(type(degree) is int for degree in degrees)
    assert validate_degrees(range(3)) == (0, 1, 2)


def test_errors() -> None:
    with pytest.raises(ValueError, match="dimension must be 2 or more, found 1"):
        num_harmonics(1, 3)
    with pytest.raises(ValueError, match="degree must be an integer of 0 or more, found -1"):
        num_harmonics(3, -1)
    wrong: list[tuple[Any, str]] = [
        (4, r"degrees must be a sequence of integers, found 4; .*range\(max_degree \+ 1\)"),
        ([], "degrees must hold at least one degree, found none; pass"),
        ([0, 1.5], r"degrees must be integers of 0 or more, found \(0, 1.5\)"),
        ([2, 1], "degrees must be increasing, without repeats, found"),
    ]
    for degrees, message in wrong:
        with pytest.raises(ValueError, match=message):
            validate_degrees(degrees)


def test_the_references_agree_with_mpmath() -> None:
    for t in (mp.mpf("0.3"), mp.mpf("-0.97")):
        for degree in (0, 1, 7, 62):
            ours = [legendre_in(dimension, degree, t) for dimension in (2, 3, 9)]
            at_one = mp.binomial(degree + 6, degree)
            theirs = [
                mp.chebyt(degree, t),
                mp.legendre(degree, t),
                mp.gegenbauer(degree, mp.mpf(7) / 2, t) / at_one,
            ]
            assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-30
    assert all(multiplicity(d, n) == num_harmonics(d, n) for d in (2, 3, 9) for n in range(5))
