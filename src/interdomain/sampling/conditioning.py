"""Draws functions from a posterior by correcting functions of the prior: pathwise conditioning.

For a joint draw ``(f', u')`` of the prior and a draw u of q, the function

    f(x) = f'(x) + Kfu Kuu^{-1} (u - u')

is a draw of the posterior (Wilson et al. 2020, *Efficiently sampling functions from Gaussian
process posteriors*, eq. 11; Matheron's rule). u' are the inducing variables of f' itself, of any
kind (:data:`interdomain.sampling.priors.project`). If they explain the whole prior,
``f' = Kfu Kuu^{-1} u'``, so that only ``Kfu Kuu^{-1} u`` is left.

If Kuu is factorised with jitter, noise of the same variance is added to u'. The covariance of the
functions is then exactly that of the posterior with this jitter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from ..covariances import Kuu_operator, Kvu
from ..covariances.columns import num_columns_of_any
from ..covariances.finite_rank import is_whole_sum
from ..covariances.latents import LatentGPs
from ..linalg import Root, square_root
from ..posteriors.groups import BlockGroup
from ..posteriors.orthogonal_terms import OrthogonalGroup, factorise
from .draws import Draws, as_array, constant
from .priors import PriorSample, prior_sample, project


@dataclass(frozen=True)
class Update:
    """What inducing variables add to a function: ``weights cov(u, f(x))``.

    :ivar inducing_variable: The inducing variables.
    :ivar kernel: Of f.
    :ivar weights: ``[S L, M]``.
    """

    inducing_variable: InducingVariables
    kernel: Kernel
    weights: tf.Tensor

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.matmul(self.weights, Kuf(self.inducing_variable, self.kernel, X))


@dataclass(frozen=True)
class LatentFunctions:
    """Functions of latent GPs with one prior.

    :ivar latents: The L latent GPs.
    :ivar num_samples: S.
    :ivar num_latents: L.
    :ivar prior: ``S L`` functions of the prior; None where the updates are all.
    :ivar updates: What is added to them.
    """

    latents: LatentGPs
    num_samples: int
    num_latents: int
    prior: PriorSample | None
    updates: Sequence[Update]

    @property
    def entries_per_row(self) -> int:
        """How many numbers are held for each row of X."""
        own = sum(sum(map(int, update.weights.shape)) for update in self.updates)
        return own + (0 if self.prior is None else self.prior.entries_per_row)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """``[S, N, L]`` at X ``[N, D]``."""
        parts = [update(X) for update in self.updates]
        if self.prior is not None:
            parts.append(self.prior(X))
        values = tf.reshape(tf.add_n(parts), [self.num_samples, self.num_latents, -1])
        return tf.transpose(values, [0, 2, 1])


@dataclass(frozen=True)
class JointDraw:
    """A function of the prior and its inducing variables, with the noise of the jitter.

    :ivar function: None where the inducing variables explain it whole; then ``variables`` are zero.
    :ivar variables: ``[M, S L]``.
    """

    function: PriorSample | None
    variables: tf.Tensor


def draws_of_latents(latents: LatentGPs, num_latents: int, draws: Draws) -> Draws:
    """The draws for a function of each latent GP in every sample."""
    columns = draws.num_columns
    if columns is None:
        columns = num_columns_of_any(
            (inducing_variable, latents.kernel) for inducing_variable in latents.inducing_variables
        )
    return replace(draws, num_samples=draws.num_samples * num_latents, num_columns=columns)


def _jitter_noise(with_jitter: tf.Tensor, without: tf.Tensor, draws: Draws) -> tf.Tensor:
    """Noise ``[M, S L]`` of the variances that the jitter is, given both diagonals."""
    variances = np.maximum(as_array(with_jitter - without), 0)
    noise = draws.rng.standard_normal((len(variances), draws.num_samples))
    return constant(np.sqrt(variances)[:, None] * noise)


def operator_of(inducing_variable: InducingVariables, kernel: Kernel) -> tf.linalg.LinearOperator:
    """Kuu as an operator, with GPflow's jitter if it has to be factorised."""
    return Kuu_operator(inducing_variable, kernel, jitter=gpflow.config.default_jitter())


def joint_draw(inducing_variable: InducingVariables, kernel: Kernel, draws: Draws) -> JointDraw:
    """A function of the prior, and the values of the inducing variables for it."""
    if is_whole_sum(inducing_variable, kernel):
        size = int(inducing_variable.num_inducing)
        return JointDraw(None, constant(np.zeros([size, draws.num_samples])))
    function = prior_sample(kernel, draws)
    variables = tf.transpose(project(inducing_variable, kernel, function))
    with_jitter = operator_of(inducing_variable, kernel).diag_part()
    noise = _jitter_noise(with_jitter, Kuu_operator(inducing_variable, kernel).diag_part(), draws)
    return JointDraw(function, variables + noise)


def draw_q(
    mean: tf.Tensor, root: tf.Tensor | None, num_samples: int, rng: np.random.Generator
) -> tf.Tensor:
    """Draws of q, ``[M, S L]``.

    :param mean: ``[M, L]``.
    :param root: Of the covariance: ``[M, L]``, or ``[L, M, M]`` (one matrix may serve all); None
        for a covariance of zero.
    """
    mean = tf.convert_to_tensor(mean)
    size, latents = map(int, mean.shape)
    found = tf.tile(mean[:, None, :], [1, num_samples, 1])  # [M, S, L]
    if root is not None:
        root = tf.convert_to_tensor(root)
        noise = constant(rng.standard_normal((latents, size, num_samples)))
        if root.shape.rank == 2:
            noise = tf.transpose(root)[:, :, None] * noise
        else:
            noise = tf.matmul(root, noise)
        found += tf.transpose(noise, [1, 2, 0])
    return tf.reshape(found, [size, num_samples * latents])


def condition(
    latents: LatentGPs,
    num_latents: int,
    draw_u: Callable[[], tf.Tensor],
    draws: Draws,
    *,
    whitened: bool,
) -> LatentFunctions:
    """Functions whose inducing variables are drawn from q.

    :param latents: With one inducing variable.
    :param num_latents: L.
    :param draw_u: Draws of q, ``[M, S L]``.
    :param whitened: Whether these are of the whitened variables.
    """
    (inducing_variable,), kernel = latents.inducing_variables, latents.kernel
    prior = joint_draw(inducing_variable, kernel, draws_of_latents(latents, num_latents, draws))
    root = square_root(operator_of(inducing_variable, kernel))
    if whitened:
        difference = draw_u() - root.solve(prior.variables)
    else:
        difference = root.solve(draw_u() - prior.variables)
    weights = tf.transpose(root.solve(difference, adjoint=True))
    update = Update(inducing_variable, kernel, weights)
    return LatentFunctions(latents, draws.num_samples, num_latents, prior.function, [update])


def condition_group(group: BlockGroup, draws: Draws) -> LatentFunctions:
    """Functions of latent GPs with blocks of inducing variables, each with its own q."""
    q = [(mean, _lower(root)) for mean, root in group.q]

    def draw_u() -> tf.Tensor:
        parts = [draw_q(mean, root, draws.num_samples, draws.rng) for mean, root in q]
        return tf.concat(parts, axis=0)

    num_latents = int(q[0][0].shape[1])
    return condition(group.latents, num_latents, draw_u, draws, whitened=group.whiten)


def _lower(root: tf.Tensor | None) -> tf.Tensor | None:
    """Without what is above the diagonal, as GPflow does."""
    if root is None:
        return None
    root = tf.convert_to_tensor(root)
    return root if root.shape.rank == 2 else tf.linalg.band_part(root, -1, 0)


def condition_orthogonal(group: OrthogonalGroup, draws: Draws) -> LatentFunctions:
    """Functions of latent GPs with an orthogonal pair of inducing variables: u' and v' of the
    function of the prior are replaced, one after the other
    (:mod:`interdomain.posteriors.orthogonal_terms` has the notation)."""
    assert group.q is not None
    pair, kernel, q = group.pair, group.latents.kernel, group.q
    num_latents = int(q.q_mu.shape[1])
    of_latents = draws_of_latents(group.latents, num_latents, draws)
    prior = joint_draw(pair.base, kernel, of_latents)
    roots = factorise(pair, kernel)

    def solve(root: Root, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        return root.solve(columns[None], adjoint=adjoint)[0]

    def drawn(root: Root, mean: tf.Tensor, q_root: tf.Tensor | None) -> tf.Tensor:
        values = draw_q(mean, _lower(q_root), draws.num_samples, draws.rng)
        return values if group.whiten else solve(root, values)

    cross = roots.cross[0]
    white = solve(roots.base, prior.variables)
    if prior.function is None:  # u is all there is of f
        values = tf.matmul(Kvu(pair.orthogonal, pair.base, kernel), tf.zeros_like(white))
    else:
        values = tf.transpose(project(pair.orthogonal, kernel, prior.function))
    with_jitter, without = (
        tf.linalg.diag_part(Kuu(pair.orthogonal, kernel, jitter=jitter))
        for jitter in (gpflow.config.default_jitter(), 0.0)
    )
    values += _jitter_noise(with_jitter, without, of_latents)
    white_rest = solve(roots.orthogonal, values - tf.matmul(cross, white, transpose_a=True))

    base = drawn(roots.base, q.q_mu, q.q_sqrt) - white
    if q.q_sqrt_orthogonal is None:  # the prior's covariance
        rest = drawn(roots.orthogonal, q.q_mu_orthogonal, None)
        noise = of_latents.rng.standard_normal(tuple(map(int, rest.shape)))
        rest += constant(noise) - white_rest
    else:
        rest = drawn(roots.orthogonal, q.q_mu_orthogonal, q.q_sqrt_orthogonal) - white_rest
    rest = solve(roots.orthogonal, rest, adjoint=True)
    base = solve(roots.base, base - tf.matmul(cross, rest), adjoint=True)
    updates = [
        Update(pair.base, kernel, tf.transpose(base)),
        Update(pair.orthogonal, kernel, tf.transpose(rest)),
    ]
    return LatentFunctions(group.latents, draws.num_samples, num_latents, prior.function, updates)


def condition_on_rows(
    latents: LatentGPs,
    X: tf.Tensor,
    errors: tf.Tensor,
    noise_variances: tf.Tensor,
    draws: Draws,
) -> LatentFunctions:
    """Functions of latent GPs that are observed at rows of data, with noise: exact GP regression.

    :param X: ``[N, D]``.
    :param errors: Targets less the mean function, ``[N, L]``.
    :param noise_variances: ``[N]``.
    """
    kernel, num_latents = latents.kernel, int(errors.shape[1])
    points = InducingPoints(X)
    placed = replace(latents, inducing_variables=(points,))
    of_latents = draws_of_latents(placed, num_latents, replace(draws, num_columns=X.shape[1]))
    function = prior_sample(kernel, of_latents)
    noise = constant(draws.rng.standard_normal((int(X.shape[0]), of_latents.num_samples)))
    seen = tf.transpose(project(points, kernel, function))
    seen += tf.sqrt(noise_variances)[:, None] * noise
    matrix = kernel(X)
    matrix = tf.linalg.set_diag(matrix, tf.linalg.diag_part(matrix) + noise_variances)
    differences = draw_q(errors, None, draws.num_samples, draws.rng) - seen
    weights = tf.linalg.cholesky_solve(tf.linalg.cholesky(matrix), differences)
    update = Update(points, kernel, tf.transpose(weights))
    return LatentFunctions(placed, draws.num_samples, num_latents, function, [update])
