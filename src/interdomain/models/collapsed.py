"""The collapsed bound of sparse regression and its optimal q, from sums over the data alone.

With a root R of Kuu, ``Phi = Kuf Kfu``, ``Psi = Kuf (Y - m)`` and the noise variance s (Titsias
2009, eq. 9, in whitened variables ``v = R^{-1} u``):

    B = I + R^{-1} Phi R^{-T} / s = L L^T,    c = L^{-1} R^{-1} Psi / s,
    q(v) = N(L^{-T} c, B^{-1}),
    bound = -N P log(2 pi s) / 2 - P log|L| - P (tr Kff - tr R^{-1} Phi R^{-T}) / (2 s)
            - (|Y - m|^2 / s - |c|^2) / 2.

All of it is done in float64, whatever the default float: sums over millions of rows cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ..linalg import Root, cast, full_operator, square_root


@dataclass(frozen=True)
class DataSums:
    """What the data contribute, in float64.

    :ivar phi: ``Kuf Kfu``, ``[M, M]``.
    :ivar psi: ``Kuf (Y - m)``, ``[M, P]``.
    :ivar squared_error: ``|Y - m|^2``, over all rows and outputs.
    :ivar prior_variance: The sum of ``K(x_n, x_n)``.
    :ivar num_rows: N.
    """

    phi: tf.Tensor
    psi: tf.Tensor
    squared_error: tf.Tensor
    prior_variance: tf.Tensor
    num_rows: tf.Tensor

    @classmethod
    def from_gram(
        cls,
        gram: tf.Tensor,
        weights: tf.Tensor,
        num_outputs: int,
        prior_variance: tf.Tensor,
        num_rows: tf.Tensor,
    ) -> DataSums:
        """
        :param gram: Sum of ``s s^T`` with ``s = (Kuf, y, h)``, ``[M + P + H, M + P + H]``.
        :param weights: ``[H, P]``; the mean is h times these.
        """
        num_targets = num_outputs + weights.shape[0]
        num_inducing = gram.shape[0] - num_targets
        combination = tf.concat([tf.eye(num_outputs, dtype=weights.dtype), -weights], axis=0)
        products = tf.matmul(gram[num_inducing:, num_inducing:], combination)
        return cls(
            phi=gram[:num_inducing, :num_inducing],
            psi=tf.matmul(gram[:num_inducing, num_inducing:], combination),
            squared_error=tf.reduce_sum(combination * products),
            prior_variance=prior_variance,
            num_rows=num_rows,
        )


@dataclass(frozen=True)
class Collapsed:
    """The factors that the bound and q are made of.

    :ivar root: R.
    :ivar explained: The trace of ``R^{-1} Phi R^{-T}``.
    :ivar B: ``[M, M]``.
    :ivar L: Its Cholesky factor.
    :ivar c: ``[M, P]``.
    """

    root: Root
    explained: tf.Tensor
    B: tf.Tensor
    L: tf.Tensor
    c: tf.Tensor


def collapse(kuu: tf.linalg.LinearOperator, sums: DataSums, noise_variance: tf.Tensor) -> Collapsed:
    """Factorise: once Kuu, if it has no structure, and once B."""
    root = square_root(kuu if kuu.dtype == tf.float64 else cast(kuu, tf.float64))
    half = root.solve(sums.phi)
    whitened = root.solve(tf.linalg.matrix_transpose(half))
    B = whitened / noise_variance
    B = tf.linalg.set_diag(B, tf.linalg.diag_part(B) + 1)
    L = square_root(full_operator(B)).to_dense()
    c = tf.linalg.triangular_solve(L, root.solve(sums.psi)) / noise_variance
    return Collapsed(root=root, explained=tf.linalg.trace(whitened), B=B, L=L, c=c)


def bound(collapsed: Collapsed, sums: DataSums, noise_variance: tf.Tensor) -> tf.Tensor:
    """The lower bound on the log marginal likelihood."""
    num_outputs = tf.cast(tf.shape(sums.psi)[1], tf.float64)
    log_noise = tf.math.log(2 * np.pi * noise_variance)
    log_root = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(collapsed.L)))
    unexplained = (sums.prior_variance - collapsed.explained) / noise_variance
    fit = sums.squared_error / noise_variance - tf.reduce_sum(tf.square(collapsed.c))
    return -(num_outputs * (sums.num_rows * log_noise + 2 * log_root + unexplained) + fit) / 2


def optimal_q(collapsed: Collapsed) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean ``[M, P]`` and root ``[M, M]``, lower triangular, of the optimal whitened q(v)."""
    mean = tf.linalg.triangular_solve(collapsed.L, collapsed.c, adjoint=True)
    # In reversed order B is the product of an upper triangle U and its transpose, so that the
    # inverse is that of the lower triangle U^{-T}: no matrix is inverted before it is factorised.
    reversed_root = tf.linalg.cholesky(tf.reverse(collapsed.B, axis=[0, 1]))
    lower = tf.linalg.matrix_transpose(tf.reverse(reversed_root, axis=[0, 1]))
    identity = tf.eye(tf.shape(lower)[0], dtype=lower.dtype)
    return mean, tf.linalg.triangular_solve(lower, identity)
