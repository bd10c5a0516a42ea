"""Rows of data that need not fit into memory: arrays, files, datasets and generators of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array, BoolArray, check_real_type, choice, integer
from .._progress import bar_of_rows
from ..core.domains import Box, complaint, extent_of, outside_of_any

_BATCH_ENTRIES = 2**22
"""Numbers in the features of a batch: 32 MB, enough rows for products at full speed."""

_ROWS_NAMED = 10

MISSING = (
    "of targets with missing values, give interdomain.models.DualSVGP or gpflow.models.SVGP a "
    "likelihood of your own that leaves out NaN, with allow_nan = True"
)
"""What to do where NaN in Y is no mistake."""

_KINDS = (
    "a pair of arrays (X, Y), a tf.data.Dataset of such batches, or a function that returns a new "
    "iterator over such batches at every call"
)


class InvalidRowsError(ValueError):
    """An error for rows of data that are not finite, or outside of the box of the features.

    :ivar rows: The numbers of these rows, counted from zero in the order of the data.
    """

    def __init__(self, message: str, rows: Any, *, argument: str = "data") -> None:
        self.rows = rows
        super().__init__(f"{argument}: {message}")


class Rows:
    """Rows (x, y) in a fixed order, which are read a batch at a time and never changed.

    :param data: (X ``[N, D]``, Y ``[N, P]``) as arrays, memory-mapped arrays or anything of that
        shape that can be sliced; a ``tf.data.Dataset`` of batches (X, Y) that ends; or a function
        without arguments that returns a new iterator over batches (X, Y) at every call.
    :param batch_size: The number of rows to take at a time; by default so many that products of
        ``num_inducing`` features run at full speed.
    :param on_invalid: "raise", or "skip" to leave out rows that are not finite.
    :param progress: Whether passes of more than a second show a progress bar.
    :param missing: Whether NaN in Y stands for a value that is missing, and not for a mistake.
    :param callback: Called with the valid rows of each batch of a pass.
    :param columns: The required numbers of columns of X and of Y; None for any.
    :raises ValueError: If the data are of another kind, or have other numbers of columns.
    :ivar columns: The numbers of columns of X and of Y.
    :ivar num_rows: The number of rows, valid or not; None if it is known only after a pass.
    :ivar num_skipped: The number of rows that the last complete pass has left out.
    """

    def __init__(
        self,
        data: Any,
        *,
        batch_size: int | None = None,
        num_inducing: int = 1,
        on_invalid: str = "raise",
        progress: bool = True,
        missing: bool = False,
        callback: Callable[[Array, Array], None] = lambda X, Y: None,
        columns: tuple[int, int] | None = None,
    ) -> None:
        if batch_size is None:
            batch_size = max(256, min(8192, _BATCH_ENTRIES // max(1, num_inducing)))
        self.batch_size = integer("batch_size", batch_size, at_least=1)
        choice("on_invalid", on_invalid, ("raise", "skip"))
        self._skips, self._progress, self._missing = on_invalid == "skip", progress, missing
        self._callback = callback
        self.num_rows: int | None = None
        self.num_skipped = 0
        self._arrays: tuple[Any, Any] | None = None
        self._read: Callable[[], Iterable[Any]] | None = None
        if isinstance(data, tf.data.Dataset):
            self._read, self.columns = data.as_numpy_iterator, _columns_of_dataset(data)
        elif callable(data):
            self._read, self.columns = data, _columns_of_batches(data)
        elif isinstance(data, (tuple, list)) and len(data) == 2:
            X, Y = self._arrays = _checked_arrays(*data)
            self.num_rows, self.columns = int(X.shape[0]), (int(X.shape[1]), int(Y.shape[1]))
        else:
            raise ValueError(f"data: found a {type(data).__name__}; pass {_KINDS}.")
        for name, found, known in zip("XY", self.columns, columns or self.columns, strict=True):
            if found != known:
                raise ValueError(
                    f"data: {name} has {found} columns, the model's has {known}; pass rows of the "
                    "same kind."
                )

    def batches(
        self, boxes: Sequence[Box] = (), name: str = "pass"
    ) -> Iterator[tuple[Array, Array]]:
        """The valid rows (X, Y), at most ``batch_size`` at a time, as they are stored.

        If rows cannot be used, the rest is only read, to name all such rows together.

        :param boxes: Where the rows have to be.
        :param name: What the progress bar calls the pass.
        :raises InvalidRowsError: After all rows: if some are not finite and are not to be skipped,
            or outside of the boxes; these cannot be skipped.
        :raises ValueError: If no row is left, or a pass has read another number of rows before.
        """
        invalid, beyond = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        extent = np.zeros([0, self.columns[0]])
        count, usable = 0, True
        with bar_of_rows(name, self.num_rows, progress=self._progress) as bar:
            for X, Y in self._stored():
                numbers = count + np.arange(len(X))
                count += len(X)
                valid = self._valid(X, Y)
                if not np.all(valid):
                    invalid.append(numbers[~valid])
                    usable = usable and self._skips
                    X, Y, numbers = X[valid], Y[valid], numbers[valid]
                if boxes and len(X):
                    extent = extent_of(np.concatenate([extent, extent_of(X)]))
                    outside = outside_of_any(boxes, X)
                    if np.any(outside):
                        beyond.append(numbers[outside])
                        usable = False
                if usable and len(X):
                    self._callback(X, Y)
                    yield X, Y
                bar.update(len(valid))
        rows, outside_rows = np.concatenate(invalid), np.concatenate(beyond)
        if len(rows) and not self._skips:
            raise InvalidRowsError(
                f"{len(rows)} rows have NaN or infinite numbers: {named(rows)} (counted from zero);"
                f' mend them, or pass on_invalid="skip" to leave them out; {MISSING}.',
                rows,
            )
        if len(outside_rows):
            what, remedy = complaint(boxes, extent, len(outside_rows), count)
            which = f"rows {named(outside_rows)}, counted from zero"
            raise InvalidRowsError(f"{what} ({which}); {remedy}.", outside_rows)
        if count == len(rows):
            raise ValueError(
                f"data: no row is left, {count} were skipped; pass rows with finite numbers."
            )
        if self.num_rows not in (None, count):
            raise ValueError(
                f"data: an earlier pass read {self.num_rows} rows, and this one {count}; pass rows "
                "that are the same whenever they are read (of a random or growing Dataset keep a "
                "copy with .cache()), and build a new model for others."
            )
        self.num_rows, self.num_skipped = count, len(rows)

    def in_memory(self, boxes: Sequence[Box] = ()) -> tuple[Array, Array] | None:
        """All valid rows, if they are arrays; None for data that are read a batch at a time."""
        if self._arrays is None:
            return None
        parts = list(self.batches(boxes))
        return np.concatenate([X for X, _ in parts]), np.concatenate([Y for _, Y in parts])

    def numbered(self, rng: np.random.Generator) -> Iterator[tuple[Array, Array, Array]]:
        """A random number for each valid row, with X and Y, a batch at a time."""
        for X, Y in self._stored():
            valid, numbers = self._valid(X, Y), rng.random(len(X))
            yield numbers[valid], X[valid], Y[valid]

    def _stored(self) -> Iterator[tuple[Array, Array]]:
        """All batches, valid or not, cut to ``batch_size``."""
        size = self.batch_size
        if self._arrays is not None:
            X, Y = self._arrays
            for start in range(0, int(X.shape[0]), size):
                rows = slice(start, start + size)
                yield np.asarray(X[rows]), np.asarray(Y[rows])
            return
        assert self._read is not None
        X, Y = (np.zeros((0, number)) for number in self.columns)
        for batch in self._read():
            new_X, new_Y = _checked_batch(batch, self.columns)
            X, Y = (np.r_[X, new_X], np.r_[Y, new_Y]) if len(X) else (new_X, new_Y)
            while len(X) >= size:
                yield X[:size], Y[:size]
                X, Y = X[size:], Y[size:]
        if len(X):
            yield X, Y

    def _valid(self, X: Array, Y: Array) -> BoolArray:
        """Which rows have finite numbers alone, but for those that may be missing, ``[n]``."""
        of_y = ~np.isinf(Y) if self._missing else np.isfinite(Y)
        valid: BoolArray = np.all(np.isfinite(X), axis=1) & np.all(of_y, axis=1)
        return valid

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows:
        """The same object: rows are never changed, and may not fit into memory twice."""
        return self


def draw_rows(parts: Sequence[Rows], size: int, seed: int) -> tuple[Array, Array]:
    """``size`` finite rows of all parts, drawn without replacement, in their order.

    If there are fewer rows, all are returned. Every row is read once and given a random number, and
    the rows with the smallest numbers are kept.

    :raises ValueError: If no row is finite.
    """
    rng = np.random.default_rng(seed)
    kept: tuple[Array, ...] | None = None
    bound = np.inf
    for batch in (batch for rows in parts for batch in rows.numbered(rng)):
        candidates = batch[0] < bound
        drawn: tuple[Array, ...] = tuple(array[candidates] for array in batch)
        if not len(drawn[0]):
            continue
        if kept is not None:
            drawn = tuple(np.concatenate(pair) for pair in zip(kept, drawn, strict=True))
        smallest = np.sort(np.argsort(drawn[0])[:size])
        kept = tuple(array[smallest] for array in drawn)
        if len(smallest) == size:
            bound = float(np.max(kept[0]))
    if kept is None:
        raise ValueError("data: no row is finite; pass rows with finite numbers.")
    return kept[1], kept[2]


def named(rows: Any) -> str:
    """The first of the rows in words, and how many more there are."""
    named = ", ".join(str(row) for row in rows[:_ROWS_NAMED])
    more = "" if len(rows) <= _ROWS_NAMED else f" and {len(rows) - _ROWS_NAMED} more"
    return f"{named}{more}"


def check_shapes_of_rows(X: Any, Y: Any) -> None:
    """:raises ValueError: If X and Y are not matrices with the same, positive number of rows."""
    for name, array in {"X": X, "Y": Y}.items():
        if len(array.shape) != 2:
            raise ValueError(
                f"data: {name} has shape {tuple(array.shape)}; pass a matrix with one row per "
                f"observation, for one column {name}[:, None]."
            )
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"data: X has {X.shape[0]} rows and Y has {Y.shape[0]}; pass one row of each per "
            "observation."
        )
    if X.shape[0] == 0:
        raise ValueError("data: X and Y have no rows; pass at least one observation.")


def _checked_arrays(X: Any, Y: Any) -> tuple[Any, Any]:
    for name, array in {"X": X, "Y": Y}.items():
        if not hasattr(array, "shape") or not hasattr(array, "__getitem__"):
            raise ValueError(f"data: {name} is a {type(array).__name__}; pass {_KINDS}.")
        check_real_type(f"data: {name}", array)
    check_shapes_of_rows(X, Y)
    return X, Y


def check_dataset(dataset: tf.data.Dataset, *, known: bool) -> None:
    """:raises ValueError: If its elements are not pairs of matrices of numbers.

    :param known: Whether the numbers of their columns must be known.
    """
    specs = dataset.element_spec
    pair = isinstance(specs, tuple) and len(specs) == 2
    pair = pair and all(isinstance(spec, tf.TensorSpec) for spec in specs)
    if pair and known:
        pair = all(spec.shape.rank == 2 and spec.shape[1] is not None for spec in specs)
    if not pair or any(spec.shape.rank not in (None, 2) for spec in specs):
        raise ValueError(
            f"data: the Dataset's elements are {specs}; pass pairs of batches X [B, D] and Y "
            f"[B, P]{' with known D and P' * known}, such as "
            "tf.data.Dataset.from_tensor_slices((X, Y)).batch(B)."
        )
    for name, spec in zip("XY", specs, strict=True):
        check_real_type(f"data: {name} of the Dataset", spec)


def _columns_of_dataset(dataset: tf.data.Dataset) -> tuple[int, int]:
    check_dataset(dataset, known=True)
    specs = dataset.element_spec
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "data: every row is read once, and this Dataset never ends; take away .repeat()."
        )
    return int(specs[0].shape[1]), int(specs[1].shape[1])


def _columns_of_batches(read: Callable[[], Iterable[Any]]) -> tuple[int, int]:
    """The columns of the first batch that a function yields."""
    batches = read()
    if not isinstance(batches, Iterable):
        raise ValueError(
            f"data: the function returned a {type(batches).__name__}; let it return an iterator "
            "over batches (X, Y)."
        )
    first = next(iter(batches), None)
    if first is None:
        raise ValueError("data: the function returned no batch; pass one that returns rows.")
    X, Y = _checked_batch(first, None)
    return X.shape[1], Y.shape[1]


def _checked_batch(batch: Any, columns: tuple[int, int] | None) -> tuple[Array, Array]:
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise ValueError(f"data: a batch is a {type(batch).__name__}; pass batches (X, Y).")
    X, Y = (np.asarray(array) for array in batch)
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y):
        raise ValueError(
            f"data: a batch has X of shape {X.shape} and Y of shape {Y.shape}; pass matrices with "
            "one row of each per observation."
        )
    if columns is not None and (X.shape[1], Y.shape[1]) != columns:
        raise ValueError(
            f"data: a batch has {X.shape[1]} columns of X and {Y.shape[1]} of Y, the first had "
            f"{columns[0]} and {columns[1]}; pass rows of the same kind."
        )
    return X, Y
