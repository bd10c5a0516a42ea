"""Draws functions from a posterior by correcting functions of the prior: pathwise conditioning.

For a joint draw ``(f', u')`` of the prior and a draw u of q, the function

    f(x) = f'(x) + Kfu Kuu^{-1} (u - u')

is a draw of the posterior (Wilson et al. 2020, *Efficiently sampling functions from Gaussian
process posteriors*, eq. 11; Matheron's rule). u' are the inducing variables of f' itself, of any
kind (:class:`interdomain.sampling.PriorSample`). If they explain the whole prior,
``f' = Kfu Kuu^{-1} u'``, so that only ``Kfu Kuu^{-1} u`` is left.

The rule holds as well for u with noise, whose variances are then part of Kuu, and whose draws are
part of u': the rows of exact regression with the likelihood's noise, or a Kuu that is factorised
with jitter. The covariance of the functions is exactly that of the posterior with this jitter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import (
    AbstractPosterior,
    BasePosterior,
    GPRPosterior,
    PrecomputeCacheType,
    SGPRPosterior,
    VGPPosterior,
)

from .._arguments import Array
from ..core.finite_rank import Kuu_operator, is_complete
from ..core.inputs import num_columns_of_latents
from ..core.latents import LatentGPs, latent_gps
from ..families.harmonic.invariant import take_whole_orbits
from ..linalg import Full, StructuredOperator
from ..posteriors import AdditivePosterior, OrthogonalPosterior
from ..posteriors.groups import BlockGroup, additive_groups, joint_groups
from ..posteriors.orthogonal_terms import (
    OrthogonalGroup,
    OrthogonalPair,
    factorise,
    orthogonal_groups,
)
from .priors import Draws, PriorSample, as_array, constant, prior_sample

Solve: TypeAlias = Callable[..., tf.Tensor]


@dataclass(frozen=True)
class LatentFunctions:
    """Functions of latent GPs with one prior.

    :ivar latents: The L latent GPs.
    :ivar num_samples: S.
    :ivar num_latents: L.
    :ivar prior: ``S L`` functions of the prior; None where the updates are all.
    :ivar updates: What inducing variables add, ``weights cov(u, f(x))``, for weights ``[S L, M]``.
    """

    latents: LatentGPs
    num_samples: int
    num_latents: int
    prior: PriorSample | None
    updates: Sequence[tuple[InducingVariables, tf.Tensor]] = ()

    @property
    def entries_per_row(self) -> int:
        """How many numbers are held for each row of X."""
        own = sum(sum(map(int, weights.shape)) for _, weights in self.updates)
        return own + (0 if self.prior is None else self.prior.entries_per_row)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """``[S, N, L]`` at X ``[N, D]``."""
        parts = [
            tf.matmul(weights, Kuf(inducing_variable, self.latents.kernel, X))
            for inducing_variable, weights in self.updates
        ]
        if self.prior is not None:
            parts.append(self.prior(X))
        values = tf.reshape(tf.add_n(parts), [self.num_samples, self.num_latents, -1])
        return tf.transpose(values, [0, 2, 1])


Parts: TypeAlias = tuple[Kernel, MeanFunction | None, Sequence[LatentFunctions]]


def functions_of(model: Any, draws: Draws) -> Parts:
    """The functions of the latent GPs of a model, with the kernel that says how outputs are made of
    them, and the mean function. Later training changes none of them.

    :raises ValueError: For models of other kinds.
    """
    if isinstance(model, Kernel):
        (kernel,) = _frozen(model)
        functions = []
        for latents in latent_gps(kernel):
            number = len(latents.positions or (0,))
            prior = prior_sample(latents.kernel, _of_latents(draws, latents, number))
            functions.append(LatentFunctions(latents, draws.num_samples, number, prior))
        return kernel, None, functions
    posterior = model
    if not isinstance(model, AbstractPosterior) and hasattr(model, "posterior"):
        posterior = model.posterior(PrecomputeCacheType.NOCACHE)
    held: Sequence[Any]
    if isinstance(posterior, OrthogonalPosterior):
        held = posterior.pair
    elif isinstance(posterior, SGPRPosterior):
        held = (posterior.inducing_variable,)
    elif isinstance(posterior, (GPRPosterior, VGPPosterior)):
        held = (InducingPoints(posterior.X_data),)
    elif isinstance(posterior, (BasePosterior, AdditivePosterior)):
        held = (posterior.X_data,)
    else:
        raise ValueError(
            "model must be an SVGP, SGPR, GPR or VGP of gpflow.models, a model of "
            f"interdomain.models, the posterior of one, or a kernel, found {type(model).__name__}; "
            "draw values at given rows by model.predict_f_samples."
        )
    kernel, mean_function, *held = _frozen(posterior.kernel, posterior.mean_function, *held)
    groups: Sequence[BlockGroup | OrthogonalGroup]
    if isinstance(posterior, GPRPosterior):
        return kernel, mean_function, [_of_rows(posterior, kernel, held[0], draws)]
    if isinstance(posterior, SGPRPosterior):
        q = _optimal_q(posterior, kernel, held[0])
        groups = joint_groups(held[0], kernel, q, whiten=True)
    elif isinstance(posterior, OrthogonalPosterior):
        pair = OrthogonalPair(*held)
        groups = orthogonal_groups(pair, kernel, posterior.q, whiten=posterior.whiten)
    elif isinstance(posterior, AdditivePosterior):
        blocks = list(zip(posterior.q_mu, map(_lower, posterior.q_sqrt), strict=True))
        groups = additive_groups(held[0], kernel, blocks, whiten=posterior.whiten)
    else:
        is_vgp = isinstance(posterior, VGPPosterior)
        q = posterior.q_mu, _lower(posterior.q_sqrt)
        whiten = posterior.white if is_vgp else posterior.whiten
        groups = joint_groups(held[0], kernel, q, whiten=whiten)
    return kernel, mean_function, [_of_group(group, draws) for group in groups]


def _frozen(*objects: Any) -> tuple[Any, ...]:
    """Copies that later training does not change. They share parts as the originals do. Where a
    kernel sums over a random sample of an orbit, the copy sums over the whole orbit, so that a
    function has one value at each place."""
    holder = tf.Module()
    holder.objects = list(objects)
    copied = gpflow.utilities.deepcopy(holder)
    take_whole_orbits(copied)
    return tuple(copied.objects)


def _of_latents(draws: Draws, latents: LatentGPs, num_latents: int) -> Draws:
    """The draws for a function of each latent GP in every sample."""
    columns = draws.num_columns
    if columns is None:
        columns = num_columns_of_latents([latents])
    return replace(draws, num_samples=draws.num_samples * num_latents, num_columns=columns)


def _condition(
    latents: LatentGPs,
    num_latents: int,
    solve: Solve,
    variances: Array,
    drawn: Callable[[], tf.Tensor],
    draws: Draws,
    *,
    whole: bool = False,
) -> LatentFunctions:
    """Functions whose inducing variables are those drawn.

    :param latents: With one or several inducing variables, M in all.
    :param solve: Multiplies by ``L^{-1}``, or by its transpose if ``adjoint=True``, where
        ``L L^T`` is the covariance of all inducing variables, noise included.
    :param variances: That of the noise of each of them, ``[M]``.
    :param drawn: Draws ``L^{-1} u``, ``[M, S L]``; called after the prior is drawn.
    :param whole: Whether the first inducing variable explains the whole prior: what it subtracts
        from f' is f', with the noise of its jitter.
    """
    kernel, blocks = latents.kernel, latents.inducing_variables
    own = _of_latents(draws, latents, num_latents)
    prior = None if whole else prior_sample(kernel, own)
    known = int(blocks[0].num_inducing) if whole else 0
    noise = own.rng.standard_normal((len(variances) - known, own.num_samples))
    noise *= np.sqrt(variances[known:])[:, None]
    variables = constant(np.pad(noise, [(known, 0), (0, 0)]))
    if prior is not None:
        projected = [prior.project(block) for block in blocks]
        variables += tf.transpose(tf.concat(projected, axis=1))
    weights = tf.transpose(solve(drawn() - solve(variables), adjoint=True))
    sizes = [int(block.num_inducing) for block in blocks]
    updates = list(zip(blocks, tf.split(weights, sizes, axis=1), strict=True))
    return LatentFunctions(latents, draws.num_samples, num_latents, prior, updates)


def _of_jitter(diagonal: Callable[[float], tf.Tensor]) -> Array:
    """The variances that jitter adds to a diagonal."""
    return np.maximum(as_array(diagonal(gpflow.config.default_jitter()) - diagonal(0.0)), 0)


def _of_operator(inducing_variable: InducingVariables, kernel: Kernel) -> tuple[Solve, Array]:
    """How to solve with the root of Kuu, and the jitter in it."""

    def operator(jitter: float) -> StructuredOperator:
        return Kuu_operator(inducing_variable, kernel, jitter=jitter)

    root = operator(gpflow.config.default_jitter()).root()
    return root.solve, _of_jitter(lambda jitter: operator(jitter).diag_part())


def _draw(mean: tf.Tensor, root: tf.Tensor | None, draws: Draws) -> tf.Tensor:
    """Draws of q, ``[M, S L]``.

    :param mean: ``[M, L]``.
    :param root: Of the covariance: ``[M, L]``, or ``[L, M, M]`` (one matrix may serve all); None
        for a covariance of zero.
    """
    mean = tf.convert_to_tensor(mean)
    size, latents = map(int, mean.shape)
    found = tf.tile(mean[:, None, :], [1, draws.num_samples, 1])  # [M, S, L]
    if root is not None:
        noise = constant(draws.rng.standard_normal((latents, size, draws.num_samples)))
        noise = tf.transpose(root)[:, :, None] * noise if root.shape.rank == 2 else root @ noise
        found += tf.transpose(noise, [1, 2, 0])
    return tf.reshape(found, [size, -1])


def _lower(root: tf.Tensor | None) -> tf.Tensor | None:
    """Without what is above the diagonal, as GPflow does."""
    is_full = root is not None and root.shape.rank == 3
    return tf.linalg.band_part(root, -1, 0) if is_full else root


def _of_group(group: BlockGroup | OrthogonalGroup, draws: Draws) -> LatentFunctions:
    """Functions of latent GPs with blocks of inducing variables, each with its own q."""
    if isinstance(group, OrthogonalGroup):
        return _of_orthogonal(group, draws)
    latents = group.latents
    pair = latents.inducing_variables[0], latents.kernel
    solve, variances = _of_operator(*pair)

    def drawn() -> tf.Tensor:
        values = tf.concat([_draw(*q, draws) for q in group.q], axis=0)
        return values if group.whiten else solve(values)

    number = int(group.q[0][0].shape[1])
    return _condition(latents, number, solve, variances, drawn, draws, whole=is_complete(*pair))


def _errors_and_noise(posterior: GPRPosterior | SGPRPosterior) -> tuple[tf.Tensor, tf.Tensor]:
    """Targets less the mean function, ``[N, P]``, and the variance of each row, ``[N]``."""
    X = posterior.X_data
    mean_function = posterior.mean_function
    assert mean_function is not None
    return posterior.Y_data - mean_function(X), posterior.likelihood.variance_at(X)[:, 0]


def _of_rows(
    posterior: GPRPosterior, kernel: Kernel, rows: InducingPoints, draws: Draws
) -> LatentFunctions:
    """Functions of which the rows of the data are observed with noise."""
    errors, noise = _errors_and_noise(posterior)
    matrix = kernel(rows.Z)
    matrix = tf.linalg.set_diag(matrix, tf.linalg.diag_part(matrix) + noise)
    solve, variances = Full(matrix).root().solve, as_array(noise)
    mean, number = solve(errors), int(errors.shape[1])
    latents = LatentGPs(kernel, (rows,))
    return _condition(latents, number, solve, variances, lambda: _draw(mean, None, draws), draws)


def _optimal_q(
    posterior: SGPRPosterior, kernel: Kernel, inducing_variable: InducingVariables
) -> tuple[tf.Tensor, tf.Tensor]:
    """The optimal q of whitened variables: mean ``[M, P]``, and a root ``[1, M, M]`` of the
    covariance, which is ``B^{-1}`` for ``B = I + A A^T`` and ``A = L^{-1} Kuf / sigma`` (Titsias
    2009, *Variational learning of inducing variables in sparse Gaussian processes*)."""
    errors, noise = _errors_and_noise(posterior)
    solve, _ = _of_operator(inducing_variable, kernel)
    A = solve(Kuf(inducing_variable, kernel, posterior.X_data)) / tf.sqrt(noise)
    identity = tf.eye(tf.shape(A)[0], dtype=A.dtype)
    factor = tf.linalg.cholesky(identity + tf.matmul(A, A, transpose_b=True))
    mean = tf.linalg.cholesky_solve(factor, tf.matmul(A, errors / tf.sqrt(noise)[:, None]))
    return mean, tf.linalg.triangular_solve(factor, identity, adjoint=True)[None]


def _of_orthogonal(group: OrthogonalGroup, draws: Draws) -> LatentFunctions:
    """Functions of latent GPs with an orthogonal pair of inducing variables: u' and v' of f'
    are replaced (:mod:`interdomain.posteriors.orthogonal_terms` has the notation)."""
    assert group.q is not None
    q, (base, orthogonal), kernel = group.q, group.pair, group.latents.kernel
    roots = factorise(group.pair, kernel)
    _, of_base = _of_operator(base, kernel)
    rest = _of_jitter(lambda jitter: tf.linalg.diag_part(Kuu(orthogonal, kernel, jitter=jitter)))

    def drawn() -> tf.Tensor:
        u = _draw(q.q_mu, _lower(q.q_sqrt), draws)
        v = _draw(q.q_mu_orthogonal, _lower(q.q_sqrt_orthogonal), draws)
        if not group.whiten:
            u, v = roots.base.solve(u[None])[0], roots.orthogonal.solve(v[None])[0]
        if q.q_sqrt_orthogonal is None:  # the prior's covariance
            v += constant(draws.rng.standard_normal(tuple(map(int, v.shape))))
        return tf.concat([u, v], axis=0)

    def solve(columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        """With the root ``[[L_u, 0], [B^T, L_v]]`` of the covariance of u and v."""
        u, v = tf.split(columns[None], [len(of_base), len(rest)], axis=1)
        if adjoint:
            v = roots.orthogonal.solve(v, adjoint=True)
            u = roots.base.solve(u - tf.matmul(roots.cross, v), adjoint=True)
        else:
            u = roots.base.solve(u)
            v = roots.orthogonal.solve(v - tf.matmul(roots.cross, u, transpose_a=True))
        return tf.concat([u[0], v[0]], axis=0)

    number, whole = int(q.q_mu.shape[1]), is_complete(base, kernel)
    variances = np.concatenate([of_base, rest])
    return _condition(group.latents, number, solve, variances, drawn, draws, whole=whole)
