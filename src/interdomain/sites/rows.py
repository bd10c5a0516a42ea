"""What each row adds to the sums of sites: Gaussian factors that stand for a likelihood at a q.

With the moments mu and v of f at row n under q, and E the expected log-likelihood, the site of the
row is ``exp(lambda f - beta f^2 / 2)`` with

    alpha = dE / d mu,    beta = -2 dE / d v,    lambda = alpha + beta mu,

tangent to E at q (Khan and Lin 2017, eq. 11; Adam, Chang, Khan and Solin 2021, eq. 18). A
natural-gradient step of size one leads to the q that is made of the prior and all sites. For
likelihoods that are not log-concave beta may be negative; negative parts are summed separately, so
that a model can leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from scipy.linalg import get_blas_funcs

from .._arguments import Array
from .._targets import targets_type
from .._tracing import compiled
from ..core.pairs import Kuu_operator
from ..regression.features import Features
from .algebra import expectations

# Of the largest precision in a batch: negative ones that are smaller are those of quadrature.
_ROUNDING = 1e-9


def variances_of_q(root: Array, whitened: Array) -> Array:
    """The squared norms of the columns of ``root^T whitened``, ``[n, L]``: most of the time of a
    pass, which BLAS halves for triangles.

    :param root: Lower triangles, ``[L, M, M]``.
    :param whitened: ``[M, n]``.
    """
    multiply = get_blas_funcs("trmm", (root, whitened))
    with np.errstate(over="ignore", invalid="ignore"):  # of a q that is far off
        parts = [multiply(1.0, part.T, whitened.T, side=1, trans_a=1).T for part in root]
        return np.stack([np.einsum("ij,ij->j", part, part) for part in parts], axis=1)


def derivatives(
    function: Callable[[], tf.Tensor], inputs: Sequence[tf.Tensor], variables: Sequence[tf.Variable]
) -> tuple[tf.Tensor, list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """A function's value and its gradients by ``inputs``; and by the P numbers in ``variables`` its
    slopes, ``[P]``, and second derivatives, ``[P, P]``."""
    zero, size = tf.UnconnectedGradients.ZERO, len(inputs)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([*inputs, *variables])
            value = function()
        gradients = tape.gradient(value, [*inputs, *variables], unconnected_gradients=zero)
        slopes = [tf.reshape(tf.convert_to_tensor(slope), [-1]) for slope in gradients[size:]]
        numbers = [number for slope in slopes for number in tf.unstack(slope)]
    curvatures = [
        tf.reshape(tf.convert_to_tensor(part), [-1])
        for number in numbers
        for part in outer.gradient(number, variables, unconnected_gradients=zero)
    ]
    none = tf.zeros([0], value.dtype)  # a likelihood may have no parameters
    square = tf.reshape(tf.concat([none, *curvatures], axis=0), [len(numbers), len(numbers)])
    return value, gradients[:size], tf.concat([none, *slopes], axis=0), square


class SiteContributions:
    """The sites of rows at a q, compiled once for all values of q and of the parameters.

    :param features: The features of the rows; its "outputs" are the L latent GPs.
    :param num_targets: The number of columns of Y.
    """

    def __init__(self, features: Features, likelihood: Likelihood, num_targets: int) -> None:
        self.features, self.likelihood = features, likelihood
        self._targets_type = targets_type(likelihood)
        self._variables = _trained(likelihood)
        size, num_latents = features.num_inducing, features.num_outputs

        def spec(*shape: int | None) -> tf.TensorSpec:
            return tf.TensorSpec(shape, gpflow.default_float())

        X, of_rows = spec(None, features.num_columns), spec(None, num_latents)
        stacked = spec(features.num_stacked, None), spec(features.num_terms, None)
        Y = tf.TensorSpec([None, num_targets], self._targets_type)
        first, second = [X, spec(size, num_latents)], [X, Y, *stacked, of_rows, of_rows, of_rows]
        self._features_of_rows = compiled(self._features_of, input_signature=first)
        self._sites = compiled(self._sites_of, input_signature=second)
        # Now: passes run with tapes paused (tf.init_scope), where no gradient could be traced.
        for traced in (self._features_of_rows, self._sites):
            traced.get_concrete_function()

    def is_current(self, features: Features, likelihood: Likelihood) -> bool:
        """Whether this was made of these, with the parameters that are trainable now."""
        known, now = self._variables, _trained(likelihood)
        same = self.features is features and self.likelihood is likelihood
        return same and [id(v) for v in known] == [id(v) for v in now]

    def evaluate(
        self, X: Array, Y: Array, q: tuple[tf.Tensor, tf.Tensor]
    ) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
        """The sites of n rows.

        :param q: The mean ``[M, L]`` and the root ``[L, M, M]``, lower triangles, of q(v).
        :return: Features and columns of the mean function, ``[K, n]``; beta, or zero where it is
            negative; beta where it is negative; lambda, with zero for a negative beta, each
            ``[L, n]``; and sums over the rows, in float64: "shifts" ``[K, L]`` and "variances"
            ``[T, L]``, with negative precisions taken for zero, and what these change as
            "negative_shifts" and "negative_variances"; "expectations", their "slopes" ``[P]`` and
            "curvatures" ``[P, P]``, by the P trainable numbers of the likelihood.
        """
        X, Y = tf.constant(X, gpflow.default_float()), tf.cast(Y, self._targets_type)
        q_mean, q_root = q
        stacked, terms, whitened, left, mean, offset = self._features_of_rows(X, q_mean)
        explained = variances_of_q(np.asarray(q_root), np.asarray(whitened))
        variance = tf.constant(np.maximum(np.asarray(left), 0.0)[:, None] + explained)
        *of_rows, sums = self._sites(X, Y, stacked, terms, mean, offset, variance)
        precisions, negative, shifts = (np.asarray(part) for part in of_rows)
        sums = {name: part.numpy() for name, part in sums.items()}
        return np.asarray(stacked), precisions, negative, shifts, sums

    def sums(self, X: Array, Y: Array, q: tuple[tf.Tensor, tf.Tensor]) -> dict[str, Array]:
        """The sums of :meth:`evaluate`, "precisions" ``[L, K, K]``, and "negative_precisions" if
        any are negative.
        """
        stacked, precisions, negative, _, sums = self.evaluate(X, Y, q)
        sums["precisions"] = _weighted_products(stacked, precisions)
        if np.any(negative):
            sums["negative_precisions"] = -_weighted_products(stacked, -negative)
        return sums

    def _features_of(self, X: tf.Tensor, q_mean: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """What comes before the variances under q: features and columns of the mean function, ``[K,
        n]``; terms of the prior variance, ``[T, n]``; covariances with whitened inducing variables,
        ``[M, n]``; the prior variance that these do not explain, ``[n]``; the mean of f under q,
        ``[n, L]``; and the part of it that sites do not cover: the value of a mean function whose
        columns are not known."""
        features = self.features
        Kuf, columns, terms = features.of_rows(X)
        kuu = Kuu_operator(
            features.inducing_variable, features.kernel, jitter=gpflow.config.default_jitter()
        )
        whitened = kuu.root().solve(Kuf)
        factors = features.diagonal_factors()
        explained = tf.where(features.incomplete[:, None], tf.square(whitened), 0.0)
        left = tf.linalg.matvec(terms, factors, transpose_a=True) - tf.reduce_sum(explained, axis=0)
        mean = tf.matmul(whitened, q_mean, transpose_a=True)
        offset = tf.broadcast_to(features.mean.rest(X), tf.shape(mean))
        mean += offset + tf.matmul(columns, features.mean.weights(), transpose_a=True)
        return tf.concat([Kuf, columns], axis=0), terms, whitened, left, mean, offset

    def _sites_of(
        self,
        X: tf.Tensor,
        Y: tf.Tensor,
        stacked: tf.Tensor,
        terms: tf.Tensor,
        mean: tf.Tensor,
        offset: tf.Tensor,
        variance: tf.Tensor,
    ) -> tuple[Any, ...]:
        """What follows the features in :meth:`evaluate`."""

        def expected() -> tf.Tensor:
            return tf.reduce_sum(expectations(self.likelihood, X, mean, variance, Y))

        total, (to_mean, to_variance), slopes, curvatures = derivatives(
            expected, [mean, variance], self._variables
        )
        beta = -2 * to_variance
        is_negative = beta < -_ROUNDING * tf.reduce_max(tf.abs(beta))
        precisions, negative = tf.maximum(beta, 0.0), tf.where(is_negative, beta, 0.0)
        shifts = to_mean + precisions * (mean - offset)
        parts = {
            "shifts": tf.matmul(stacked, shifts),
            "variances": tf.matmul(terms, precisions),
            "negative_shifts": tf.matmul(stacked, negative * (mean - offset)),
            "negative_variances": tf.matmul(terms, negative),
            "expectations": total,
            "slopes": slopes,
            "curvatures": curvatures,
        }
        of_rows = [tf.linalg.matrix_transpose(part) for part in (precisions, negative, shifts)]
        return *of_rows, {name: tf.cast(part, tf.float64) for name, part in parts.items()}


def _trained(likelihood: Likelihood) -> list[tf.Variable]:
    return [parameter.unconstrained_variable for parameter in likelihood.trainable_parameters]


def _weighted_products(stacked: Array, weights: Array) -> Array:
    """``S diag(w) S^T`` for weights ``[L, n]`` that are not negative, in float64, ``[L, K, K]``."""
    stacked = stacked.astype(np.float64, copy=False)
    products = np.zeros([len(weights), len(stacked), len(stacked)])
    for product, of_latent in zip(products, weights.astype(np.float64), strict=True):
        rows = np.flatnonzero(of_latent)  # few, of those that were negative
        some = stacked if len(rows) == len(of_latent) else stacked[:, rows]
        scaled = some * np.sqrt(of_latent[rows])
        # NumPy knows that the product is symmetric, and computes half of it.
        np.matmul(scaled, scaled.T, out=product)
    return products
