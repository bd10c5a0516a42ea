"""Effects of sets of columns under the distribution of some rows, as sums of centred functions.

Under a product of distributions of the columns, with means m of their functions psi, a feature of
an effect e is a sum over the subsets S of its columns:

    prod_{i in e} psi_i(x_i) = sum_S prod_{i in S} (psi_i(x_i) - m_i) prod_{i in e, not in S} m_i.

So f is a sum over sets of columns again, each orthogonal to the others, and its coefficients are
linear in the weights of the features. (Sobol 2001; for these models Durrande et al. 2013.)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import gpflow
import numpy as np
import tensorflow as tf
from scipy.sparse import coo_matrix

from ..kernels import Additive
from ..kernels.additive.columns import Column
from ..sphere._typing import Array, IntArray
from ._weights import Weights

Effect = tuple[int, ...]

Entry = tuple[IntArray, IntArray, Array]
"""Of some features: the functions that are centred ``[m, k]``, the numbers of the features, and
the products of the means of the others, ``[m]``."""

_ROUNDING = 1e-12
"""Means below it are zero: functions are of order one."""


@dataclass(frozen=True)
class ColumnFunctions:
    """The functions of one column, and their moments; number 0 is the constant.

    :ivar column: The column.
    :ivar means: ``[1 + h]``.
    :ivar covariances: ``[1 + h, 1 + h]``.
    """

    column: Column
    means: Array
    covariances: Array

    @classmethod
    def under(cls, column: Column, highest: int, values: Array | None) -> ColumnFunctions:
        """The moments of the first functions of a column.

        :param values: Values of the column, ``[N]``; None for all that the model knows: values
            everywhere in the box, or levels of equal weight.
        """
        if values is not None:
            functions = _functions(column, highest, values)
        elif column.num_levels is not None:
            functions = column.functions(tf.range(column.num_levels), highest)
        else:  # orthonormal, and orthogonal to the constant
            first = np.eye(1 + highest)[0]
            return cls(column, first, np.diag(1 - first))
        found = np.asarray(functions, float)
        found = np.concatenate([np.ones([1, found.shape[1]]), found])
        means = np.mean(found, axis=1)
        means[np.abs(means) < _ROUNDING] = 0.0
        centred = found - means[:, None]
        return cls(column, means, centred @ centred.T / found.shape[1])

    def centred(self, values: Array) -> Array:
        """The functions without their means at values ``[N]``, ``[1 + h, N]``."""
        found = np.asarray(_functions(self.column, len(self.means) - 1, values), float)
        return np.concatenate([np.zeros([1, len(values)]), found - self.means[1:, None]])


def _functions(column: Column, highest: int, values: Array) -> tf.Tensor:
    x = tf.constant(values, gpflow.default_float())
    return column.functions(column.coordinates(x), highest)


@dataclass(frozen=True)
class EffectTerm:
    """The effect of a set of columns: ``sum_b beta_b prod_i (psi_{b_i}(x_i) - m_{b_i})``.

    :ivar effect: The columns.
    :ivar columns: The functions of each.
    :ivar functions: Their numbers b, ``[n, k]``.
    :ivar mean: Of the coefficients beta, ``[n]``.
    :ivar root: Rows of a root of the covariance of all coefficients, ``[n, R]``.
    :ivar left_over: The prior variance that the effect has beyond its functions.
    """

    effect: Effect
    columns: tuple[ColumnFunctions, ...]
    functions: IntArray
    mean: Array
    root: Array
    left_over: float

    def at(self, centred: Sequence[Array]) -> tuple[Array, Array]:
        """Mean and variance, each ``[N]``.

        :param centred: Of each of its columns the functions, ``[1 + h, N]``.
        """
        products = np.ones([1, centred[0].shape[1]])
        for functions, own in zip(self.functions.T, centred, strict=True):
            products = products * own[functions]
        spread = products.T @ self.root
        return self.mean @ products, np.sum(spread**2, axis=1) + self.left_over

    def variances(self, coefficients: Array) -> Array:
        """Under the distribution of the columns, of coefficients ``[n, S]``; ``[S]``."""
        gram = np.ones([1, 1])
        for functions, own in zip(self.functions.T, self.columns, strict=True):
            gram = gram * own.covariances[np.ix_(functions, functions)]
        # Not negative but for rounding.
        return np.asarray(np.maximum(np.sum(coefficients * (gram @ coefficients), axis=0), 0.0))


def column_functions(weights: Weights, rows: Array | None) -> list[ColumnFunctions]:
    """Of each column of the table, with as many functions as the features have.

    :param rows: ``[N, D]``; None for the measure of the model.
    """
    highest = [0] * weights.table.num_columns
    for block in weights.blocks:
        for column, own in zip(block.effect, block.functions.T, strict=True):
            highest[column] = max(highest[column], int(np.max(own)))
    return [
        ColumnFunctions.under(column, most, None if rows is None else rows[:, number])
        for number, (column, most) in enumerate(zip(weights.table.columns, highest, strict=True))
    ]


def effect_terms(weights: Weights, columns: Sequence[ColumnFunctions]) -> dict[Effect, EffectTerm]:
    """The constant, and the effect of each set of columns that has one, those of few first."""
    entries: dict[Effect, list[Entry]] = {}
    start = 0
    for block in weights.blocks:
        features = np.arange(start, start + len(block.functions))
        start += len(features)
        places = range(len(block.effect))
        for size in range(len(block.effect) + 1):
            for kept in itertools.combinations(places, size):
                # What is not centred is a mean: these functions move to the effect of the others.
                factors = np.ones(len(features))
                for place in set(places) - set(kept):
                    means = columns[block.effect[place]].means
                    factors = factors * means[block.functions[:, place]]
                used = np.flatnonzero(factors)
                if len(used):
                    subset = tuple(block.effect[place] for place in kept)
                    functions = block.functions[used][:, list(kept)]
                    entry = functions, features[used], factors[used]
                    entries.setdefault(subset, []).append(entry)
    left_over = {block.effect: block.left_over for block in weights.blocks}
    return {
        effect: _term(effect, found, weights, columns, left_over.get(effect, 0.0))
        for effect, found in sorted(entries.items(), key=lambda entry: (len(entry[0]), entry[0]))
    }


def _term(
    effect: Effect,
    entries: Sequence[Entry],
    weights: Weights,
    columns: Sequence[ColumnFunctions],
    left_over: float,
) -> EffectTerm:
    listed = [tuple(own) for functions, _, _ in entries for own in functions.tolist()]
    places = {own: place for place, own in enumerate(sorted(set(listed)))}
    functions = np.array(list(places), np.int64).reshape([len(places), len(effect)])
    rows = np.array([places[own] for own in listed])
    features = np.concatenate([own for _, own, _ in entries])
    factors = np.concatenate([own for _, _, own in entries])
    shape = (len(functions), len(weights.mean))
    collect = coo_matrix((factors, (rows, features)), shape=shape).tocsr()
    return EffectTerm(
        effect,
        tuple(columns[column] for column in effect),
        functions,
        collect @ weights.mean,
        collect @ weights.root,
        left_over,
    )


def rows_of_table(table: Additive, X: Array) -> Array:
    """The columns of the table, of rows with all columns; ``[N, D]``."""
    return np.asarray(table.seen(tf.constant(X, gpflow.default_float())), float)
