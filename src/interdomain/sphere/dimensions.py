"""Counting the spherical harmonics of S^{d-1}."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from .._arguments import as_integer, check_size, integer, items, short

MAX_FACTORS = 100_000
"""The largest number of factors of a binomial coefficient that is computed in reasonable time."""


def num_harmonics(dimension: int, degree: int) -> int:
    """The number N(d, l) of linearly independent harmonics of one degree on S^{d-1}.

    :param dimension: Dimension d >= 2 of the space around the sphere.
    :param degree: Degree l >= 0.
    :raises ValueError: If ``dimension`` < 2 or ``degree`` < 0, or both are above 100,000.
    """
    dimension, degree = validate_dimension(dimension), integer("degree", degree, at_least=0)
    if min(dimension, degree) > MAX_FACTORS:
        raise ValueError(
            f"degree: the number of harmonics of degree {degree} in dimension {dimension} has too "
            f"many digits to be computed; one of the two must be at most {MAX_FACTORS:,}."
        )
    below = comb(dimension + degree - 3, degree - 2) if degree >= 2 else 0
    return comb(dimension + degree - 1, degree) - below


def validate_dimension(dimension: int) -> int:
    """Raise a ValueError unless there is a sphere S^{d-1} with harmonics of every degree."""
    found = as_integer(dimension)
    if found is None or found < 2:
        rule = "2 or more" if found is not None else "an integer of 2 or more"
        raise ValueError(
            f"dimension must be {rule}, found {short(dimension)}; pass the dimension of the "
            "space around the sphere, the number of input columns plus one."
        )
    return found


def validate_max_degree(max_degree: int, *, allow_large: bool) -> int:
    """Check a highest degree.

    :raises ValueError: Unless it is an integer of 0 or more, and small enough for a quadrature of
        the coefficients of all degrees up to it, which needs a matrix of as many rows and columns.
    """
    found = integer("max_degree", max_degree, at_least=0)
    what = f"the quadrature for {found + 1:,} degrees"
    check_size("max_degree", what, float(found + 1) ** 2, allow_large=allow_large)
    return found


def validate_degrees(degrees: Sequence[int], *, allow_large: bool = False) -> tuple[int, ...]:
    """The degrees as a tuple of ints.

    :raises ValueError: Unless ``degrees`` is non-empty, increasing, and made of integers >= 0; or
        as :func:`validate_max_degree`.
    """
    if isinstance(degrees, range) and len(degrees):
        validate_max_degree(max(degrees[0], degrees[-1]), allow_large=allow_large)
    rule = "a sequence of integers"
    try:
        given = items("degrees", degrees, rule)
    except ValueError as error:
        remedy = "for all degrees up to a maximum pass range(max_degree + 1)."
        raise ValueError(f"{str(error)[:-1]}; {remedy}") from None
    if not given:
        raise ValueError(
            "degrees must hold at least one degree, found none; pass for example [0, 1, 2]."
        )
    values = [_whole(value) for value in given]
    found = tuple(value for value in values if value is not None and value >= 0)
    if len(found) < len(values):
        raise ValueError(
            f"degrees must be integers of 0 or more, found {short(tuple(given))}; pass for example "
            "range(max_degree + 1)."
        )
    if any(b <= a for a, b in zip(found, found[1:], strict=False)):
        raise ValueError(
            f"degrees must be increasing, without repeats, found {found}; pass each degree once, "
            "in order."
        )
    try:
        validate_max_degree(found[-1], allow_large=allow_large)
    except ValueError as error:
        raise ValueError(f"degrees: {error}") from None
    return found


def _whole(value: object) -> int | None:
    """An integer, also where it is written as a float."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    return as_integer(value)
