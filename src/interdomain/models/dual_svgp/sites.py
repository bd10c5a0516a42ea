"""The q that is the prior times Gaussian sites, and its normaliser, from sums over rows.

With a root R of Kuu and sites ``exp(lambda_n f_n - beta_n f_n^2 / 2)``, for each latent GP

    G = Kuf diag(beta) Kfu,    r = Kuf lambda,    B = I + R^{-1} G R^{-T},
    q(v) = N(B^{-1} R^{-1} r, B^{-1}),    v = R^{-1} u whitened,
    2 log Z = |B^{-1/2} R^{-1} r|^2 - log det(B) - (sum_n beta_n k_nn - tr R^{-1} G R^{-T})

up to a constant. If the sites are tangent to the expected log-likelihood at q, the gradient of log
Z by the kernel's parameters is that of the bound. A mean function ``h(x)^T w`` moves the sites, and
adds ``lambda^T H w - w^T H^T diag(beta) H w / 2`` to log Z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..._arguments import Array, BoolArray
from ...sums.features import Features
from ...sums.protocol import Collapsed


class Sites(NamedTuple):
    """Sums over the sites of all rows, in float64, for K features and columns of the mean.

    :ivar precisions: Sums of ``beta s s^T``, ``[L, K, K]``, or in the form of ``Sums.gram_shape``.
    :ivar shifts: Sums of ``lambda s``, ``[K, L]``.
    :ivar variances: Sums of beta times each term of the prior variance, ``[T, L]``.
    """

    precisions: tf.Tensor | Array
    shifts: tf.Tensor | Array
    variances: tf.Tensor | Array

    def mixed(self, other: Sites, share: float) -> Sites:
        """The sites after a natural-gradient step of size ``share`` to other sites."""
        return Sites(*((1 - share) * a + share * b for a, b in zip(self, other, strict=True)))


class Prior:
    """The prior that is combined with the sums over sites.

    :ivar weights: The weights of the columns of the mean function, ``[H, L]``.
    """

    def __init__(self, features: Features) -> None:
        self._sums, self._weight_prior = features.sums, features.sums.prior()
        self.weights = tf.cast(features.mean.weights(), tf.float64)
        self._factors = tf.cast(features.diagonal_factors(), tf.float64)
        self._charged: BoolArray = features.charged

    def latents(self, sites: Sites, *, gram_gradient: bool = False) -> list[Collapsed]:
        """The collapsed posterior of each latent GP, which has q and the terms of log Z.

        :param gram_gradient: Whether the sums over sites depend on a trainable parameter.
        """
        return [
            self._latent(sites, number, gram_gradient=gram_gradient)
            for number in range(self.weights.shape[1])
        ]

    def _latent(
        self,
        sites: Sites,
        number: int,
        *,
        beside: tf.Tensor | None = None,
        gram_gradient: bool = False,
    ) -> Collapsed:
        """The collapsed posterior of a latent GP.

        :param beside: Further columns, which are appended to the shifts, ``[M, H]``.
        """
        size, latents = len(self._charged), slice(number, number + 1)
        products, _ = self._mean_function_sums(sites, number)
        columns = sites.shifts[:size, latents] - tf.matmul(products, self.weights[:, latents])
        if beside is not None:
            columns = tf.concat([columns, beside], axis=1)
        gram, number_of_columns = sites.precisions[number], self.weights.shape[0]
        return self._sums.finish(
            self._weight_prior,
            gram,
            columns,
            num_columns=number_of_columns,
            gram_gradient=gram_gradient,
        )

    def _mean_function_sums(self, sites: Sites, number: int) -> tuple[tf.Tensor, tf.Tensor]:
        """The sums of beta times products of the mean function's columns with features, ``[M, H]``,
        and with each other, ``[H, H]``, for a latent GP."""
        return self._sums.border(sites.precisions[number], self.weights.shape[0])

    def log_normaliser(self, sites: Sites, *, gram_gradient: bool = False) -> tf.Tensor:
        """The sum of log Z over all latent GPs, up to a constant.

        :param gram_gradient: As for :meth:`latents`.
        """
        total, size = tf.zeros([], tf.float64), len(self._charged)
        unit = tf.ones([], tf.float64)
        for number, collapsed in enumerate(self.latents(sites, gram_gradient=gram_gradient)):
            log_determinant, fit = collapsed.terms(unit)
            prior_variance = tf.reduce_sum(self._factors * sites.variances[:, number])
            unexplained = prior_variance - collapsed.explained_variance(self._charged)
            weights = self.weights[:, number]
            weighted = tf.linalg.matvec(self._mean_function_sums(sites, number)[1], weights)
            linear = tf.reduce_sum(weights * (sites.shifts[size:, number] - weighted / 2))
            total += (fit - log_determinant - unexplained) / 2 + linear
        return total

    def slopes_of_mean(self, sites: Sites, number: int) -> tuple[Array, Array]:
        """The derivatives of log Z by the weights of the mean function of a latent GP, ``[H]``, and
        minus the second derivatives, ``[H, H]``, as arrays: log Z is quadratic in the weights.

        With the products P of features and columns and the products C of columns, they are ``lambda
        H - C w - P^T (Kuu + G)^{-1} (r - P w)`` and ``C - P^T (Kuu + G)^{-1} P``.
        """
        size = len(self._charged)
        products, gram = self._mean_function_sums(sites, number)
        solved = self._latent(sites, number, beside=products).mean_of_weights(
            tf.ones([], tf.float64)
        )
        explained = np.asarray(products).T @ solved
        slopes = sites.shifts[size:, number] - tf.linalg.matvec(gram, self.weights[:, number])
        return np.asarray(slopes) - explained[:, 0], np.asarray(gram) - explained[:, 1:]
