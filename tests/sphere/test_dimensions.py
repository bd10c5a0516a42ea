from __future__ import annotations

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


def test_errors() -> None:
    with pytest.raises(ValueError, match="dimension must be 2 or more, found 1"):
        num_harmonics(1, 3)
    with pytest.raises(ValueError, match="degree must be an integer of 0 or more, found -1"):
        num_harmonics(3, -1)
    with pytest.raises(ValueError, match=r"degrees must be integers of 0 or more, found \(0, 1.5"):
        validate_degrees([0, 1.5])
    with pytest.raises(ValueError, match="degrees must be increasing, without repeats, found"):
        validate_degrees([2, 1])


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
