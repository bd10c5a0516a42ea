"""The q that the prior and Gaussian sites make, and the normaliser of the two, from sums over rows.

With a root R of Kuu and sites ``exp(lambda_n f_n - beta_n f_n^2 / 2)``, for each latent GP

    G = Kuf diag(beta) Kfu,    r = Kuf lambda,    B = I + R^{-1} G R^{-T},
    q(v) = N(B^{-1} R^{-1} r, B^{-1}),    v = R^{-1} u whitened,
    2 log Z = |B^{-1/2} R^{-1} r|^2 - log det(B) - (sum_n beta_n k_nn - tr R^{-1} G R^{-T})

up to a constant. Where sites are tangent to the expected log-likelihood at q, the gradient of log Z
with respect to the kernel's parameters is that of the bound. A mean function ``h(x)^T w`` moves the
sites, and adds ``lambda^T H w - w^T H^T diag(beta) H w / 2`` to log Z.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Bernoulli, Likelihood, MonteCarloLikelihood, Ordinal
from gpflow.likelihoods.utils import inv_probit
from gpflow.quadrature import ndiag_mc

from ..._arguments import Array, BoolArray
from ..._targets import densities_of
from ...linalg import Root
from ...sums.bound import Collapsed, optimal_q, whiten
from ...sums.splines import CompactCollapsed, CompactFeatures
from ...sums.spline_posterior import CompactQ


class Sites(NamedTuple):
    """Sums over the sites of all rows, in float64, of K features and columns of the mean.

    :ivar precisions: Sums of ``beta s s^T``, ``[L, K, K]``; of splines as the vectors of
        ``CompactFeatures.sums``.
    :ivar shifts: Sums of ``lambda s``, ``[K, L]``.
    :ivar variances: Sums of beta times each term of the prior variance, ``[T, L]``.
    """

    precisions: tf.Tensor | Array
    shifts: tf.Tensor | Array
    variances: tf.Tensor | Array

    def mixed(self, other: Sites, share: float) -> Sites:
        """A part of the way to others: a natural-gradient step of size ``share``."""
        return Sites(*((1 - share) * a + share * b for a, b in zip(self, other, strict=True)))


class Prior(NamedTuple):
    """What of the prior the sums are compared with.

    :ivar root: R; None of splines.
    :ivar weights: The weights of the columns of the mean function, ``[H, L]``.
    :ivar factors: The factors of the terms of the prior variance, ``[T]``.
    :ivar incomplete: Which features are compared with it, ``[M]``.
    :ivar compact: The features, if there are splines among them.
    """

    root: Root | None
    weights: tf.Tensor
    factors: tf.Tensor
    incomplete: BoolArray
    compact: CompactFeatures | None = None

    def products_of_mean(self, sites: Sites, number: int) -> tuple[tf.Tensor, tf.Tensor]:
        """The sums of beta and the products of columns of the mean function with features, ``[M,
        H]``, and with each other, ``[H, H]``, for a latent GP."""
        gram, size = sites.precisions[number], len(self.incomplete)
        if self.compact is None:
            return gram[:size, size:], gram[size:, size:]
        return self.compact.last_columns(gram, self.weights.shape[0])


def latent(prior: Prior, sites: Sites, number: int, *, gram_gradient: bool = False) -> Any:
    """What q and log Z of one latent GP are made of.

    :param gram_gradient: Whether the sums over sites depend on anything that is trained.
    """
    latents = slice(number, number + 1)
    products, _ = prior.products_of_mean(sites, number)
    shifts = sites.shifts[: len(prior.incomplete), latents]
    shifts -= tf.matmul(products, prior.weights[:, latents])
    return _collapsed(prior, sites.precisions[number], shifts, gram_gradient=gram_gradient)


def _collapsed(
    prior: Prior, gram: tf.Tensor, columns: tf.Tensor, *, gram_gradient: bool = False
) -> Collapsed | CompactCollapsed:
    if prior.compact is not None:
        return prior.compact.collapsed(gram, columns, prior.weights.shape[0])
    assert prior.root is not None
    return whiten(prior.root, gram, columns, gram_gradient=gram_gradient)


def log_normaliser(prior: Prior, sites: Sites, *, gram_gradient: bool = False) -> tf.Tensor:
    """log Z, of all latent GPs together, up to a constant.

    :param gram_gradient: As for :func:`latent`.
    """
    total = tf.zeros([], tf.float64)
    size = len(prior.incomplete)
    unit = tf.ones([], tf.float64)
    for number in range(prior.weights.shape[1]):
        collapsed = latent(prior, sites, number, gram_gradient=gram_gradient)
        log_determinant, fit = collapsed.terms(unit)
        prior_variance = tf.reduce_sum(prior.factors * sites.variances[:, number])
        unexplained = prior_variance - collapsed.explained_variance(prior.incomplete)
        weights = prior.weights[:, number]
        of_mean = tf.linalg.matvec(prior.products_of_mean(sites, number)[1], weights)
        linear = tf.reduce_sum(weights * (sites.shifts[size:, number] - of_mean / 2))
        total += (fit - log_determinant - unexplained) / 2 + linear
    return total


def slopes_of_mean(prior: Prior, sites: Sites, number: int) -> tuple[Array, Array]:
    """The derivatives of log Z by the weights of the mean function of a latent GP, ``[H]``, and the
    second ones with a minus, ``[H, H]``, as arrays: log Z is quadratic in them.

    With P the products of features and columns and C those of columns, these are ``lambda H - C w -
    P^T (Kuu + G)^{-1} (r - P w)`` and ``C - P^T (Kuu + G)^{-1} P``.
    """
    size, latents = len(prior.incomplete), slice(number, number + 1)
    products, of_mean = prior.products_of_mean(sites, number)
    weights = prior.weights[:, number]
    shifts = sites.shifts[:size, latents] - tf.matmul(products, prior.weights[:, latents])
    collapsed = _collapsed(prior, sites.precisions[number], tf.concat([shifts, products], axis=1))
    explained = products.numpy().T @ _solved(prior, collapsed)
    slopes = sites.shifts[size:, number] - tf.linalg.matvec(of_mean, weights)
    return slopes.numpy() - explained[:, 0], of_mean.numpy() - explained[:, 1:]


def _solved(prior: Prior, collapsed: Any) -> Array:
    """``(Kuu + G)^{-1}`` times the columns, ``[M, P]``."""
    if prior.compact is not None:
        q = CompactQ([(collapsed, tf.ones([], tf.float64))], np.zeros_like(prior.incomplete))
        solved = np.empty(collapsed.columns.shape)
        solved[prior.compact.order] = q.means
        return solved
    assert prior.root is not None
    mean, _ = optimal_q(collapsed, tf.ones([], tf.float64))
    return np.asarray(prior.root.solve(mean, adjoint=True))


def whitened_q(prior: Prior, sites: Sites) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean ``[M, L]`` and roots ``[L, M, M]``, lower triangular, of q(v), in float64."""
    unit = tf.ones([], tf.float64)
    latents = [latent(prior, sites, number) for number in range(prior.weights.shape[1])]
    means, roots = zip(*(optimal_q(collapsed, unit) for collapsed in latents), strict=True)
    return tf.concat(means, axis=1), tf.stack(roots)


# Expected log-likelihoods that are the same in every pass, as a fit without minibatches needs.

_SEED = (0, 0)

_FAR = 1e6
"""The edges of the outer bins of ordinal values, in units of sigma. At infinity second derivatives
are NaN."""


def expectations(
    likelihood: Likelihood, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, Y: tf.Tensor
) -> tf.Tensor:
    """The expected log-likelihood of each row, ``[n]``: what
    ``likelihood.variational_expectations`` returns, but for draws, ordinal values and a
    logistic link.

    :param mean: The mean of f, ``[n, L]``.
    :param variance: The variance of f, ``[n, L]``.
    """
    if isinstance(likelihood, MonteCarloLikelihood):
        # By the likelihood's number of draws, rounded to an even number: the same every time, and
        # each with its opposite: expectations of what is odd vanish, and slopes are less noisy.
        size = 2 * max(1, likelihood.num_monte_carlo_points // 2)
        half = [size // 2, tf.shape(mean)[0], mean.shape[1]]
        draws = tf.random.stateless_normal(half, _SEED, dtype=mean.dtype)

        def log_density(F: tf.Tensor, X_: tf.Tensor, Y_: tf.Tensor) -> tf.Tensor:
            return likelihood.log_prob(X_, F, Y_)

        both = tf.concat([draws, -draws], axis=0)
        values = ndiag_mc(log_density, size, mean, variance, epsilon=both, X_=X, Y_=Y)
        return tf.reduce_sum(values, axis=-1)
    if densities_of(likelihood) is Ordinal:
        far = tf.constant([_FAR], mean.dtype)

        def log_bin(F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            edges = likelihood.bin_edges / likelihood.sigma
            ends = [tf.concat(part, axis=0) for part in ((edges, far), (-far, edges))]
            numbers, scaled = tf.cast(Y, tf.int64), F / likelihood.sigma
            left, right = (inv_probit(tf.gather(part, numbers) - scaled) for part in ends)
            return tf.math.log(left - right + 1e-6)

        return tf.reduce_sum(likelihood.quadrature(log_bin, mean, variance, Y=Y), axis=-1)
    logistic = tf.sigmoid, tf.math.sigmoid, tf.nn.sigmoid
    if densities_of(likelihood) is not Bernoulli or likelihood.invlink not in logistic:
        return likelihood.variational_expectations(X, mean, variance, Y)

    # GPflow takes the logarithm of 1 - sigmoid(f), which is that of zero for f above 37.
    def log_prob(F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return tf.math.log_sigmoid(tf.where(tf.equal(Y, 1), F, -F))

    return tf.reduce_sum(likelihood.quadrature(log_prob, mean, variance, Y=Y), axis=-1)
