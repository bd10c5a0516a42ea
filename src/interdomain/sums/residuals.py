"""The gains in the bound of a collapsed model from features that the model lacks.

Row n has a Gaussian site of precision beta_n (for regression, 1 / noise variance); r_n is the slope
of the site's log density at the model's mean. A are features that the model lacks, and B its own,
each divided by the prior standard deviation of its inducing variable. Under the prior of finite
rank, adding a feature a raises the log marginal likelihood by

    (c^2 / h - log h) / 2,    c = a^T r,    W = diag(beta),
    h = 1 + a^T W a - a^T W B^T (I + B W B^T)^{-1} B W a.

If features leave out a part of their kernel, the bound has a charge for this part, which a reduces.
The bound then rises further by ``a^T W a / 2`` times the price: the derivative of the charge (or by
slightly more, if the charge is a logarithm). With several latent GPs, gains are summed over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from scipy.linalg.blas import dger

from .._arguments import Array, IntArray
from .._tracing import operation_by_operation
from ..core.family import Block
from ..core.pairs import Kuf_in_domain, Kuu_operator
from .features import Features
from .passes import total_over

_BATCH_ENTRIES = 2**22
"""The count of feature values of the rows that are processed at a time."""

SlopesOf: TypeAlias = Callable[..., tuple[tf.Tensor, tf.Tensor]]
"""A function of the mean ``[n, L]``, Y and, if rows have weights, the weights ``[n, 1]``: the
slopes r ``[n, L]`` and precisions beta, ``[n, L]``, or ``[n, 1]`` for all latent GPs."""


class CandidateSums(NamedTuple):
    """The sums over rows that give the gains of K features that the model lacks.

    :ivar products: c, for each latent GP, ``[K, L]``.
    :ivar squares: ``a^T W a``, ``[K, L]`` or ``[K, 1]``.
    :ivar precisions: For few features ``I + A W A^T - A W B^T (I + B W B^T)^{-1} B W A^T``,
        ``[L, K, K]``, or one for all latent GPs.
    """

    products: Array
    squares: Array
    precisions: Array = np.zeros([0, 0, 0])

    def gains(self, price: float) -> Array:
        """The increase of the bound by each feature, as if it were orthogonal to B, ``[K]``.

        :param price: The price, as above; zero if the features represent their whole kernel.
        """
        return _gains(self.products, 1 + self.squares, price * self.squares)

    def best(self, owners: IntArray, limit: int, price: float, least_gain: float) -> list[int]:
        """The atoms (sets of features) that raise the bound most, chosen one by one, each given the
        atoms before it.

        :param owners: The number of the atom of each feature, ``[K]``.
        :param limit: The largest number of features.
        :param price: As for :meth:`gains`.
        :param least_gain: The least gain per feature; atoms with smaller gains are not chosen.
        """
        left_out = price * self.squares
        products = self.products.copy()
        precisions = [np.asfortranarray(precision) for precision in self.precisions]
        latents = np.array_split(np.arange(products.shape[1]), len(precisions))
        sizes = np.bincount(owners)
        waiting, chosen = np.ones(len(sizes), np.bool_), []
        while np.any(possible := waiting & (sizes <= limit)):
            # An atom of several features counts as if its features were orthogonal.
            diagonals = np.stack([np.diagonal(precision) for precision in precisions], axis=1)
            gains = np.bincount(owners, _gains(products, np.maximum(diagonals, 1.0), left_out))
            means = np.where(possible, gains / sizes, -np.inf)
            atom = int(np.argmax(means))
            if means[atom] <= least_gain:
                break
            chosen.append(atom)
            waiting[atom] = False
            limit -= int(sizes[atom])
            for feature in np.flatnonzero(owners == atom):
                for precision, columns in zip(precisions, latents, strict=True):
                    # The entry is 1 or more, but rounding may reduce it if the feature is nearly
                    # a combination of others.
                    root = np.sqrt(max(precision[feature, feature], 1.0))
                    column, fit = precision[:, feature] / root, products[feature, columns] / root
                    products[:, columns] -= np.outer(column, fit)
                    dger(-1.0, column, column, a=precision, overwrite_a=1)
                    precision[feature, feature] = 1.0  # chosen: no division by zero
        return chosen


def _gains(products: Array, precisions: Array, left_out: Array) -> Array:
    gains: Array = np.sum(np.square(products) / precisions - np.log(precisions) + left_out, axis=1)
    return gains / 2


class Residuals(NamedTuple):
    """Passes over the rows that compute :class:`CandidateSums` of features that a model lacks.

    :ivar batches: Function that returns the rows (X, Y) in batches.
    :ivar slopes_of: The slopes and precisions of the rows' sites.
    :ivar features: The features of the model, whose mean is ``m(X) + Kfu weights``.
    :ivar weights: ``[M, L]``.
    :ivar halves: ``H H^T = R^{-T} (I + B W B^T)^{-1} R^{-1}``, R a root of Kuu, ``[L, M, M]``, or
        one for all latent GPs.
    :ivar price: The factor of ``tr W (Kff - Qff) / 2`` in the bound's charge.
    """

    batches: Callable[[], Iterable[tuple[Array, ...]]]
    slopes_of: SlopesOf
    features: Features
    weights: tf.Tensor
    halves: Array
    price: float = 1.0

    def screen(self, block: Block) -> CandidateSums:
        """The sums for any number of features, without products of different features.

        :param block: Features with a diagonal Kuu, and the kernel they belong to, whose columns are
            those of X.
        """
        sums, scales = self._over_rows(block, together=False)
        return CandidateSums(sums["products"] * scales, sums["squares"] * scales**2)

    def compare(self, block: Block) -> CandidateSums:
        """The sums for few features, with their products with each other and the model's features.

        :param block: As for :meth:`screen`.
        """
        sums, scales = self._over_rows(block, together=True)
        precisions = sums["grams"] * (scales * scales.T)
        squares = np.diagonal(precisions, axis1=1, axis2=2).T.copy()
        known = scales * (sums["crosses"] @ self.halves)
        precisions -= known @ known.transpose(0, 2, 1)
        precisions[:, np.arange(len(scales)), np.arange(len(scales))] += 1.0
        return CandidateSums(sums["products"] * scales, squares, precisions)

    def _over_rows(self, block: Block, *, together: bool) -> tuple[dict[str, Array], Array]:
        """The sums, and the factors that scale the features to a prior variance of one, ``[K,
        1]``."""
        model, dtype = self.features, gpflow.default_float()
        variances = Kuu_operator(*block).diag_part()
        num_rows = max(_BATCH_ENTRIES // (model.num_inducing + variances.shape[0]), 1)

        @operation_by_operation()  # these features are seen in a few batches, and never again
        def row_sums(*parts: Array) -> Mapping[str, tf.Tensor]:
            X, *targets = (tf.constant(part, dtype) for part in parts)
            known = Kuf_in_domain(model.inducing_variable, model.kernel, X)
            mean = model.mean_function(X) + tf.matmul(known, self.weights, transpose_a=True)
            slopes, precisions = self.slopes_of(mean, *targets)
            others = Kuf_in_domain(*block, X)
            sums = {"products": tf.matmul(others, slopes)}
            if together:
                weighted = others * tf.linalg.matrix_transpose(precisions)[:, None]
                sums["grams"] = tf.matmul(weighted, others, transpose_b=True)
                sums["crosses"] = tf.matmul(weighted, known, transpose_b=True)
            else:
                sums["squares"] = tf.matmul(tf.square(others), precisions)
            return {name: tf.cast(part, tf.float64) for name, part in sums.items()}

        parts = (
            tuple(part[start : start + num_rows] for part in batch)
            for batch in self.batches()
            for start in range(0, len(batch[0]), num_rows)
        )
        scales = 1 / np.sqrt(variances.numpy().astype(np.float64))
        return total_over(parts, row_sums), scales[:, None]
