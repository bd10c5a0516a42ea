"""Sums of many arrays in float64, with what rounding loses kept beside them."""

from __future__ import annotations

import numpy as np

from ..sphere._typing import Array


class CompensatedSum:
    """A sum in twice the precision: ``high + low``, the second being what the first cannot hold.

    Every addition finds its own rounding error exactly (Knuth's two-sum) and collects it, so that
    the error of the sum does not grow with the number of terms.

    :param high: The sum, rounded, in float64; not copied.
    :param low: What it lacks; zero if None.
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

    def add(self, term: Array) -> None:
        """Add an array of the same shape, in place."""
        total = self.high + term
        taken = total - self.high
        # The exact error: what of the old sum is missing, and what of the term.
        self.low += (self.high - (total - taken)) + (term - taken)
        self.high = total

    def plus(self, other: CompensatedSum, sign: int = 1) -> CompensatedSum:
        """The sum of two, or their difference, as a new one."""
        total = CompensatedSum(self.high.copy(), self.low.copy())
        total.add(sign * other.high)
        total.low += sign * other.low
        return total
