"""What each row adds to the sufficient statistics, and the parameters that this depends on."""

from __future__ import annotations

from collections.abc import Mapping

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from .._tracing import Traced
from ..covariances.domains import BoolArray, Complaint, Extent, Kuf_in_domain, boxes, outside_of_any
from ..sphere._typing import Array
from .charged_terms import charged_terms
from .mean_columns import mean_columns


class Contributions:
    """The columns that are summed over, for one kernel, inducing variable and mean function.

    A row (x, y) adds the column ``s = (Kuf(x), y, h(x))``, where h are the columns of the mean
    function, and the terms of ``K(x, x)``, without those of blocks whose features represent all of
    their kernel. The sum of ``s s^T`` holds every product that the bound needs.

    Which parameters the columns depend on is read from the graph that computes them: the variables
    it captures. For spherical harmonics these are ``weight_variances`` and ``bias_variance``; for
    points, all of the kernel's parameters that its covariances use and the points. Features that
    are made for a box, such as an interval, depend on fewer parameters inside of it than outside:
    only rows inside are accepted.

    :ivar boxes: Where the rows have to be, in columns of X; empty if they may be anywhere.
    :ivar parameters: Those parameters by name, such as "kernel.weight_variances".
    :ivar num_inducing: M.
    :ivar num_stacked: The length of s, ``M + P + H``.
    :ivar num_terms: The number T of terms of the diagonal; it may be zero.
    :ivar charged: Which features the terms are compared with, ``[M]``: those of all other blocks.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        mean_function: MeanFunction,
        num_columns: int,
        num_outputs: int,
    ) -> None:
        self.kernel, self.inducing_variable = kernel, inducing_variable
        self.num_columns, self.num_outputs = num_columns, num_outputs
        self.boxes = boxes(inducing_variable, kernel, num_columns)
        self.mean = mean_columns(mean_function, num_outputs)
        self.mean_function = mean_function
        self._terms, self.charged = charged_terms(inducing_variable, kernel)
        self._parts: Mapping[str, tf.Module] = {
            "kernel": kernel,
            "inducing_variable": inducing_variable,
            "mean_function": mean_function,
        }
        self._identities = self._parameter_identities()
        self.num_inducing = int(inducing_variable.num_inducing)
        self.num_terms = len(self._terms)
        self.num_stacked = self.num_inducing + num_outputs + self.mean.num_columns(num_columns)
        dtype = gpflow.default_float()
        self._traced = Traced(
            lambda stack: lambda X, Y: stack(X, Y),
            self._stack,
            input_signature=[
                tf.TensorSpec([None, num_columns], dtype),
                tf.TensorSpec([None, num_outputs], dtype),
            ],
        )
        graph = self._traced.concrete_function().graph
        self.variables: tuple[tf.Variable, ...] = tuple(graph.variables)
        self.parameters = self._named(self.variables)

    def stack(self, X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The columns s, ``[M + P + H, n]``, and the terms of the diagonal, ``[T, n]``.

        The rows must have passed :meth:`check`: values outside of :attr:`boxes` are meaningless.
        """
        stacked, terms = self._traced(X, Y)
        return stacked, terms

    def _stack(self, X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        features = Kuf_in_domain(self.inducing_variable, self.kernel, X)
        features = tf.ensure_shape(features, [self.num_inducing, None])
        targets = Y - self.mean_function(X) if self.mean.residual else Y
        rows = tf.concat([targets, self.mean.columns(X)], axis=1)
        stacked = tf.concat([features, tf.linalg.matrix_transpose(rows)], axis=0)
        terms = [row(X) for row, _ in self._terms]
        return stacked, tf.stack(terms) if terms else tf.zeros([0, tf.shape(X)[0]], X.dtype)

    def evaluate(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """:meth:`stack` of arrays, compiled.

        :raises ValueError: If rows are outside of :attr:`boxes`.
        """
        self.check(X)
        dtype = gpflow.default_float()
        stacked, terms = self._traced(tf.constant(X, dtype), tf.constant(Y, dtype))
        return np.asarray(stacked), np.asarray(terms)

    def outside(self, X: Array) -> BoolArray:
        """Which rows are outside of :attr:`boxes`, ``[n]``."""
        return outside_of_any(self.boxes, X)

    def complaint(self, X: Array, rows: str = "rows of X") -> Complaint | None:
        """What is wrong with rows that are outside; None if none is."""
        count = int(np.count_nonzero(self.outside(X)))
        if not count:
            return None
        return Complaint.of(self.boxes, Extent.of(X), count, len(X), rows)

    def check(self, X: Array, rows: str = "rows of X") -> None:
        """:raises ValueError: If rows are outside of :attr:`boxes`."""
        complaint = self.complaint(X, rows)
        if complaint is not None:
            raise ValueError(f"data: {complaint.what}; {complaint.remedy}.")

    def diagonal_factors(self) -> tf.Tensor:
        """The factors of the diagonal's terms, ``[T]``."""
        factors = [factor() for _, factor in self._terms]
        return tf.stack(factors) if factors else tf.zeros([0], gpflow.default_float())

    def values(self) -> dict[str, Array]:
        """The present values of :attr:`parameters`."""
        return {name: np.asarray(p.numpy(), np.float64) for name, p in self.parameters.items()}

    def trainable(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """The names of the :attr:`parameters` that are marked trainable."""
        return {name: p for name, p in self.parameters.items() if p.trainable}

    def is_current(
        self, kernel: Kernel, inducing_variable: InducingVariables, mean_function: MeanFunction
    ) -> bool:
        """Whether the graph was built from these objects, with their present parameters."""
        return (
            self.kernel is kernel
            and self.inducing_variable is inducing_variable
            and self.mean_function is mean_function
            and self._identities == self._parameter_identities()
        )

    def _parameter_identities(self) -> list[int]:
        return [id(p) for part in self._parts.values() for p in part.parameters]

    def _named(
        self, variables: tuple[tf.Variable, ...]
    ) -> dict[str, gpflow.Parameter | tf.Variable]:
        owners: dict[int, tuple[str, gpflow.Parameter]] = {}
        for part, module in self._parts.items():
            for path, parameter in gpflow.utilities.parameter_dict(module).items():
                owners.setdefault(id(parameter.unconstrained_variable), (part + path, parameter))
        return dict(owners.get(id(v), (f"variable {v.name}", v)) for v in variables)
