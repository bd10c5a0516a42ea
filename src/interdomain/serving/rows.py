"""Rows to predict at, a batch at a time: arrays, memory-mapped arrays and datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from .._arguments import check_real_type, numeric, short
from ..sphere._typing import Array

BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Batch: TypeAlias = tuple[Array, ...]
"""X ``[B, D]``; or X and Y ``[B, P]``."""

_RULE = "a matrix with one row per observation"


class ArrayRows:
    """Anything with a shape whose rows can be sliced.

    :param Y: None where there are no targets.
    :ivar num_rows: N.
    :ivar num_columns: D.
    :ivar num_targets: The number of columns of Y, None without Y.
    :raises ValueError: If they are not matrices of real numbers with as many rows.
    """

    def __init__(self, X: Any, Y: Any = None) -> None:
        parts = {"X": X} if Y is None else {"X": X, "Y": Y}
        self._parts = {name: _sliceable(name, part) for name, part in parts.items()}
        shapes = {name: tuple(part.shape) for name, part in self._parts.items()}
        self.num_rows, self.num_columns = (int(size) for size in shapes["X"])
        self.num_targets: int | None = None
        if Y is not None:
            num_rows, self.num_targets = (int(size) for size in shapes["Y"])
            if num_rows != self.num_rows:
                raise ValueError(
                    f"Y must have as many rows as X, {self.num_rows}, found {num_rows}; pass one "
                    "row of each per observation."
                )
        # An integer Y stays integer, for likelihoods over classes.
        self.targets_are_integers = Y is not None and _kind(self._parts["Y"]) in "iub"

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """The batches in order; the last may have fewer rows."""
        for start in range(0, self.num_rows, batch_size):
            rows = slice(start, start + batch_size)
            yield tuple(numeric(name, part[rows], _RULE) for name, part in self._parts.items())


class DatasetRows:
    """A ``tf.data.Dataset`` of batches X, or of tuples of which X is the first.

    :param with_targets: Whether the second element of each tuple is Y.
    :ivar num_rows: None: the number of rows is known only at the end.
    :raises ValueError: If the elements are of another kind, or the dataset never ends.
    """

    num_rows: None = None

    def __init__(self, dataset: tf.data.Dataset, *, with_targets: bool) -> None:
        specs = dataset.element_spec
        specs = specs if isinstance(specs, tuple) else (specs,)
        wanted = 2 if with_targets else 1
        if len(specs) < wanted or not all(map(_is_matrix, specs[:wanted])):
            what = "pairs (X [B, D], Y [B, P])" if with_targets else "batches X [B, D]"
            raise ValueError(
                f"X: the Dataset's elements must be {what} with known numbers of columns, found "
                f"{dataset.element_spec}; pass such as "
                f"tf.data.Dataset.from_tensor_slices({'(X, Y)' if with_targets else 'X'}).batch(B)."
            )
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise ValueError(
                "X: every row is predicted once, and this Dataset never ends; take away .repeat()."
            )
        self.num_columns = int(specs[0].shape[1])
        self.num_targets = int(specs[1].shape[1]) if with_targets else None
        self.targets_are_integers = with_targets and bool(specs[1].dtype.is_integer)
        self._dataset, self._wanted = dataset, wanted

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """The batches in order, cut to the given size, whatever the batches of the dataset."""
        for element in self._dataset.rebatch(batch_size).as_numpy_iterator():
            parts = element if isinstance(element, tuple) else (element,)
            yield tuple(parts[: self._wanted])


def make_rows(X: Any, Y: Any, *, with_targets: bool) -> ArrayRows | DatasetRows:
    """
    :param with_targets: Whether the method takes Y.
    :raises ValueError: If X is neither rows nor a Dataset of such, or Y is missing or not needed.
    """
    if isinstance(X, tf.data.Dataset):
        if Y is not None:
            raise ValueError(
                f"Y must be None beside a Dataset, found {short(Y)}; pass a Dataset of pairs "
                "(X, Y), and no Y."
            )
        return DatasetRows(X, with_targets=with_targets)
    if with_targets and Y is None:
        raise ValueError(
            "Y must be the targets whose log density is asked for, found None; pass [N, P]."
        )
    if not with_targets and Y is not None:
        raise ValueError(
            f"Y must be None, found {short(Y)}; only method='predict_log_density' takes targets."
        )
    return ArrayRows(X, Y)


def _sliceable(name: str, part: Any) -> Any:
    if not hasattr(part, "shape") or not hasattr(part, "__getitem__"):
        part = numeric(name, part, _RULE)
    if hasattr(part, "iloc"):  # a DataFrame: its columns may differ in type
        part = np.asarray(part)
    check_real_type(name, part)
    if len(part.shape) != 2:
        raise ValueError(
            f"{name} must be {_RULE}, found shape {tuple(part.shape)}; for one column pass "
            f"{name}[:, None]."
        )
    return part


def _kind(part: Any) -> str:
    dtype = getattr(part.dtype, "as_numpy_dtype", part.dtype)
    return np.dtype(dtype).kind


def _is_matrix(spec: Any) -> bool:
    return isinstance(spec, tf.TensorSpec) and spec.shape.rank == 2 and spec.shape[1] is not None
