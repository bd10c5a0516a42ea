"""Posteriors of latent GPs: groups of those that share a prior, each a sum of parts."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, TypeAlias

import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from gpflow.conditionals.util import expand_independent_outputs, mix_latent_gp
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, LinearCoregionalization

from .._tracing import unconverted
from ..core.columns import as_rows
from ..core.decomposed import flat_blocks
from ..core.family import BlockBatch
from ..core.finite_rank import is_complete
from ..core.inputs import num_columns_of_latents
from ..core.latents import LatentGPs, in_order, latent_gps, split_q
from ..core.pairs import StackedBlocks, block_batches
from ..linalg.variational import Kept, Terms, variances
from .parts import FactorisedPart, KeptPart, Part, PinnedPart, q_of_batch

JointQ: TypeAlias = tuple[TensorType, TensorType | None]


@dataclass(frozen=True)
class Group(abc.ABC):
    """Latent GPs with one prior, their inducing variables, and their q.

    :ivar latents: The latent GPs.
    :ivar q: For each independent q its q_mu ``[m, P]``, and q_sqrt ``[m, P]`` or ``[P, m, m]``, or
        None for a covariance of zero.
    """

    latents: LatentGPs
    q: Sequence[JointQ]

    @abc.abstractmethod
    def keep(self) -> Any:
        """What predictions need: tensors, and how to use them, in a structure of ``tf.nest``."""

    @abc.abstractmethod
    def parts(self, kept: Any = None) -> Sequence[Part]:
        """What the posterior is the sum of: from what was kept, which q and devices then have no
        part in; or from matrices that are factorised now."""

    def kl(self) -> tf.Tensor:
        """The KL divergence of all q; nothing is factorised if they are whitened."""
        return tf.add_n([part.kl() for part in self.parts()])


@dataclass(frozen=True)
class BlockGroup(Group):
    """Latent GPs whose inducing variables are independent blocks, or one block.

    :ivar batches: The blocks; ``q`` has one for each.
    :ivar whiten: Whether q is that of whitened variables.
    :ivar devices: That of each block; None if they are computed in batches, and anywhere.
    """

    batches: Sequence[BlockBatch]
    whiten: bool
    devices: Sequence[str] | None = None

    def parts(self, kept: Sequence[Kept] | None = None) -> Sequence[Part]:
        if kept is not None:
            pairs = zip(self.batches, kept, strict=True)
            return [KeptPart(batch, of_batch, self._is_complete) for batch, of_batch in pairs]
        if self.devices is None:
            return [self._part(batch) for batch in self.batches]
        return [
            PinnedPart(partial(self._part, batch), device, self._is_complete)
            for batch, device in zip(self.batches, self.devices, strict=True)
        ]

    def _part(self, batch: BlockBatch) -> FactorisedPart:
        return FactorisedPart(batch, q_of_batch(batch, self.q), self.whiten, self._is_complete)

    @cached_property
    def _is_complete(self) -> bool:
        """Whether the features are all that the kernel is made of: its diagonal would compute those
        that are no whole levels again."""
        return is_complete(self.latents.inducing_variables[0], self.latents.kernel)

    def keep(self) -> tuple[Kept, ...]:
        return tuple(Kept.of(part.root, *part.q) for part in map(self._part, self.batches))


def block_groups(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    q: Sequence[JointQ],
    *,
    whiten: bool,
    joint: bool,
    devices: Sequence[str] | None = None,
) -> list[BlockGroup]:
    """The latent GPs of a kernel, with their blocks of inducing variables and their part of each q.

    :param q: For each block q_mu ``[m_t, L]``, and q_sqrt ``[m_t, L]`` or ``[L, m_t, m_t]``, or
        None for a covariance of zero.
    :param joint: Whether all inducing variables of a latent GP are one block, as in a stock model;
        those of each summand otherwise.
    :param devices: Where the blocks are computed, in turn; all in batches, and nowhere in
        particular, by default.
    """
    latents = latent_gps(kernel, inducing_variable)
    pairs = [(of_group.inducing_variables[0], of_group.kernel) for of_group in latents]
    blocks = [[pair] if joint else flat_blocks(*pair) for pair in pairs]
    of_blocks = [
        split_q(latents, [block for block, _ in alike], *pair)
        for pair, alike in zip(q, zip(*blocks, strict=True), strict=True)
    ]
    groups = []
    for k, of_latent in enumerate(blocks):
        batches: list[BlockBatch] = (
            [StackedBlocks(of_latent, [0])] if joint else block_batches(*pairs[k])
        )
        placed = None
        if devices is not None:
            batches = [batch for block in of_latent for batch in block_batches(*block)]
            for t, batch in enumerate(batches):
                batch.positions = (t,)
            placed = [devices[t % len(devices)] for t in range(len(batches))]
        q_of_latent = [of_block[k] for of_block in of_blocks]
        groups.append(BlockGroup(latents[k], q_of_latent, batches, whiten, placed))
    return groups


def marginals_and_kl(
    groups: Sequence[Group], X: TensorType, *, left: bool = False
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Mean and variance of the latent GPs at X ``[N, D]``, each ``[N, L]``, what their inducing
    variables leave of the prior's variances ``[N, L]``, and the KL divergence of all q, with one
    factorisation of each Kuu.

    :param left: Whether what is left is to have a gradient, too.
    """
    X = tf.convert_to_tensor(X)
    X = as_rows(X, _num_columns([group.latents for group in groups], X))
    means, variance, leftover = [], [], []
    kls: list[tf.Tensor] = []
    for group in groups:
        parts = group.parts()
        found = [part.terms_and_kl(X, left) for part in parts]
        of_parts, kls_of_parts = zip(*found, strict=True)
        terms = reduce(Terms.plus, of_parts)
        means.append(terms.mean)
        prior = _prior_variances(group.latents, parts, X)
        shape = tf.shape(terms.mean)
        variance.append(tf.broadcast_to(variances(prior, terms), shape))
        unexplained = tf.nn.relu(tf.reshape(prior, [-1]) - terms.explained)
        leftover.append(tf.broadcast_to(unexplained[:, None], shape))
        kls += kls_of_parts
    latents = [group.latents for group in groups]
    of_latents = (in_order(latents, values, 1) for values in (means, variance, leftover))
    return *of_latents, tf.add_n(kls)


def _prior_variances(latents: LatentGPs, parts: Sequence[Part], X: tf.Tensor) -> tf.Tensor:
    """What the terms of the parts are to be added to, ``[N]``."""
    if all(part.is_complete for part in parts):
        return tf.zeros_like(X[:, 0])
    return latents.kernel(X, full_cov=False)


def _num_columns(latents: Sequence[LatentGPs], X: tf.Tensor) -> int | None:
    """The number of columns of X, if X itself does not say it and something else does."""
    if X.shape[-1] is not None:
        return None
    return num_columns_of_latents(latents)


class Rows:
    """New inputs as rows of one matrix, and results back in the shape of the inputs, as in GPflow's
    posteriors: leading dimensions of X, one covariance per latent GP.

    A rank or a number of columns that is not known when a graph is built goes no further than
    here: ``flat`` and ``sets`` have them in their static shapes.

    :param Xnew: ``[batch..., N, D]``; B is the number of its sets of N rows.
    :param num_columns: D, for an Xnew without a static number of columns, where that is known.
    :ivar flat: ``[B N, D]``.
    :ivar num_sets: B.
    """

    def __init__(self, Xnew: tf.Tensor, num_columns: int | None = None) -> None:
        self._shape = tf.shape(Xnew)
        self._is_matrix = Xnew.shape.rank == 2
        self.flat = as_rows(Xnew, num_columns)
        self.num_sets = tf.constant(1) if self._is_matrix else tf.reduce_prod(self._shape[:-2])

    @property
    def sets(self) -> tf.Tensor:
        """The inputs of a single set ``[N, D]``, or of all, ``[B, N, D]``."""
        if self._is_matrix:
            return self.flat
        shape = tf.concat([[self.num_sets], self._shape[-2:]], axis=0)
        sets = tf.reshape(self.flat, shape)
        return tf.ensure_shape(sets, [None, None, self.flat.shape[-1]])

    def columns(self, values: tf.Tensor) -> tf.Tensor:
        """``[batch..., N, P]`` from ``[B N, P]``."""
        if self._is_matrix:
            return values
        return tf.reshape(values, tf.concat([self._shape[:-1], tf.shape(values)[-1:]], axis=0))

    def covariances(self, prior: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
        """``[batch..., P, N, N]``, from the prior's at ``sets`` and changes ``[B, P, N, N]``."""
        values = prior[..., None, :, :] + changes
        if self._is_matrix:
            return values[0]
        return tf.reshape(values, tf.concat([self._shape[:-2], tf.shape(values)[1:]], axis=0))

    def broadcast(self, cov: tf.Tensor, mean: tf.Tensor, full_cov: bool) -> tf.Tensor:
        """One (co)variance for each latent GP, of which ``mean`` has the number."""
        if not full_cov:
            return tf.broadcast_to(cov, tf.shape(mean))
        shape = tf.concat([tf.shape(cov)[:-3], tf.shape(mean)[-1:], tf.shape(cov)[-2:]], axis=0)
        return tf.broadcast_to(cov, shape)


def conditional(
    parts: Sequence[tuple[LatentGPs, Sequence[Part]]], Xnew: TensorType, full_cov: bool
) -> MeanAndVariance:
    """Mean ``[batch..., N, L]``, and variances of that shape or covariances
    ``[batch..., L, N, N]`` of the latent GPs.

    :param parts: For each group of latent GPs what its posterior is the sum of.
    :param Xnew: ``[batch..., N, D]``.
    """
    Xnew = tf.convert_to_tensor(Xnew)
    rows = Rows(Xnew, _num_columns([latents for latents, _ in parts], Xnew))
    means, covs = [], []
    for latents, of_group in parts:
        if full_cov:
            kff = latents.kernel(rows.sets)
            of_parts = [part.joint_terms(rows.flat, rows.num_sets) for part in of_group]
            mean = tf.add_n([mean for mean, _ in of_parts])
            changes = tf.add_n([change for _, change in of_parts])
            cov = rows.covariances(kff, changes)
        else:
            terms = reduce(Terms.plus, [part.terms(rows.flat) for part in of_group])
            kff = _prior_variances(latents, of_group, rows.flat)
            mean, cov = terms.mean, rows.columns(variances(kff, terms))
        means.append(rows.columns(mean))
        covs.append(rows.broadcast(cov, means[-1], full_cov))
    latents_of_all = [latents for latents, _ in parts]
    axis = -3 if full_cov else -1
    return in_order(latents_of_all, means, -1), in_order(latents_of_all, covs, axis)


@unconverted
def outputs_of(
    kernel: Kernel, mean: tf.Tensor, cov: tf.Tensor, full_cov: bool, full_output_cov: bool
) -> MeanAndVariance:
    """Mean and (co)variance of the outputs, from those of the latent GPs, in GPflow's shapes."""
    if isinstance(kernel, LinearCoregionalization):
        return mix_latent_gp(kernel.W, mean, cov, full_cov, full_output_cov)
    return mean, expand_independent_outputs(cov, full_cov, full_output_cov)
