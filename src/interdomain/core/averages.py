"""Linear functionals that average f over a box or a Gaussian around the row."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from scipy.special import roots_hermite, roots_legendre

from .._arguments import Array, BoolArray, IntArray, finite_array, integer, refusal, short
from ..linalg.chunks import map_rows
from .functionals import LinearFunctional, Places, Value
from .slopes import Function

_POINTS = 16
"""The default number of quadrature points in a column, for features without a closed form."""

MOST_ENTRIES = 2**23
"""The count of numbers that are averaged at a time."""


class Average(LinearFunctional, abc.ABC):
    """An average of f over weighted points around the row, the same points for all rows up to a
    scale in each column. The points are symmetric around the row.

    :param num_points: The number of quadrature points in each averaged column, for features and
        kernels without a closed form.
    """

    def __init__(self, num_points: int) -> None:
        self.num_points = integer("num_points", num_points, at_least=1)

    @abc.abstractmethod
    def scales(self, places: Places) -> tf.Tensor:
        """The scale of the average in each input, ``[n, D]`` or ``[1, D]``: the widths of a box, or
        the standard deviations of a Gaussian."""

    @abc.abstractmethod
    def is_averaged(self, num_inputs: int) -> BoolArray:
        """Whether the average moves along each input, ``[D]``."""

    @abc.abstractmethod
    def _rule(self) -> tuple[Array, Array]:
        """Quadrature nodes for a scale of one, and weights that sum to one, ``[num_points]``."""

    def points(self, places: Places) -> tuple[tf.Tensor, Array]:
        """The points that are averaged, ``[n, Q, D]``, and their weights, ``[Q]``."""
        num_inputs = int(places.inputs.shape[1])
        nodes, weights = self._rule()
        alone = np.zeros(1), np.ones(1)
        rules = [(nodes, weights) if moves else alone for moves in self.is_averaged(num_inputs)]
        steps = np.array(list(itertools.product(*(rule[0] for rule in rules))))
        products = np.prod(list(itertools.product(*(rule[1] for rule in rules))), axis=1)
        offsets = self.scales(places)[:, None] * tf.constant(steps, places.inputs.dtype)
        return places.inputs[:, None] + offsets, products

    def of_ones(self, places: Places) -> tf.Tensor:
        return tf.ones_like(places.inputs[:, :1])

    def of_inputs(self, places: Places) -> tf.Tensor:
        return places.inputs

    def act(self, function: Function, places: Places, size: int) -> tf.Tensor:
        """The average of a function by quadrature, a few rows at a time."""
        points, weights = self.points(places)
        count, width = len(weights), int(places.inputs.shape[1])

        def averages(points: tf.Tensor) -> tf.Tensor:
            values = function(tf.reshape(points, [-1, width]))
            values = tf.reshape(values, [-1, count, values.shape[1] or tf.shape(values)[1]])
            return tf.einsum("nqc,q->nc", values, tf.constant(weights, values.dtype))

        return map_rows(averages, points, [], max(MOST_ENTRIES // (count * size), 1))


class Mean(Average):
    """The mean of f over a box that is centred at the row: over an hour, a day, a pixel.

    A sum over a bin is its width times the mean: ``7 * Mean([7])``.

    :param widths: The widths of the box in the inputs of the prior, ``[D]``, or one number for all;
        zero for an input that is not averaged.
    :param width_columns: For bins of different sizes (months, exposure times): for each input, the
        number of the (active) column of X that holds its widths, or None if its width is in
        ``widths``. The columns of widths are no inputs: the prior does not see them.
    :param num_points: The number of points in each averaged column of a Gauss-Legendre rule, for
        features and kernels without a closed form.
    :raises ValueError: If a width is negative or not finite, or no input has a positive width or a
        column of widths. Models raise it if a row's box is not inside of the features' box.
    """

    def __init__(
        self,
        widths: Any = 0.0,
        *,
        width_columns: Sequence[int | None] | None = None,
        num_points: int = _POINTS,
    ) -> None:
        super().__init__(num_points)
        self.widths = finite_array("widths", widths, (0, 1), "a number, or one for each input")
        remedy = "pass zero for an input that is not averaged"
        if np.any(self.widths < 0):
            raise refusal("widths", "be 0 or more", short(self.widths), remedy)
        columns = [] if width_columns is None else list(width_columns)
        self._columns: tuple[int | None, ...] = tuple(
            None if column is None else integer("width_columns", column, at_least=0)
            for column in columns
        )
        if not np.any(self.widths > 0) and not self.width_columns:
            remedy = "pass Value() for values, or width_columns"
            raise refusal("widths", "be positive for an input", short(self.widths), remedy)

    @property
    def width_columns(self) -> tuple[int, ...]:
        return tuple(column for column in self._columns if column is not None)

    def is_averaged(self, num_inputs: int) -> BoolArray:
        moves = np.broadcast_to(self.widths > 0, [num_inputs]).copy()
        for number, column in enumerate(self._columns):
            moves[number] |= column is not None
        return moves

    def scales(self, places: Places) -> tf.Tensor:
        dtype, width = places.inputs.dtype, int(places.inputs.shape[1])
        fixed = tf.constant(np.broadcast_to(self.widths, [1, width]), dtype)
        if not self.width_columns:
            return fixed
        rows = [
            fixed[:, number] + tf.zeros_like(places.columns[:, 0])
            if number >= len(self._columns) or self._columns[number] is None
            else tf.gather(places.columns, self._columns[number], axis=1)
            for number in range(width)
        ]
        return tf.stack(rows, axis=1)

    def _rule(self) -> tuple[Array, Array]:
        nodes, weights = roots_legendre(self.num_points)
        return nodes / 2, weights / 2

    def seen_by(self, columns: IntArray) -> LinearFunctional:
        seen = Mean.__new__(Mean)
        Average.__init__(seen, self.num_points)
        seen.widths = self.widths[columns] if self.widths.ndim else self.widths
        known = dict(enumerate(self._columns))
        seen._columns = tuple(known.get(int(column)) for column in columns)
        return seen if np.any(seen.is_averaged(len(columns))) else Value()

    def check(self, num_inputs: int) -> None:
        rule = f"have {num_inputs} entries, one for each input of the prior"
        if self.widths.ndim and len(self.widths) != num_inputs:
            raise refusal("widths", rule, short(self.widths), "pass zero for other inputs")
        if self._columns and len(self._columns) != num_inputs:
            raise refusal("width_columns", rule, self._columns, "pass None for other inputs")

    def validate(self, name: str, inputs: Array, columns: Array) -> None:
        for column in self.width_columns:
            widths = columns[:, column]
            wrong = ~((widths >= 0) & np.isfinite(widths))
            if np.any(wrong):
                rule = f"have widths of 0 or more in column {column}"
                raise refusal(name, rule, short(widths[wrong]), "correct the rows")

    def needed(self, inputs: Array, columns: Array, *, centres: bool = False) -> list[Array]:
        if centres:
            return [inputs]
        places = Places(tf.constant(inputs), tf.constant(columns))
        reach = self.scales(places).numpy() / 2
        return [inputs - reach, inputs + reach]


class Blur(Average):
    """The expected value of f at a place with a Gaussian error.

    This is the convolution of f with a Gaussian around the row. (It is not the noise that an
    uncertain place adds to an observation.)

    :param variances: The variances of the error in the inputs of the prior, ``[D]``, or one number
        for all; zero for an input that is exact. On the globe, an isotropic blur is
        ``ByDegree(np.exp(-l * (l + 1) * s**2 / 2))``, with the deviation s in radians.
    :param num_points: The number of points in each blurred column of a Gauss-Hermite rule, for
        features and kernels without a closed form.
    :raises ValueError: If a variance is negative or not finite, or all variances are zero.
    """

    def __init__(self, variances: Any, *, num_points: int = _POINTS) -> None:
        super().__init__(num_points)
        rule = "a number, or one for each input"
        self.variances = finite_array("variances", variances, (0, 1), rule)
        if np.any(self.variances < 0) or not np.any(self.variances > 0):
            remedy = "pass zero for an exact input, and Value() for values"
            rule = "be 0 or more, and positive for an input"
            raise refusal("variances", rule, short(self.variances), remedy)

    def is_averaged(self, num_inputs: int) -> BoolArray:
        return np.broadcast_to(self.variances > 0, [num_inputs])

    def scales(self, places: Places) -> tf.Tensor:
        deviations = np.broadcast_to(np.sqrt(self.variances), [1, int(places.inputs.shape[1])])
        return tf.constant(deviations, places.inputs.dtype)

    def _rule(self) -> tuple[Array, Array]:
        nodes, weights = roots_hermite(self.num_points)
        return nodes * np.sqrt(2), weights / np.sqrt(np.pi)

    def seen_by(self, columns: IntArray) -> LinearFunctional:
        if not self.variances.ndim:
            return self
        variances = self.variances[columns]
        return Blur(variances, num_points=self.num_points) if np.any(variances) else Value()

    def check(self, num_inputs: int) -> None:
        if self.variances.ndim and len(self.variances) != num_inputs:
            rule = f"have {num_inputs} entries, one for each input of the prior"
            raise refusal("variances", rule, short(self.variances), "pass zero for other inputs")
