"""Counting the spherical harmonics of S^{d-1}."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def num_harmonics(dimension: int, degree: int) -> int:
    """The number N(d, l) of linearly independent harmonics of one degree on S^{d-1}.

    :param dimension: Dimension d >= 2 of the space around the sphere.
    :param degree: Degree l >= 0.
    :raises ValueError: If ``dimension`` < 2 or ``degree`` < 0.
    """
    validate_dimension(dimension)
    if degree < 0:
        raise ValueError(f"degree must be 0 or more, found {degree}.")
    below = comb(dimension + degree - 3, degree - 2) if degree >= 2 else 0
    return comb(dimension + degree - 1, degree) - below


def validate_dimension(dimension: int) -> None:
    """Raise a ValueError unless there is a sphere S^{d-1} with harmonics of every degree."""
    if dimension < 2:
        raise ValueError(
            f"dimension must be 2 or more, found {dimension}: it is the dimension of the space "
            "around the sphere, the number of input columns plus one."
        )


def validate_degrees(degrees: Sequence[int]) -> tuple[int, ...]:
    """The degrees as a tuple of ints.

    :raises ValueError: Unless ``degrees`` is non-empty, increasing, and made of integers >= 0.
    """
    try:
        values = tuple(degrees)
    except TypeError:
        raise ValueError(
            f"degrees must be a sequence of integers, found {degrees!r}; "
            "for all degrees up to a maximum pass range(max_degree + 1)."
        ) from None
    if not values:
        raise ValueError("degrees must name at least one degree, found none.")
    if not all(_is_integer(value) and value >= 0 for value in values):
        raise ValueError(f"degrees must be integers of 0 or more, found {values}.")
    if any(b <= a for a, b in zip(values, values[1:], strict=False)):
        raise ValueError(f"degrees must increase without repeats, found {values}.")
    return tuple(int(value) for value in values)


def _is_integer(value: object) -> bool:
    try:
        return bool(int(value) == value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):  # not a number, or not a finite one
        return False
