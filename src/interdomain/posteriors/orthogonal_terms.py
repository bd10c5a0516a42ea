"""Algebra of two sets of inducing variables, the second of which describes what the first leaves.

f = g + h, where g is what u determines and h the rest, independent of g: its covariance is
``S = Kff - Kfu Kuu^{-1} Kuf``. The orthogonal variables v' are those of ``iv_v`` applied to h, with
the prior covariance ``C = Kvv - Kvu Kuu^{-1} Kuv`` (Shi et al. 2020; Tiao et al. 2023, eqs. 8-12).
With ``Kuu = L_u L_u^T`` and ``C = L_v L_v^T``,

    A = L_u^{-1} Kuf,    B = L_u^{-1} Kuv,    D = L_v^{-1} (Kvf - B^T A),

and q's of the whitened variables, the posterior is

    mean = A^T m_u + D^T m_v,
    cov = Kff - A^T A - D^T D + A^T S_u A + D^T S_v D.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from ..covariances import Kuu_operator, Kvu
from ..covariances.dispatch import full_matrix_operator
from .gaussian import (
    joint_covariance,
    kl_divergence,
    log_determinant_of_whitened,
    lower_triangle,
    projected_variances,
    square_root,
    whiten_q_sqrt,
    whitened_columns,
)


class OrthogonalPair(NamedTuple):
    """The base inducing variable and the orthogonal one."""

    base: InducingVariables
    orthogonal: InducingVariables


class Variational(NamedTuple):
    """q(u) and q(v'): means ``[M, P]`` and ``[K, P]``; roots ``[M, P]`` or ``[P, M, M]``.

    ``q_sqrt_orthogonal`` is None where q(v') has the prior's covariance: then it adds to the mean
    alone.
    """

    q_mu: TensorType
    q_sqrt: TensorType
    q_mu_orthogonal: TensorType
    q_sqrt_orthogonal: TensorType | None


class Roots(NamedTuple):
    """L_u as an operator, B ``[M, K]``, and L_v as an operator."""

    base: tf.linalg.LinearOperator
    cross: tf.Tensor
    orthogonal: tf.linalg.LinearOperator


def factorise(pair: OrthogonalPair, kernel: Kernel) -> Roots:
    """Both square roots; that of Kuu keeps its structure, and costs no Cholesky if diagonal."""
    base = square_root(_base_operator(pair, kernel))
    cross = base.solve(_cross_covariance(pair, kernel))
    return Roots(base, cross, square_root(_residual_operator(pair, kernel, cross)))


def _base_operator(pair: OrthogonalPair, kernel: Kernel) -> tf.linalg.LinearOperator:
    return Kuu_operator(pair.base, kernel, jitter=default_jitter())


def _cross_covariance(pair: OrthogonalPair, kernel: Kernel) -> tf.Tensor:
    """Kuv ``[M, K]``."""
    return tf.linalg.matrix_transpose(Kvu(pair.orthogonal, pair.base, kernel))


def _residual_operator(
    pair: OrthogonalPair, kernel: Kernel, cross: tf.Tensor
) -> tf.linalg.LinearOperatorFullMatrix:
    """C, the prior covariance of v'."""
    covariance = Kuu(pair.orthogonal, kernel, jitter=default_jitter())
    return full_matrix_operator(covariance - _gram(cross))


@tf.custom_gradient
def _gram(matrix: tf.Tensor) -> Any:
    """``B^T B``, with one product in its gradient where TensorFlow's own has two."""

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return tf.matmul(matrix, upstream + tf.linalg.matrix_transpose(upstream))

    return tf.matmul(matrix, matrix, transpose_a=True), gradient


def residual_shares(pair: OrthogonalPair, kernel: Kernel) -> tf.Tensor:
    """The share of the prior variance of each orthogonal variable that u leaves to it, ``[K]``.

    Where it is zero, S_vf is as well: u determines the variable.
    """
    cross = whitened_columns(_base_operator(pair, kernel), _cross_covariance(pair, kernel))
    if isinstance(pair.orthogonal, InducingPoints):
        variances = kernel(pair.orthogonal.Z, full_cov=False)
    else:
        variances = tf.linalg.diag_part(Kuu(pair.orthogonal, kernel))
    return 1 - tf.reduce_sum(tf.square(cross), axis=0) / variances


def whitened_variational(roots: Roots | None, q: Variational) -> Variational:
    """q of the whitened variables, as tensors.

    :param roots: Of the prior covariances; None if q is that of the whitened variables already.
    """
    q = Variational(
        tf.convert_to_tensor(q.q_mu),
        lower_triangle(q.q_sqrt),
        tf.convert_to_tensor(q.q_mu_orthogonal),
        lower_triangle(q.q_sqrt_orthogonal),
    )
    if roots is None:
        return q
    return Variational(
        roots.base.solve(q.q_mu),
        whiten_q_sqrt(roots.base, q.q_sqrt),
        roots.orthogonal.solve(q.q_mu_orthogonal),
        whiten_q_sqrt(roots.orthogonal, q.q_sqrt_orthogonal),
    )


def whitened_kl(whitened: Variational, q: Variational, roots: Roots | None) -> tf.Tensor:
    """``KL[q(u) || p(u)] + KL[q(v') || p(v')]``.

    :param whitened: q of whitened variables, made from ``q`` by the ``roots``, if there are any.
    """
    log_determinant = None
    if roots is not None:
        q_sqrt = lower_triangle(q.q_sqrt)
        log_determinant = log_determinant_of_whitened(roots.base, whitened.q_mu, q_sqrt)
    q_sqrt_orthogonal = whitened.q_sqrt_orthogonal
    if q_sqrt_orthogonal is None:
        q_sqrt_orthogonal = tf.ones_like(whitened.q_mu_orthogonal)
    kl = kl_divergence(whitened.q_mu, whitened.q_sqrt, None, log_determinant)
    return kl + kl_divergence(whitened.q_mu_orthogonal, q_sqrt_orthogonal, None)


def _whitened_features(
    pair: OrthogonalPair, kernel: Kernel, X: TensorType
) -> tuple[tf.Tensor, tf.Tensor]:
    """A and D at X, for a training step: the roots are not needed."""
    both = whitened_columns(_base_operator(pair, kernel), _base_columns(pair, kernel, X))
    num_data = tf.shape(X)[0]
    A, cross = both[:, :num_data], both[:, num_data:]
    residuals = Kuf(pair.orthogonal, kernel, X) - tf.matmul(cross, A, transpose_a=True)
    return A, whitened_columns(_residual_operator(pair, kernel, cross), residuals)


def _base_columns(pair: OrthogonalPair, kernel: Kernel, X: TensorType) -> tf.Tensor:
    """Kuf and Kuv side by side, ``[M, N + K]``.

    Orthogonal points are rows like those of X: the base's features are then evaluated, and
    compiled, once for both.
    """
    if isinstance(pair.orthogonal, InducingPoints):
        return Kuf(pair.base, kernel, tf.concat([X, pair.orthogonal.Z], axis=0))
    return tf.concat([Kuf(pair.base, kernel, X), _cross_covariance(pair, kernel)], axis=1)


def whitened_residuals(roots: Roots, A: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """``L_v^{-1} S_vf``: D, from A and Kvf."""
    return roots.orthogonal.solve(columns - tf.matmul(roots.cross, A, transpose_a=True))


def posterior_mean(A: tf.Tensor, D: tf.Tensor, q: Variational) -> tf.Tensor:
    """``A^T m_u + D^T m_v``."""
    mean = tf.matmul(A, q.q_mu, transpose_a=True)
    return mean + tf.matmul(D, q.q_mu_orthogonal, transpose_a=True)


def posterior_variances(A: tf.Tensor, D: tf.Tensor, kff: tf.Tensor, q: Variational) -> tf.Tensor:
    """The variance of f at each point, ``[N, P]``; never negative.

    :param kff: Prior variances ``[N]``.
    """
    return variance_terms(A, D, kff, q).variance


class VarianceTerms(NamedTuple):
    """What the posterior variance of f is made of, each ``[N, P]`` or to be broadcast to it.

    ``prior - explained - orthogonal_explained`` is what no inducing variable explains; the others
    are added to it (Tiao et al. 2023, eq. 12 and Figure 5).

    :ivar prior: Kff.
    :ivar explained: Qff, what u explains.
    :ivar uncertain: The uncertainty about u.
    :ivar orthogonal_explained: ``S_fv S_vv^{-1} S_vf``, what the orthogonal variables explain.
    :ivar orthogonal_uncertain: The uncertainty about them.
    """

    prior: tf.Tensor
    explained: tf.Tensor
    uncertain: tf.Tensor
    orthogonal_explained: tf.Tensor
    orthogonal_uncertain: tf.Tensor

    @property
    def variance(self) -> tf.Tensor:
        """What the terms add up to, ``[N, P]``: the variance of f; never negative."""
        # What both sets do not explain is not negative; rounding can make it so.
        unexplained = tf.maximum(self.prior - self.explained - self.orthogonal_explained, 0)
        return unexplained + self.uncertain + self.orthogonal_uncertain


def variance_terms(A: tf.Tensor, D: tf.Tensor, kff: tf.Tensor, q: Variational) -> VarianceTerms:
    """The terms of the posterior variance at each point."""
    orthogonal_explained = tf.reduce_sum(tf.square(D), axis=0)[:, None]
    if q.q_sqrt_orthogonal is None:
        orthogonal_uncertain = orthogonal_explained
    else:
        orthogonal_uncertain = projected_variances(D, q.q_sqrt_orthogonal)
    return VarianceTerms(
        kff[:, None],
        tf.reduce_sum(tf.square(A), axis=0)[:, None],
        projected_variances(A, q.q_sqrt),
        orthogonal_explained,
        orthogonal_uncertain,
    )


def posterior_covariance(A: tf.Tensor, D: tf.Tensor, kff: tf.Tensor, q: Variational) -> tf.Tensor:
    """The covariance of f over all points, ``[batch..., P, N, N]``."""
    cov = joint_covariance(A, kff, A, q.q_sqrt)
    if q.q_sqrt_orthogonal is None:
        return cov
    return cov + joint_covariance(D, tf.zeros_like(kff), D, q.q_sqrt_orthogonal)


def orthogonal_marginals(
    pair: OrthogonalPair, kernel: Kernel, q: Variational, X: TensorType, *, whiten: bool
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Mean and variance of f at X ``[N, D]``, each ``[N, P]``, and the KL divergence of both q's,
    with one factorisation of each prior covariance."""
    roots = None
    if whiten:
        A, D = _whitened_features(pair, kernel, X)
    else:
        roots = factorise(pair, kernel)
        A = roots.base.solve(Kuf(pair.base, kernel, X))
        D = whitened_residuals(roots, A, Kuf(pair.orthogonal, kernel, X))
    whitened = whitened_variational(roots, q)
    kff = kernel(X, full_cov=False)
    mean, variance = posterior_mean(A, D, whitened), posterior_variances(A, D, kff, whitened)
    return mean, tf.broadcast_to(variance, tf.shape(mean)), whitened_kl(whitened, q, roots)


def orthogonal_kl(
    pair: OrthogonalPair, kernel: Kernel, q: Variational, *, whiten: bool
) -> tf.Tensor:
    """The KL divergence of both q's; nothing is factorised if they are whitened."""
    roots = None if whiten else factorise(pair, kernel)
    return whitened_kl(whitened_variational(roots, q), q, roots)
