"""The algebra of q(u): marginals, covariances and KL divergence, for blocks and latent GPs at once.

f is a sum of T independent parts, each with its own inducing variables u_t, prior N(0, Kuu_t) and
q_t(u_t); most models have T = 1. Each part has P latent GPs with the same prior. With the Cholesky
factors ``Kuu_t = L_t L_t^T``, whitened variables ``v = L^{-1} u`` of prior N(0, I), and whitened
features ``A_t = L_t^{-1} Kuf_t``,

    mean = sum_t A_t^T E[v_t],    cov = Kff + sum_t A_t^T (Cov[v_t] - I) A_t

(Sun et al. 2021, eq. 21; with T = 1 Hensman et al. 2013). Kff is the prior covariance of f; the
prior covariances of the parts are not needed.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from .operators import Inverse, Root, Tensors
from .projections import (
    dense_terms,
    flat,
    mean_and_squares,
    mean_of_features,
    projected_variances,
)


class Whitened(NamedTuple):
    """The distribution q of T parts, in terms of v.

    :ivar mean: The mean of v, ``[T, M, P]``.
    :ivar root: A root of the covariance S of v, or of u (see ``prior``): ``[T, M, P]`` if S is
        diagonal, ``[T, P, M, M]`` lower triangular if not, None for S = 0. The axis P has size 1 if
        all latent GPs share S.
    :ivar prior: L, if ``root`` belongs to u; None otherwise. A diagonal S of u would become dense
        for v if L is not diagonal, so the features are multiplied by ``L^{-T}`` instead.
    """

    mean: tf.Tensor
    root: tf.Tensor | None
    prior: Root | KeptRoot | None = None

    def projected(self, A: tf.Tensor) -> tf.Tensor:
        """The features that ``root`` multiplies: A, or ``L^{-T} A`` if ``root`` belongs to u."""
        return A if self.prior is None else self.prior.solve(A, adjoint=True)


def whitened(root: Root, mean: tf.Tensor, root_of_S: tf.Tensor | None) -> Whitened:
    """The distribution q(v), from the mean of q(u) and the root of its covariance.

    :param root: L ``[T, M, M]``.
    """
    mean = root.solve(mean)
    if root_of_S is None:
        return Whitened(mean, None)
    if root_of_S.shape.rank == 4:
        # One solve for the roots of the P latent GPs, side by side.
        shape = tf.shape(root_of_S)
        wide = tf.reshape(tf.transpose(root_of_S, [0, 2, 1, 3]), [shape[0], shape[2], -1])
        solved = tf.reshape(root.solve(wide), [shape[0], shape[2], shape[1], shape[3]])
        solved = tf.transpose(solved, [0, 2, 1, 3])
        return Whitened(mean, tf.ensure_shape(solved, root_of_S.shape))
    if root.diagonal is None:
        return Whitened(mean, root_of_S, prior=root)
    return Whitened(mean, root.solve(root_of_S))


def kl_divergence(q: Whitened) -> tf.Tensor:
    """``KL[q(v) || N(0, I)]``, summed over parts and latent GPs, ``[]``; S must not be zero."""
    S = tf.square(q.root)
    if isinstance(q.prior, Root):  # tr(Kuu^{-1} S), and the log determinant of Kuu^{-1} S
        trace = tf.reduce_sum(q.prior.inverse_diagonal()[..., None] * S)
        num_latent = tf.cast(tf.shape(S)[-1], S.dtype)
        log_prior = 2 * num_latent * tf.reduce_sum(q.prior.log_determinant())
    else:
        trace, log_prior = tf.reduce_sum(S), tf.zeros([], S.dtype)
    is_diagonal = S.shape.rank == 3
    diagonal = S if is_diagonal else tf.square(tf.linalg.diag_part(q.root))
    # S may be shared by all latent GPs.
    sharing = tf.cast(tf.shape(q.mean)[-1] // tf.shape(S)[-1 if is_diagonal else 1], S.dtype)
    trace *= sharing
    log_determinant = sharing * (tf.reduce_sum(tf.math.log(diagonal)) - log_prior)
    size = tf.cast(tf.size(q.mean), S.dtype)
    return (tf.reduce_sum(tf.square(q.mean)) + trace - size - log_determinant) / 2


class Terms(NamedTuple):
    """The contributions of parts to f at N points: to its mean ``[N, P]``, and to its variance.

    :ivar change: ``diag(A^T (Cov[v] - I) A)``, the change of the prior variance, ``[N, P]``, or
        ``[N, 1]`` for a shared covariance. If the variables explain all of the prior variance, it
        is ``diag(A^T Cov[v] A)``, the variance itself.
    :ivar explained: ``diag(A^T A)``, the prior variance that the variables explain, ``[N]``; from
        :func:`marginal_terms` it may have no gradient. Zero if they explain all of it.
    """

    mean: tf.Tensor
    change: tf.Tensor
    explained: tf.Tensor

    def plus(self, other: Terms) -> Terms:
        """The sum of both terms."""
        return Terms(*(first + second for first, second in zip(self, other, strict=True)))


def variances(kff: tf.Tensor, terms: Terms) -> tf.Tensor:
    """The variance of f at each point, ``[N, P]``, from prior variances ``[N]``; never negative.

    The prior variance that the variables leave unexplained is not negative. If rounding makes it
    negative, it is set to zero; the gradient is that of the formula.
    """
    kff = tf.reshape(kff, [-1])
    excess = tf.nn.relu(tf.stop_gradient(terms.explained - kff))
    return tf.maximum((kff + excess)[:, None] + terms.change, 0)


def marginal_terms(
    root: Root, columns: tf.Tensor, q: Whitened, *, is_complete: bool = False
) -> Terms:
    """The terms at N points, in a training step.

    :param root: L ``[T, M, M]``.
    :param columns: Kuf ``[T, M, N]``.
    :param is_complete: Whether the variables explain all of the prior variance, ``Kff = A^T A``.
    """
    if root.diagonal is not None:
        return _diagonal_terms(root.diagonal, columns, q, is_complete)
    if root.triangle is not None and q.root is not None and q.root.shape.rank == 4:
        with_gradient = tf.custom_gradient(lambda *inputs: dense_terms(is_complete, *inputs))
        return Terms(*with_gradient(root.triangle, columns, q.mean, q.root))
    return feature_terms(root.solve(columns), q, is_complete=is_complete)


def feature_terms(A: tf.Tensor, q: Whitened, *, is_complete: bool = False) -> Terms:
    """The terms from whitened features ``A = L^{-1} Kuf`` ``[T, M, N]``; ``is_complete`` as for
    :func:`marginal_terms`."""
    zeros = tf.zeros_like(A[0, 0])
    explained = zeros if is_complete else tf.reduce_sum(tf.square(A), axis=[0, 1])
    change = -explained[:, None]
    if q.root is not None:
        change += projected_variances(q.projected(A), q.root)
    return Terms(mean_of_features(A, q.mean), change, explained)


def _diagonal_terms(
    deviations: tf.Tensor, columns: tf.Tensor, q: Whitened, is_complete: bool
) -> Terms:
    """The terms for a diagonal L, which scales the factors of Kuf in place of Kuf.

    With a diagonal S two products remain. They are products with vectors if the variables explain
    all and there is one latent GP. Kuf is read twice and squared once.
    """
    scales = tf.reshape(deviations, [-1, 1])
    means = flat(q.mean) / scales
    has_diagonal = q.root is not None and q.root.shape.rank == 3
    weights = tf.zeros_like(scales) if is_complete else 1 / tf.square(scales)
    if has_diagonal:
        squares = tf.square(flat(q.root) / scales)
        if is_complete:
            mean, change = mean_and_squares(flat(columns), means, squares)
            return Terms(mean, change, tf.zeros_like(change[:, 0]))
        weights = tf.concat([weights, squares], axis=1)
    mean, sums = mean_and_squares(flat(columns), means, weights)
    explained = sums[:, :1]
    change = sums[:, 1:] - explained if has_diagonal else -explained
    if q.root is not None and not has_diagonal:
        change += projected_variances(columns, q.root / deviations[:, None, :, None])
    return Terms(mean, change, tf.stop_gradient(explained[:, 0]))


def joint_feature_terms(
    A: tf.Tensor, q: Whitened, num_sets: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean ``[B N, P]``, and the change of the prior covariance in B sets of N points,
    ``[B, P, N, N]`` or a shape that broadcasts to it.

    :param A: ``L^{-1} Kuf`` ``[T, M, B N]``, the sets one after the other.
    :param num_sets: B.
    """
    mean, root = mean_of_features(A, q.mean), q.root

    def in_sets(A: tf.Tensor) -> tf.Tensor:
        return tf.reshape(A, [tf.shape(A)[0], tf.shape(A)[1], num_sets, -1])  # [T, M, B, N]

    # A^T (Cov[v] - I) A
    sets = in_sets(A)
    change = -tf.einsum("tmbi,tmbj->bij", sets, sets)[:, None]
    if root is None:
        return mean, change
    equation = "tmp,tmbn->bptmn" if root.shape.rank == 3 else "tpkm,tkbn->bptmn"
    projected = tf.einsum(equation, root, in_sets(q.projected(A)))
    return mean, change + tf.einsum("bptmi,bptmj->bpij", projected, projected)


class KeptRoot(NamedTuple):
    """L as its inverse, in a form that can be stored (:meth:`.Root.inverse`)."""

    inverse: Inverse
    tensors: Tensors

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        """``L^{-1} columns``, or ``L^{-T} columns``."""
        return self.inverse(self.tensors, columns, adjoint=adjoint)


class KeptQ(NamedTuple):
    """The parts of Kuu and q that predictions need: storable tensors, and their functions.

    :ivar root: L.
    :ivar mean: The mean of v.
    :ivar q_root: The root in :class:`Whitened`.
    :ivar is_root_of_u: Whether ``q_root`` is a root of the covariance of u.
    """

    root: KeptRoot
    mean: tf.Tensor
    q_root: tf.Tensor | None
    is_root_of_u: bool

    @classmethod
    def of(cls, root: Root, q: Whitened) -> KeptQ:
        """The parts of L and q that predictions need."""
        return cls(KeptRoot(*root.inverse()), q.mean, q.root, q.prior is not None)

    @property
    def q(self) -> Whitened:
        """The distribution q in terms of v."""
        return Whitened(self.mean, self.q_root, self.root if self.is_root_of_u else None)
