"""Mean and (co)variance of latent GPs at new points, as sums of parts, and of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from gpflow.conditionals.util import expand_independent_outputs, mix_latent_gp
from gpflow.kernels import Kernel, LinearCoregionalization

from .._tracing import unconverted
from ..core.latents import LatentGPs, in_order
from ..linalg.variational import Terms, variances
from .groups import Group
from .parts import Part
from .rows import Rows


def marginals_and_kl(
    groups: Sequence[Group], X: TensorType, *, left: bool = False
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """The mean and variance of the latent GPs at X ``[N, D]``, each ``[N, L]``; the prior variances
    that their inducing variables leave unexplained, ``[N, L]``; and the KL divergence of all q.
    Each Kuu is factorised once.

    :param left: Whether the unexplained variances need a gradient.
    """
    latents = [group.latents for group in groups]
    X = Rows(X, latents).flat
    moments, kls = [], list[tf.Tensor]()
    for group in groups:
        parts = group.parts()
        found = [part.terms_and_kl(X, left) for part in parts]
        terms = reduce(Terms.plus, [part_terms for part_terms, _ in found])
        prior = _prior_variances(group.latents, parts, X)
        unexplained = tf.nn.relu(tf.reshape(prior, [-1]) - terms.explained)[:, None]
        shape = tf.shape(terms.mean)
        both = (tf.broadcast_to(part, shape) for part in (variances(prior, terms), unexplained))
        moments.append((terms.mean, *both))
        kls += [kl for _, kl in found]
    mean, variance, leftover = (
        in_order(latents, values, 1) for values in zip(*moments, strict=True)
    )
    return mean, variance, leftover, tf.add_n(kls)


def _prior_variances(latents: LatentGPs, parts: Sequence[Part], X: tf.Tensor) -> tf.Tensor:
    """The prior variances to which the terms of the parts are added, ``[N]``."""
    if all(part.is_complete for part in parts):
        return tf.zeros_like(X[:, 0])
    return latents.kernel(X, full_cov=False)


def conditional(
    parts: Sequence[tuple[LatentGPs, Sequence[Part]]], Xnew: TensorType, full_cov: bool
) -> MeanAndVariance:
    """Mean ``[batch..., N, L]`` of the latent GPs, and their variances of that shape or covariances
    ``[batch..., L, N, N]``.

    :param parts: The parts whose sum is the posterior, for each group of latent GPs.
    :param Xnew: New inputs ``[batch..., N, D]``.
    """
    latents_of_all = [latents for latents, _ in parts]
    rows = Rows(Xnew, latents_of_all)
    means, covs = [], []
    for latents, group_parts in parts:
        if full_cov:
            kff = latents.kernel(rows.sets)
            joint_terms = [part.joint_terms(rows.flat, rows.num_sets) for part in group_parts]
            mean, changes = (tf.add_n(terms) for terms in zip(*joint_terms, strict=True))
            cov = rows.covariances(kff, changes)
        else:
            terms = reduce(Terms.plus, [part.terms(rows.flat) for part in group_parts])
            kff = _prior_variances(latents, group_parts, rows.flat)
            mean, cov = terms.mean, rows.columns(variances(kff, terms))
        means.append(rows.columns(mean))
        covs.append(rows.broadcast(cov, means[-1], full_cov))
    axis = -3 if full_cov else -1
    return in_order(latents_of_all, means, -1), in_order(latents_of_all, covs, axis)


@unconverted
def outputs_of(
    kernel: Kernel, mean: tf.Tensor, cov: tf.Tensor, full_cov: bool, full_output_cov: bool
) -> MeanAndVariance:
    """Mean and (co)variance of the outputs, from the latent GPs' moments, in GPflow's shapes."""
    if isinstance(kernel, LinearCoregionalization):
        return mix_latent_gp(kernel.W, mean, cov, full_cov, full_output_cov)
    return mean, expand_independent_outputs(cov, full_cov, full_output_cov)
