"""Linear functionals of f that rows observe and predictions return: the protocol, values, slopes.

A row has a place x and a functional L, and observes L f at x. Under ``f = phi^T w`` its features
are ``L phi``. A family has closed forms for its features
(:meth:`interdomain.core.family.InterDomainInducingVariables.acted_Kuf`); by default
:meth:`LinearFunctional.act` computes them from values of the features.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from .._arguments import Array, IntArray, finite_array, integer, number, refusal, short
from .._tracing import plain_operations
from .slopes import Function, slope_along

_HIGHEST_ORDER = 2


class Places(NamedTuple):
    """The places of n rows.

    :ivar inputs: The columns that the prior sees, ``[n, D]``.
    :ivar columns: All columns of the rows without the number of the functional, ``[n, E]``.
    """

    inputs: tf.Tensor
    columns: tf.Tensor

    def at(self, rows: tf.Tensor) -> Places:
        """The places of some rows, given by their numbers."""
        return Places(*(tf.gather(part, rows) for part in self))


class LinearFunctional(abc.ABC):
    """The base class of linear functionals of f.

    You can add and subtract functionals, and multiply them by numbers: ``Mean([7]) - Value()`` is
    the mean of a week minus the value at its centre. The functionals of a data set are given to
    :class:`interdomain.kernels.Functional`.
    """

    @property
    def terms(self) -> list[tuple[float, LinearFunctional]]:
        """The functionals that are added up, each with its factor."""
        return [(1.0, self)]

    @property
    def width_columns(self) -> tuple[int, ...]:
        """The columns of X that hold widths, and are no inputs of the prior."""
        return ()

    @abc.abstractmethod
    def act(self, function: Function, places: Places, size: int) -> tf.Tensor:
        """The functional of a function at places, ``[n, C]``.

        :param size: The number C of values of the function.
        """

    @abc.abstractmethod
    def seen_by(self, columns: IntArray) -> LinearFunctional | None:
        """The functional for a function of some of the inputs; None if the result is zero.

        :param columns: The numbers of these inputs among all inputs, in the function's order.
        """

    def of_ones(self, places: Places) -> tf.Tensor:
        """The functional of the constant function one, ``[n, 1]``."""
        return self.act(lambda inputs: tf.ones_like(inputs[:, :1]), places, 1)

    def of_inputs(self, places: Places) -> tf.Tensor:
        """The functional of each input, a linear function, ``[n, D]``."""
        return self.act(lambda inputs: inputs, places, int(places.inputs.shape[1]))

    def check(self, num_inputs: int) -> None:  # noqa: B027
        """Check that the functional fits the number of inputs of the prior; a ValueError
        otherwise."""

    def validate(self, name: str, inputs: Array, columns: Array) -> None:  # noqa: B027
        """Check the rows with this functional; a ValueError otherwise.

        :param inputs: The inputs of the prior, ``[n, D]``.
        :param columns: All columns of the rows without the number of the functional, ``[n, E]``.
        """

    def needed(self, inputs: Array, columns: Array, *, centres: bool = False) -> list[Array]:
        """Places ``[n, D]``, one for each row, that must be in the domain of the features.

        :param centres: Whether f continues outside. Then only the centres of averages must be
            inside.
        """
        return [inputs]

    def concerned(self, inputs: Array) -> Array:
        """The inputs of the prior that the rows concern, ``[m, D]``, such as points of regions."""
        return inputs

    def settings(self) -> dict[str, Any]:
        """The settings by name, for descriptions of features."""
        return {"functional": type(self).__name__, **vars(self)}

    def __add__(self, other: Any) -> LinearFunctional:
        if not isinstance(other, LinearFunctional):
            return NotImplemented
        return WeightedSum([*self.terms, *other.terms])

    def __mul__(self, factor: Any) -> LinearFunctional:
        if isinstance(factor, LinearFunctional):
            return NotImplemented
        factor = number("factor", factor)
        return WeightedSum([(factor * weight, part) for weight, part in self.terms])

    __rmul__ = __mul__

    def __neg__(self) -> LinearFunctional:
        return self * -1.0

    def __sub__(self, other: Any) -> LinearFunctional:
        return self + -other if isinstance(other, LinearFunctional) else NotImplemented

    def __repr__(self) -> str:
        arguments = (f"{name.lstrip('_')}={short(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({', '.join(arguments)})"


class WeightedSum(LinearFunctional):
    """A sum of functionals with factors."""

    def __init__(self, terms: Sequence[tuple[float, LinearFunctional]]) -> None:
        self._terms = list(terms)

    @property
    def terms(self) -> list[tuple[float, LinearFunctional]]:
        return self._terms

    @property
    def width_columns(self) -> tuple[int, ...]:
        return tuple(column for _, part in self._terms for column in part.width_columns)

    def act(self, function: Function, places: Places, size: int) -> tf.Tensor:
        parts = (weight * part.act(function, places, size) for weight, part in self._terms)
        return tf.add_n(list(parts))

    def of_ones(self, places: Places) -> tf.Tensor:
        return tf.add_n([weight * part.of_ones(places) for weight, part in self._terms])

    def of_inputs(self, places: Places) -> tf.Tensor:
        return tf.add_n([weight * part.of_inputs(places) for weight, part in self._terms])

    def seen_by(self, columns: IntArray) -> LinearFunctional | None:
        parts = ((weight, part.seen_by(columns)) for weight, part in self._terms)
        seen = [(weight, part) for weight, part in parts if part is not None]
        return WeightedSum(seen) if seen else None

    def check(self, num_inputs: int) -> None:
        for _, part in self._terms:
            part.check(num_inputs)

    def validate(self, name: str, inputs: Array, columns: Array) -> None:
        for _, part in self._terms:
            part.validate(name, inputs, columns)

    def needed(self, inputs: Array, columns: Array, *, centres: bool = False) -> list[Array]:
        parts = (part.needed(inputs, columns, centres=centres) for _, part in self._terms)
        return [places for part in parts for places in part]

    def concerned(self, inputs: Array) -> Array:
        return np.concatenate([part.concerned(inputs) for _, part in self._terms])

    def settings(self) -> dict[str, Any]:
        return {"terms": [{"factor": weight, **part.settings()} for weight, part in self._terms]}

    def __repr__(self) -> str:
        return " + ".join(f"{weight:g} * {part}" for weight, part in self._terms)


class Value(LinearFunctional):
    """The value of f at the row."""

    def act(self, function: Function, places: Places, size: int) -> tf.Tensor:
        return function(places.inputs)

    def seen_by(self, columns: IntArray) -> LinearFunctional:
        return self


class Derivative(LinearFunctional):
    """The derivative of f along an input at the row, in units of f per unit of the input.

    The functions of the prior must be differentiable: a Matern-1/2 prior is refused, and so is the
    second derivative under a Matern-3/2 prior.

    :param column: The number of the input, from 0. Widths (see :class:`Mean`) are no inputs.
    :param order: 1 for the slope, 2 for the second derivative.
    :raises ValueError: If a number is not as above.
    """

    def __init__(self, column: int, order: int = 1) -> None:
        self.column = integer("column", column, at_least=0)
        self.order = integer("order", order, at_least=1)
        if self.order > _HIGHEST_ORDER:
            raise refusal("order", "be 1 or 2", order, "pass 1 for the slope")

    def act(self, function: Function, places: Places, size: int) -> tf.Tensor:
        """The derivative of a function, by differentiation along the column."""
        for _ in range(self.order):
            function = self._slope(function)
        with plain_operations():
            return function(places.inputs)

    def _slope(self, function: Function) -> Function:
        def slope(inputs: tf.Tensor) -> tf.Tensor:
            direction = np.eye(int(inputs.shape[1]))[self.column]
            tangent = tf.zeros_like(inputs) + tf.constant(direction, inputs.dtype)
            return slope_along(function, inputs, tangent)

        return slope

    def of_ones(self, places: Places) -> tf.Tensor:
        return tf.zeros_like(places.inputs[:, :1])

    def of_inputs(self, places: Places) -> tf.Tensor:
        slopes = np.eye(int(places.inputs.shape[1]))[self.column] * (self.order == 1)
        return tf.zeros_like(places.inputs) + tf.constant(slopes, places.inputs.dtype)

    def seen_by(self, columns: IntArray) -> LinearFunctional | None:
        places = np.flatnonzero(np.asarray(columns) == self.column)
        return Derivative(int(places[0]), self.order) if len(places) else None

    def check(self, num_inputs: int) -> None:
        if self.column >= num_inputs:
            rule = f"be below {num_inputs}, the number of inputs of the prior"
            raise refusal("column", rule, self.column, "pass the number of an input, from 0")


class ByDegree(LinearFunctional):
    """An operator on the globe that multiplies each harmonic of degree l by a factor.

    All operators that commute with rotations are of this form: means over caps, upward
    continuation, Stokes' operator, and the heat kernel ``exp(-l (l + 1) t)``.
    Harmonics on the globe, and zonal kernels of finite rank, support it.

    :param factors: The factors of degrees 0, 1, 2, ..., ``[L]``. Features may have no higher
        degree.
    :raises ValueError: If the factors are not a vector of finite numbers. Models raise it for
        kernels that are not zonal, and for harmonics of degrees without a factor.
    """

    def __init__(self, factors: Any) -> None:
        self.factors = finite_array("factors", factors, (1,), "a vector, one for each degree")

    def of_degrees(self, degrees: IntArray) -> Array:
        """The factors of harmonics of these degrees; a ValueError if a degree has no factor."""
        highest, count = int(np.max(degrees)), len(self.factors)
        if highest >= count:
            rule = f"have {highest + 1} entries or more, for features up to degree {highest}"
            raise refusal("factors", rule, count, "pass a factor for each degree from 0")
        factors: Array = self.factors[degrees]
        return factors

    def act(self, function: Function, places: Places, size: int) -> tf.Tensor:
        raise ValueError(
            "functionals: found ByDegree for features that have no degrees; pass SphericalHarmonics"
            " of a kernel on the globe, or another functional."
        )

    def of_ones(self, places: Places) -> tf.Tensor:
        return tf.ones_like(places.inputs[:, :1]) * float(self.factors[0])

    def seen_by(self, columns: IntArray) -> LinearFunctional:
        return self
