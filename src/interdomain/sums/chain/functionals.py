"""Functionals of rows as functionals of the splines of time and of the features of space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...core.functionals import LinearFunctional
from ...core.pairs import as_family
from ...linalg.spline_grid import SplineGrid
from .terms import ChainTerm

Rules = list[tuple[float, tuple[LinearFunctional, ...]]]
"""Factors, and the functionals of the features of space; no functionals for values."""


class TimePart(NamedTuple):
    """One part of a functional of rows: one functional of time.

    :ivar grid: The splines of time under the functional of time. The windows of all parts of a
        functional of rows are equal.
    :ivar rules: The functionals of space of each term, which are added up; empty if the term has no
        such part.
    """

    grid: SplineGrid
    rules: list[Rules]


def parts_of(
    terms: Sequence[ChainTerm], functional: LinearFunctional, num_inputs: int
) -> list[TimePart] | None:
    """The parts of a functional of rows; None if it does not separate into functionals of time and
    of space, or if its window of splines depends on rows.

    A functional that acts along time alone is one part, also if it is a sum.
    """
    splines, kernel = as_family(*terms[0].time)
    of_terms = [term.parts(functional, num_inputs) for term in terms]
    found = list[tuple[int, LinearFunctional, float, tuple[LinearFunctional, ...]]]()
    for number, parts in enumerate(of_terms):
        if parts is None:
            return None
        found += [(number, *part) for part in parts]
    if all(terms[number].are_values(rules, num_inputs) for number, _, _, rules in found):
        grid = splines.acted_grid(kernel, functional)
        return None if grid is None else [TimePart(grid, [[(1.0, ())] for _ in terms])]
    by_time: dict[Any, list[Rules]] = {}
    for number, time, weight, rules in found:
        grid = splines.acted_grid(kernel, time)
        if grid is None:
            return None
        by_time.setdefault(grid.terms, [[] for _ in terms])[number].append((weight, rules))
    grid = splines.grid(kernel)
    return [
        # The terms of the other parts, times zero, make the windows equal.
        TimePart(replace(grid, terms=tuple(_weighted(by_time, own))), rules)
        for own, rules in by_time.items()
    ]


def _weighted(by_time: Any, own: Any) -> list[Any]:
    """The terms of all functionals of time; those of all but one have the factor zero."""
    return [
        (weight if terms == own else 0.0, rules) for terms in by_time for weight, rules in terms
    ]
