"""The features of a chain: for each term of a sum, splines of time times features of the rest.

A term is a product of kernels. One factor, a Matern kernel of one column, is called time. All other
factors are called space, even if they use that column. The features of a term are the products of
all splines of time with all features psi of space. The prior precision of the weights is ``K_t (x)
K_s``, with the Kuu of both. Features of space whose ``K_s`` is not diagonal are whitened: ``R^{-1}
psi`` has the precision I, where ``K_s = R R^T``.

Sums use the features Kuf of space, and ``Kuu^{-1} Kuf`` for fixed places, which depend on no
parameter. This is called the basis of the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..._arguments import IntArray, check_size, refusal
from ...core.acting import acted_features
from ...core.combined import num_inducing
from ...core.family import Block
from ...core.finite_rank import is_complete
from ...core.functionals import ByDegree, LinearFunctional, Places, Value
from ...core.pairs import Kuu_operator, as_family, structure_of
from ...core.product_rule import check_categories, columns_seen, product_rule
from ...linalg.operators import StructuredOperator
from ...linalg.spline_grid import SplineGrid
from ..groups import Groups

Part = tuple[LinearFunctional, float, tuple[LinearFunctional, ...]]
"""A functional of the splines of time, a factor, and a functional of each factor of space."""


_COPIES = 8
"""Numbers in memory for each product, of which the precision has more: places in orders, means."""


@dataclass(frozen=True, eq=False)
class ChainTerm:
    """The products of all splines of time with all features of space.

    :ivar time: The splines, and their kernel.
    :ivar space: The other factors; none for a function of time alone.
    :ivar numbers: The numbers of the products among all features of the model, ``[N, g, m]`` for N
        splines and g groups.
    :ivar groups: The intercepts of groups among the factors, of which one is nonzero in a row, if
        the groups share no weight; None for a single copy.
    """

    time: Block
    space: tuple[Block, ...]
    numbers: IntArray
    groups: Block | None = None

    @classmethod
    def from_pairs(cls, pairs: Sequence[Block], time: int, start: int) -> ChainTerm:
        """The term of a product with all products of the factors' features.

        :param time: The index of the factor of splines of time.
        :param start: The number of the first product among all features.
        """
        sizes = [int(num_inducing(block)) for block, _ in pairs]
        total = math.prod(sizes)
        check_size("inducing_variables", f"the weights of {total:,} products", _COPIES * total)
        numbers = np.moveaxis(np.arange(total).reshape(sizes), time, 0)
        others = tuple(pair for number, pair in enumerate(pairs) if number != time)
        flat = start + numbers.reshape(sizes[time], 1, -1)
        return cls(pairs[time], others, flat)

    def grouped(self, number: int) -> ChainTerm:
        """This term, with the factor of space of that number as groups."""
        sizes = [int(num_inducing(block)) for block, _ in self.space]
        nodes = len(self.numbers)
        numbers = np.moveaxis(self.numbers.reshape(nodes, *sizes), number + 1, 1)
        others = tuple(pair for k, pair in enumerate(self.space) if k != number)
        flat = numbers.reshape(nodes, sizes[number], -1)
        return ChainTerm(self.time, others, flat, self.space[number])

    @property
    def grid(self) -> SplineGrid:
        """The grid of the splines of time."""
        splines, kernel = as_family(*self.time)
        grid: SplineGrid = splines.grid(kernel)
        return grid

    @property
    def width(self) -> int:
        """The number m of features of space."""
        return int(self.numbers.shape[2])

    def columns(self, num_columns: int) -> IntArray:
        """The columns of X, among that number, on which the features of space depend."""
        seen = self._seen(self.space, num_columns)
        columns: IntArray = np.unique(np.concatenate([np.zeros(0, np.int64), *seen]))
        return columns

    def parts(self, functional: LinearFunctional, num_inputs: int) -> list[Part] | None:
        """A functional of the products as functionals of time and of space; None if it does not
        separate.

        :raises ValueError: If it acts along the column of groups.
        """
        seen, found = self._seen([self.time, *self.space], num_inputs), list[Part]()
        groups = self._seen([self.groups] if self.groups else [], num_inputs)
        for weight, part in functional.terms:
            for columns in groups:
                check_categories(part, columns)
            if isinstance(part, ByDegree):
                if len(self.space) != 1:
                    return None
                found.append((Value(), weight, (part,)))
                continue
            terms = product_rule(part, seen)
            if terms is None:
                return None
            found += [(rules[0], weight * factor, rules[1:]) for factor, rules in terms]
        return found

    def are_values(self, rules: Sequence[LinearFunctional], num_inputs: int) -> bool:
        """Whether functionals of the factors of space are values at the rows."""
        pairs = zip(rules, self._seen(self.space, num_inputs), strict=True)
        return all(isinstance(rule.seen_by(columns), Value) for rule, columns in pairs)

    @staticmethod
    def _seen(pairs: Sequence[Block], num_inputs: int) -> list[IntArray]:
        """The inputs that the kernels of factors use."""
        row = tf.zeros([1, num_inputs], gpflow.default_float())
        return [columns_seen(kernel, row) for _, kernel in pairs]

    def features(
        self, places: Places, rules: Sequence[LinearFunctional] = (), *, is_raw: bool = False
    ) -> tf.Tensor:
        """The features of space at places, ``[n, m]`` in float64.

        :param rules: The functional of each factor of space; values by default.
        :param is_raw: Whether the places are in the domains and the features are in the basis of
            the sums; otherwise they are whitened.
        """
        pairs = zip(self.space, rules or [Value()] * len(self.space), strict=True)
        product = tf.ones([tf.shape(places.inputs)[0], 1], tf.float64)
        for pair, rule in pairs:
            raw = _cardinal(pair, rule, places) if is_raw else None
            if raw is None:
                raw = acted_features(*pair, rule, places, in_domain=is_raw)
            part = tf.linalg.matrix_transpose(tf.cast(raw, tf.float64))
            part = tf.ensure_shape(part, [None, int(num_inducing(pair[0]))])
            width = product.shape[1] * part.shape[1]
            product = tf.reshape(product[:, :, None] * part[:, None], [-1, width])
        matrix = None if is_raw else self.whitening(of_Kuf=True)
        return product if matrix is None else tf.matmul(product, matrix, transpose_b=True)

    def from_raw(self) -> tf.Tensor | None:
        """The matrix that maps features in the basis of the sums to Kuf, ``[m, m]``; None for the
        identity."""
        if not any(_is_cardinal(*pair) for pair in self.space):
            return None
        identity = [tf.eye(int(num_inducing(block)), dtype=tf.float64) for block, _ in self.space]
        pairs = zip(self.space, identity, strict=True)
        return _kronecker(
            [_operator(pair).to_dense() if _is_cardinal(*pair) else eye for pair, eye in pairs]
        )

    def whitening(self, *, of_Kuf: bool = False) -> tf.Tensor | None:
        """The matrix ``[m, m]`` that whitens features of space, in the basis of the sums or of Kuf;
        None for the identity."""
        operators = [(pair, _operator(pair)) for pair in self.space]
        if all(operator.sole_diagonal is not None for _, operator in operators):
            return None
        factors = []
        for pair, operator in operators:
            identity = tf.eye(int(operator.shape[-1]), dtype=tf.float64)
            if operator.sole_diagonal is not None:
                factors.append(identity)
            elif not of_Kuf and _is_cardinal(*pair):
                triangle = tf.linalg.cholesky(operator.to_dense())
                factors.append(tf.linalg.matrix_transpose(triangle))
            else:
                factors.append(operator.root().solve(identity))
        return _kronecker(factors)

    def precisions(self) -> tf.Tensor:
        """The prior precisions of the weights of whitened features of space, ``[g, m]``."""
        parts = [_operator(pair) for pair in self.space]
        flat = [tf.ones([1], tf.float64)]
        for part in parts:
            diagonal = part.sole_diagonal
            flat.append(tf.ones([part.shape[-1]], tf.float64) if diagonal is None else diagonal)
        of_space = reduce(lambda a, b: tf.reshape(a[:, None] * b, [-1]), flat)
        if self.groups is None:
            return of_space[None]
        return _operator(self.groups).diag_part()[:, None] * of_space

    def band(self, reach: int) -> tf.Tensor:
        """The prior precision of time, of each spline with the ones before it, ``[N, p + 1]``."""
        return _lower(Kuu_operator(*self.time).widened(reach).stencil())

    def inverse_band(self, reach: int) -> tf.Tensor:
        """The inverse of the prior precision of time within the band, ``[N, p + 1]``."""
        kuu: Any = Kuu_operator(*self.time)
        return _lower(kuu.widened(reach).inverse())

    def explains_rows(self) -> bool:
        """Whether the products explain all prior variance at rows of the sums, because each factor
        does."""
        exact = [is_complete(*pair) or _is_cardinal(*pair) for pair in self.space]
        return is_complete(*self.time) and all(exact)

    def log_determinant(self) -> tf.Tensor:
        """The log determinant of the prior precision of the weights of whitened features."""
        kuu: Any = Kuu_operator(*self.time)
        precisions = self.precisions()
        count = int(np.prod(precisions.shape))
        nodes = len(self.numbers)
        return count * kuu.log_determinant() + nodes * tf.reduce_sum(tf.math.log(precisions))

    @cached_property
    def group_indices(self) -> Callable[[tf.Tensor], tf.Tensor] | None:
        """A function of rows that returns the group of each, ``[n]``; None for a single copy."""
        if self.groups is None:
            return None
        family, kernel = as_family(*self.groups)
        structure: Any = family.structure(kernel)
        return structure.first  # type: ignore[no-any-return]


def _lower(stencil: tf.Tensor) -> tf.Tensor:
    """The diagonal and the entries before it, nearest first."""
    return tf.reverse(stencil[:, : stencil.shape[1] // 2 + 1], [1])


def _operator(pair: Block) -> StructuredOperator:
    return Kuu_operator(*pair, jitter=gpflow.config.default_jitter()).cast(tf.float64)


def _is_cardinal(inducing_variable: Any, kernel: Any) -> bool:
    return hasattr(as_family(inducing_variable, kernel)[0], "cardinal")


def _cardinal(pair: Block, rule: LinearFunctional, places: Places) -> tf.Tensor | None:
    """The cardinal features of a factor at places, ``[m, n]``; None if the factor has none."""
    family, kernel = as_family(*pair)
    if not hasattr(family, "cardinal"):
        return None
    columns = columns_seen(kernel, places.inputs)
    if isinstance(rule.seen_by(columns), Value):
        features: tf.Tensor = family.cardinal(kernel, places.inputs)
        is_right = tf.reduce_all(tf.reduce_any(features > 0, axis=0))
        found = "a row that is at no place"
    else:  # no row may have this functional, but predictions may
        features = tf.zeros([int(family.num_inducing), tf.shape(places.inputs)[0]], tf.float64)
        is_right, found = tf.equal(tf.size(features), 0), str(rule)
    rule_of_rows = "be values of space at the places of FixedPlaces, or functionals along time"
    if tf.executing_eagerly():
        if not is_right:
            raise refusal("data", rule_of_rows, found, "pass InducingPoints at the places")
        return features
    check = tf.debugging.Assert(is_right, [f"data must {rule_of_rows}, found {found}"])
    with tf.control_dependencies([check]):
        return tf.identity(features)


def _kronecker(matrices: Sequence[tf.Tensor]) -> tf.Tensor:
    factors = [tf.linalg.LinearOperatorFullMatrix(matrix) for matrix in matrices]
    return tf.linalg.LinearOperatorKronecker(factors).to_dense()


def grouped(terms: Sequence[ChainTerm]) -> list[ChainTerm]:
    """The terms with groups as copies that share no weight, if all have the same groups."""
    found = []
    if any(term.groups is not None for term in terms):
        return list(terms)
    for term in terms:
        numbers = [k for k, pair in enumerate(term.space) if _levels(pair) is not None]
        if not numbers:
            return list(terms)
        found.append((term, numbers[0]))
    levels = [_levels(term.space[number]) for term, number in found]
    if not all(np.array_equal(levels[0], other) for other in levels[1:]):
        return list(terms)
    return [term.grouped(number) for term, number in found]


def _levels(pair: Block) -> Any:
    """The levels of intercepts of groups; None for other features."""
    if not isinstance(structure_of(*pair), Groups):
        return None
    return np.asarray(pair[0].levels)
