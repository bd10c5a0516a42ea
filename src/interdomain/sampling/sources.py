"""Takes each kind of model apart into what its functions are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import gpflow
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.models import GPR, SGPR, SVGP, VGP
from gpflow.posteriors import (
    BasePosterior,
    GPRPosterior,
    PrecomputeCacheType,
    SGPRPosterior,
    VGPPosterior,
)

from ..covariances.latents import LatentGPs, latent_gps
from ..kernels.harmonic.invariant import take_whole_orbits
from ..linalg import square_root
from ..models import AdditiveSVGP, OrthogonalSVGP
from ..models.rows_model import RowsModel
from ..posteriors import AdditivePosterior, OrthogonalPosterior
from ..posteriors.groups import additive_groups, joint_groups
from ..posteriors.orthogonal_terms import OrthogonalPair, orthogonal_groups
from .conditioning import (
    LatentFunctions,
    condition,
    condition_group,
    condition_on_rows,
    condition_orthogonal,
    draw_q,
    draws_of_latents,
    operator_of,
)
from .draws import Draws
from .priors import prior_sample

_NO_CACHE = PrecomputeCacheType.NOCACHE


class Parts(NamedTuple):
    """What the functions of all outputs are made of."""

    kernel: Kernel
    mean_function: MeanFunction | None
    latents: Sequence[LatentFunctions]


@singledispatch
def function_parts(model: Any, draws: Draws) -> Parts:
    """What the functions of a model are made of, by the kind of model.

    :raises ValueError: For another kind.
    """
    raise ValueError(
        "model must be an SVGP, SGPR, GPR or VGP of gpflow.models, a model of interdomain.models, "
        f"the posterior of one, or a kernel, found {type(model).__name__}; draw values at given "
        "rows by model.predict_f_samples."
    )


def frozen(*objects: Any) -> tuple[Any, ...]:
    """Copies that later training does not change. They share parts as the originals do. Where a
    kernel sums over a random sample of an orbit, the copy sums over the whole orbit, so that a
    function has one value at each place."""
    holder = tf.Module()
    holder.objects = list(objects)
    copied = gpflow.utilities.deepcopy(holder)
    take_whole_orbits(copied)
    return tuple(copied.objects)


@function_parts.register(Kernel)
def function_parts_prior(kernel: Kernel, draws: Draws) -> Parts:
    """Functions of the prior."""
    (kernel,) = frozen(kernel)
    found = []
    for latents in latent_gps(kernel):
        size = len(latents.positions or (0,))
        prior = prior_sample(latents.kernel, draws_of_latents(latents, size, draws))
        found.append(LatentFunctions(latents, draws.num_samples, size, prior, []))
    return Parts(kernel, None, found)


def _joint(
    kernel: Kernel,
    inducing_variable: Any,
    mean_function: MeanFunction | None,
    q: tuple[TensorType, TensorType | None],
    whiten: bool,
    draws: Draws,
) -> Parts:
    """Of a model with one q for all inducing variables."""
    kernel, inducing_variable, mean_function = frozen(kernel, inducing_variable, mean_function)
    groups = joint_groups(inducing_variable, kernel, q, whiten=whiten)
    return Parts(kernel, mean_function, [condition_group(group, draws) for group in groups])


@function_parts.register(SVGP)
def function_parts_svgp(model: SVGP, draws: Draws) -> Parts:
    """One q for all inducing variables."""
    q = model.q_mu, model.q_sqrt
    return _joint(
        model.kernel, model.inducing_variable, model.mean_function, q, model.whiten, draws
    )


@function_parts.register(BasePosterior)
def function_parts_posterior(posterior: BasePosterior, draws: Draws) -> Parts:
    """As of an SVGP."""
    q = posterior.q_mu, posterior.q_sqrt
    return _joint(
        posterior.kernel, posterior.X_data, posterior.mean_function, q, posterior.whiten, draws
    )


@function_parts.register(RowsModel)
def function_parts_collapsed(model: RowsModel, draws: Draws) -> Parts:
    """With the optimal q."""
    return function_parts(model.posterior(_NO_CACHE), draws)


@function_parts.register(AdditiveSVGP)
@function_parts.register(AdditivePosterior)
def function_parts_additive(model: AdditiveSVGP | AdditivePosterior, draws: Draws) -> Parts:
    """A q for each block."""
    posterior = model if isinstance(model, AdditivePosterior) else model.posterior(_NO_CACHE)
    kernel, inducing_variable, mean_function = frozen(
        posterior.kernel, posterior.X_data, posterior.mean_function
    )
    q = list(zip(posterior.q_mu, posterior.q_sqrt, strict=True))
    groups = additive_groups(inducing_variable, kernel, q, whiten=posterior.whiten)
    return Parts(kernel, mean_function, [condition_group(group, draws) for group in groups])


@function_parts.register(OrthogonalSVGP)
@function_parts.register(OrthogonalPosterior)
def function_parts_orthogonal(model: OrthogonalSVGP | OrthogonalPosterior, draws: Draws) -> Parts:
    """With an orthogonal pair."""
    posterior = model if isinstance(model, OrthogonalPosterior) else model.posterior(_NO_CACHE)
    kernel, base, orthogonal, mean_function = frozen(
        posterior.kernel, *posterior.pair, posterior.mean_function
    )
    pair = OrthogonalPair(base, orthogonal)
    groups = orthogonal_groups(pair, kernel, posterior.q, whiten=posterior.whiten)
    return Parts(kernel, mean_function, [condition_orthogonal(group, draws) for group in groups])


@function_parts.register(VGP)
def function_parts_vgp(model: VGP, draws: Draws) -> Parts:
    """A whitened q at the rows of the data."""
    q = model.q_mu, model.q_sqrt
    points = InducingPoints(model.data[0])
    return _joint(model.kernel, points, model.mean_function, q, True, draws)


@function_parts.register(VGPPosterior)
def function_parts_vgp_posterior(posterior: VGPPosterior, draws: Draws) -> Parts:
    """The same."""
    q = posterior.q_mu, posterior.q_sqrt
    points = InducingPoints(posterior.X_data)
    return _joint(posterior.kernel, points, posterior.mean_function, q, posterior.white, draws)


@function_parts.register(GPR)
@function_parts.register(GPRPosterior)
def function_parts_gpr(model: GPR | GPRPosterior, draws: Draws) -> Parts:
    """Exact regression."""
    posterior = model if isinstance(model, GPRPosterior) else model.posterior(_NO_CACHE)
    assert posterior.mean_function is not None
    X = tf.convert_to_tensor(posterior.X_data)
    errors = posterior.Y_data - posterior.mean_function(X)
    noise = posterior.likelihood.variance_at(X)[:, 0]
    kernel, mean_function = frozen(posterior.kernel, posterior.mean_function)
    latents = LatentGPs(kernel, ())
    found = condition_on_rows(latents, X, errors, noise, draws)
    return Parts(kernel, mean_function, [found])


@function_parts.register(SGPR)
@function_parts.register(SGPRPosterior)
def function_parts_sgpr(model: SGPR | SGPRPosterior, draws: Draws) -> Parts:
    """With the optimal q."""
    posterior = model if isinstance(model, SGPRPosterior) else model.posterior(_NO_CACHE)
    assert posterior.mean_function is not None
    X = tf.convert_to_tensor(posterior.X_data)
    errors = posterior.Y_data - posterior.mean_function(X)
    noise = posterior.likelihood.variance_at(X)[:, 0]
    kernel, inducing_variable, mean_function = frozen(
        posterior.kernel, posterior.inducing_variable, posterior.mean_function
    )
    mean, root = optimal_q(inducing_variable, kernel, X, errors, noise)
    latents = LatentGPs(kernel, (inducing_variable,))
    found = condition(
        latents,
        int(mean.shape[1]),
        lambda: draw_q(mean, root, draws.num_samples, draws.rng),
        draws,
        whitened=True,
    )
    return Parts(kernel, mean_function, [found])


def optimal_q(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    X: tf.Tensor,
    errors: tf.Tensor,
    noise_variances: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The optimal q of whitened variables: mean ``[M, P]``, and a root ``[1, M, M]`` of the
    covariance, which is ``B^{-1}`` for ``B = I + A A^T`` and ``A = L^{-1} Kuf / sigma`` (Titsias
    2009, *Variational learning of inducing variables in sparse Gaussian processes*).

    :param errors: Targets less the mean function, ``[N, P]``.
    :param noise_variances: ``[N]``.
    """
    deviations = tf.sqrt(noise_variances)
    root = square_root(operator_of(inducing_variable, kernel))
    A = root.solve(Kuf(inducing_variable, kernel, X)) / deviations
    identity = tf.eye(tf.shape(A)[0], dtype=A.dtype)
    factor = tf.linalg.cholesky(identity + tf.matmul(A, A, transpose_b=True))
    columns = tf.matmul(A, errors / deviations[:, None])
    mean = tf.linalg.cholesky_solve(factor, columns)
    return mean, tf.linalg.triangular_solve(factor, identity, adjoint=True)[None]
