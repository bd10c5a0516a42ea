"""Rows with one or several functionals; with several, the last column holds the number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.functions import Constant, Linear, MeanFunction, Zero

from .._arguments import Array, IntArray, instance, refusal, short
from .columns import as_rows
from .functionals import LinearFunctional, Places
from .slopes import Function


class FunctionalRows:
    """The functionals of rows, and the columns of X that hold places, widths and numbers.

    :param functionals: One functional, or a list. With several, the last column of a row holds the
        number of its functional, from 0. With one there is no such column.
    :param active_dims: The columns of X to use; all by default.
    :raises ValueError: If there is no functional, or an entry is not a functional.
    """

    def __init__(self, functionals: Any, active_dims: Any = slice(None)) -> None:
        listed = [functionals] if isinstance(functionals, LinearFunctional) else list(functionals)
        if not listed:
            remedy = "pass for example [Value(), Derivative(0)]"
            raise refusal("functionals", "have an entry", "none", remedy)
        remedy = "pass functionals of interdomain.functionals"
        for part in listed:
            instance("functionals", part, LinearFunctional, "linear functionals", remedy)
        self.functionals: tuple[LinearFunctional, ...] = tuple(listed)
        self.active_dims = active_dims

    @property
    def has_numbers(self) -> bool:
        """Whether the last column of rows holds the number of the functional."""
        return len(self.functionals) > 1

    @property
    def num_added(self) -> int:
        """The number of columns that are no inputs of the prior."""
        return len(self._width_columns) + self.has_numbers

    @property
    def _width_columns(self) -> set[int]:
        return {column for part in self.functionals for column in part.width_columns}

    def input_columns(self, width: int) -> IntArray:
        """The columns that are inputs of the prior, among ``width`` active columns of X.

        :raises ValueError: If the functionals do not fit the number of columns.
        """
        count, widths = width - self.has_numbers, self._width_columns
        if count <= max(widths, default=0):
            rule = f"have columns for the widths in {sorted(widths)}" if widths else "have inputs"
            last = ", and a last column with the number of the functional" * self.has_numbers
            raise refusal("X", rule + last, f"{width} columns", "pass X with all columns")
        columns = np.array([column for column in range(count) if column not in widths])
        for part in self.functionals:
            part.check(len(columns))
        return columns

    def added(self, width: int) -> IntArray:
        """The columns of widths among ``width`` columns of :class:`.Places`."""
        return np.setdiff1d(np.arange(width), self.input_columns(width + self.has_numbers))

    def seen_inputs(self, num_columns: int) -> IntArray:
        """The inputs of the prior by their columns of X, ``[D]``."""
        seen = np.arange(num_columns)[self.active_dims]
        inputs: IntArray = seen[self.input_columns(len(seen))]
        return inputs

    def split(self, X: TensorType) -> tuple[Places, tf.Tensor | None]:
        """The places of rows ``[n, ...]``, and the numbers of their functionals, ``[n]``; None for
        one functional."""
        X, dims = tf.convert_to_tensor(X), self.active_dims
        if not isinstance(dims, slice):
            X = tf.gather(X, dims, axis=1)
        elif dims != slice(None):
            X = X[:, dims]
        inputs = self.input_columns(int(X.shape[1]))
        count = int(X.shape[1]) - self.has_numbers
        columns = X[:, :count] if self.has_numbers else X
        seen = columns if len(inputs) == count else tf.gather(columns, inputs, axis=1)
        return Places(seen, columns), X[:, -1] if self.has_numbers else None

    def by_kind(self, X: TensorType, function: Callable[[int, Places], tf.Tensor]) -> tf.Tensor:
        """The values of a function at rows, computed for the rows of each functional together.

        :param X: ``[n, ...]``.
        :param function: Maps the number of a functional, and the places of its rows, to values
            ``[m, C]``.
        :raises ValueError: If a row has another number; in a graph, an InvalidArgumentError.
        """
        places, numbers = self.split(X)
        if numbers is None:
            return function(0, places)
        kinds = list(range(len(self.functionals)))
        rows = [tf.where(tf.equal(numbers, tf.cast(k, numbers.dtype)))[:, 0] for k in kinds]
        count = tf.add_n([tf.size(part) for part in rows])
        rule = f"hold the number of a functional, 0 to {len(kinds) - 1}, in the last column"
        if not tf.executing_eagerly():
            message = f"X: rows must {rule}"
            check = tf.debugging.assert_equal(count, tf.size(numbers), message)
            with tf.control_dependencies([check]):
                rows[0] = tf.identity(rows[0])
        elif int(count) < int(tf.size(numbers)):
            wrong = set(numbers.numpy().tolist()) - set(kinds)
            raise refusal("X", rule, short(sorted(wrong)[0]), "correct the rows")
        else:  # other functionals have no rows
            kinds = [k for k in kinds if len(rows[k])] or [0]
        values = [function(k, places.at(rows[k])) for k in kinds]
        indices = [tf.cast(rows[k], tf.int32) for k in kinds]
        stitched = tf.dynamic_stitch(indices, values)
        return tf.ensure_shape(stitched, [numbers.shape[0], *values[0].shape[1:]])

    def act(self, function: Function, X: TensorType, size: int) -> tf.Tensor:
        """The functional of each row, applied to a function of inputs with ``size`` values."""
        return self.by_kind(X, lambda k, at: self.functionals[k].act(function, at, size))

    def of_ones(self, X: TensorType) -> tf.Tensor:
        """The functional of each row, applied to the constant one, ``[n, 1]``."""
        return self.by_kind(X, lambda k, places: self.functionals[k].of_ones(places))

    def kinds(self, X: Array) -> list[IntArray]:
        """The rows of each functional, by their places in X ``[n, ...]``, an array.

        :raises ValueError: If a row has the number of no functional.
        """
        if not self.has_numbers:
            return [np.arange(len(X))]
        numbers = X[:, self.active_dims][:, -1]
        known = range(len(self.functionals))
        if np.any(wrong := ~np.isin(numbers, known)):
            rule = f"hold the number of a functional, 0 to {len(known) - 1}, in the last column"
            raise refusal("X", rule, short(numbers[wrong][0]), "correct the rows")
        return [np.flatnonzero(numbers == number) for number in known]

    def arrays(self, X: Array) -> tuple[Array, Array]:
        """The inputs and the columns of :class:`.Places` as arrays."""
        seen = X[:, self.active_dims]
        columns = seen[:, : seen.shape[1] - self.has_numbers]
        return columns[:, self.input_columns(seen.shape[1])], columns

    def validate(self, name: str, X: Array) -> None:
        """Check rows ``[n, ...]``; a ValueError otherwise."""
        for part, rows in zip(self.functionals, self.kinds(X), strict=True):
            part.validate(name, *self.arrays(X[rows]))

    def needed(self, X: Array, *, centres: bool = False) -> list[tuple[IntArray, Array]]:
        """The places ``[m, D]`` that must be in the domains of features, each with the m rows that
        need them.

        :param centres: Whether f continues outside, so that only the rows must be inside.
        """
        kinds = zip(self.functionals, self.kinds(X), strict=True)
        return [
            (rows, places)
            for part, rows in kinds
            if len(rows)
            for places in part.needed(*self.arrays(X[rows]), centres=centres)
        ]

    def places(self, X: Array) -> Array:
        """Inputs of the prior that the rows concern, ``[m, D]``, such as the points of regions."""
        kinds = zip(self.functionals, self.kinds(X), strict=True)
        return np.concatenate([part.concerned(self.arrays(X[rows])[0]) for part, rows in kinds])

    def settings(self) -> dict[str, Any]:
        """The settings by name, for descriptions of features."""
        parts = [part.settings() for part in self.functionals]
        return {"functionals": parts, "active_dims": self.active_dims}


class ActedMean(MeanFunction):
    """A mean function on which the functional of each row acts: the slope of a constant is zero.

    :param mean_function: A function of the inputs of the prior.
    :param rows: The functionals.
    """

    def __init__(self, mean_function: MeanFunction, rows: FunctionalRows) -> None:
        super().__init__()
        self.mean_function, self.rows = mean_function, rows

    @inherit_check_shapes
    def __call__(self, X: TensorType) -> tf.Tensor:
        X = tf.convert_to_tensor(X)
        flat, mean = as_rows(X), self.mean_function
        if type(mean) in (Zero, Constant):
            somewhere = tf.zeros([1, 1], gpflow.default_float())
            values = self.rows.of_ones(flat) * mean(somewhere)
        elif type(mean) is Linear:
            columns = columns_of_mean(self.rows, flat, linear=True)
            values = tf.matmul(columns[:, :-1], mean.A) + columns[:, -1:] * mean.b
        else:
            none = tf.zeros([0, len(self.rows.seen_inputs(int(flat.shape[1])))], flat.dtype)
            values = self.rows.act(mean, flat, int(mean(none).shape[-1]))
        return tf.reshape(values, tf.concat([tf.shape(X)[:-1], tf.shape(values)[-1:]], axis=0))


def columns_of_mean(rows: FunctionalRows, X: tf.Tensor, *, linear: bool) -> tf.Tensor:
    """The functionals of the columns of a mean function, ``[n, H]``: of the inputs, if it is
    linear, then of ones."""
    if not linear:
        return rows.of_ones(X)

    def both(number: int, places: Places) -> tf.Tensor:
        part = rows.functionals[number]
        return tf.concat([part.of_inputs(places), part.of_ones(places)], axis=1)

    return rows.by_kind(X, both)


def rows_of(kernel: Any) -> FunctionalRows | None:
    """The functionals of a :class:`interdomain.kernels.Functional` kernel; None for others."""
    rows: FunctionalRows | None = kernel.rows if hasattr(kernel, "acting_family") else None
    return rows


def acted_mean(mean_function: MeanFunction, kernel: Any) -> MeanFunction:
    """The mean function, wrapped in :class:`ActedMean` if the kernel is one of functionals."""
    rows = rows_of(kernel)
    if rows is None or isinstance(mean_function, ActedMean):
        return mean_function
    return ActedMean(mean_function, rows)
