"""The algebra of q(u): marginals, covariances and KL divergence, for blocks and latent GPs at once.

f is a sum of T independent parts, each with its own inducing variables u_t, prior N(0, Kuu_t) and
q_t(u_t); most models have T = 1. For each part there are P latent GPs with the same prior. With the
Cholesky factors ``Kuu_t = L_t L_t^T``, whitened variables ``v = L^{-1} u`` of prior N(0, I), and
whitened features ``A_t = L_t^{-1} Kuf_t``,

    mean = sum_t A_t^T E[v_t],    cov = Kff + sum_t A_t^T (Cov[v_t] - I) A_t

(Sun et al. 2021, eq. 21; with T = 1 Hensman et al. 2013). Kff is that of the whole f: those of the
parts are not needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes

from .full import matmul
from .operators import Inverse, Root, Tensors


class Variational(NamedTuple):
    """q of T parts, in terms of u or of whitened variables.

    :ivar mean: ``[T, M, P]``.
    :ivar root: A root of the covariance S: ``[T, M, P]`` if S is diagonal, ``[T, P, M, M]`` lower
        triangular if not, None for S = 0.
    """

    mean: tf.Tensor
    root: tf.Tensor | None


class Whitened(NamedTuple):
    """q in terms of v.

    :ivar mean: That of v.
    :ivar root: A root of the covariance of v; or of u, see ``prior``.
    :ivar prior: L, if ``root`` is still that of u; None otherwise. A diagonal S would become dense
        under an L that is not diagonal: the features take L instead.
    """

    mean: tf.Tensor
    root: tf.Tensor | None
    prior: Root | None = None

    def projected(self, A: tf.Tensor) -> tf.Tensor:
        """What ``root`` multiplies: A, or ``L^{-T} A`` if it is that of u."""
        return A if self.prior is None else self.prior.solve(A, adjoint=True)


def whitened(root: Root, q: Variational) -> Whitened:
    """q(v) from q(u).

    :param root: L ``[T, M, M]``.
    """
    mean = root.solve(q.mean)
    if q.root is None:
        return Whitened(mean, None)
    if q.root.shape.rank == 4:
        return Whitened(mean, _solve_roots(root, q.root))
    if root.diagonal is None:
        return Whitened(mean, q.root, prior=root)
    return Whitened(mean, root.solve(q.root))


def _solve_roots(root: Root, roots: tf.Tensor) -> tf.Tensor:
    """``L_t^{-1} roots_tp``: those of the P latent GPs side by side, in one solve."""
    shape = tf.shape(roots)
    wide = tf.reshape(tf.transpose(roots, [0, 2, 1, 3]), [shape[0], shape[2], -1])
    solved = tf.reshape(root.solve(wide), [shape[0], shape[2], shape[1], shape[3]])
    return tf.ensure_shape(tf.transpose(solved, [0, 2, 1, 3]), roots.shape)


def kl_divergence(q: Whitened) -> tf.Tensor:
    """``KL[q(v) || N(0, I)]``, all parts and latent GPs together, ``[]``; S must not be zero."""
    S = tf.square(q.root)
    if q.prior is not None:  # tr(Kuu^{-1} S), and the log determinant of Kuu^{-1} S
        trace = tf.reduce_sum(q.prior.inverse_diagonal()[..., None] * S)
        num_latent = tf.cast(tf.shape(S)[-1], S.dtype)
        log_prior = 2 * num_latent * tf.reduce_sum(q.prior.log_determinant())
    else:
        trace, log_prior = tf.reduce_sum(S), tf.zeros([], S.dtype)
    diagonal = S if S.shape.rank == 3 else tf.square(tf.linalg.diag_part(q.root))
    log_determinant = tf.reduce_sum(tf.math.log(diagonal)) - log_prior
    size = tf.cast(tf.size(q.mean), S.dtype)
    return (tf.reduce_sum(tf.square(q.mean)) + trace - size - log_determinant) / 2


class Terms(NamedTuple):
    """What parts contribute to f at N points: to its mean ``[N, P]``, and to its variance.

    :ivar change: ``diag(A^T (Cov[v] - I) A)``, to be added to the prior variance, ``[N, P]``; of
        variables that explain all of it, ``diag(A^T Cov[v] A)``, to be added to nothing.
    :ivar explained: ``diag(A^T A)``, what of the prior variance the variables explain, ``[N]``; its
        gradient is in ``change``, and is stopped here. Zero if they explain all of it.
    """

    mean: tf.Tensor
    change: tf.Tensor
    explained: tf.Tensor

    def plus(self, other: Terms) -> Terms:
        """Those of both."""
        return Terms(*(one + another for one, another in zip(self, other, strict=True)))


def variances(kff: tf.Tensor, terms: Terms) -> tf.Tensor:
    """The variance of f at each point, ``[N, P]``, from prior variances ``[N]``; never negative.

    What all variables leave of the prior is not negative. Where rounding makes it so, it is zero;
    the gradient is that of the formula.
    """
    kff = tf.reshape(kff, [-1])
    excess = tf.nn.relu(tf.stop_gradient(terms.explained - kff))
    return tf.maximum((kff + excess)[:, None] + terms.change, 0)


@check_shapes(
    "columns: [T, M, N]",
    "return[0]: [N, P]",
    "return[1]: [N, broadcast P]",
    "return[2]: [N]",
)
def marginal_terms(root: Root, columns: tf.Tensor, q: Whitened, *, whole: bool = False) -> Terms:
    """The terms at N points, in a training step.

    :param root: L ``[T, M, M]``.
    :param columns: Kuf.
    :param whole: Whether the variables explain all of the prior variance, ``Kff = A^T A``.
    """
    if root.diagonal is not None:
        return _diagonal_terms(root.diagonal, columns, q, whole)
    if root.triangle is not None and q.root is not None and q.root.shape.rank == 4:
        dense_terms = tf.custom_gradient(lambda *inputs: _dense_terms(whole, *inputs))
        return Terms(*dense_terms(root.triangle, columns, q.mean, q.root))
    A = root.solve(columns)
    return feature_terms(A, q.projected(A), q, whole=whole)


def feature_terms(A: tf.Tensor, features: tf.Tensor, q: Whitened, *, whole: bool = False) -> Terms:
    """The terms from whitened features.

    :param A: ``L^{-1} Kuf`` ``[T, M, N]``.
    :param features: What ``q.root`` multiplies: A, or ``L^{-T} A`` if it is that of u.
    :param whole: As for :func:`marginal_terms`.
    """
    zeros = tf.zeros_like(A[0, 0])
    explained = zeros if whole else tf.reduce_sum(tf.square(A), axis=[0, 1])
    change = -explained[:, None]
    if q.root is not None:
        change += _projected_variances(features, q.root)
    return Terms(mean_of_features(A, q.mean), change, tf.stop_gradient(explained))


def mean_of_features(A: tf.Tensor, mean: tf.Tensor) -> tf.Tensor:
    """``sum_t A_t^T mean_t`` ``[N, P]``, by one product."""
    return tf.matmul(_flat(A), _flat(mean), transpose_a=True)


def _flat(tensor: tf.Tensor) -> tf.Tensor:
    """The parts one below the other: ``[T M, N]`` from ``[T, M, N]``."""
    return tf.reshape(tensor, [-1, tf.shape(tensor)[-1]])


def _projected_variances(features: tf.Tensor, root: tf.Tensor) -> tf.Tensor:
    """The diagonals of ``sum_t features_t^T S_t features_t``, ``[N, P]``."""
    if root.shape.rank == 3:
        return tf.matmul(tf.square(_flat(features)), tf.square(_flat(root)), transpose_a=True)
    return tf.transpose(_squared_projections(features, root))


@tf.custom_gradient
def _squared_projections(features: tf.Tensor, root: tf.Tensor) -> Any:
    """The squared lengths of ``root_tp^T features_t``, summed over t, ``[P, N]``.

    A training step of harmonics consists of these products, and of the two in their gradient. They
    are taken by panels of the triangular roots, so that few zeros are multiplied.

    :param features: ``[T, M, N]``.
    :param root: ``[T, P, M, M]``, lower triangular.
    """
    wide = features[:, None]
    bounds = _panels(root.shape[-1])
    projected = [
        matmul(root[..., first:, first:last], wide[..., first:, :], transpose_a=True)
        for first, last in bounds
    ]

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        weights = (2 * upstream)[:, None, :]
        slopes = tf.concat([panel * weights for panel in projected], axis=-2)
        d_features = tf.concat(
            [matmul(root[..., first:last, :last], slopes[..., :last, :]) for first, last in bounds],
            axis=-2,
        )
        if root.shape[1] != 1:
            d_features = tf.reduce_sum(d_features, axis=1, keepdims=True)
        d_panels = []
        for first, last in bounds:
            below = matmul(wide[..., first:, :], slopes[..., first:last, :], transpose_b=True)
            d_panels.append(tf.pad(below, [[0, 0], [0, 0], [first or 0, 0], [0, 0]]))
        return tf.squeeze(d_features, 1), tf.concat(d_panels, axis=-1)

    sums = [tf.reduce_sum(tf.square(panel), axis=[0, 2]) for panel in projected]
    return tf.add_n(sums), gradient


_PANEL = 128
"""Columns of a panel, at least: narrower products are slow."""


def _panels(size: int | None) -> list[tuple[int | None, int | None]]:
    """First and last columns of four panels or fewer."""
    if size is None:
        return [(None, None)]
    count = min(4, max(1, size // _PANEL))
    bounds = [size * k // count for k in range(count + 1)]
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def _diagonal_terms(deviations: tf.Tensor, columns: tf.Tensor, q: Whitened, whole: bool) -> Terms:
    """Where L is diagonal: its scaling goes into what Kuf is multiplied with.

    With a diagonal S two products remain, of vectors if the variables explain all and there is one
    latent GP; Kuf is read twice and squared once.
    """
    scales = tf.reshape(deviations, [-1, 1])
    means = _flat(q.mean) / scales
    has_diagonal = q.root is not None and q.root.shape.rank == 3
    weights = tf.zeros_like(scales) if whole else 1 / tf.square(scales)
    if has_diagonal:
        own = tf.square(_flat(q.root) / scales)
        if whole:
            mean, change = _mean_and_squares(_flat(columns), means, own)
            return Terms(mean, change, tf.zeros_like(change[:, 0]))
        weights = tf.concat([weights, own], axis=1)
    mean, sums = _mean_and_squares(_flat(columns), means, weights)
    explained = sums[:, :1]
    change = sums[:, 1:] - explained if has_diagonal else -explained
    if q.root is not None and not has_diagonal:
        change += _projected_variances(columns, q.root / deviations[:, None, :, None])
    return Terms(mean, change, tf.stop_gradient(explained[:, 0]))


@tf.custom_gradient
def _mean_and_squares(columns: tf.Tensor, means: tf.Tensor, weights: tf.Tensor) -> Any:
    """``K^T means`` and ``(K * K)^T weights`` for columns K ``[M, N]``, which are large beside the
    others.

    TensorFlow's own gradient with respect to K takes twice as many arrays of its size.
    """
    squares = tf.square(columns)

    def gradient(d_means: tf.Tensor, d_sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
        d_columns = tf.matmul(means, d_means, transpose_b=True)
        d_columns += columns * tf.matmul(2 * weights, d_sums, transpose_b=True)
        return d_columns, tf.matmul(columns, d_means), tf.matmul(squares, d_sums)

    values = (
        tf.matmul(columns, means, transpose_a=True),
        tf.matmul(squares, weights, transpose_a=True),
    )
    return values, gradient


def _dense_terms(
    whole: bool, triangle: tf.Tensor, columns: tf.Tensor, mean: tf.Tensor, root: tf.Tensor
) -> Any:
    """The terms where L and S are dense: the cost of a training step.

    The gradient is in closed form. With ``C_p = root_p root_p^T - I`` (without I if ``whole``),
    upstream gradients g to the mean and w to the change, and ``H_p = A diag(w_p) A^T``,

        dA = 2 sum_p C_p A diag(w_p) + mean g^T,      dKuf = L^{-T} dA,
        dA A^T = 2 sum_p C_p H_p + mean (A g)^T,      dL = -tril(L^{-T} dA A^T),
        dmean = A g,                                  droot_p = 2 tril(H_p root_p).

    C A is at hand from the value, and ``dA A^T`` is had from H. TensorFlow's own gradient takes
    two more products of the size of M^2 N, of the six that it has.
    """
    A = tf.linalg.triangular_solve(triangle, columns)
    # A batch axis for the latent GPs, unless there is one alone: plain products are faster.
    single = root.shape[1] == 1
    roots = root[:, 0] if single else root
    features = A if single else A[:, None]
    C = matmul(roots, roots, transpose_b=True)
    if not whole:
        C = tf.linalg.set_diag(C, tf.linalg.diag_part(C) - 1)
    product = matmul(C, features)  # [T, M, N] or [T, P, M, N]
    diagonals = tf.reduce_sum(features * product, axis=[0, -2])
    change = diagonals[:, None] if single else tf.transpose(diagonals)
    zeros = tf.zeros_like(A[0, 0])
    explained = zeros if whole else tf.reduce_sum(tf.square(A), axis=[0, 1])

    def gradient(
        d_mean: tf.Tensor, d_change: tf.Tensor, _explained: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        weights = d_change[:, 0] if single else tf.transpose(d_change)[:, None, :]
        H = matmul(features * weights, features, transpose_b=True)
        H_roots = matmul(H, roots)
        C_H = matmul(roots, H_roots, transpose_b=True)
        if not whole:
            C_H -= H
        d_A = product * (2 * weights)
        if not single:
            d_A, C_H = tf.reduce_sum(d_A, axis=1), tf.reduce_sum(C_H, axis=1)
        d_A += tf.matmul(mean, tf.transpose(d_mean))
        A_g = tf.tensordot(A, d_mean, 1)  # [T, M, P]
        d_A_A = 2 * C_H + matmul(mean, A_g, transpose_b=True)
        d_triangle = -tf.linalg.triangular_solve(triangle, d_A_A, adjoint=True)
        d_roots = 2 * tf.linalg.band_part(H_roots, -1, 0)
        return (
            tf.linalg.band_part(d_triangle, -1, 0),
            tf.linalg.triangular_solve(triangle, d_A, adjoint=True),
            A_g,
            d_roots[:, None] if single else d_roots,
        )

    return (mean_of_features(A, mean), change, explained), gradient


def joint_feature_terms(
    A: tf.Tensor, features: tf.Tensor, q: Whitened, num_sets: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean ``[B N, P]``, and what is to be added to the prior covariance within each of B sets
    of N points, ``[B, P, N, N]`` or to be broadcast to it.

    :param A: ``L^{-1} Kuf`` ``[T, M, B N]``, the sets one behind the other.
    :param features: As for :func:`feature_terms`.
    :param num_sets: B.
    """
    mean, root = mean_of_features(A, q.mean), q.root
    # A^T (Cov[v] - I) A
    explained = _flat_sets(A, num_sets)
    change = -tf.matmul(explained, explained, transpose_a=True)[:, None]
    if root is None:
        return mean, change
    flat = _flat_sets(features, num_sets)[:, None]  # [B, 1, T M, N]
    if root.shape.rank == 3:
        projected = tf.transpose(_flat(root))[:, :, None] * flat
    else:
        shape = tf.shape(features)
        sets = tf.reshape(flat, [num_sets, shape[0], 1, shape[1], -1])
        projected = tf.matmul(root, sets, transpose_a=True)  # [B, T, P, M, N]
        projected = tf.transpose(projected, [0, 2, 1, 3, 4])
        projected = tf.reshape(
            projected, [num_sets, tf.shape(root)[1], shape[0] * shape[1], tf.shape(flat)[-1]]
        )
    return mean, change + tf.matmul(projected, projected, transpose_a=True)


def _flat_sets(A: tf.Tensor, num_sets: tf.Tensor) -> tf.Tensor:
    """``[B, T M, N]`` from ``[T, M, B N]``."""
    flat = _flat(A)
    return tf.transpose(tf.reshape(flat, [tf.shape(flat)[0], num_sets, -1]), [1, 0, 2])


class Kept(NamedTuple):
    """What predictions need of Kuu and q, apart from tensors that can be stored.

    :ivar inverse: How to multiply by ``L^{-1}``.
    :ivar of_u: Whether the root of S is that of u.
    :ivar num_inverse: How many of the stored tensors, the first ones, are those of ``inverse``.
    :ivar num_tensors: How many of them are its own.
    """

    inverse: Inverse
    of_u: bool
    num_inverse: int
    num_tensors: int

    @classmethod
    def of(cls, root: Root, q: Whitened) -> tuple[Kept, Tensors]:
        """With its tensors: those of ``L^{-1}``, ``E[v]`` and, unless S = 0, a root of S."""
        inverse, tensors = root.inverse()
        own = (*tensors, q.mean) if q.root is None else (*tensors, q.mean, q.root)
        return cls(inverse, q.prior is not None, len(tensors), len(own)), own

    def solve(self, tensors: Tensors, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        """``L^{-1} columns``, or ``L^{-T} columns``."""
        return self.inverse(tensors[: self.num_inverse], columns, adjoint=adjoint)

    def projected(self, tensors: Tensors, A: tf.Tensor) -> tf.Tensor:
        """What the root of S multiplies: A, or ``L^{-T} A`` if it is that of u."""
        return self.solve(tensors, A, adjoint=True) if self.of_u else A

    def features(self, tensors: Tensors, columns: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """A, and what the root of S multiplies."""
        A = self.solve(tensors, columns)
        return A, self.projected(tensors, A)

    def q(self, tensors: Tensors) -> Whitened:
        """q, as :func:`feature_terms` takes it."""
        mean, *root = tensors[self.num_inverse : self.num_tensors]
        return Whitened(mean, root[0] if root else None)
