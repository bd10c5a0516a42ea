"""The mean squares of single harmonics over some points, for choosing among them.

They are computed one at a time, in NumPy, because it is not known beforehand which are needed. For
a known set of harmonics, use :mod:`.harmonic_products`.
"""

from __future__ import annotations

import numpy as np

from ...._arguments import Array
from .harmonic_products import FactorConstants

Raises = tuple[tuple[int, int], ...]
"""A harmonic, as (j, a) for each coordinate j that raises the degree, by a, in the order of j. The
first two coordinates are j = 2, and a has the sign of k_2 there: plus for a cosine."""


class HarmonicSquares:
    """Weighted means of squared harmonics, for a set that grows by one raise after the other.

    A harmonic is one without its last factor, times this factor. What was computed is kept, so that
    a mean is one inner product of a row of squares of each.

    :param X: Unit vectors ``[n, d]``.
    :param weights: ``[n]``.
    """

    def __init__(self, X: Array, weights: Array) -> None:
        self._x = np.ascontiguousarray(X.T)
        self._squared_norms = np.cumsum(self._x**2, axis=0)
        self._turn = self._x[0] + 1j * self._x[1]
        self._constants = FactorConstants(len(self._x))
        self._factors: dict[tuple[int, int], list[Array]] = {}
        self._squared_factors: dict[tuple[int, int, int], Array] = {}
        self._products: dict[Raises, Array] = {(): weights}

    def mean(self, raises: Raises) -> float:
        """The weighted mean of the square of one harmonic."""
        if not raises:
            return float(np.sum(self._products[()]))
        return float(self._product(raises[:-1]) @ self._last_factor(raises))

    def _product(self, raises: Raises) -> Array:
        """The squares of a harmonic, times the weights."""
        found = self._products.get(raises)
        if found is None:
            found = self._product(raises[:-1]) * self._last_factor(raises)
            self._products[raises] = found
        return found

    def _last_factor(self, raises: Raises) -> Array:
        """The squares of the last factor of a harmonic."""
        j, a = raises[-1]
        key = (j, sum(abs(raised) for _, raised in raises[:-1]), a)
        found = self._squared_factors.get(key)
        if found is None:
            found = self._squared_factors[key] = self._factor(*key) ** 2
        return found

    def _factor(self, j: int, k: int, a: int) -> Array:
        if j == 2:
            power = self._constants.planar(abs(a)) * self._turn ** abs(a)
            part: Array = power.real if a > 0 else power.imag
            return part
        x, r2 = self._x[j - 1], self._squared_norms[j - 1]
        factors = self._factors.setdefault((j, k), [np.zeros_like(x), np.ones_like(x)])
        while len(factors) < a + 2:  # p_{-1}, p_0, ..., p_a
            first, second = self._constants.step(j, k, len(factors) - 1)
            factors.append(first * x * factors[-1] - second * r2 * factors[-2])
        return factors[a + 1]
