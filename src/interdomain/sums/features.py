"""The features of rows, the terms of a model's sums, and the parameters of the features."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from .._arguments import Array, BoolArray
from ..core.decomposed import flat_blocks, summed_pairs
from ..core.descriptions import describe
from ..core.diagonals import DiagonalTerm, diagonal_terms
from ..core.domains import boxes, complaint, outside_of_any
from ..core.finite_rank import is_complete
from ..core.functional_rows import FunctionalRows
from ..core.pairs import Kuf_in_domain, settings_of, structure_of
from .dense import DenseSums
from .kinds import batch_by_kind, tensors_by_kind, total_by_kind
from .mean_columns import MeanColumns
from .protocol import Sums

_FAR = 4.0
"""The level of Y, in standard deviations, below which sums of squares lose few digits."""


class Features:
    """The features of rows, for one kernel, inducing variable and mean function.

    A row (x, y) has the features ``Kuf(x)`` and the targets ``t = (y, h(x))``, where h are the
    columns of the mean function. It also has the terms of ``K(x, x)``, without blocks whose
    features represent their whole kernel. Sums over rows of the terms and of products of features
    and targets are all that the bound needs.

    The parameters of the features are the variables that the graph of the sums captures. For
    spherical harmonics they are ``weight_variances`` and ``bias_variance``. For points they are the
    points and all of the kernel's parameters that its covariances use. Features of a box, such as
    an interval, depend on fewer parameters inside of the box than outside, so only rows inside are
    accepted.

    :param kinds: The functionals of rows, if the sums of each functional are kept apart.
    :ivar sums: The :class:`.Sums` that adds up rows and computes q.
    :ivar boxes: The boxes in which rows must lie, in columns of X; empty if rows may lie anywhere.
    :ivar parameters: The parameters of the features by name, such as "kernel.weight_variances".
    :ivar num_inducing: The number M of inducing variables.
    :ivar num_outputs: The number P of columns of Y, or of latent GPs.
    :ivar num_stacked: The number of features and columns of the mean function, ``M + H``.
    :ivar num_terms: The number T of terms of the diagonal; it may be zero.
    :ivar incomplete: Whether a feature belongs to a block that leaves out a part of its kernel,
        ``[M]``.
    :ivar charged: Whether a feature belongs to a block that leaves out a part of its kernel at rows
        of the sums, ``[M]``; the terms of the diagonal belong to these blocks.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        mean_function: MeanFunction,
        num_columns: int,
        num_outputs: int,
        kinds: FunctionalRows | None = None,
    ) -> None:
        self.kernel, self.inducing_variable, self.kinds = kernel, inducing_variable, kinds
        self.num_columns, self.num_outputs = num_columns, num_outputs
        self.boxes = boxes(inducing_variable, kernel, num_columns)
        self.mean, self.mean_function = MeanColumns(mean_function, num_outputs), mean_function
        blocks = terms_by_block(inducing_variable, kernel)
        self._terms = self._all_terms = [term for terms, _ in blocks for term in terms]
        self.incomplete = self.charged = np.concatenate([mask for _, mask in blocks])
        self._parts = self._modules()
        self._identities = _identities(self._parts.values())
        self.num_inducing = int(inducing_variable.num_inducing)
        self.num_stacked = self.num_inducing + self.mean.num_columns(num_columns)
        with tf.init_scope():  # arrays, also while a graph is traced
            self.sums = self._make_sums()
        explained = self.sums.explained_at_rows()
        if explained is not None:
            self.charged = self.incomplete & ~explained
            ends = np.cumsum([len(mask) for _, mask in blocks])[:-1]
            pairs = zip(blocks, np.split(explained, ends), strict=True)
            kept = [terms for (terms, _), part in pairs if not (len(part) and np.all(part))]
            self._terms = [term for terms in kept for term in terms]
        self.num_terms = len(self._terms)
        self.parameters = self._named(self.sums.variables())

    def _modules(self) -> dict[str, tf.Module]:
        """The modules that have the parameters, by the first part of the parameters' names."""
        return {
            "kernel": self.kernel,
            "inducing_variable": self.inducing_variable,
            "mean_function": self.mean_function,
        }

    def _make_sums(self) -> Sums:
        structure = structure_of(self.inducing_variable, self.kernel)
        sums: Sums | None = None if structure is None else structure.sums(self)
        return sums or DenseSums(self)

    def signature(self) -> list[tf.TensorSpec]:
        """The types of X and Y of a batch."""
        dtype, columns = gpflow.default_float(), (self.num_columns, self.num_outputs)
        return [tf.TensorSpec([None, number], dtype) for number in columns]

    @property
    def numbers_per_row(self) -> int:
        """The approximate count of numbers that a gradient stores for each row."""
        return self.sums.numbers_per_row

    def target_sums(
        self, X: tf.Tensor, Y: Any, *weights: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Targets ``t = (y, h)`` of n rows times their weights, ``[n, P + H]``, and the sums that
        depend on no feature, by the names of :meth:`.Sums.in_graph`; in float64. The last column
        of h is one, so the last column of the first result has the weights, unless the rows are
        functionals."""
        targets = tf.concat([Y - self.mean.rest(X), self.mean.columns(X)], axis=1)
        targets = weighted = tf.cast(targets, tf.float64)
        terms, more = tf.cast(self.terms_of(X), tf.float64), dict[str, tf.Tensor]()
        for factors in weights:
            weighted, terms = targets * factors, terms * tf.linalg.matrix_transpose(factors)
            more["log_weights"] = tf.reduce_sum(tf.math.log(factors))
        more["targets"] = tf.matmul(targets, weighted, transpose_a=True)
        more["diagonal"] = tf.reduce_sum(terms, axis=1)
        return weighted, more

    def reference(self, X: Array, Y: Array) -> Array:
        """The level that sums subtract from Y, ``[P]``: the mean of Y (less a mean function without
        columns) if it is far from zero in standard deviations; otherwise zero."""
        rest = np.asarray(Y, np.float64)
        if self.mean.residual:
            rest = rest - self.mean.rest(tf.constant(X, gpflow.default_float())).numpy()
        level, deviation = np.mean(rest, axis=0), np.std(rest, axis=0)
        if not self.mean.has_ones:
            ones = self.mean.last(X)[:, 0]
            level = ones @ rest / np.maximum(ones @ ones, np.finfo(float).tiny)
        level = np.where(np.abs(level) > _FAR * deviation, level, 0.0)
        return np.asarray(np.broadcast_to(level, [self.num_outputs]), np.float64)

    def less(self, X: Array, Y: Array, reference: Array) -> Array:
        """Y minus the reference, in float64 if the reference is nonzero. Of rows with functionals,
        the functional of the reference is subtracted."""
        if not np.any(reference):
            return Y
        return np.subtract(Y, self.mean.last(X) * reference, dtype=np.float64)

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        """The sums over one batch of rows: see :meth:`.Sums.batch`."""
        if self.kinds is not None:
            return batch_by_kind(self.sums, self.kinds, X, Y, *more)
        return self.sums.batch(X, Y, *more)

    def total(self, added: Mapping[str, Array]) -> dict[str, Array]:
        """The sums over all rows, from the total of all batches."""
        return self.sums.total(added) if self.kinds is None else total_by_kind(self.sums, added)

    def tensors(self, *rows: tf.Tensor) -> dict[str, tf.Tensor]:
        """The sums over some rows, with gradients: see :meth:`.Sums.tensors`."""
        if self.kinds is not None:
            return tensors_by_kind(self.sums, self.kinds, *rows)
        return self.sums.tensors(*rows)

    def row_features(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Features ``[M, n]``, columns of the mean function ``[H, n]`` and terms of the diagonal
        ``[T, n]`` of each row. The rows must be in the :attr:`boxes`."""
        features = Kuf_in_domain(self.inducing_variable, self.kernel, X)
        columns = tf.linalg.matrix_transpose(self.mean.columns(X))
        return tf.ensure_shape(features, [self.num_inducing, None]), columns, self.terms_of(X)

    def terms_of(self, X: tf.Tensor) -> tf.Tensor:
        """The terms of the diagonal of each row, ``[T, n]``."""
        terms = [row(X) for row, _ in self._terms]
        return tf.stack(terms) if terms else tf.zeros([0, tf.shape(X)[0]], X.dtype)

    def prior_of_incomplete(self, X: tf.Tensor) -> tf.Tensor:
        """The whole prior variance of the incomplete blocks, ``[n]``, at rows that need not be at
        fixed places."""
        values = [factor() * row(X) for row, factor in self._all_terms]
        return tf.add_n(values) if values else tf.zeros([tf.shape(X)[0]], X.dtype)

    def diagonal_factors(self) -> tf.Tensor:
        """The factors of the diagonal's terms, ``[T]``."""
        factors = [factor() for _, factor in self._terms]
        return tf.stack(factors) if factors else tf.zeros([0], gpflow.default_float())

    def check(self, X: Array, rows: str = "rows of a batch of X") -> None:
        """:raises ValueError: If rows are outside of :attr:`boxes`, or rows with functionals are
        not valid."""
        self.mean.validate("data: X", X)
        count = int(np.count_nonzero(outside_of_any(self.boxes, X)))
        if count:
            what, remedy = complaint(self.boxes, X, count, len(X), rows)
            raise ValueError(f"data: {what}; {remedy}.")

    def values(self) -> dict[str, Array]:
        """The current values of :attr:`parameters`."""
        return {name: np.asarray(p.numpy(), np.float64) for name, p in self.parameters.items()}

    def trainable(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """The :attr:`parameters` that are marked trainable, by name."""
        return {name: p for name, p in self.parameters.items() if p.trainable}

    def description(self) -> dict[str, Any]:
        """A description of the features, without their parameters' values, in JSON's types."""
        described: dict[str, Any] = {
            "columns of X": self.num_columns,
            "columns of Y": self.num_outputs,
            "mean function": self.mean.kind,
            **self.mean.described(self.num_columns),
            "number of features": self.num_inducing,
            "terms of the diagonal": self.num_terms,
        }
        blocks = flat_blocks(self.inducing_variable, self.kernel)
        settings = [settings_of(*block) for block in blocks]
        describe("kernel", settings if len(settings) > 1 else settings[0], described, set())
        describe("inducing_variable", self.inducing_variable, described, set())
        if self.kinds is not None:
            described["number of functionals"] = len(self.kinds.functionals)
        if self.mean.residual:
            describe("mean_function", self.mean_function, described, set())
        return described

    def checksum(self) -> int:
        """A checksum of the :meth:`description`."""
        return zlib.crc32(json.dumps(self.description()).encode())

    def is_current(self, *parts: tf.Module) -> bool:
        """Whether the graph was built from the given kernel, inducing variable and mean function,
        with their present parameters."""
        return self._identities == _identities(parts)

    def _named(
        self, variables: tuple[tf.Variable, ...]
    ) -> dict[str, gpflow.Parameter | tf.Variable]:
        owners: dict[int, tuple[str, gpflow.Parameter]] = {}
        for part, module in self._parts.items():
            for path, parameter in gpflow.utilities.parameter_dict(module).items():
                owners.setdefault(id(parameter.unconstrained_variable), (part + path, parameter))
        return dict(owners.get(id(v), (f"variable {v.name}", v)) for v in variables)


def _identities(parts: Iterable[Any]) -> list[int]:
    return [id(module) for part in parts for module in (part, *part.parameters)]


def terms_by_block(
    inducing_variable: InducingVariables | None, kernel: Kernel
) -> list[tuple[list[DiagonalTerm], BoolArray]]:
    """The terms of the diagonal of each summand whose features do not represent it exactly, and
    whether each feature of its block belongs to such a summand, ``[M_i]``. The bound may need fewer
    terms: see :meth:`.Sums.explained_at_rows`.

    The bound has the term ``tr Kff - tr Qff``. For a block of finite rank with all of its features
    the two traces are equal, so that neither is needed.
    """
    found = []
    for block, part in summed_pairs(inducing_variable, kernel):
        complete = is_complete(block, part)
        size = 0 if block is None else int(block.num_inducing)
        found.append(([] if complete else diagonal_terms(part), np.full(size, not complete)))
    return found
