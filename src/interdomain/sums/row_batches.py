"""Rows of data that need not fit into memory: arrays, files, datasets and generators of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import gpflow
import numpy as np
import tensorflow as tf

from .._arguments import Array, BoolArray, check_real_type, check_squares, integer, sliceable
from .._progress import bar_of_rows

_BATCH_ENTRIES = 2**22
"""Numbers in the features of a batch: 32 MB, enough rows for products at full speed."""

_ROWS_NAMED = 10
_ROWS_IN_SAMPLE = 1_000

MISSING = (
    "of targets with missing values, give interdomain.models.DualSVGP or gpflow.models.SVGP a "
    "likelihood of your own that leaves out NaN, with allow_nan = True"
)
"""What to do where NaN in Y is no mistake."""

_KINDS = (
    "a pair of arrays (X, Y), a tf.data.Dataset of such batches, or a function that returns a new "
    "iterator over such batches at every call"
)


class RowsInBatches(Protocol):
    """What sums over rows are taken of.

    :ivar num_rows: The number of rows; None if it is known only after a pass.
    """

    num_rows: int | None

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """X and Y of a batch, and whatever else the features of its rows need."""

    def in_memory(self) -> tuple[Any, ...] | None:
        """All of them as one batch; None if they are read a batch at a time."""

    def count(self) -> int:
        """The number of rows."""


class Rows:
    """Rows (x, y) in a fixed order, which are read a batch at a time and never changed.

    :param data: (X ``[N, D]``, Y ``[N, P]``) as arrays, memory-mapped arrays or anything of that
        shape that can be sliced; a ``tf.data.Dataset`` of batches (X, Y) that ends; or a function
        without arguments that returns a new iterator over batches (X, Y) at every call.
    :param batch_size: The number of rows to take at a time; by default so many that products of
        ``num_inducing`` features run at full speed.
    :param progress: Whether passes of more than a second show a progress bar.
    :param missing: Whether NaN in Y stands for a value that is missing, and not for a mistake.
    :raises ValueError: If the data are of another kind.
    :ivar columns: The numbers of columns of X and of Y.
    :ivar sample: Some rows (X, Y), as they are: of arrays from everywhere, else the first ones.
    :ivar num_rows: The number of rows; None if it is known only after a pass.
    """

    def __init__(
        self,
        data: Any,
        *,
        batch_size: int | None = None,
        num_inducing: int = 1,
        progress: bool = True,
        missing: bool = False,
    ) -> None:
        if batch_size is None:
            batch_size = max(256, min(8192, _BATCH_ENTRIES // max(1, num_inducing)))
        self.batch_size = integer("batch_size", batch_size, at_least=1)
        self._progress, self._missing = progress, missing
        self.num_rows: int | None = None
        self._arrays: tuple[Any, Any] | None = None
        self._read: Callable[[], Iterable[Any]] = list
        if isinstance(data, (tuple, list)) and len(data) == 2:
            X, Y = self._arrays = _checked_arrays(*data)
            self.num_rows = int(X.shape[0])
            few = slice(0, _ROWS_IN_SAMPLE)  # what is read from afar may know no other slices
            if isinstance(X, np.ndarray):
                few = slice(None, None, -(-self.num_rows // _ROWS_IN_SAMPLE))
            few_rows = numbers_of((X[few], Y[few]))
            self.sample = np.asarray(few_rows[0]), np.asarray(few_rows[1])
        elif isinstance(data, tf.data.Dataset) or callable(data):
            self._read = data
            if isinstance(data, tf.data.Dataset):
                check_dataset(data)
                if data.cardinality() == tf.data.INFINITE_CARDINALITY:
                    raise ValueError("data: this Dataset never ends; take away .repeat().")
                self._read = data.as_numpy_iterator
            first = next(iter(self._read()), None)
            if first is None:
                raise ValueError("data: there is no batch; pass data with rows.")
            self.sample = _checked_batch(first, None)
        else:
            raise ValueError(f"data: found a {type(data).__name__}; pass {_KINDS}.")
        self.columns = int(self.sample[0].shape[1]), int(self.sample[1].shape[1])

    def batches(self, name: str = "pass") -> Iterator[tuple[Array, Array]]:
        """The rows (X, Y), at most ``batch_size`` at a time, as they are stored.

        :param name: What the progress bar calls the pass.
        :raises ValueError: For rows that are not finite, or if a pass has read another number of
            rows before.
        """
        count = 0
        with bar_of_rows(name, self.num_rows, progress=self._progress) as bar:
            for X, Y in self._stored():
                finite = self.finite(X, Y)
                if not np.all(finite):
                    raise ValueError(
                        f"data: {not_finite(count + np.flatnonzero(~finite))}; mend them, or leave "
                        f"such rows out; {MISSING}."
                    )
                check_squares("data: X", X, gpflow.default_float())
                count += len(X)
                yield X, Y
                bar.update(len(X))
        if self.num_rows not in (None, count):
            raise ValueError(
                f"data: an earlier pass read {self.num_rows} rows, and this one {count}; pass rows "
                "that are the same whenever they are read (of a random or growing Dataset keep a "
                "copy with .cache()), and build a new model for others."
            )
        self.num_rows = count

    def count(self) -> int:
        """The number of rows; where it is not known before the first pass, this is one."""
        if self.num_rows is None:
            for _ in self.batches():
                pass
        return self.num_rows or 0

    def in_memory(self) -> tuple[Array, Array] | None:
        """A copy of all rows, if they are arrays; None for data that are read a batch at a time."""
        if self._arrays is None:
            return None
        parts = list(self.batches())
        return np.concatenate([X for X, _ in parts]), np.concatenate([Y for _, Y in parts])

    def draw(self, size: int, seed: int) -> tuple[Array, Array]:
        """``size`` rows, drawn without replacement, in their order; all, if there are fewer.

        Every row is read once and given a random number, and the smallest of these are kept.
        """
        rng = np.random.default_rng(seed)
        kept: tuple[Array, ...] = (np.zeros(0), *(part[:0] for part in self.sample))
        bound = np.inf
        for X, Y in self.batches():
            numbers = rng.random(len(X))
            candidates = numbers < bound
            drawn = (part[candidates] for part in (numbers, X, Y))
            kept = tuple(np.concatenate(pair) for pair in zip(kept, drawn, strict=True))
            smallest = np.sort(np.argsort(kept[0])[:size])
            kept = tuple(part[smallest] for part in kept)
            if len(smallest) == size:
                bound = float(np.max(kept[0]))
        return kept[1], kept[2]

    def finite(self, X: Array, Y: Array) -> BoolArray:
        """Which rows have finite numbers alone, but for those that may be missing, ``[n]``."""
        of_y = ~np.isinf(Y) if self._missing else np.isfinite(Y)
        finite: BoolArray = np.all(np.isfinite(X), axis=1) & np.all(of_y, axis=1)
        return finite

    def _stored(self) -> Iterator[tuple[Array, Array]]:
        """All batches, valid or not, cut to ``batch_size``."""
        size = self.batch_size
        if self._arrays is not None:
            X, Y = self._arrays
            for start in range(0, int(X.shape[0]), size):
                rows = slice(start, start + size)
                batch = numbers_of((X[rows], Y[rows]))
                yield np.asarray(batch[0]), np.asarray(batch[1])
            return
        X, Y = (np.zeros((0, number)) for number in self.columns)
        for batch in self._read():
            new_X, new_Y = _checked_batch(batch, self.columns)
            X, Y = (np.r_[X, new_X], np.r_[Y, new_Y]) if len(X) else (new_X, new_Y)
            while len(X) >= size:
                yield X[:size], Y[:size]
                X, Y = X[size:], Y[size:]
        if len(X):
            yield X, Y

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows:
        """The same object: rows are never changed, and may not fit into memory twice."""
        return self


def not_finite(rows: Any) -> str:
    """That these rows are not finite, of which the first are named."""
    named = ", ".join(str(row) for row in rows[:_ROWS_NAMED])
    more = f" and {len(rows) - _ROWS_NAMED} more" * (len(rows) > _ROWS_NAMED)
    return f"{len(rows)} rows have NaN or infinite numbers: {named}{more} (counted from zero)"


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
    for name, array in {"X": X, "Y": Y}.items():
        if array.shape[1] == 0:
            raise ValueError(f"data: {name} has no columns; pass at least one.")


def _checked_arrays(X: Any, Y: Any) -> tuple[Any, Any]:
    for name, array in {"X": X, "Y": Y}.items():
        if not hasattr(array, "shape") or not hasattr(array, "__getitem__"):
            raise ValueError(f"data: {name} is a {type(array).__name__}; pass {_KINDS}.")
    X, Y = numbers_of((X, Y))
    check_shapes_of_rows(X, Y)
    return X, Y


def numbers_of(pair: Sequence[Any]) -> list[Any]:
    """X and Y of data as rows that can be sliced; those in a file stay there.

    :raises ValueError: If they are anything but real numbers, or have masked entries.
    """
    named = zip("XY", pair, strict=True)
    return [sliceable(f"data: {name}", part, "rows") for name, part in named]


def check_dataset(dataset: tf.data.Dataset) -> None:
    """:raises ValueError: If its elements are not pairs of matrices of numbers."""
    specs = dataset.element_spec
    matrices = [
        isinstance(s, tf.TensorSpec) and s.shape.rank in (None, 2) for s in tf.nest.flatten(specs)
    ]
    if not isinstance(specs, tuple) or matrices != [True, True]:
        raise ValueError(
            f"data: the Dataset's elements are {specs}; pass pairs of batches X [B, D] and Y "
            "[B, P], such as tf.data.Dataset.from_tensor_slices((X, Y)).batch(B)."
        )
    for name, spec in zip("XY", specs, strict=True):
        check_real_type(f"data: {name} of the Dataset", spec)


def _checked_batch(batch: Any, columns: tuple[int, int] | None) -> tuple[Array, Array]:
    X, Y = map(np.asarray, numbers_of(batch))
    if len(X) or len(Y):
        check_shapes_of_rows(X, Y)
    if columns is not None and (X.shape[1], Y.shape[1]) != columns:
        raise ValueError(
            f"data: a batch has {X.shape[1]} columns of X and {Y.shape[1]} of Y, the first had "
            f"{columns[0]} and {columns[1]}; pass rows of the same kind."
        )
    return X, Y
