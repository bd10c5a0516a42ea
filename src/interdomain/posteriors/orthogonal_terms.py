"""Algebra of two sets of inducing variables, the second of which describes what the first leaves.

f = g + h, where g is what u determines and h the rest, independent of g: its covariance is
``S = Kff - Kfu Kuu^{-1} Kuf``. The orthogonal variables v' are those of ``iv_v`` applied to h, with
the prior covariance ``C = Kvv - Kvu Kuu^{-1} Kuv`` (Shi et al. 2020; Tiao et al. 2023, eqs. 8-12).
With ``Kuu = L_u L_u^T`` and ``C = L_v L_v^T``,

    A = L_u^{-1} Kuf,    B = L_u^{-1} Kuv,    D = L_v^{-1} (Kvf - B^T A),

and q's of the whitened variables, the posterior is that of two parts whose features are A and D:

    mean = A^T m_u + D^T m_v,
    cov = Kff + A^T (S_u - I) A + D^T (S_v - I) D.

All matrices have a leading axis of one, as :mod:`interdomain.linalg.variational` wants parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from ..core.covariances import Kvu
from ..core.latents import LatentGPs, latent_gps, split_q
from ..core.pairs import Kuu_operator
from ..linalg import Full, Root, StructuredOperator
from ..linalg.full import gram, matmul, stack
from ..linalg.variational import Kept, Variational, Whitened, whitened
from .groups import Group
from .parts import FeaturePart, Features, stack_roots


class OrthogonalPair(NamedTuple):
    """The base inducing variable and the orthogonal one."""

    base: InducingVariables
    orthogonal: InducingVariables


class OrthogonalValues(NamedTuple):
    """q(u) and q(v'): means ``[M, P]`` and ``[K, P]``; roots ``[M, P]`` or ``[P, M, M]``.

    ``q_sqrt_orthogonal`` is None where q(v') has the prior's covariance: then it adds to the mean
    alone.
    """

    q_mu: TensorType
    q_sqrt: TensorType
    q_mu_orthogonal: TensorType
    q_sqrt_orthogonal: TensorType | None


class Roots(NamedTuple):
    """L_u, B ``[1, M, K]`` and L_v."""

    base: Root
    cross: tf.Tensor
    orthogonal: Root

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        """With the root ``[[L_u, 0], [B^T, L_v]]`` of the covariance of u and v, or its transpose,
        for columns ``[M + K, N]``."""
        u, v = tf.split(columns[None], [self.base.size, self.orthogonal.size], axis=1)
        if adjoint:
            v = self.orthogonal.solve(v, adjoint=True)
            u = self.base.solve(u - tf.matmul(self.cross, v), adjoint=True)
        else:
            u = self.base.solve(u)
            v = self.orthogonal.solve(v - tf.matmul(self.cross, u, transpose_a=True))
        return tf.concat([u[0], v[0]], axis=0)


def _residuals(cross: tf.Tensor, A: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """S_vf, from Kvf."""
    return columns - matmul(cross, A, transpose_a=True)


def factorise(pair: OrthogonalPair, kernel: Kernel) -> Roots:
    """Both square roots; that of Kuu keeps its structure, and costs no Cholesky if diagonal."""
    base = _base_operator(pair, kernel).root()
    cross = base.solve(_cross_covariance(pair, kernel)[None])
    return Roots(base, cross, _residual_operator(pair, kernel, cross).root())


def _base_operator(pair: OrthogonalPair, kernel: Kernel) -> StructuredOperator:
    return stack([Kuu_operator(pair.base, kernel, jitter=default_jitter())])


def _cross_covariance(pair: OrthogonalPair, kernel: Kernel) -> tf.Tensor:
    """Kuv ``[M, K]``."""
    return tf.linalg.matrix_transpose(Kvu(pair.orthogonal, pair.base, kernel))


def _residual_operator(
    pair: OrthogonalPair, kernel: Kernel, cross: tf.Tensor
) -> StructuredOperator:
    """C, the prior covariance of v'."""
    return Full(Kuu(pair.orthogonal, kernel, jitter=default_jitter()) - gram(cross))


def residual_shares(pair: OrthogonalPair, kernel: Kernel) -> tf.Tensor:
    """The share of the prior variance of each orthogonal variable that u leaves to it, ``[K]``.

    Where it is zero, S_vf is as well: u determines the variable.
    """
    cross = _base_operator(pair, kernel).whiten(_cross_covariance(pair, kernel)[None])
    if isinstance(pair.orthogonal, InducingPoints):
        prior = kernel(pair.orthogonal.Z, full_cov=False)
    else:
        prior = tf.linalg.diag_part(Kuu(pair.orthogonal, kernel))
    return 1 - tf.reduce_sum(tf.square(cross), axis=[0, 1]) / prior


class FactorisedOrthogonalPart(FeaturePart):
    """From matrices that are factorised now.

    :param pair: The two sets.
    :param kernel: Of one output.
    :param q: Theirs.
    :param whiten: Whether both q's are those of whitened variables.
    """

    def __init__(
        self, pair: OrthogonalPair, kernel: Kernel, q: OrthogonalValues, whiten: bool
    ) -> None:
        self._pair, self._kernel = pair, kernel
        self._roots = None if whiten else factorise(pair, kernel)
        self._q = whitened_q(self._roots, q)

    @property
    def q(self) -> tuple[Whitened, Whitened]:
        return self._q

    def features(self, X: tf.Tensor) -> list[Features]:
        if self._roots is None:
            both = _whitened_features(self._pair, self._kernel, X)
        else:
            both = orthogonal_features(self._roots, self._pair, self._kernel, X)
        return [(A, q.projected(A)) for A, q in zip(both, self._q, strict=True)]


def whitened_q(roots: Roots | None, q: OrthogonalValues) -> tuple[Whitened, Whitened]:
    """q of the whitened variables.

    :param roots: Of the prior covariances; None if q is that of the whitened variables already.
    """
    base = Variational(tf.convert_to_tensor(q.q_mu)[None], stack_roots([q.q_sqrt]))
    mean, root = tf.convert_to_tensor(q.q_mu_orthogonal)[None], q.q_sqrt_orthogonal
    if root is None:  # the prior's covariance, I in whitened variables
        mean = mean if roots is None else roots.orthogonal.solve(mean)
        of_orthogonal = Whitened(mean, tf.ones_like(mean))
    else:
        orthogonal = Variational(mean, stack_roots([root]))
        of_orthogonal = (
            Whitened(*orthogonal) if roots is None else whitened(roots.orthogonal, orthogonal)
        )
    return Whitened(*base) if roots is None else whitened(roots.base, base), of_orthogonal


def orthogonal_features(
    roots: Roots, pair: OrthogonalPair, kernel: Kernel, X: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """A and D at X ``[N, D]``, ``[1, M, N]`` and ``[1, K, N]``."""
    A = roots.base.solve(Kuf(pair.base, kernel, X)[None])
    columns = Kuf(pair.orthogonal, kernel, X)[None]
    return A, roots.orthogonal.solve(_residuals(roots.cross, A, columns))


def _whitened_features(
    pair: OrthogonalPair, kernel: Kernel, X: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """A and D at X, where the roots are not needed."""
    both = _base_operator(pair, kernel).whiten(_base_columns(pair, kernel, X)[None])
    num_data = tf.shape(X)[0]
    A, cross = both[..., :num_data], both[..., num_data:]
    residuals = _residuals(cross, A, Kuf(pair.orthogonal, kernel, X)[None])
    return A, _residual_operator(pair, kernel, cross).whiten(residuals)


def _base_columns(pair: OrthogonalPair, kernel: Kernel, X: tf.Tensor) -> tf.Tensor:
    """Kuf and Kuv side by side, ``[M, N + K]``.

    Orthogonal points are rows like those of X: the base's features are then evaluated, and
    compiled, once for both.
    """
    if isinstance(pair.orthogonal, InducingPoints):
        return Kuf(pair.base, kernel, tf.concat([X, pair.orthogonal.Z], axis=0))
    return tf.concat([Kuf(pair.base, kernel, X), _cross_covariance(pair, kernel)], axis=1)


@dataclass(frozen=True)
class KeptOrthogonalPart(FeaturePart):
    """From what a posterior has kept: the tensors of u, those of v', and ``L_v^{-1} B^T``."""

    pair: OrthogonalPair
    kernel: Kernel
    base: Kept
    orthogonal: Kept
    tensors: tuple[tf.Tensor, ...]

    def _split(self) -> tuple[tuple[tf.Tensor, ...], tuple[tf.Tensor, ...], tf.Tensor]:
        first = self.base.num_tensors
        return self.tensors[:first], self.tensors[first:-1], self.tensors[-1]

    @property
    def q(self) -> tuple[Whitened, Whitened]:
        of_base, of_orthogonal, _ = self._split()
        return self.base.q(of_base), self.orthogonal.q(of_orthogonal)

    def features(self, X: tf.Tensor) -> list[Features]:
        of_base, of_orthogonal, cross = self._split()
        A = self.base.features(of_base, Kuf(self.pair.base, self.kernel, X)[None])
        columns = Kuf(self.pair.orthogonal, self.kernel, X)[None]
        D = self.orthogonal.solve(of_orthogonal, columns)
        D -= matmul(cross, A[0])
        return [A, (D, self.orthogonal.projected(of_orthogonal, D))]


@dataclass(frozen=True)
class OrthogonalGroup(Group):
    """Latent GPs with one prior, their two sets of inducing variables, and their q's."""

    latents: LatentGPs
    pair: OrthogonalPair
    q: OrthogonalValues | None
    whiten: bool

    def parts(self) -> list[FactorisedOrthogonalPart]:
        assert self.q is not None
        return [FactorisedOrthogonalPart(self.pair, self.latents.kernel, self.q, self.whiten)]

    def keep(self) -> tuple[tuple[Kept, Kept], list[tf.Tensor]]:
        assert self.q is not None
        roots = factorise(self.pair, self.latents.kernel)
        of_u, of_v = whitened_q(None if self.whiten else roots, self.q)
        base, of_base = Kept.of(roots.base, of_u)
        orthogonal, of_orthogonal = Kept.of(roots.orthogonal, of_v)
        cross = roots.orthogonal.solve(tf.linalg.matrix_transpose(roots.cross))
        return (base, orthogonal), [*of_base, *of_orthogonal, cross]

    def kept_parts(
        self, kept: tuple[Kept, Kept], tensors: tuple[tf.Tensor, ...]
    ) -> list[KeptOrthogonalPart]:
        return [KeptOrthogonalPart(self.pair, self.latents.kernel, *kept, tensors)]


def orthogonal_groups(
    pair: OrthogonalPair, kernel: Kernel, q: OrthogonalValues | None, *, whiten: bool
) -> list[OrthogonalGroup]:
    """The latent GPs of a kernel, with their parts of q; it is None where a posterior has kept what
    it needs of it."""
    latents = latent_gps(kernel, *pair)
    pairs = [OrthogonalPair(*of_group.inducing_variables) for of_group in latents]
    q_of_each: list[OrthogonalValues | None] = [None] * len(pairs)
    if q is not None:
        base = split_q(latents, [of_pair.base for of_pair in pairs], q.q_mu, q.q_sqrt)
        orthogonal = split_q(
            latents,
            [of_pair.orthogonal for of_pair in pairs],
            q.q_mu_orthogonal,
            q.q_sqrt_orthogonal,
        )
        q_of_each = [
            OrthogonalValues(*of_u, *of_v) for of_u, of_v in zip(base, orthogonal, strict=True)
        ]
    return [
        OrthogonalGroup(of_group, of_pair, of_q, whiten)
        for of_group, of_pair, of_q in zip(latents, pairs, q_of_each, strict=True)
    ]
