"""Rows of data that need not fit into memory: arrays, memory-mapped arrays and datasets."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from .._tracing import map_dataset
from ..sphere._typing import Array
from .first_pass import FirstPass, counted, no_rows

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

WHOLE = "data"
"""The name of data in one piece, in messages."""

_BATCH_ENTRIES = 2**22
"""Numbers in the features of a batch: 32 MB, enough rows for products at full speed."""


class RowSource(abc.ABC):
    """Rows (x, y) in a fixed order, a batch at a time.

    :ivar num_columns: The number of columns of X.
    :ivar num_outputs: The number of columns of Y.
    :ivar num_rows: The number of rows, valid or not; None if it is known only after a pass.
    :ivar batch_size: The number of rows of a batch; the last batch may have fewer.
    :ivar what: The name of the data in messages.
    :ivar missing: Whether NaN in Y stands for a value that is missing, and not for a mistake.
    :ivar first_pass: The fingerprint of the first pass, with which all others are compared.
    """

    num_columns: int
    num_outputs: int
    num_rows: int | None
    batch_size: int

    def __init__(self) -> None:
        self.what, self.missing = WHOLE, False
        self.first_pass = FirstPass()

    @abc.abstractmethod
    def batches(self) -> Iterator[tuple[Array, Array]]:
        """The batches (X, Y) in order, as they are stored."""

    def read(self) -> Iterator[tuple[Array, Array]]:
        """The batches, as :meth:`batches`; an error names the part of the data in which it occurs.

        :raises RuntimeError: In place of any error that reading a part raises.
        """
        batches, num_rows = self.batches(), 0
        while True:
            with errors_named(self.what, f"reading it failed after {num_rows} rows"):
                batch = next(batches, None)
            if batch is None:
                return
            num_rows += len(batch[0])
            yield batch

    @abc.abstractmethod
    def dataset(self) -> tf.data.Dataset:
        """The batches in ``gpflow.default_float()``, without rows that are not finite."""

    def valid(self, X: Array, Y: Array) -> BoolArray:
        """For each row, whether all of its numbers are finite or may be missing, ``[N]``."""
        of_y = ~np.isinf(Y) if self.missing else np.isfinite(Y)
        valid: BoolArray = np.all(np.isfinite(X), axis=1) & np.all(of_y, axis=1)
        return valid

    def describe(self) -> dict[str, int | None]:
        """What must be the same for a pass to continue an interrupted one."""
        return {
            "rows": self.num_rows,
            "columns": self.num_columns,
            "outputs": self.num_outputs,
            "batch_size": self.batch_size,
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> RowSource:
        """The rows are never changed, and may not fit into memory twice."""
        return self


class ArraySource(RowSource):
    """Arrays, memory-mapped arrays, or anything with a shape whose rows can be sliced.

    :raises ValueError: If X and Y are not matrices with the same number of rows.
    """

    def __init__(self, X: Any, Y: Any, batch_size: int) -> None:
        super().__init__()
        for name, array in {"X": X, "Y": Y}.items():
            if not hasattr(array, "shape") or not hasattr(array, "__getitem__"):
                raise ValueError(
                    f"data: {name} is a {type(array).__name__}; pass an array, a memory-mapped "
                    "array, or a tf.data.Dataset of batches (X, Y)."
                )
        check_shapes_of_rows(X, Y)
        self._X, self._Y = X, Y
        self.num_rows: int
        self.num_rows, self.num_columns = (int(size) for size in X.shape)
        self.num_outputs = int(Y.shape[1])
        self.batch_size = min(batch_size, self.num_rows)

    def batches(self) -> Iterator[tuple[Array, Array]]:
        assert self.num_rows is not None
        for start in range(0, self.num_rows, self.batch_size):
            yield self._read(start)

    def _read(self, start: int) -> tuple[Array, Array]:
        rows = slice(start, start + self.batch_size)
        return np.asarray(self._X[rows]), np.asarray(self._Y[rows])

    def dataset(self) -> tf.data.Dataset:
        dtype = gpflow.default_float()

        def read(start: Array) -> tuple[Array, Array]:
            X, Y = self._read(int(start))
            valid = self.valid(X, Y)
            if not np.all(valid):
                X, Y = X[valid], Y[valid]
            return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)

        def read_in_graph(start: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            X, Y = tf.numpy_function(read, [start], [dtype, dtype], stateful=False)
            return (
                tf.ensure_shape(X, [None, self.num_columns]),
                tf.ensure_shape(Y, [None, self.num_outputs]),
            )

        starts = tf.data.Dataset.range(0, self.num_rows, self.batch_size)
        return map_dataset(starts, read_in_graph).prefetch(1)


class DatasetSource(RowSource):
    """A ``tf.data.Dataset`` of batches (X, Y), cut again into batches of one size.

    :raises ValueError: If the elements are not pairs of matrices with known numbers of columns, or
        the dataset never ends.
    """

    def __init__(self, dataset: tf.data.Dataset, batch_size: int) -> None:
        super().__init__()
        specs = dataset.element_spec
        if not (
            isinstance(specs, tuple)
            and len(specs) == 2
            and all(isinstance(spec, tf.TensorSpec) for spec in specs)
            and all(spec.shape.rank == 2 and spec.shape[1] is not None for spec in specs)
        ):
            raise ValueError(
                f"data: the Dataset's elements are {specs}; pass a Dataset of batches (X [B, D], "
                "Y [B, P]) with known D and P, such as "
                "tf.data.Dataset.from_tensor_slices((X, Y)).batch(B)."
            )
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise ValueError(
                "data: every row is read once, and this Dataset never ends; take away .repeat()."
            )
        self.num_columns, self.num_outputs = (int(spec.shape[1]) for spec in specs)
        self.num_rows = None
        self.batch_size = batch_size
        self._dataset = dataset.rebatch(batch_size)

    def batches(self) -> Iterator[tuple[Array, Array]]:
        yield from self._dataset.as_numpy_iterator()

    def dataset(self) -> tf.data.Dataset:
        dtype = gpflow.default_float()

        def valid_rows(X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            X, Y = tf.cast(X, dtype), tf.cast(Y, dtype)
            values = tf.concat([X, Y], axis=1)
            valid = tf.reduce_all(tf.math.is_finite(values), axis=1)
            return tf.boolean_mask(X, valid), tf.boolean_mask(Y, valid)

        return map_dataset(self._dataset, valid_rows).prefetch(1)


@contextmanager
def errors_named(what: str, circumstances: str) -> Iterator[None]:
    """Name the part of the data in which an error occurs.

    :raises RuntimeError: In place of any error in a part of the data."""
    try:
        yield
    except Exception as error:
        if what == WHOLE:
            raise
        text = error.message if isinstance(error, tf.errors.OpError) else str(error)
        reason = (text.strip().splitlines() or [""])[0].split("}} ")[-1]
        raise RuntimeError(
            f"{what}: {circumstances} ({type(error).__name__}: {reason}); mend this part. Other "
            "parts that were done need not be done again if there is a checkpoint_path."
        ) from error


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


def draw_rows(
    sources: Iterable[RowSource], size: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """``size`` rows of all sources, drawn at random without replacement, in their order.

    If there are fewer rows, all are returned; rows that are not finite are left out. Every row is
    read once and given a random number, and the rows with the smallest numbers are kept.

    :return: The rows' random numbers, X and Y; empty arrays if no row is finite.
    :raises ValueError: If a source returns other rows than at its first pass.
    """
    kept: tuple[Array, ...] | None = None
    bound = np.inf
    for X, Y, valid in (batch for source in sources for batch in compared(source)):
        numbers = rng.random(len(X))
        candidates = valid & (numbers < bound)
        drawn: tuple[Array, ...] = (numbers[candidates], X[candidates], Y[candidates])
        if kept is None:
            kept = tuple(part[:0] for part in drawn)
        if not len(drawn[0]):
            continue
        drawn = tuple(np.concatenate(pair) for pair in zip(kept, drawn, strict=True))
        smallest = np.sort(np.argsort(drawn[0])[:size])
        kept = tuple(part[smallest] for part in drawn)
        if len(smallest) == size:
            bound = float(np.max(kept[0]))
    if kept is None:
        return np.empty(0), np.empty((0, 0)), np.empty((0, 0))
    return kept[0], kept[1], kept[2]


def compared(source: RowSource) -> Iterator[tuple[Array, Array, BoolArray]]:
    """The batches, and which of their rows are finite; compared with the first pass at the end."""
    tally = no_rows()
    for X, Y in source.read():
        valid = source.valid(X, Y)
        tally = counted(tally, X[valid], Y[valid])
        yield X, Y, valid
    source.first_pass.check(source.what, tally)


def resolve_batch_size(batch_size: int | None, num_inducing: int) -> int:
    """The number of rows to read at a time; None chooses a fast number.

    :raises ValueError: If ``batch_size`` is not a positive integer or None.
    """
    if batch_size is None:
        return max(256, min(8192, _BATCH_ENTRIES // max(1, num_inducing)))
    if isinstance(batch_size, bool) or int(batch_size) != batch_size or batch_size < 1:
        raise ValueError(
            f"batch_size: found {batch_size!r}; pass an integer of at least 1, or None."
        )
    return int(batch_size)


def make_source(data: Any, batch_size: int) -> RowSource:
    """
    :param data: (X ``[N, D]``, Y ``[N, P]``) or a ``tf.data.Dataset`` of such batches.
    :param batch_size: The number of rows to read at a time.
    :raises ValueError: If the data are of another type.
    """
    if isinstance(data, tf.data.Dataset):
        return DatasetSource(data, batch_size)
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ValueError(
            f"data: found a {type(data).__name__}; pass a pair of arrays (X, Y) or a "
            "tf.data.Dataset of such batches."
        )
    X, Y = data
    return ArraySource(X, Y, batch_size)
