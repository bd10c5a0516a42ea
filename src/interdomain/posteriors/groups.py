"""Groups of latent GPs that share a prior, with their inducing variables and their q."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from ..core.decomposed import flat_blocks
from ..core.family import BlockBatch
from ..core.finite_rank import is_complete
from ..core.latents import LatentGPs, latent_gps, split_q
from ..core.pairs import StackedBlocks, block_batches
from ..core.sums import placed
from ..linalg.variational import KeptQ
from .parts import FactorisedPart, KeptPart, Part, PinnedPart, q_of_batch

JointQ: TypeAlias = tuple[TensorType, TensorType | None]


@dataclass(frozen=True)
class Group(abc.ABC):
    """Latent GPs that share one prior, their inducing variables, and their q.

    :ivar latents: The latent GPs.
    :ivar q: For each independent q its q_mu ``[m, P]``, and q_sqrt ``[m, P]`` or ``[P, m, m]``, or
        None for a covariance of zero.
    """

    latents: LatentGPs
    q: Sequence[JointQ]

    @abc.abstractmethod
    def keep(self) -> Any:
        """The tensors that predictions need, and how to use them, in a structure of ``tf.nest``."""

    @abc.abstractmethod
    def parts(self, kept: Any = None) -> Sequence[Part]:
        """The parts whose sum is the posterior. They are built from the result of :meth:`keep`,
        which replaces q and devices; or from matrices that are factorised now."""

    def kl(self) -> tf.Tensor:
        """The KL divergence of all q; whitened q need no factorisation."""
        return tf.add_n([part.kl() for part in self.parts()])


@dataclass(frozen=True)
class BlockGroup(Group):
    """Latent GPs whose inducing variables are independent blocks, or one block.

    :ivar batches: The blocks; ``q`` has one entry for each block.
    :ivar whiten: Whether q is over whitened variables.
    :ivar devices: The device of each block; None if batches of blocks run on any device.
    """

    batches: Sequence[BlockBatch]
    whiten: bool
    devices: Sequence[str] | None = None

    def parts(self, kept: Sequence[KeptQ] | None = None) -> Sequence[Part]:
        if kept is not None:
            pairs = zip(self.batches, kept, strict=True)
            return [KeptPart(batch, kept_q, self._is_complete) for batch, kept_q in pairs]
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
        """Whether the features represent the prior completely. ``K_diag``, which may compute all
        features again, is then not needed."""
        return is_complete(self.latents.inducing_variables[0], self.latents.kernel)

    def keep(self) -> tuple[KeptQ, ...]:
        return tuple(KeptQ.of(part.root, *part.q) for part in map(self._part, self.batches))


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
        otherwise there is one block for each summand.
    :param devices: The devices of the blocks, in turn; None for batches of blocks on any device.
    """
    latents = latent_gps(kernel, inducing_variable)
    pairs = [(group.inducing_variables[0], group.kernel) for group in latents]
    blocks = [[pair] if joint else flat_blocks(*pair) for pair in pairs]
    block_qs = [
        split_q(latents, [block for block, _ in alike], *pair)
        for pair, alike in zip(q, zip(*blocks, strict=True), strict=True)
    ]
    groups = []
    for k, latent_blocks in enumerate(blocks):
        batches: list[BlockBatch] = (
            [StackedBlocks(latent_blocks, [0])] if joint else block_batches(*pairs[k])
        )
        batch_devices = None
        if devices is not None:
            alone = [batch for block in latent_blocks for batch in block_batches(*block)]
            batches = [placed(batch, [t]) for t, batch in enumerate(alone)]
            batch_devices = [devices[t % len(devices)] for t in range(len(batches))]
        q_of_latent = [block_q[k] for block_q in block_qs]
        groups.append(BlockGroup(latents[k], q_of_latent, batches, whiten, batch_devices))
    return groups
