"""The bound and q of intercepts of groups and of dense features, without a dense matrix [L, L].

The weights of L intercepts and B other features have the precision ``P = Kuu + G / s``. With the
numbers n of rows of the intercepts, the border C and corner D of G, and ``f = 1 / (s Kuu + n)``,

    s P = [[1 / f, C], [C^T, s Kuu + D]],    S = Kuu + (D - C^T f C) / s,

where S is the precision of the other features' weights. With ``r = Kuf (Y - m)``, S and
``r_2 - C^T f r_1`` replace P and r in dense computations. Given the weights w of the other
features, the intercepts are independent with means ``f (r_1 - C w)`` and variances ``s f``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from .._arguments import Array, BoolArray
from .._tracing import numpy_function
from ..core.pairs import Kuu_operator
from ..linalg import StructuredOperator
from ..linalg.precision import checked
from .dense import Collapsed, check_dense, root_of, whiten
from .protocol import Tensors

_NOT_POSITIVE = (
    "Kuu + Kuf Kfu / s, s being the noise variance, is not positive definite: sites of negative "
    "precision outweigh the prior of an intercept."
)


class GroupGram(NamedTuple):
    """A sum of products of features, of which the first L are intercepts of one column of groups.

    :ivar counts: The products of each of the L intercepts with itself, ``[L]``.
    :ivar border: The products of the intercepts with the B other features, ``[L, B]``.
    :ivar corner: The products of the other features with each other, ``[B, B]``.
    """

    counts: Any
    border: Any
    corner: Any

    def packed(self) -> Array:
        """All numbers of the sum as one vector, an array."""
        return np.concatenate([np.ravel(part) for part in self])

    @classmethod
    def unpacked(cls, numbers: tf.Tensor, size: int, others: int) -> GroupGram:
        """The sum with the numbers of a vector.

        :param size: L.
        :param others: B.
        """
        counts, border, corner = tf.split(numbers, [size, size * others, others**2])
        border, corner = tf.reshape(border, [size, others]), tf.reshape(corner, [others, others])
        return cls(counts, border, corner)


class GroupCollapsed(NamedTuple):
    """The terms of the bound and q for intercepts: see :class:`.protocol.Collapsed`.

    :ivar sums: The :class:`.GroupSums` of the features.
    :ivar first: The diagonal of Kuu of the first L features, the intercepts, ``[L]``.
    :ivar others: Kuu of the other features.
    :ivar gram: G.
    :ivar columns: ``Kuf (Y - m)``, the first features first, ``[L + B, P]``.
    :ivar gram_gradient: Whether G has a gradient.
    """

    sums: Any
    first: tf.Tensor
    others: StructuredOperator
    gram: GroupGram
    columns: tf.Tensor
    gram_gradient: bool

    def terms(self, noise_variance: tf.Tensor, *, refuse: bool = True) -> Tensors:
        """The terms ``log det B`` and ``|c|^2``; the first features are eliminated."""
        factors, rest = self._eliminated(noise_variance, refuse=refuse)
        log_determinant, fit = rest.terms(noise_variance, refuse=refuse)
        log_determinant -= tf.reduce_sum(tf.math.log(noise_variance * self.first * factors))
        squares = factors[:, None] * tf.square(self._columns()[0])
        return log_determinant, fit + tf.reduce_sum(squares) / noise_variance

    def _columns(self) -> Tensors:
        size = self.first.shape[0]
        return self.columns[:size], self.columns[size:]

    def _eliminated(
        self, noise_variance: tf.Tensor, *, refuse: bool = True
    ) -> tuple[tf.Tensor, Collapsed]:
        """The factors f, ``[L]``, and the collapsed posterior of the other features.

        :raises tf.errors.InvalidArgumentError: If a factor is not positive, unless ``refuse`` is
            False.
        """
        counts, border, corner = self.gram
        precisions = noise_variance * self.first + counts
        ok = tf.cast(tf.reduce_all(tf.logical_not(precisions <= 0)), tf.float64)
        factors = tf.where(precisions > 0, 1 / precisions, np.nan)
        message = _NOT_POSITIVE if refuse else None
        (factors,) = checked(ok, [factors], [self.first.shape], message)
        first, others = self._columns()
        others -= tf.matmul(border, factors[:, None] * first, transpose_a=True)
        gram = corner - _products(border, factors, self.gram_gradient)
        return factors, whiten(self.others.root(), gram, others, gram_gradient=True)

    def explained_variance(self, incomplete: BoolArray) -> tf.Tensor:
        """The trace ``tr Kuu^{-1} G`` over features that leave out a part of their kernel."""
        size, (counts, _, corner) = self.first.shape[0], self.gram
        first_incomplete, others_incomplete = np.split(incomplete[self.sums.groups.order], [size])
        total = tf.zeros([], tf.float64)
        if np.any(first_incomplete):
            total += tf.reduce_sum(counts / self.first)
        if np.any(others_incomplete):
            columns = self._columns()[1]
            whitened = whiten(self.others.root(), corner, columns, gram_gradient=True)
            total += whitened.explained_variance(others_incomplete)
        return total

    def whitened_q(self, noise_variance: tf.Tensor) -> Tensors:
        """The mean and root of the optimal whitened q as dense matrices, for few features.

        :raises ValueError: If the features are too many.
        """
        return self._dense().whitened_q(noise_variance)

    def weights(self, noise_variance: tf.Tensor) -> Tensors:
        """The mean ``[M, P]`` and a dense root ``[M, M]`` of the covariance of the weights.

        :raises ValueError: If the weights are too many.
        """
        return self._dense().weights(noise_variance)

    def _dense(self) -> Collapsed:
        """The collapsed posterior in dense matrices, in the order of all features.

        :raises ValueError: If the features are too many.
        """
        features, (counts, border, corner) = self.sums.features, self.gram
        check_dense(features.num_inducing, "groups")
        rows = tf.concat([tf.linalg.diag(counts), border], axis=1)
        below = tf.concat([tf.linalg.matrix_transpose(border), corner], axis=1)
        order, gram = np.argsort(self.sums.groups.order), tf.concat([rows, below], axis=0)
        gram = tf.gather(tf.gather(gram, order), order, axis=1)
        jitter = gpflow.config.default_jitter()
        kuu = Kuu_operator(features.inducing_variable, features.kernel, jitter=jitter)
        columns = tf.gather(self.columns, order)
        return whiten(root_of(kuu), gram, columns, gram_gradient=True)

    def mean_of_weights(self, noise_variance: tf.Tensor) -> Array:
        factors, rest = self._eliminated(noise_variance)
        others = rest.mean_of_weights(noise_variance)
        first = factors[:, None] * (self._columns()[0] - tf.matmul(self.gram.border, others))
        mean: Array = np.concatenate([first, others])
        return mean[np.argsort(self.sums.groups.order)]

    def posterior(self, noise_variance: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The posterior of the weights, the first features first: the mean, ``[L + B, P]``; a root
        of the covariance of the other features, ``[B, B]``; and the slopes ``f C``, ``[L, B]``, and
        variances, ``[L]``, of the first features given the other features."""
        factors, rest = self._eliminated(noise_variance)
        mean, root = rest.weights(noise_variance)
        slopes = factors[:, None] * self.gram.border
        first = factors[:, None] * self._columns()[0] - tf.matmul(slopes, mean)
        return tf.concat([first, mean], axis=0), root, slopes, noise_variance * factors


def _products(border: tf.Tensor, factors: tf.Tensor, has_gradient: bool) -> tf.Tensor:
    """``C^T diag(f) C`` for positive factors, ``[B, B]``.

    :param has_gradient: Whether C has a gradient.
    """
    if has_gradient:
        return tf.matmul(border, factors[:, None] * border, transpose_a=True)

    def symmetric(border: Array, factors: Array) -> Array:
        with np.errstate(invalid="ignore"):  # if parameters are far off
            scaled = np.sqrt(factors)[:, None] * border
        # NumPy detects the symmetric product, and computes half of it.
        product: Array = scaled.T @ scaled
        return product

    def slopes(border: Array, upstream: Array) -> Array:
        gradient: Array = np.einsum("lb,lb->l", border @ upstream, border)
        return gradient

    @tf.custom_gradient
    def products(factors: tf.Tensor) -> Any:
        product = numpy_function(symmetric, [border, factors], tf.float64, stateful=False)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            found = numpy_function(slopes, [border, upstream], tf.float64, stateful=False)
            return tf.ensure_shape(found, factors.shape)

        return tf.ensure_shape(product, [border.shape[1]] * 2), gradient

    return products(factors)
