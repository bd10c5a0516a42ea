"""The weights of features of effects in a fitted model: ``f = sum_m w_m phi_m(x)``.

Kuu of these features is diagonal, with one over the prior variances s of the weights. So
``w = Kuu^{-1} u = s u``, and with whitened variables v of prior N(0, I) ``w = sqrt(s) v``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gpflow
import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, MultioutputKernel
from gpflow.utilities import Dispatcher
from scipy.linalg import block_diag

from .._arguments import integer
from ..covariances.additive_features import prior_variances
from ..covariances.pairs import flat_blocks
from ..inducing_variables.additive_features import EffectFeatures
from ..kernels import Additive, FiniteRank
from ..kernels.additive.additive import EffectKernel
from ..kernels.finite_rank import base_of, explained_terms
from ..models import OrthogonalSVGP, StructuredSGPR
from ..sphere._typing import Array, IntArray


@dataclass(frozen=True)
class EffectBlock:
    """The features of one effect of a kernel.

    :ivar table: The sum of effects that it is one of.
    :ivar effect: Its columns; none for the constant.
    :ivar functions: Of which function of each column every feature is the product, ``[m, k]``.
    :ivar prior_variances: The prior variances of the features' weights, ``[m]``.
    :ivar left_over: What the features leave of the prior variance of the effect.
    """

    table: Additive
    effect: tuple[int, ...]
    functions: IntArray
    prior_variances: Array
    left_over: float


@dataclass(frozen=True)
class Weights:
    """The weights of the features of a sum of effects, and what is known of them.

    :ivar table: The sum.
    :ivar blocks: The constant, and each effect.
    :ivar mean: ``[M]``, those of the blocks one behind the other.
    :ivar root: A root of their covariance, ``[M, R]``.
    """

    table: Additive
    blocks: tuple[EffectBlock, ...]
    mean: Array
    root: Array


effect_block = Dispatcher("effect_block")
effect_block.__doc__ = """``effect_block(inducing_variable, kernel)`` for one block of a model: an
:class:`EffectBlock`, or None if it is no effect of a table."""


@effect_block.register(InducingVariables, Kernel)
def effect_block_none(inducing_variable: InducingVariables, kernel: Kernel) -> None:
    """A block of another kind."""


@effect_block.register(EffectFeatures, EffectKernel)
def effect_block_whole(inducing_variable: EffectFeatures, kernel: EffectKernel) -> EffectBlock:
    """What the features lack stays in the prior."""
    return _block(inducing_variable, kernel, float(kernel.total_variance()))


@effect_block.register(EffectFeatures, FiniteRank)
def effect_block_finite_rank(inducing_variable: EffectFeatures, kernel: FiniteRank) -> EffectBlock:
    """Left over are features that the prior has and the model has not."""
    base = base_of(kernel)
    return _block(inducing_variable, base, _explained(kernel.inducing_variable, base))


def _block(features: EffectFeatures, kernel: EffectKernel, variance: float) -> EffectBlock:
    """
    :param variance: The prior variance of the effect.
    """
    return EffectBlock(
        table=kernel.parent,
        effect=kernel.effect,
        functions=features.functions,
        prior_variances=np.asarray(prior_variances(features, kernel), float),
        left_over=max(variance - _explained(features, kernel), 0.0),
    )


def _explained(features: EffectFeatures, kernel: EffectKernel) -> float:
    return sum(float(factor()) for _, factor in explained_terms(features, kernel))


def effect_weights(model: Any, output: int, scale: float) -> Weights:
    """The weights of f, times ``scale``.

    :raises ValueError: If the model is of another kind, or has not one sum of effects with
        features, or no such output.
    """
    if isinstance(model, StructuredSGPR):
        model = model.to_svgp()
    # Orthogonal inducing variables add to f what belongs to no effect alone.
    if not isinstance(model, gpflow.models.SVGP) or isinstance(model, OrthogonalSVGP):
        raise ValueError(
            "model must have a Gaussian q of features of effects alone, found "
            f"{type(model).__name__}; pass an interdomain.models.StructuredSGPR or AdditiveSVGP, "
            "or a gpflow.models.SVGP, with inducing_variables.AdditiveFeatures."
        )
    kernel, inducing_variable = model.kernel, model.inducing_variable
    if isinstance(kernel, MultioutputKernel):
        raise ValueError(
            f"model must have a kernel of one output, found {type(kernel).__name__}; pass a "
            "model of one output, or one with num_latent_gps and an Additive kernel for all."
        )
    output = integer("output", output, at_least=0)
    if output >= model.num_latent_gps:
        raise ValueError(
            f"output must be from 0 to {model.num_latent_gps - 1}, found {output}; pass the number "
            "of a column of Y."
        )
    mean, root = _q(model, output)
    found, places, start = [], [], 0
    for block, part in flat_blocks(inducing_variable, kernel):
        size = int(block.num_inducing)
        own = effect_block(block, part)
        if own is not None:
            found.append(replace(own, left_over=scale**2 * own.left_over))
            places.append(np.arange(start, start + size))
        start += size
    tables = {id(block.table): block.table for block in found}
    if len(tables) != 1:
        raise ValueError(
            "model must have one Additive kernel with AdditiveFeatures, found "
            f"{len(tables) or 'none'} in {type(kernel).__name__} with "
            f"{type(inducing_variable).__name__}; pass a model of kernels.Additive.from_data(X), "
            "alone or as a summand, with AdditiveFeatures.for_kernel(kernel, num_inducing)."
        )
    (table,) = tables.values()
    rows = np.concatenate(places)
    variances = np.concatenate([block.prior_variances for block in found])
    factors = scale * (np.sqrt(variances) if model.whiten else variances)
    return Weights(table, tuple(found), factors * mean[rows], factors[:, None] * root[rows])


def _q(model: gpflow.models.SVGP, output: int) -> tuple[Array, Array]:
    """The mean of q, ``[M]``, and a root of its covariance, ``[M, M]``; blocks with a q of their
    own are independent."""
    means: Any = model.q_mu
    roots: Any = model.q_sqrt
    if isinstance(means, gpflow.Parameter):
        means, roots = [means], [roots]
    values = [np.asarray(root, float) for root in roots]
    joint = block_diag(*[np.diag(v[:, output]) if v.ndim == 2 else v[output] for v in values])
    return np.concatenate([np.asarray(mean, float)[:, output] for mean in means]), joint
