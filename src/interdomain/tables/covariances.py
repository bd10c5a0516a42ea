"""Covariances of products of functions of columns with sums of effects: Poisson's summation
formula, column by column."""

from __future__ import annotations

import abc
import functools
import itertools
import operator
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from .._arguments import IntArray
from ..core.columns import as_rows
from ..core.diagonals import DiagonalTerm
from ..core.family import InterDomainInducingVariables
from ..linalg import Diagonal, StructuredOperator
from ..linalg.diagonal import least_eigenvalue
from .kernel import Additive

Parts: TypeAlias = list[tuple[tuple[int, ...], IntArray]]
"""Effects, each with the functions that its features are products of, ``[m, k]``."""


class OfEffects(InterDomainInducingVariables, abc.ABC):
    """Features of all effects of a table, or of one."""

    @abc.abstractmethod
    def effects_of(self, kernel: Any) -> tuple[Additive, Parts]:
        """The sum of effects, and those that the features are of; the constant has no columns."""

    def Kuf(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The products, each function of a column being computed once."""
        table, parts = self.effects_of(kernel)
        X = table.seen(X)
        rows = as_rows(X, table.num_columns)
        found, first, start = [tf.ones_like(rows[:, 0])[None]], {}, 1
        for number, highest in _highest_functions(parts).items():
            column = table.columns[number]
            found.append(column.functions(column.coordinates(rows[:, number]), highest))
            first[number] = start - 1  # where its function 0 would be
            start += highest
        functions = tf.concat(found, axis=0)
        blocks = []
        for order, of_order in itertools.groupby(parts, key=lambda part: len(part[0])):
            places = np.concatenate([own + [first[k] for k in effect] for effect, own in of_order])
            # Of the constant, the function that is one everywhere.
            slots = places.T if order else np.zeros([1, len(places)], np.int64)
            blocks.append(functools.reduce(operator.mul, [tf.gather(functions, s) for s in slots]))
        shape = tf.concat([[self.num_inducing], tf.shape(X)[:-1]], axis=0)
        return tf.reshape(tf.concat(blocks, axis=0), shape)

    def Kuf_in_domain(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The same as everywhere; not block by block, where effects would compute functions of a
        column again."""
        return self.Kuf(kernel, X)

    def Kuu(self, kernel: Any, *, jitter: float = 0.0) -> StructuredOperator:
        """The diagonal; ``jitter`` is not added, because a diagonal needs no factorisation."""
        return Diagonal(1 / self.prior_variances(kernel))

    def prior_variances(self, kernel: Any) -> tf.Tensor:
        """What each feature carries of the prior variance of f; one over the diagonal of Kuu,
        ``[M]``.

        One that underflows leaves a feature of no effect, not NaN.
        """
        table, parts = self.effects_of(kernel)
        factors = table.effect_variances
        found = [tf.ones([1], factors.dtype), factors]
        start = 1 + factors.shape[0]
        numeric = [k for k, column in enumerate(table.columns) if column.num_levels is None]
        functions_of = _highest_functions(parts)
        highest = max(((functions_of.get(k, 0) + 1) // 2 for k in numeric), default=0)
        if highest:
            found.append(tf.reshape(table.wave_variances(highest), [-1]))
        levels = start + highest * len(table.lengthscale_columns)
        starts = {}
        for number, column in enumerate(table.columns):
            if column.num_levels is not None:
                found.append(tf.constant(column.level_variances, factors.dtype))
                starts[number] = levels
                levels += column.num_levels
        width = 1 + max(len(effect) for effect, _ in parts)
        rows = []
        for effect, functions in parts:
            places = np.zeros([len(functions), width], np.int64)
            places[:, 0] = 1 + table.place_of(effect)
            for slot, k in enumerate(effect):
                own, place = functions[:, slot], table.lengthscale_place(effect, k)
                if place is None:
                    places[:, 1 + slot] = starts[k] + own - 1
                else:
                    places[:, 1 + slot] = start + place * highest + (own - 1) // 2
            rows.append(places)
        product = tf.reduce_prod(tf.gather(tf.concat(found, axis=0), np.concatenate(rows)), axis=1)
        return tf.maximum(product, least_eigenvalue(product.dtype))

    def explained_terms(self, kernel: Any) -> list[DiagonalTerm]:
        """The variance of the features, the same everywhere."""
        table, parts = self.effects_of(kernel)
        # Of a column of categories, that of known levels; it is the same of the one beyond them.
        known = np.concatenate(
            [
                np.all(
                    [own != table.columns[c].num_levels for c, own in zip(e, f.T, strict=True)], 0
                )
                if e
                else np.ones(len(f), np.bool_)
                for e, f in parts
            ]
        )

        def total() -> tf.Tensor:
            variances = self.prior_variances(kernel)
            return tf.reduce_sum(tf.boolean_mask(variances, known))

        return [(lambda X: tf.ones_like(X[..., 0]), total)]


def _highest_functions(parts: Parts) -> dict[int, int]:
    """The number of functions of each column that occurs."""
    highest: dict[int, int] = {}
    for effect, functions in parts:
        for column, own in zip(effect, functions.T, strict=True):
            highest[column] = max(highest.get(column, 0), int(np.max(own)))
    return dict(sorted(highest.items()))
