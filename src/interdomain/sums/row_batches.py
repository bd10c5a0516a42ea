"""Rows of data that need not fit into memory: arrays, files, datasets and generators of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import gpflow
import numpy as np
import tensorflow as tf

from .._arguments import Array, BoolArray, check_real_type, check_squares, integer, sliceable
from .._progress import bar_of_rows
from .row_weights import check_number_of_weights, check_weights

_BATCH_ENTRIES = 2**22
"""The count of feature values of a batch: 32 MB, enough rows for products at full speed."""

_ROWS_NAMED = 10
_ROWS_IN_SAMPLE = 1_000

MISSING = (
    "of targets with missing values, give interdomain.models.DualSVGP or gpflow.models.SVGP a "
    "likelihood of your own that leaves out NaN, with allow_nan = True"
)
"""The advice in messages about NaN in Y, for the case of missing values."""

_KINDS = (
    "a pair of arrays (X, Y), a tf.data.Dataset of such batches, or a function that returns a new "
    "iterator over such batches at every call"
)

_NAMES = "data: X", "data: Y", "noise_weights"
"""The names of the parts of rows, in messages."""


class RowsInBatches(Protocol):
    """The rows that sums are computed over, in batches.

    :ivar num_rows: The number of rows; None if it is known only after a pass.
    """

    num_rows: int | None

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """The batches: X and Y, and further parts that the sums over the rows need."""

    def in_memory(self) -> tuple[Any, ...] | None:
        """All rows as one batch; None if they are read a batch at a time."""

    def count(self) -> int:
        """The number of rows."""


class Rows:
    """Rows (x, y) in a fixed order, which are read a batch at a time and never changed.

    :param data: (X ``[N, D]``, Y ``[N, P]``) as arrays, memory-mapped arrays or anything of that
        shape that can be sliced; a ``tf.data.Dataset`` of batches (X, Y) that ends; or a function
        without arguments that returns a new iterator over batches (X, Y) at every call.
    :param batch_size: The number of rows to read at a time; by default enough for products of
        ``num_inducing`` features at full speed.
    :param progress: Whether passes of more than a second show a progress bar.
    :param missing: Whether NaN in Y stands for a missing value, and not for a mistake.
    :param weighted: Whether rows may have weights: the data, or their batches, are then (X, Y) or
        (X, Y, w), w being ``[N]`` or ``[N, 1]``.
    :raises ValueError: If the data are of another kind.
    :ivar columns: The numbers of columns of X and of Y.
    :ivar sample: Some rows (X, Y) as stored: of arrays, rows at equal distances; else the first
        rows. Like all batches they may have a third part, the weights ``[n, 1]`` in float64.
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
        weighted: bool = False,
    ) -> None:
        if batch_size is None:
            batch_size = max(256, min(8192, _BATCH_ENTRIES // max(1, num_inducing)))
        self.batch_size = integer("batch_size", batch_size, at_least=1)
        self._progress, self._missing = progress, missing
        self.num_rows: int | None = None
        self._lengths = (2, 3) if weighted else (2,)
        self._arrays: tuple[Any, ...] | None = None
        self._read: Callable[[], Iterable[Any]] = list
        if isinstance(data, (tuple, list)) and len(data) in self._lengths:
            self._arrays = _checked_arrays(data)
            X = self._arrays[0]
            self.num_rows = int(X.shape[0])
            few = slice(0, _ROWS_IN_SAMPLE)  # remote arrays may support no other slices
            if isinstance(X, np.ndarray):
                few = slice(None, None, -(-self.num_rows // _ROWS_IN_SAMPLE))
            self.sample = _batch_of(part[few] for part in self._arrays)
        elif isinstance(data, tf.data.Dataset) or callable(data):
            self._read = data
            if isinstance(data, tf.data.Dataset):
                check_dataset(data, self._lengths)
                if data.cardinality() == tf.data.INFINITE_CARDINALITY:
                    raise ValueError("data: this Dataset never ends; take away .repeat().")
                self._read = data.as_numpy_iterator
            first = next(iter(self._read()), None)
            if first is None:
                raise ValueError("data: there is no batch; pass data with rows.")
            self.sample = self._checked_batch(first)
        else:
            raise ValueError(f"data: found a {type(data).__name__}; pass {_KINDS}.")
        self.columns = int(self.sample[0].shape[1]), int(self.sample[1].shape[1])

    def batches(self, name: str = "pass") -> Iterator[tuple[Array, ...]]:
        """The rows (X, Y), at most ``batch_size`` at a time, as they are stored.

        :param name: The name of the pass in the progress bar.
        :raises ValueError: For rows that are not finite, for weights that are not positive and
            finite, or if an earlier pass read another number of rows.
        """
        count = 0
        with bar_of_rows(name, self.num_rows, progress=self._progress) as bar:
            for X, Y, *weights in self._stored():
                finite = self.finite(X, Y)
                if not np.all(finite):
                    raise ValueError(
                        f"data: {not_finite(count + np.flatnonzero(~finite))}; mend them, or leave "
                        f"such rows out; {MISSING}."
                    )
                check_squares("data: X", X, gpflow.default_float())
                check_weights(*weights, first=count)
                count += len(X)
                yield X, Y, *weights
                bar.update(len(X))
        if self.num_rows not in (None, count):
            raise ValueError(
                f"data: an earlier pass read {self.num_rows} rows, and this one {count}; pass rows "
                "that are the same whenever they are read (of a random or growing Dataset keep a "
                "copy with .cache()), and build a new model for others."
            )
        self.num_rows = count

    def count(self) -> int:
        """The number of rows; if it is not known yet, a pass counts the rows."""
        if self.num_rows is None:
            for _ in self.batches():
                pass
        return self.num_rows or 0

    def in_memory(self) -> tuple[Array, ...] | None:
        """A copy of all rows, if they are arrays; None for data that are read a batch at a time."""
        if self._arrays is None:
            return None
        return tuple(map(np.concatenate, zip(*self.batches(), strict=True)))

    def draw(self, size: int, seed: int) -> tuple[Array, ...]:
        """``size`` rows, drawn without replacement, in their order, or all rows if there are fewer.

        Every row is read once and gets a random number. Rows with the smallest numbers are drawn.
        """
        rng = np.random.default_rng(seed)
        kept: tuple[Array, ...] = (np.zeros(0), *(part[:0] for part in self.sample))
        bound = np.inf
        for batch in self.batches():
            numbers = rng.random(len(batch[0]))
            candidates = numbers < bound
            drawn = (part[candidates] for part in (numbers, *batch))
            kept = tuple(np.concatenate(pair) for pair in zip(kept, drawn, strict=True))
            smallest = np.sort(np.argsort(kept[0])[:size])
            kept = tuple(part[smallest] for part in kept)
            if len(smallest) == size:
                bound = float(np.max(kept[0]))
        return kept[1:]

    def finite(self, X: Array, Y: Array) -> BoolArray:
        """Whether each row is finite, except for values that may be missing, ``[n]``."""
        valid_targets = ~np.isinf(Y) if self._missing else np.isfinite(Y)
        finite: BoolArray = np.all(np.isfinite(X), axis=1) & np.all(valid_targets, axis=1)
        return finite

    def _stored(self) -> Iterator[tuple[Array, ...]]:
        """All batches, valid or not, cut to ``batch_size``."""
        size = self.batch_size
        if self._arrays is not None:
            for start in range(0, int(self._arrays[0].shape[0]), size):
                yield _batch_of(part[start : start + size] for part in self._arrays)
            return
        rest = tuple(part[:0] for part in self.sample)
        for batch in self._read():
            new = self._checked_batch(batch, self.sample)
            pairs = zip(rest, new, strict=True)
            rest = tuple(map(np.concatenate, pairs)) if len(rest[0]) else new
            while len(rest[0]) >= size:
                yield tuple(part[:size] for part in rest)
                rest = tuple(part[size:] for part in rest)
        if len(rest[0]):
            yield rest

    def _checked_batch(self, batch: Any, first: tuple[Array, ...] = ()) -> tuple[Array, ...]:
        """A batch as arrays, with as many columns as the first one."""
        if len(batch) not in self._lengths:
            what = "(X, Y), or (X, Y, w) with weights" if 3 in self._lengths else "(X, Y)"
            raise ValueError(f"data: a batch has {len(batch)} parts; pass batches {what}.")
        parts = tuple(map(np.asarray, numbers_of(batch)))
        if len(parts[0]) or len(parts[1]):
            _check_shapes(*parts)
        columns, known = ([part.shape[1] for part in rows[:2]] for rows in (parts, first or parts))
        if columns != known or len(parts) != len(first or parts):
            weights = ", and weights" if len(first) > 2 else ""
            raise ValueError(
                f"data: a batch has {columns[0]} columns of X and {columns[1]} of Y, the first had "
                f"{known[0]} and {known[1]}{weights}; pass rows of the same kind."
            )
        return _batch_of(parts)

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows:
        """This object itself: rows are never changed, and may not fit into memory twice."""
        return self


def not_finite(rows: Any) -> str:
    """A message that rows are not finite, which names the first of them."""
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


def _checked_arrays(parts: Sequence[Any]) -> tuple[Any, ...]:
    """X, Y and the weights, if there are any, as rows that can be sliced."""
    for name, array in zip("XY", parts, strict=False):
        if not hasattr(array, "shape") or not hasattr(array, "__getitem__"):
            raise ValueError(f"data: {name} is a {type(array).__name__}; pass {_KINDS}.")
    arrays = tuple(numbers_of(parts))
    _check_shapes(*arrays)
    return arrays


def _check_shapes(X: Any, Y: Any, *weights: Any) -> None:
    check_shapes_of_rows(X, Y)
    for array in weights:
        check_number_of_weights(array, int(X.shape[0]))


def _batch_of(parts: Iterable[Any]) -> tuple[Array, ...]:
    """A batch as arrays, with weights as ``[n, 1]`` in float64."""
    X, Y, *weights = map(np.asarray, numbers_of(list(parts)))
    return X, Y, *(array.astype(np.float64).reshape(-1, 1) for array in weights)


def numbers_of(parts: Sequence[Any]) -> list[Any]:
    """X, Y and further parts of data as rows that can be sliced; rows in a file stay there.

    :raises ValueError: If a part is anything but real numbers, or has masked entries.
    """
    named = zip(_NAMES[: len(parts)], parts, strict=True)
    return [sliceable(name, part, "rows") for name, part in named]


def check_dataset(dataset: tf.data.Dataset, lengths: Sequence[int] = (2,)) -> None:
    """:raises ValueError: If the elements are not pairs of matrices of numbers.

    :param lengths: The allowed numbers of parts of an element; the third part is the weights.
    """
    specs = dataset.element_spec
    parts = specs if isinstance(specs, tuple) and len(specs) in lengths else ()
    matrices = [
        isinstance(spec, tf.TensorSpec) and spec.shape.rank in (None, 2, *vectors)
        for spec, vectors in zip(parts, [(), (), (1,)], strict=False)
    ]
    if not (parts and all(matrices)):
        raise ValueError(
            f"data: the Dataset's elements are {specs}; pass pairs of batches X [B, D] and Y "
            "[B, P], such as tf.data.Dataset.from_tensor_slices((X, Y)).batch(B)."
        )
    for name, spec in zip(_NAMES, specs, strict=False):
        check_real_type(f"{name} of the Dataset", spec)
