"""Collects the predictions of batches in arrays, new ones or those of the user."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import short
from ..sphere._typing import Array
from .rows import BoolArray


class Collected:
    """What a method returns for all rows, written batch by batch.

    :param specs: The shapes and types of what the method returns for a batch.
    :param is_single: Whether that is one array, and not a pair.
    :param num_rows: The number of all rows; None if it is known only at the end.
    :param out: Arrays to write to, or None.
    :raises ValueError: If ``out`` is not as many arrays of this shape.
    """

    def __init__(
        self, specs: list[tf.TensorSpec], *, is_single: bool, num_rows: int | None, out: Any
    ) -> None:
        self._is_single, self._given, self._next = is_single, out is not None, 0
        self._shapes = [tuple(spec.shape[1:]) for spec in specs]
        self._dtypes = [spec.dtype.as_numpy_dtype for spec in specs]
        self._num_rows = num_rows
        self._batches: list[list[Array]] = []
        self._arrays: list[Any] | None = None
        if out is not None:
            self._arrays = _checked(out, self._shapes, num_rows, is_single)
            self._num_rows = int(self._arrays[0].shape[0])
        elif num_rows is not None:
            self._arrays = [
                np.empty((num_rows, *shape), dtype)
                for shape, dtype in zip(self._shapes, self._dtypes, strict=True)
            ]

    def add(self, predicted: list[Array], valid: BoolArray) -> None:
        """
        :param predicted: Of the valid rows of the next batch.
        :param valid: For each row of the batch; the predictions of the others are NaN.
        :raises ValueError: If ``out`` has fewer rows.
        """
        if not np.all(valid):
            predicted = [_spread(part, valid) for part in predicted]
        start, self._next = self._next, self._next + len(valid)
        if self._arrays is None:
            self._batches.append(predicted)
            return
        if self._num_rows is not None and self._next > self._num_rows:
            raise ValueError(
                f"out must have as many rows as the Dataset, found {self._num_rows} and at least "
                f"{self._next}; pass longer arrays."
            )
        for array, part in zip(self._arrays, predicted, strict=True):
            array[start : self._next] = part

    def result(self) -> Any:
        """The arrays for all rows; those of ``out``, if it was given.

        :raises ValueError: If ``out`` has more rows.
        """
        arrays = self._arrays
        if arrays is None and self._batches:
            arrays = [np.concatenate(parts) for parts in zip(*self._batches, strict=True)]
        elif arrays is None:
            arrays = [
                np.empty((0, *shape), dtype)
                for shape, dtype in zip(self._shapes, self._dtypes, strict=True)
            ]
        elif self._given and self._next != self._num_rows:
            raise ValueError(
                f"out must have as many rows as the Dataset, found {self._num_rows} and "
                f"{self._next}; pass shorter arrays (the first {self._next} rows are written)."
            )
        return arrays[0] if self._is_single else tuple(arrays)


def _checked(
    out: Any, shapes: list[tuple[int, ...]], num_rows: int | None, is_single: bool
) -> list[Any]:
    arrays = [out] if is_single else list(out) if isinstance(out, (tuple, list)) else []
    rule = "an array" if is_single else "a pair of arrays (mean, variance)"
    if len(arrays) != len(shapes) or not all(
        hasattr(array, "shape") and hasattr(array, "__setitem__") for array in arrays
    ):
        raise ValueError(f"out must be {rule} to write to, found {short(out)}.")
    for array, shape in zip(arrays, shapes, strict=True):
        wanted = ("N" if num_rows is None else num_rows, *shape)
        found = tuple(array.shape)
        if len(found) != len(wanted) or any(
            isinstance(size, int) and size != own for size, own in zip(wanted, found, strict=True)
        ):
            text = "(" + ", ".join(map(str, wanted)) + ("," if len(wanted) == 1 else "") + ")"
            raise ValueError(f"out must be {rule} of shape {text}, found shape {found}.")
        if np.dtype(array.dtype).kind != "f":
            raise ValueError(
                f"out must be {rule} of floating-point numbers, found type {array.dtype}."
            )
    if len({array.shape[0] for array in arrays}) > 1:
        raise ValueError(
            f"out must be {rule} with as many rows each, found "
            f"{[int(array.shape[0]) for array in arrays]}."
        )
    return arrays


def _spread(part: Array, valid: BoolArray) -> Array:
    spread = np.full((len(valid), *part.shape[1:]), np.nan, part.dtype)
    spread[valid] = part
    return spread
