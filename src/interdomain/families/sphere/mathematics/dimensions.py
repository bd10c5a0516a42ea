"""The numbers of spherical harmonics on S^{d-1}, and chains of degrees, their labels."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np

from ...._arguments import IntArray, as_integers, different_rows, integer, refusal, short


def num_harmonics(dimension: int, degree: int) -> int:
    """The number N(d, l) of linearly independent harmonics of one degree on S^{d-1}.

    :param dimension: The dimension d >= 2 of the space around the sphere.
    :param degree: The degree l >= 0.
    :raises ValueError: If an argument is smaller.
    """
    validate_dimension(dimension)
    below = comb(dimension + degree - 3, degree - 2) if degree >= 2 else 0
    return comb(dimension + degree - 1, degree) - below


def validate_dimension(dimension: int) -> int:
    """The dimension, if it is an integer of 2 or more; a ValueError otherwise."""
    remedy = "pass the dimension of the space around the sphere, the number of input columns plus "
    return integer("dimension", dimension, at_least=2, remedy=remedy + "one")


def validate_degrees(degrees: Sequence[int] | None) -> tuple[int, ...]:
    """The degrees as a tuple of ints.

    :raises ValueError: Unless ``degrees`` are one or more increasing integers >= 0.
    """
    remedy = "pass for example range(max_degree + 1)"
    values = as_integers("degrees", degrees, remedy)
    if values[0] < 0 or any(b <= a for a, b in zip(values, values[1:], strict=False)):
        rule = "be increasing, 0 or more and without repeats"
        raise refusal("degrees", rule, short(values), remedy)
    return values


# Labels of spherical harmonics: chains of degrees. A harmonic of the basis of ``harmonics`` on
# S^{d-1} is identified by its degrees in the first two, three, ... and all d coordinates,
# ``|k_2| <= k_3 <= ... <= k_d = l``. A positive ``k_2`` is the cosine, a negative ``k_2`` the sine
# of ``|k_2|`` turns in the plane of the first two coordinates. The differences of a chain are the
# raises: the numbers by which each coordinate raises the degree. They are any integers of 0 or more
# (the first has a sign). So harmonics are the points of a lattice, and a neighbour of a harmonic
# has one raise more.


def raises_of(chains: IntArray) -> IntArray:
    """The raises of the degree by each coordinate from the second on, ``[M, d - 1]``. The first
    column has the sign of ``k_2``."""
    raises = chains.copy()
    raises[:, 1:] -= np.abs(chains[:, :-1])
    return raises


def chains_of(raises: IntArray) -> IntArray:
    """The chains of given raises: the inverse of :func:`raises_of`."""
    chains: IntArray = np.cumsum(np.abs(raises), axis=1)
    chains[:, 0] = raises[:, 0]
    return chains


def chains_of_degrees(dimension: int, degrees: Sequence[int]) -> IntArray:
    """All chains of increasing degrees, ``[M, d - 1]``, in the order of ``spherical_harmonics``."""
    levels = [np.zeros((1, dimension - 1), np.int64)]
    for l in range(1, degrees[-1] + 1):
        blocks = [np.outer([l, -l], np.eye(1, dimension - 1, dtype=np.int64))]
        for j in range(3, dimension + 1):
            count = num_harmonics(j - 1, l - 1) + (num_harmonics(j, l - 2) if l > 1 else 0)
            blocks.append(levels[-1][:count].copy())
            blocks[-1][:, j - 2] += 1
        levels.append(np.concatenate(blocks))
    return chains_of(np.concatenate([levels[l] for l in degrees]))


def validate_chains(chains: Any, dimension: int) -> IntArray:
    """The chains as an array; a ValueError unless they are different chains of S^{d-1}."""
    remedy = f"pass a row |k_2| <= k_3 <= ... <= k_{dimension} for each, k_2 < 0 for a sine"
    rule = f"integers [M, {dimension - 1}]"
    rows = different_rows("chains", chains, rule, dimension - 1, remedy)
    wrong = np.flatnonzero(np.any(raises_of(rows)[:, 1:] < 0, axis=1))
    if len(wrong):
        rule = "not decrease along a row"
        raise refusal("chains", rule, f"{short(rows[wrong[0]].tolist())} in row {wrong[0]}", remedy)
    return rows


def neighbours_of(chains: IntArray) -> IntArray:
    """The neighbours of some chains, ``[C, d - 1]``: the chains with one raise more, at any
    coordinate. A neighbour of several chains is repeated."""
    raises, width = raises_of(chains), chains.shape[1]
    steps = np.eye(width, dtype=np.int64) * np.where(raises < 0, -1, 1)[:, None]
    sines = raises[raises[:, 0] == 0]
    sines[:, 0] = -1
    return chains_of(np.concatenate([(raises[:, None] + steps).reshape([-1, width]), sines]))
