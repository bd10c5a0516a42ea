"""Sums over many rows in float64, with compensation for rounding errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np

from ..sphere._typing import Array

_BATCHES_PER_BLOCK = 8
"""Products summed plainly before they join the compensated sum, which costs several times more."""

_PANEL_ENTRIES = 2**14
"""Numbers to add at a time: few enough for some arrays of so many to stay in a cache."""


class CompensatedSum:
    """A sum in twice the precision, ``high + low``; ``low`` collects the rounding errors.

    Every addition finds its own rounding error exactly (Knuth's two-sum) and collects it, so that
    the error of the sum does not grow with the number of terms.

    :param high: The sum, rounded, in float64; not copied.
    :param low: The collected rounding errors; zero if None.
    """

    def __init__(self, high: Array, low: Array | None = None) -> None:
        self.high = high
        self.low = np.zeros_like(high) if low is None else low

    @classmethod
    def zeros(cls, *shape: int) -> CompensatedSum:
        """The empty sum."""
        return cls(np.zeros(shape))

    @property
    def value(self) -> Array:
        """The sum, rounded once."""
        return self.high + self.low

    def plus(self, other: CompensatedSum, sign: int = 1) -> CompensatedSum:
        """The sum of two, or their difference, as a new one.

        Some rows are taken at a time, so that what is computed in between stays in a cache.
        """
        total = CompensatedSum(np.empty_like(self.high), np.empty_like(self.low))
        for rows in _panels(self.high):
            high, term = self.high[rows], sign * other.high[rows]
            rounded = high + term
            taken = rounded - high
            # The exact error: what of the old sum is missing, and what of the term.
            error = (high - (rounded - taken)) + (term - taken)
            total.high[rows] = rounded
            total.low[rows] = self.low[rows] + error + sign * other.low[rows]
        return total


def _panels(array: Array) -> Iterator[slice]:
    """Slices along the first axis, of few numbers each."""
    rows = max(1, _PANEL_ENTRIES // max(1, math.prod(array.shape[1:])))
    for first in range(0, len(array), rows):
        yield slice(first, first + rows)


def could_be_left(rest: Array, before: Array) -> bool:
    """Whether ``rest`` could be the sum of ``s s^T`` over some of the rows that ``before`` is the
    sum of, ``[K, K]``: whether it is positive semi-definite but for rounding.

    A True is no proof: the result may be positive semi-definite by chance.
    """
    scale = np.sqrt(np.diagonal(before))
    scale = np.where(scale > 0.0, scale, 1.0)
    scaled = rest / np.outer(scale, scale)
    tolerance = 64 * len(rest) * float(np.finfo(gpflow.default_float()).eps)
    return bool(np.all(np.isfinite(rest)) and np.linalg.eigvalsh(scaled)[0] >= -tolerance)


@dataclass(frozen=True)
class Sums:
    """The sums over some rows.

    :ivar gram: The sum of the products of stacked features, ``[K, K]``; or several such matrices
        below each other.
    :ivar diagonal: The sums of the diagonal's terms, ``[T]``, or of whatever is a sum of numbers.
    :ivar num_rows: The number of rows.
    """

    gram: CompensatedSum
    diagonal: CompensatedSum
    num_rows: int = 0

    @classmethod
    def empty(cls, num_stacked: int, num_terms: int) -> Sums:
        """The sums over no rows."""
        zeros = CompensatedSum.zeros
        return cls(zeros(num_stacked, num_stacked), zeros(num_terms))

    def plus(self, other: Sums, sign: int) -> Sums:
        """These sums with other rows added (sign 1) or taken away (sign -1)."""
        return Sums(
            self.gram.plus(other.gram, sign),
            self.diagonal.plus(other.diagonal, sign),
            self.num_rows + sign * other.num_rows,
        )


class Accumulator:
    """Adds batches up. A few batches are summed plainly in a block, which is then added to the
    compensated sums.

    :ivar sums: The sums of the complete blocks; replaced as a whole, so that they are consistent
        whenever the pass is interrupted.
    """

    def __init__(self, sums: Sums) -> None:
        self.sums = sums
        self._block = np.zeros_like(sums.gram.high)
        self._block_diagonal = np.zeros_like(sums.diagonal.high)
        self._block_rows = 0
        self._product = np.empty_like(self._block)
        self._pending = 0

    def add(self, stacked: Array, terms: Array) -> bool:
        """Add a batch, ``[K, n]`` and ``[T, n]``: its products and sums are computed in float64.

        :return: Whether the batch was added; False if it or a sum has NaN or infinite numbers.
        """
        stacked = stacked.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            term_sums = np.sum(terms, axis=1, dtype=np.float64)
        # NumPy knows that the product is symmetric, and computes half of it.
        return self.add_sums(
            lambda out: np.matmul(stacked, stacked.T, out=out), term_sums, stacked.shape[1]
        )

    def add_sums(self, products: Callable[[Array], Any], sums: Array, num_rows: int) -> bool:
        """Add what is summed over a batch already.

        :param products: Writes the sums of products to what it is given, ``[K, K]``, each matrix
            a product of something and its transpose.
        :param sums: The other sums, ``[T]``.
        :return: As :meth:`add`.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            products(self._product)
        # Every number enters a square on a diagonal, so that checking these is enough.
        size = self._product.shape[1]
        squares = np.diagonal(self._product.reshape(-1, size, size), axis1=1, axis2=2)
        if not (np.all(np.isfinite(squares)) and np.all(np.isfinite(sums))):
            return False
        self._block += self._product
        self._block_diagonal += sums
        self._block_rows += num_rows
        self._pending += 1
        return True

    @property
    def is_full(self) -> bool:
        """Whether the block has as many batches as it should."""
        return self._pending == _BATCHES_PER_BLOCK

    def end_block(self) -> Sums:
        """Add the block to the sums, begin a new one, and return the sums."""
        if self._pending:
            block = Sums(
                CompensatedSum(self._block), CompensatedSum(self._block_diagonal), self._block_rows
            )
            self.sums = self.sums.plus(block, 1)
            self._block[:], self._block_diagonal[:], self._block_rows = 0, 0, 0
            self._pending = 0
        return self.sums
