"""Functions of a posterior by correction of functions of the prior: pathwise conditioning.

For a joint draw ``(f', u')`` of the prior and a draw u of q, the function

    f(x) = f'(x) + Kfu Kuu^{-1} (u - u')

is a draw of the posterior (Wilson et al. 2020, *Efficiently sampling functions from Gaussian
process posteriors*, eq. 11; Matheron's rule). u' are the inducing variables of f' itself, of any
class (``PriorSample.project``). If they represent the prior completely, ``f' = Kfu Kuu^{-1} u'``,
and only ``Kfu Kuu^{-1} u`` remains.

The rule also holds if u has noise. The variances of the noise are then part of Kuu, and its draws
are part of u'. Examples are the rows of exact regression with the likelihood's noise, and a Kuu
with jitter. The covariance of the functions is exactly that of the posterior with this jitter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import (
    BasePosterior,
    GPRPosterior,
    PrecomputeCacheType,
    SGPRPosterior,
    VGPPosterior,
)

from .._arguments import Array
from ..core.finite_rank import is_complete
from ..core.inputs import num_columns_of_latents
from ..core.latents import LatentGPs, latent_gps
from ..core.pairs import Kuu_operator
from ..linalg import Full
from ..linalg.operators import Inverse
from ..posteriors.blockwise import BlockwisePosterior
from ..posteriors.groups import BlockGroup, Group, block_groups
from ..posteriors.orthogonal_terms import OrthogonalGroup, factorise
from ..posteriors.weights import WeightsPosterior
from .base import Draws, PriorSample, as_array, constant, points_of
from .priors import prior_sample
from .weights import WeightedFunctions, functions_of_weights


@dataclass(frozen=True)
class LatentFunctions:
    """Functions of latent GPs that share one prior.

    :ivar latents: The L latent GPs.
    :ivar prior: ``S L`` functions of the prior; None if the updates are the whole functions.
    :ivar updates: Terms ``weights cov(u, f(x))`` of inducing variables, with weights ``[S L, M]``.
    """

    latents: LatentGPs
    num_samples: int
    prior: PriorSample | None
    updates: Sequence[tuple[InducingVariables, tf.Tensor]] = ()

    @property
    def entries_per_row(self) -> int:
        """The number of values in memory for each row of X."""
        update_entries = sum(sum(map(int, weights.shape)) for _, weights in self.updates)
        return update_entries + (0 if self.prior is None else self.prior.entries_per_row)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """The values ``[S, N, L]`` at X ``[N, D]``."""
        kernel, parts = self.latents.kernel, [] if self.prior is None else [self.prior(X)]
        values = tf.add_n([*parts, *(weights @ Kuf(u, kernel, X) for u, weights in self.updates)])
        values = tf.reshape(values, [self.num_samples, values.shape[0] // self.num_samples, -1])
        return tf.transpose(values, [0, 2, 1])


Parts: TypeAlias = tuple[
    Kernel, MeanFunction | None, Sequence[LatentFunctions] | Sequence[WeightedFunctions]
]


def functions_of(model: Any, draws: Draws) -> Parts:
    """The functions of the latent GPs of a model; the kernel, which combines them into outputs; and
    the mean function. Later training does not change them.

    :raises ValueError: If functions of the model cannot be drawn.
    """
    if isinstance(model, Kernel):
        kernel = gpflow.utilities.deepcopy(model)
        functions = []
        for latents in latent_gps(kernel):
            number = len(latents.positions or (0,))
            prior = prior_sample(latents.kernel, _latent_draws(draws, latents, number))
            functions.append(LatentFunctions(latents, draws.num_samples, prior))
        return kernel, None, functions
    posterior = model
    if hasattr(model, "posterior"):
        posterior = model.posterior(PrecomputeCacheType.NOCACHE)
    if isinstance(posterior, WeightsPosterior):
        return functions_of_weights(posterior, draws)
    kinds = (BasePosterior, BlockwisePosterior, GPRPosterior, SGPRPosterior, VGPPosterior)
    if not isinstance(posterior, kinds):
        remedy = "draw values at given rows by model.predict_f_samples"
        if hasattr(model, "f_layers"):
            remedy = "draw functions of a deep GP by gpflux.models.deep_gp.sample_dgp"
        raise ValueError(
            "model must be an SVGP, SGPR, GPR or VGP of gpflow.models, a model of "
            "interdomain.models other than VecchiaSGPR, the posterior of one, or a kernel, found "
            f"{type(model).__name__}; {remedy}."
        )
    if isinstance(posterior, BlockwisePosterior):  # copied without its model, which may hold data
        parts = posterior.kernel, posterior.mean_function, posterior.groups()
        kernel, mean_function, groups = gpflow.utilities.deepcopy(parts)
        return kernel, mean_function, [_group_functions(group, draws) for group in groups]
    posterior = gpflow.utilities.deepcopy(posterior)
    kernel, mean_function = posterior.kernel, posterior.mean_function
    if isinstance(posterior, GPRPosterior):
        return kernel, mean_function, [_gpr_functions(posterior, draws)]
    if isinstance(posterior, SGPRPosterior):
        q, inducing_variable, whiten = _optimal_q(posterior), posterior.inducing_variable, True
    elif isinstance(posterior, VGPPosterior):
        q, whiten = (posterior.q_mu, posterior.q_sqrt), posterior.white
        inducing_variable = points_of(posterior.X_data, kernel)
    else:
        q, whiten = (posterior.q_mu, posterior.q_sqrt), posterior.whiten
        inducing_variable = posterior.X_data
    q_groups = block_groups(inducing_variable, kernel, [q], whiten=whiten, joint=True)
    return kernel, mean_function, [_group_functions(group, draws) for group in q_groups]


def _latent_draws(draws: Draws, latents: LatentGPs, num_latents: int) -> Draws:
    """The draws for one function of each latent GP in every sample."""
    known = draws.num_columns
    columns = num_columns_of_latents([latents]) if known is None else known
    return replace(draws, num_samples=draws.num_samples * num_latents, num_columns=columns)


def _condition(
    latents: LatentGPs,
    num_latents: int,
    solve: Inverse,
    variances: Array,
    drawn: Callable[[], tf.Tensor],
    draws: Draws,
) -> LatentFunctions:
    """Functions whose inducing variables equal drawn values.

    If the first inducing variable represents the prior completely, f' cancels, except for the noise
    of the jitter.

    :param latents: Latent GPs with one or several inducing variables, M in all.
    :param solve: Multiplies by ``L^{-1}``, or by its transpose if ``adjoint=True``. ``L L^T`` is
        the covariance of all inducing variables, noise included.
    :param variances: The variance of the noise of each inducing variable, ``[M]``.
    :param drawn: Returns draws ``L^{-1} u``, ``[M, S L]``; called after the prior is drawn.
    """
    kernel, blocks = latents.kernel, latents.inducing_variables
    latent_draws = _latent_draws(draws, latents, num_latents)
    sizes, covers_prior = [int(b.num_inducing) for b in blocks], is_complete(blocks[0], kernel)
    prior = None if covers_prior else prior_sample(kernel, latent_draws)
    known = sizes[0] if covers_prior else 0
    noise = latent_draws.rng.standard_normal((len(variances) - known, latent_draws.num_samples))
    noise *= np.sqrt(variances[known:])[:, None]
    variables = constant(np.pad(noise, [(known, 0), (0, 0)]))
    if prior is not None:
        variables += tf.transpose(tf.concat(list(map(prior.project, blocks)), axis=1))
    weights = tf.transpose(solve(drawn() - solve(variables), adjoint=True))
    updates = list(zip(blocks, tf.split(weights, sizes, axis=1), strict=True))
    return LatentFunctions(latents, draws.num_samples, prior, updates)


def _draw(mean: TensorType, root: TensorType | None, draws: Draws) -> tf.Tensor:
    """Draws of q, ``[M, S L]``.

    :param mean: The mean ``[M, L]``.
    :param root: A lower triangular root of the covariance: ``[M, L]``, or ``[L, M, M]`` (one matrix
        may serve all); None for a covariance of zero.
    """
    mean = tf.convert_to_tensor(mean)
    size, latents = map(int, mean.shape)
    values = tf.tile(mean[:, None, :], [1, draws.num_samples, 1])  # [M, S, L]
    if root is not None:
        root = tf.convert_to_tensor(root)
        noise = constant(draws.rng.standard_normal((latents, size, draws.num_samples)))
        if root.shape.rank == 2:
            noise = tf.transpose(root)[:, :, None] * noise
        else:
            noise = tf.linalg.band_part(root, -1, 0) @ noise
        values += tf.transpose(noise, [1, 2, 0])
    return tf.reshape(values, [size, -1])


def _jitter_of(inducing_variable: InducingVariables, kernel: Kernel) -> Array:
    """The variances that jitter adds to the diagonal of Kuu."""
    jitters = 0.0, gpflow.config.default_jitter()
    operators = (Kuu_operator(inducing_variable, kernel, jitter=jitter) for jitter in jitters)
    without, with_jitter = (as_array(operator.diag_part()) for operator in operators)
    return np.maximum(with_jitter - without, 0)


def _solve_with_root(inducing_variable: InducingVariables, kernel: Kernel) -> Inverse:
    jitter = gpflow.config.default_jitter()
    return Kuu_operator(inducing_variable, kernel, jitter=jitter).root().solve


def _group_functions(group: Group, draws: Draws) -> LatentFunctions:
    """Functions of latent GPs, from the q of each block of inducing variables, or of an orthogonal
    pair. The draws of q replace the inducing variables u' (and v') of f'."""
    latents, kernel = group.latents, group.latents.kernel
    variances = [_jitter_of(block, kernel) for block in latents.inducing_variables]
    number = int(group.q[0][0].shape[1])
    solve: Inverse
    if isinstance(group, OrthogonalGroup):
        roots = factorise(group.pair, kernel)
        solve = roots.solve

        def drawn() -> tf.Tensor:
            u, v = (_draw(*q, draws) for q in group.q)
            if not group.whiten:
                u, v = roots.base.solve(u[None])[0], roots.orthogonal.solve(v[None])[0]
            if group.q[1][1] is None:  # the prior's covariance
                v += constant(draws.rng.standard_normal(tuple(map(int, v.shape))))
            return tf.concat([u, v], axis=0)
    else:
        assert isinstance(group, BlockGroup)
        solve = _solve_with_root(latents.inducing_variables[0], kernel)

        def drawn() -> tf.Tensor:
            values = tf.concat([_draw(*q, draws) for q in group.q], axis=0)
            return values if group.whiten else solve(values)

    return _condition(latents, number, solve, np.concatenate(variances), drawn, draws)


def _errors_and_noise(posterior: GPRPosterior | SGPRPosterior) -> tuple[tf.Tensor, tf.Tensor]:
    """The targets minus the mean function, ``[N, P]``, and the noise variance of rows, ``[N]``."""
    X, mean_function = posterior.X_data, posterior.mean_function
    assert mean_function is not None
    return posterior.Y_data - mean_function(X), posterior.likelihood.variance_at(X)[:, 0]


def _gpr_functions(posterior: GPRPosterior, draws: Draws) -> LatentFunctions:
    """Functions conditioned on the rows of the data, which are observed with noise."""
    errors, noise = _errors_and_noise(posterior)
    matrix = posterior.kernel(posterior.X_data)
    matrix = tf.linalg.set_diag(matrix, tf.linalg.diag_part(matrix) + noise)
    solve = Full(matrix).root().solve
    mean = solve(errors)
    latents = LatentGPs(posterior.kernel, (points_of(posterior.X_data, posterior.kernel),))
    number, variances = int(errors.shape[1]), as_array(noise)
    return _condition(latents, number, solve, variances, lambda: _draw(mean, None, draws), draws)


def _optimal_q(posterior: SGPRPosterior) -> tuple[tf.Tensor, tf.Tensor]:
    """The optimal q of whitened variables: mean ``[M, P]``, and a root ``[1, M, M]`` of the
    covariance. The covariance is ``B^{-1}`` for ``B = I + A A^T`` and ``A = L^{-1} Kuf / sigma``
    (Titsias 2009, *Variational learning of inducing variables in sparse Gaussian processes*)."""
    errors, noise = _errors_and_noise(posterior)
    inducing_variable, kernel = posterior.inducing_variable, posterior.kernel
    solve = _solve_with_root(inducing_variable, kernel)
    A = solve(Kuf(inducing_variable, kernel, posterior.X_data)) / tf.sqrt(noise)
    identity = tf.eye(tf.shape(A)[0], dtype=A.dtype)
    factor = tf.linalg.cholesky(identity + tf.matmul(A, A, transpose_b=True))
    mean = tf.linalg.cholesky_solve(factor, tf.matmul(A, errors / tf.sqrt(noise)[:, None]))
    return mean, tf.linalg.cholesky(tf.linalg.cholesky_solve(factor, identity))[None]
