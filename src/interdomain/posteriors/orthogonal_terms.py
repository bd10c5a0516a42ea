"""Algebra of two sets of inducing variables; the second set describes what the first leaves out.

f = g + h, where u determines g, and the rest h is independent of g. The covariance of h is
``S = Kff - Kfu Kuu^{-1} Kuf``. The orthogonal variables v' are those of ``iv_v`` applied to h, with
the prior covariance ``C = Kvv - Kvu Kuu^{-1} Kuv`` (Shi et al. 2020; Tiao et al. 2023, eqs. 8-12).
Define ``Kuu = L_u L_u^T``, ``C = L_v L_v^T``, and

    A = L_u^{-1} Kuf,    B = L_u^{-1} Kuv,    D = L_v^{-1} (Kvf - B^T A).

With q's of the whitened variables, the posterior has two parts with the features A and D:

    mean = A^T m_u + D^T m_v,
    cov = Kff + A^T (S_u - I) A + D^T (S_v - I) D.

All matrices have a leading axis of one, as :mod:`interdomain.linalg.variational` requires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf
from gpflow.config import default_jitter
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from ..core.covariances import Kvu
from ..core.latents import latent_gps, split_q
from ..core.pairs import Kuu_operator
from ..linalg import Full, StructuredOperator
from ..linalg.full import gram, matmul, stack
from ..linalg.variational import KeptQ, Whitened, whitened
from .groups import Group, JointQ
from .parts import FeaturePart, stack_roots


class OrthogonalPair(NamedTuple):
    """The base inducing variable and the orthogonal inducing variable."""

    base: InducingVariables
    orthogonal: InducingVariables


class Roots(NamedTuple):
    """L_u, B ``[1, M, K]`` and L_v; each root is a :class:`.Root` or a stored root."""

    base: Any
    cross: tf.Tensor
    orthogonal: Any

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        """The solution with the root ``[[L_u, 0], [B^T, L_v]]`` of the covariance of u and v, or
        with its transpose, for columns ``[M + K, N]``."""
        u, v = tf.split(columns[None], self.cross.shape[1:], axis=1)
        if adjoint:
            v = self.orthogonal.solve(v, adjoint=True)
            u = self.base.solve(u - tf.matmul(self.cross, v), adjoint=True)
        else:
            u = self.base.solve(u)
            v = self.orthogonal.solve(v - tf.matmul(self.cross, u, transpose_a=True))
        return tf.concat([u[0], v[0]], axis=0)


def factorise(pair: OrthogonalPair, kernel: Kernel) -> Roots:
    """The roots of both covariances. A diagonal Kuu needs no Cholesky factor."""
    base = _base_operator(pair, kernel).root()
    cross = base.solve(_cross_covariance(pair, kernel)[None])
    return Roots(base, cross, _residual_operator(pair, kernel, cross).root())


def _base_operator(pair: OrthogonalPair, kernel: Kernel) -> StructuredOperator:
    return stack([Kuu_operator(pair.base, kernel, jitter=default_jitter())])


def _cross_covariance(pair: OrthogonalPair, kernel: Kernel) -> tf.Tensor:
    """The matrix Kuv, ``[M, K]``."""
    return tf.linalg.matrix_transpose(Kvu(pair.orthogonal, pair.base, kernel))


def _residual_operator(
    pair: OrthogonalPair, kernel: Kernel, cross: tf.Tensor
) -> StructuredOperator:
    """The prior covariance C of v'."""
    return Full(Kuu(pair.orthogonal, kernel, jitter=default_jitter()) - gram(cross))


class OrthogonalPart(FeaturePart):
    """The part of the posterior that both sets contribute.

    :param pair: The two sets.
    :param kernel: A kernel of one output.
    :param roots: The roots; None to compute the features without them.
    :param q: The q of each set of whitened variables.
    """

    def __init__(
        self, pair: OrthogonalPair, kernel: Kernel, roots: Roots | None, q: Sequence[Whitened]
    ) -> None:
        self._pair, self._kernel, self._roots, self.q = pair, kernel, roots, q

    def features(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pair, kernel = self._pair, self._kernel
        if self._roots is not None:
            return orthogonal_features(self._roots, pair, kernel, X)
        # Orthogonal points are rows like those of X, unless rows are functionals. The base's
        # features are therefore evaluated, and compiled, once for both.
        is_acted = hasattr(kernel, "acting_family")
        if isinstance(pair.orthogonal, InducingPoints) and not is_acted:
            columns = Kuf(pair.base, kernel, tf.concat([X, pair.orthogonal.Z], axis=0))
        else:
            parts = Kuf(pair.base, kernel, X), _cross_covariance(pair, kernel)
            columns = tf.concat(parts, axis=1)
        both = _base_operator(pair, kernel).whiten(columns[None])
        num_data = tf.shape(X)[0]
        A, cross = both[..., :num_data], both[..., num_data:]
        left = Kuf(pair.orthogonal, kernel, X)[None] - matmul(cross, A, transpose_a=True)
        return A, _residual_operator(pair, kernel, cross).whiten(left)


def whitened_q(roots: Roots | None, q: Sequence[JointQ]) -> list[Whitened]:
    """Both q's of the whitened variables. If q(v') has no root, its covariance is the prior's.

    :param roots: The roots of the prior covariances; None if q is over whitened variables already.
    """
    sets = [None, None] if roots is None else [roots.base, roots.orthogonal]
    whitened_of_each = []
    for set_root, (mean, root) in zip(sets, q, strict=True):
        pair = tf.convert_to_tensor(mean)[None], None if root is None else stack_roots([root])
        whitened_set = Whitened(*pair) if set_root is None else whitened(set_root, *pair)
        if root is None:  # the identity, for whitened variables
            whitened_set = whitened_set._replace(root=tf.ones_like(whitened_set.mean))
        whitened_of_each.append(whitened_set)
    return whitened_of_each


def orthogonal_features(
    roots: Roots, pair: OrthogonalPair, kernel: Kernel, X: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The features A and D at X ``[N, D]``, ``[1, M, N]`` and ``[1, K, N]``."""
    A = roots.base.solve(Kuf(pair.base, kernel, X)[None])
    left = Kuf(pair.orthogonal, kernel, X)[None] - matmul(roots.cross, A, transpose_a=True)
    return A, roots.orthogonal.solve(left)  # S_vf


@dataclass(frozen=True)
class OrthogonalGroup(Group):
    """Latent GPs that share one prior, their two sets of inducing variables, and their q's."""

    pair: OrthogonalPair
    whiten: bool

    def parts(self, kept: tuple[KeptQ, tf.Tensor, KeptQ] | None = None) -> list[OrthogonalPart]:
        if kept is None:
            roots = None if self.whiten else factorise(self.pair, self.latents.kernel)
            q = whitened_q(roots, self.q)
        else:
            base, cross, orthogonal = kept
            roots, q = Roots(base.root, cross, orthogonal.root), [base.q, orthogonal.q]
        return [OrthogonalPart(self.pair, self.latents.kernel, roots, q)]

    def keep(self) -> tuple[KeptQ, tf.Tensor, KeptQ]:
        roots = factorise(self.pair, self.latents.kernel)
        q_u, q_v = whitened_q(None if self.whiten else roots, self.q)
        return KeptQ.of(roots.base, q_u), roots.cross, KeptQ.of(roots.orthogonal, q_v)


def orthogonal_groups(
    pair: OrthogonalPair, kernel: Kernel, q: Sequence[JointQ], *, whiten: bool
) -> list[OrthogonalGroup]:
    """The latent GPs of a kernel, with their parts of both q's.

    :param q: The mean ``[M, L]`` and the root ``[M, L]`` or ``[L, M, M]`` of q(u), and of q(v').
        The root of q(v') is None for the prior's covariance; then v' changes only the mean.
    """
    groups = []
    latents = latent_gps(kernel, *pair)
    pairs = [OrthogonalPair(*group.inducing_variables) for group in latents]
    base_qs = split_q(latents, [latent_pair.base for latent_pair in pairs], *q[0])
    orthogonal_qs = split_q(latents, [latent_pair.orthogonal for latent_pair in pairs], *q[1])
    for group, latent_pair, *qs in zip(latents, pairs, base_qs, orthogonal_qs, strict=True):
        groups.append(OrthogonalGroup(group, qs, latent_pair, whiten))
    return groups
