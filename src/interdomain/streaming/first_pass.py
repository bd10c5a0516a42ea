"""A fingerprint of the rows that the first pass read, with which later passes are compared."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np

from ..sphere._typing import Array

Tally = np.ndarray[Any, np.dtype[np.uint64]]
"""The number of rows and a checksum of them, whatever their order and batches."""

_TINY = float(np.finfo(np.float32).tiny)
_SHIFT, _FACTOR = np.uint64(32), np.uint64(0x9E3779B97F4A7C15)


class FirstPass:
    """A fingerprint of the rows that the first complete pass over some data read."""

    def __init__(self) -> None:
        self._tally: Tally | None = None

    def check(self, what: str, tally: Tally) -> Tally:
        """Remember what the first complete pass read, or compare a later pass with it.

        :param what: The data, for the message.
        :raises ValueError: If this pass read other rows than the first.
        """
        if self._tally is None:
            self._tally = tally
        if not np.array_equal(self._tally, tally):
            numbers = int(self._tally[0]), int(tally[0])
            found = "{} rows, and now {}".format(*numbers)
            if numbers[0] == numbers[1]:
                found = f"{numbers[0]} rows, and now as many others"
            raise ValueError(
                f"{what}: the first pass read {found}; pass rows that are the same whenever "
                "they are read (of a random or growing Dataset keep a copy with .cache()), and "
                "build a new model for others."
            )
        return tally

    def forget(self) -> None:
        """Treat the next pass as the first one: the user may correct the rows before it."""
        self._tally = None


def no_rows() -> Tally:
    """The tally of no rows."""
    return np.zeros(2, np.uint64)


def counted(tally: Tally, X: Array, Y: Array) -> Tally:
    """A tally with more rows added; the rows must be finite."""
    of_x, of_y = _factors(X.shape[1], Y.shape[1])
    rows = _words(X) @ of_x + _words(Y) @ of_y
    rows ^= rows >> _SHIFT  # a sum of rows is then not one of columns
    rows *= _FACTOR
    rows ^= rows >> _SHIFT
    return tally + np.array([len(rows), np.sum(rows, dtype=np.uint64)], np.uint64)


def _words(array: Array) -> Tally:
    """The bits of the numbers, the signs among those that do not cancel in a sum of columns."""
    with np.errstate(over="ignore"):
        numbers: Array = array.astype(gpflow.default_float(), copy=False)
    numbers = numbers.astype(np.float64, copy=False)
    # TensorFlow's threads take numbers this small for zero.
    words = np.where(np.abs(numbers) < _TINY, 0.0, numbers).view(np.uint64)
    words ^= words >> _SHIFT
    return words


def _factors(*sizes: int) -> list[Tally]:
    odd = 2 * np.arange(1, sum(sizes) + 1, dtype=np.uint64) + np.uint64(1)
    return np.split(odd * _FACTOR, np.cumsum(sizes)[:-1])
