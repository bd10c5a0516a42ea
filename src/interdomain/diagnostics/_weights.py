"""The weights of features of effects in a fitted model: ``f = sum_m w_m phi_m(x)``.

With whitened variables v of prior N(0, I) they are ``w = sqrt(prior variance) v``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, MultioutputKernel
from gpflow.utilities import Dispatcher
from scipy.linalg import block_diag

from .._arguments import integer
from ..covariances import Kuu_operator
from ..covariances.additive_features import prior_variances
from ..covariances.pairs import flat_blocks
from ..inducing_variables.additive_features import EffectFeatures
from ..kernels import Additive, FiniteRank
from ..kernels.additive.additive import EffectKernel
from ..kernels.finite_rank import base_of, explained_terms
from ..linalg import square_root
from ..models import AdditiveSVGP, OrthogonalSVGP, StructuredSGPR
from ..sphere._typing import Array, IntArray

_REMEDY = (
    "pass an interdomain.models.StructuredSGPR or AdditiveSVGP, or a gpflow.models.SVGP, with "
    "inducing_variables.AdditiveFeatures"
)


@dataclass(frozen=True)
class EffectBlock:
    """The features of one effect of a kernel.

    :ivar table: The sum of effects that it is one of.
    :ivar effect: Its columns; none for the constant.
    :ivar functions: Of which function of each column every feature is the product, ``[m, k]``.
    :ivar prior_variances: Of the features' weights, ``[m]``.
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
    base, own = base_of(kernel), inducing_variable is kernel.inducing_variable
    variance = None if own else _explained(kernel.inducing_variable, base)
    return _block(inducing_variable, base, variance)


def _block(features: EffectFeatures, kernel: EffectKernel, variance: float | None) -> EffectBlock:
    """
    :param variance: The prior variance of the effect; None for what the features explain.
    """
    left_over = 0.0 if variance is None else variance - _explained(features, kernel)
    return EffectBlock(
        table=kernel.parent,
        effect=kernel.effect,
        functions=features.functions,
        prior_variances=np.asarray(prior_variances(features, kernel), float),
        left_over=max(left_over, 0.0),
    )


def _explained(features: EffectFeatures, kernel: EffectKernel) -> float:
    return sum(float(factor()) for _, factor in explained_terms(features, kernel))


@dataclass(frozen=True)
class WhitenedQ:
    """q of whitened variables, those of all blocks one behind the other.

    :ivar mean: ``[M, P]``.
    :ivar root: A root of the covariance of an output, ``[M, R]``, by its number.
    """

    mean: Array
    root: Callable[[int], Array]


@singledispatch
def whitened_q(model: gpflow.models.GPModel) -> WhitenedQ:
    """q of the whitened inducing variables of a model.

    :raises ValueError: Of models that have no such q.
    """
    raise ValueError(
        f"model must have a Gaussian q of inducing variables, found {type(model).__name__}; "
        f"{_REMEDY}."
    )


@whitened_q.register(StructuredSGPR)
def whitened_q_sgpr(model: StructuredSGPR) -> WhitenedQ:
    """The optimal one."""
    return whitened_q(model.to_svgp())


@whitened_q.register(gpflow.models.SVGP)
def whitened_q_svgp(model: gpflow.models.SVGP) -> WhitenedQ:
    """Its own."""
    mean, root = _numbers(model.q_mu), partial(_root, model.q_sqrt)
    if model.whiten:
        return WhitenedQ(mean, root)
    solve = _whitener(model.inducing_variable, model.kernel)
    return WhitenedQ(solve(mean), lambda output: solve(root(output)))


@whitened_q.register(AdditiveSVGP)
def whitened_q_additive(model: AdditiveSVGP) -> WhitenedQ:
    """Those of the blocks, which are independent."""
    means = [_numbers(mean) for mean in model.q_mu]
    roots = [partial(_root, root) for root in model.q_sqrt]
    if model.whiten:
        solves: list[Callable[[Array], Array]] = [np.asarray] * len(means)
    else:
        solves = [_whitener(*block) for block in flat_blocks(model.inducing_variable, model.kernel)]
    pairs = list(zip(solves, roots, strict=True))
    return WhitenedQ(
        np.concatenate([solve(mean) for solve, mean in zip(solves, means, strict=True)]),
        lambda output: np.asarray(block_diag(*(solve(root(output)) for solve, root in pairs))),
    )


@whitened_q.register(OrthogonalSVGP)
def whitened_q_orthogonal(model: OrthogonalSVGP) -> WhitenedQ:
    """None.

    :raises ValueError: Always.
    """
    raise ValueError(
        "model must not have orthogonal inducing variables, which add to f what belongs to no "
        f"effect alone, found OrthogonalSVGP; {_REMEDY}."
    )


def _whitener(inducing_variable: InducingVariables, kernel: Kernel) -> Callable[[Array], Array]:
    """``L^{-1}`` of columns, with the root L of Kuu."""
    root = square_root(Kuu_operator(inducing_variable, kernel, jitter=default_jitter()))
    return lambda columns: _numbers(root.solve(tf.constant(columns, root.dtype)))


def _root(q_sqrt: TensorType, output: int) -> Array:
    """Of ``[M, P]`` or ``[P, M, M]``, ``[M, M]``."""
    root = _numbers(q_sqrt)
    return np.diag(root[:, output]) if root.ndim == 2 else root[output]


def _numbers(tensor: TensorType) -> Array:
    return np.asarray(tf.convert_to_tensor(tensor), float)


def effect_weights(model: Any, output: int, scale: float) -> Weights:
    """The weights of f, times ``scale``.

    :raises ValueError: If the model is of another kind, or has not one sum of effects with
        features, or no such output.
    """
    if not isinstance(model, gpflow.models.GPModel):
        raise ValueError(f"model must be a GP, found {type(model).__name__}; {_REMEDY}.")
    if isinstance(model.kernel, MultioutputKernel):
        raise ValueError(
            f"model must have a kernel of one output, found {type(model.kernel).__name__}; pass a "
            "model of one output, or one with num_latent_gps and an Additive kernel for all."
        )
    q = whitened_q(model)
    kernel, inducing_variable = model.kernel, model.inducing_variable
    output = integer("output", output, at_least=0)
    if output >= q.mean.shape[1]:
        raise ValueError(
            f"output must be from 0 to {q.mean.shape[1] - 1}, found {output}; pass the number of "
            "a column of Y."
        )
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
    scales = scale * np.sqrt(np.concatenate([block.prior_variances for block in found]))
    root = q.root(output)[rows]
    return Weights(table, tuple(found), scales * q.mean[rows, output], scales[:, None] * root)
