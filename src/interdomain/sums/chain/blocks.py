"""The blocks of features that are products with splines of one column, time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from ..._arguments import refusal
from ...core.combined import num_inducing
from ...core.family import Block
from ...core.pairs import as_family
from ...linalg.spline_grid import SplineGrid
from .structure import SpaceTime
from .terms import ChainTerm


def space_time(blocks: Sequence[Block]) -> SpaceTime | None:
    """The structure of blocks of which some are products with splines of time; None if none is.

    :raises ValueError: If two terms have different splines of time.
    """
    starts = np.cumsum([0, *(int(num_inducing(block)) for block, _ in blocks)])
    terms = [term_of(block, start) for block, start in zip(blocks, starts[:-1], strict=True)]
    products = [term.grid for term in terms if term is not None and term.space]
    if not products:
        return None  # splines of time alone
    columns = products[0].columns
    terms = [
        term if term and (term.space or np.array_equal(term.grid.columns, columns)) else None
        for term in terms  # splines of another column are dense features
    ]
    known = [term for term in terms if term is not None]
    grids = [term.grid for term in known]
    for other in grids[1:]:
        same = np.array_equal(other.columns, grids[0].columns) and other.shape == grids[0].shape
        ends = zip((other.lower, other.steps), (grids[0].lower, grids[0].steps), strict=True)
        if not (same and all(np.array_equal(*pair) for pair in ends)):
            raise refusal(
                "inducing_variable",
                "have the same splines of time in all terms",
                f"{_described(grids[0])} and {_described(other)}",
                "build all terms with one SplineFeatures object",
            )
    return SpaceTime(known, [block for block, term in zip(blocks, terms, strict=True) if not term])


def _described(grid: SplineGrid) -> str:
    end = grid.lower[0] + grid.steps[0] * grid.num_cells[0]
    return f"{grid.size:,} of column {grid.columns[0]} from {grid.lower[0]:g} to {end:g}"


def term_of(block: Block, start: int) -> ChainTerm | None:
    """The term of a block; None if it is no product with splines of one column.

    :param start: The number of the block's first feature among all features.
    """
    family, kernel = as_family(*block)
    pairs = family.pairs(kernel) if getattr(family, "has_all", False) else [block]
    number = _time_of(pairs)
    return None if number is None else ChainTerm.from_pairs(pairs, number, start)


def of_product(pairs: Sequence[Block]) -> SpaceTime:
    """The structure of all products of factors, one of which is splines of time."""
    number = _time_of(pairs)
    assert number is not None
    return SpaceTime([ChainTerm.from_pairs(pairs, number, 0)])


def _time_of(pairs: Sequence[Block]) -> int | None:
    """The index of the factor that is splines of one column; None if there is none.

    :raises ValueError: If there are several.
    """
    numbers = [number for number, pair in enumerate(pairs) if is_time(*pair)]
    if len(numbers) > 1:
        raise refusal(
            "inducing_variables",
            "have splines of one column, time, in a product",
            " and ".join(_described(grid_of(*pairs[number])) for number in numbers),
            "pass one SplineFeatures of both columns, or other features of space",
        )
    return numbers[0] if numbers else None


def grid_of(inducing_variable: InducingVariables, kernel: Kernel) -> SplineGrid:
    """The grid of splines."""
    family, base = as_family(inducing_variable, kernel)
    grid: SplineGrid = family.grid(base)
    return grid


def is_time(inducing_variable: InducingVariables, kernel: Kernel) -> bool:
    """Whether features are splines of one column."""
    family, base = as_family(inducing_variable, kernel)
    return hasattr(family, "grid") and len(family.grid(base).shape) == 1
