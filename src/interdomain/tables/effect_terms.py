"""Effects of sets of columns under the distribution of given rows, as sums of centred functions.

In ``f = sum_m w_m phi_m(x)``, a feature phi is the product of functions psi of its columns. Kuu is
diagonal: one over the prior variances s of the weights. So ``w = Kuu^{-1} u = s u``; with whitened
variables v of prior N(0, I), ``w = sqrt(s) v``. Under a product of distributions of the columns,
psi has the means m. A feature of an effect e is then a sum over the subsets S of its columns:

    prod_{i in e} psi_i(x_i) = sum_S prod_{i in S} (psi_i(x_i) - m_i) prod_{i in e, not in S} m_i.

So f is a sum over sets of columns again. Its terms are orthogonal to each other, and its
coefficients are linear in the weights. (Sobol 2001; for these models Durrande et al. 2013.)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from scipy.sparse import coo_matrix

from .._arguments import Array, IntArray, filled_matrix
from .columns import Column
from .features import AdditiveFeatures
from .kernel import Additive, Effect
from .reading import is_frame

_ROUNDING = 1e-12
"""The size below which means count as zero; functions are of order one."""


class Weights(NamedTuple):
    """The posterior of the weights of the features of a sum of effects.

    :ivar left_over: The unexplained prior variance of the constant and of each effect, ``[1 + E]``.
    :ivar mean: The mean of the weights, ``[M]``.
    :ivar root: A root of the covariance of the weights, ``[M, R]``.
    """

    table: Additive
    features: AdditiveFeatures
    left_over: Array
    mean: Array
    root: Array


class ColumnFunctions(NamedTuple):
    """The functions of one column and their moments over rows; function 0 is the constant.

    :ivar means: The means of the functions, ``[1 + h]``.
    :ivar covariances: The covariances of the functions, ``[1 + h, 1 + h]``.
    """

    column: Column
    means: Array
    covariances: Array

    def centred(self, values: Array) -> Array:
        """The functions minus their means at values ``[N]``, ``[1 + h, N]``."""
        return _functions(self.column, len(self.means) - 1, values) - self.means[:, None]


def _functions(column: Column, highest: int, values: Array) -> Array:
    """The constant, and the first functions of a column, at values ``[N]``, ``[1 + h, N]``."""
    x = tf.constant(values, gpflow.default_float())
    functions = np.asarray(column.functions(column.coordinates(x), highest), float)
    return np.concatenate([np.ones([1, len(values)]), functions])


class EffectTerm(NamedTuple):
    """The effect of a set of columns: ``sum_b beta_b prod_i (psi_{b_i}(x_i) - m_{b_i})``.

    :ivar effect: The columns.
    :ivar columns: The functions of each column.
    :ivar functions: The numbers b of the functions, ``[n, k]``.
    :ivar mean: The mean of the coefficients beta, ``[n]``.
    :ivar root: The rows, for beta, of a root of the covariance of all coefficients, ``[n, R]``.
    :ivar left_over: The prior variance of the effect that its functions do not explain.
    """

    effect: Effect
    columns: tuple[ColumnFunctions, ...]
    functions: IntArray
    mean: Array
    root: Array
    left_over: float

    def at(self, centred: Sequence[Array]) -> tuple[Array, Array]:
        """The mean and the variance of the effect, ``[N]`` each, from the centred functions of each
        column at N rows, ``[1 + h, N]``."""
        products = np.ones([1, centred[0].shape[1]])
        for functions, values in zip(self.functions.T, centred, strict=True):
            products = products * values[functions]
        spread = products.T @ self.root
        return self.mean @ products, np.sum(spread**2, axis=1) + self.left_over

    def variances(self, coefficients: Array) -> Array:
        """The variances of the effect under the measure, ``[S]``, for coefficients ``[n, S]``."""
        gram = np.ones([1, 1])
        for functions, column in zip(self.functions.T, self.columns, strict=True):
            gram = gram * column.covariances[np.ix_(functions, functions)]
        # Rounding could make it negative.
        return np.asarray(np.maximum(np.sum(coefficients * (gram @ coefficients), axis=0), 0.0))


def column_functions(weights: Weights, rows: Array) -> list[ColumnFunctions]:
    """The functions of each column over rows ``[N, D]``, as many as the features use."""
    highest, results = weights.features.highest_functions(), []
    for k, (column, values) in enumerate(zip(weights.table.columns, rows.T, strict=True)):
        functions = _functions(column, highest.get(k, 0), values)
        means = np.mean(functions, axis=1)
        means[np.abs(means) < _ROUNDING] = 0.0
        centred = functions - means[:, None]
        results.append(ColumnFunctions(column, means, centred @ centred.T / len(values)))
    return results


def effect_terms(weights: Weights, columns: Sequence[ColumnFunctions]) -> dict[Effect, EffectTerm]:
    """The constant and all effects, by their sets of columns; small sets come first."""
    # By effect: the centred functions, the numbers of the features, and the products of the means
    # of all other functions.
    entries: dict[Effect, list[tuple[IntArray, IntArray, Array]]] = {}
    start = 0
    for effect, functions in weights.features.by_effect():
        features, places = start + np.arange(len(functions)), range(len(effect))
        start += len(features)
        subsets = (itertools.combinations(places, size) for size in range(len(places) + 1))
        for kept in itertools.chain.from_iterable(subsets):
            # A function contributes its mean to the effect of the other columns.
            factors = np.ones(len(features))
            for place in set(places) - set(kept):
                factors = factors * columns[effect[place]].means[functions[:, place]]
            used = np.flatnonzero(factors)
            if len(used):
                entry = functions[used][:, list(kept)], features[used], factors[used]
                entries.setdefault(tuple(effect[k] for k in kept), []).append(entry)
    left_over = dict(zip([(), *weights.table.effects], weights.left_over, strict=True))
    terms = {}
    for effect in sorted(entries, key=lambda effect: (len(effect), effect)):
        functions, features, factors = (
            np.concatenate(arrays) for arrays in zip(*entries[effect], strict=True)
        )
        functions, rows = np.unique(functions, axis=0, return_inverse=True)
        shape = len(functions), len(weights.mean)
        collect = coo_matrix((factors, (rows.ravel(), features)), shape=shape).tocsr()
        mean, root = collect @ weights.mean, collect @ weights.root
        effect_columns = tuple(columns[column] for column in effect)
        rest = left_over.get(effect, 0.0)
        terms[effect] = EffectTerm(effect, effect_columns, functions, mean, root, rest)
    return terms


def rows_with_all_columns(table: Additive, X: Any) -> Array:
    """Rows as numbers, with all columns of the model, ``[N, D]``; categories of a frame are
    encoded."""
    if is_frame(X) and len(list(X.columns)) == table.num_columns:
        return table.encode(X)
    return filled_matrix("X", X, "a matrix [N, D]")


def rows_of_table(table: Additive, X: Array) -> Array:
    """The columns of the table, ``[N, D]``, of rows that have all columns of the model."""
    return np.asarray(table.seen(tf.constant(X, gpflow.default_float())), float)
