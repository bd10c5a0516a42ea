"""What features that a collapsed model does not have would add to it.

With features A that the model lacks and its own B, each divided by its standard deviation in the
prior, over all rows, the residuals r of its mean, and the noise variance s, adding one feature a
raises the log marginal likelihood of the features' own prior by

    (c^2 / (s h) - log(h / s)) / 2,    c = a^T r,    h = s + a^T a - a^T B^T (B B^T + s I)^{-1} B a.

The bound on the likelihood of a kernel that does not end with its features also rises by ``a^T a /
(2 s)``: so much less is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from scipy.linalg.blas import dger

from .._tracing import compiled
from ..covariances import Kuu_operator
from ..covariances.domains import BoolArray, Kuf_in_domain
from ..covariances.pairs import Block
from ..sphere._typing import Array, IntArray
from ..streaming.contributions import Contributions
from ..streaming.provider import StatisticsProvider

_BATCH_ENTRIES = 2**22
"""Numbers in the features of the rows that are taken at a time."""

_Sums: TypeAlias = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Mapping[str, tf.Tensor]]
"""Of the model's features ``[M, n]``, others ``[C, n]`` and residuals ``[n, P]`` of some rows."""


class ScreeningSums(NamedTuple):
    """Of features that the model lacks, each by itself.

    :ivar products: c, for each column of Y, ``[C, P]``.
    :ivar squares: ``a^T a``, ``[C]``.
    :ivar noise_variance: s.
    """

    products: Array
    squares: Array
    noise_variance: float

    def gains(self, charged: BoolArray) -> Array:
        """By how much each would raise the bound if B had nothing in common with it, ``[C]``.

        :param charged: For each, whether its kernel does not end with the features.
        """
        precisions = self.squares + self.noise_variance
        return _gains(self.products, precisions, self.noise_variance, charged * self.squares)


class CandidateSums(NamedTuple):
    """Of few features that the model lacks, together.

    :ivar products: c, ``[K, P]``.
    :ivar squares: ``a^T a``, ``[K]``.
    :ivar precision: ``s I + A A^T - A B^T (B B^T + s I)^{-1} B A^T``, ``[K, K]``.
    :ivar noise_variance: s.
    """

    products: Array
    squares: Array
    precision: Array
    noise_variance: float

    def best(
        self, owners: IntArray, limit: int, charged: BoolArray, least_gain: float
    ) -> list[int]:
        """The atoms that raise the bound most, one after the other, each given those before.

        :param owners: For each feature the number of its atom, ``[K]``.
        :param limit: The number of features, at most.
        :param charged: As of :meth:`ScreeningSums.gains`.
        :param least_gain: For each feature; atoms that raise the bound by less are left.
        """
        s, charge = self.noise_variance, charged * self.squares
        products = self.products.copy()
        precision = np.asfortranarray(self.precision)
        sizes = np.bincount(owners)
        waiting, chosen = np.ones(len(sizes), np.bool_), []
        while np.any(possible := waiting & (sizes <= limit)):
            # An atom of several features counts as if these were orthogonal.
            diagonal = np.maximum(np.diagonal(precision), s)
            gains = np.bincount(owners, _gains(products, diagonal, s, charge))
            means = np.where(possible, gains / sizes, -np.inf)
            atom = int(np.argmax(means))
            if means[atom] <= least_gain:
                break
            chosen.append(atom)
            waiting[atom] = False
            limit -= int(sizes[atom])
            for feature in np.flatnonzero(owners == atom):
                # It is s or more; of a feature that is nearly one of the others, but for rounding.
                root = np.sqrt(max(precision[feature, feature], s))
                column, fit = precision[:, feature] / root, products[feature] / root
                products -= np.outer(column, fit)
                precision = dger(-1.0, column, column, a=precision, overwrite_a=1)
                precision[feature, feature] = s  # it is in: nothing is left to divide by
        return chosen


def _gains(products: Array, precisions: Array, s: float, charge: Array) -> Array:
    fit = np.sum(np.square(products), axis=1) / (s * precisions)
    return (fit + products.shape[1] * (charge / s - np.log(precisions / s))) / 2  # type: ignore[no-any-return]


class Residuals:
    """What a collapsed model leaves of Y, in passes over its rows.

    :param provider: The rows.
    :param features: Of the model, whose mean is ``m(X) + Kfu weights``.
    :param weights: ``[M, P]``.
    :param half: ``H H^T = R^{-T} (I + B B^T / s)^{-1} R^{-1}``, R a root of Kuu, ``[M, M]``.
    :param noise_variance: s.
    """

    def __init__(
        self,
        provider: StatisticsProvider,
        features: Contributions,
        weights: tf.Tensor,
        half: Array,
        noise_variance: float,
    ) -> None:
        self._provider, self._features, self._weights = provider, features, weights
        self._half, self._noise_variance = half, noise_variance

    def screen(self, block: Block) -> ScreeningSums:
        """Any number of features; nothing of the size of their products with each other is kept.

        :param block: Features with a diagonal Kuu, and the kernel they belong to, whose columns are
            those of X.
        """

        def sums_of(own: tf.Tensor, others: tf.Tensor, rest: tf.Tensor) -> dict[str, tf.Tensor]:
            squares = tf.reduce_sum(tf.square(others), axis=1)
            return {"products": tf.matmul(others, rest), "squares": squares}

        sums, deviations = self._over_rows(block, sums_of)
        products = sums["products"] * deviations[:, None]
        return ScreeningSums(products, sums["squares"] * deviations**2, self._noise_variance)

    def compare(self, block: Block) -> CandidateSums:
        """Few features, with all they have in common with each other and the model's.

        :param block: As of :meth:`screen`.
        """

        def sums_of(own: tf.Tensor, others: tf.Tensor, rest: tf.Tensor) -> dict[str, tf.Tensor]:
            return {
                "products": tf.matmul(others, rest),
                "gram": tf.matmul(others, others, transpose_b=True),
                "cross": tf.matmul(others, own, transpose_b=True),
            }

        sums, deviations = self._over_rows(block, sums_of)
        gram = sums["gram"] * np.outer(deviations, deviations)
        known = deviations[:, None] * (sums["cross"] @ self._half)
        precision = gram - known @ known.T / self._noise_variance
        precision[np.diag_indices(len(precision))] += self._noise_variance
        products = sums["products"] * deviations[:, None]
        squares = np.diagonal(gram).copy()
        return CandidateSums(products, squares, precision, self._noise_variance)

    def _over_rows(self, block: Block, sums_of: _Sums) -> tuple[dict[str, Array], Array]:
        """The sums, and the standard deviations of the features in the prior, ``[C]``."""
        inducing_variable, kernel = block
        model, dtype = self._features, gpflow.default_float()
        precisions = Kuu_operator(inducing_variable, kernel).diag_part()
        num_rows = max(_BATCH_ENTRIES // (model.num_inducing + precisions.shape[0]), 1)

        def of_rows(X: tf.Tensor, Y: tf.Tensor) -> Mapping[str, tf.Tensor]:
            own = Kuf_in_domain(model.inducing_variable, model.kernel, X)
            rest = Y - model.mean_function(X) - tf.matmul(own, self._weights, transpose_a=True)
            return sums_of(own, Kuf_in_domain(inducing_variable, kernel, X), rest)

        signature = [
            tf.TensorSpec([None, model.num_columns], dtype),
            tf.TensorSpec([None, model.num_outputs], dtype),
        ]
        traced = compiled(of_rows, input_signature=signature)

        def of_batch(X: Array, Y: Array) -> Mapping[str, Array]:
            total: dict[str, Array] = {}
            for start in range(0, len(X), num_rows):
                rows = slice(start, start + num_rows)
                found = traced(tf.constant(X[rows], dtype), tf.constant(Y[rows], dtype))
                for name, value in found.items():
                    total[name] = total.get(name, 0.0) + value.numpy().astype(np.float64)
            return total

        sums = self._provider.sums_of(of_batch)
        return sums, 1 / np.sqrt(precisions.numpy().astype(np.float64))
