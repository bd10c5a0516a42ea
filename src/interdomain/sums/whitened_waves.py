"""Sums of waves over whitened rows: in a small box, waves are sums of few polynomials."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from scipy.special import comb, gammainc, jv

from .._arguments import Array, IntArray
from ..linalg.wave_tables import BoxWaves
from .whitened import WhitenedSums

_TOLERANCE = 1e-15
"""The error of a wave in a box, relative to its amplitude: rounding errors are as large."""

_FEW = 0.6
"""The ratio of polynomials to features above which dense features take less time."""

_HIGHEST = 200
"""The highest degree that is tried."""


class WhitenedWaves(WhitenedSums):
    """Sums of waves over whitened rows, by the polynomials of each batch.

    The rows of a batch are near each other. In their box, with half widths h_d, a wave is a sum of
    products of Chebyshev polynomials, by ``exp(i z y) = sum_k e_k i^k J_k(z) T_k(y)``. Here
    ``-1 <= y <= 1``, ``e_0 = 1`` and ``e_k = 2`` (Abramowitz and Stegun 1964, 9.1.44-45). Products
    of total degree n or less leave out at most ``2^D sum_{k > n} (s / 2)^k / k!`` of an amplitude,
    for the largest sum s of a wave's phases ``z_d = w_d h_d``. A batch sums K such products in
    place of M waves. One matrix ``[K, M]`` turns these sums into the sums of the waves.

    :param waves: The features.
    """

    def __init__(self, features: Any, weights: Callable[..., Any], waves: BoxWaves) -> None:
        self._waves = waves
        super().__init__(features, weights)
        self._frequencies = (waves.functions + 1) // 2
        self._norms = 1 / np.sqrt(waves.periods) if waves.combined is None else np.ones(())
        self._norms = np.broadcast_to(self._norms, [len(waves.columns)])

    def basis(self, X: Array) -> tuple[Array, Array | None]:
        waves = self._waves
        turns = (np.asarray(X[:, waves.columns], np.float64) - waves.lower) / waves.periods
        lower, upper = turns.min(axis=0), turns.max(axis=0)
        centre, half = (lower + upper) / 2, np.maximum((upper - lower) / 2, np.finfo(float).tiny)
        degree = _degree(float(np.max(self._frequencies @ (2 * np.pi * half))), len(half))
        if degree is None or comb(degree + len(half), degree) > _FEW * waves.num_features:
            return super().basis(X)
        degrees = _degrees(degree, len(half))
        angles = np.arccos(np.clip((turns - centre) / half, -1, 1))
        values = np.cos(angles.T[:, :, None] * np.arange(degree + 1))
        rows = reduce(np.multiply, (part[:, k] for part, k in zip(values, degrees.T, strict=True)))
        return rows, self._coefficients(centre, half, degrees)

    def _coefficients(self, centre: Array, half: Array, degrees: IntArray) -> Array:
        """The polynomials' weights in each feature, ``[K, M]``."""
        factors, waves = [], self._waves
        for column, functions in enumerate(waves.functions.T):
            highest, k = int(np.max(functions)), np.arange(np.max(degrees) + 1)
            angles = 2 * np.pi * np.arange((highest + 1) // 2 + 1)
            series = jv(k[:, None], half[column] * angles) * (1j) ** (k % 4)[:, None]
            series *= np.exp(1j * centre[column] * angles)
            series[1:] *= 2
            norm = self._norms[column]
            table = np.empty([len(k), 2 * len(angles) - 1])  # the constant, cosines and sines
            table[:, 0] = series[:, 0].real * norm
            root = np.sqrt(2.0) if waves.combined is None else 1.0
            table[:, 1::2] = series[:, 1:].real * root * norm
            table[:, 2::2] = series[:, 1:].imag * root * norm
            factors.append(table[degrees[:, [column]], functions])
        coefficients: Array = reduce(np.multiply, factors)
        if waves.combined is None:
            return coefficients
        return np.asarray((waves.combined @ coefficients.T).T)


def _degree(phase: float, number: int) -> int | None:
    """The least total degree for a sum of phases in so many columns; None if it is high."""
    degrees = np.arange(_HIGHEST)
    with np.errstate(over="ignore"):
        errors = 2.0**number * np.exp(phase / 2) * gammainc(degrees + 1, phase / 2)
    enough = errors <= _TOLERANCE
    return int(np.argmax(enough)) if enough.any() else None


def _degrees(highest: int, number: int) -> IntArray:
    """The degrees of products in each column, of total degree ``highest`` or less, ``[K, D]``."""
    grid = np.indices([highest + 1] * number).reshape(number, -1).T
    degrees: IntArray = grid[grid.sum(axis=1) <= highest]
    return degrees
