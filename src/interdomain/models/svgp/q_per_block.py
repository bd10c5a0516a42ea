"""``QPerBlock``: an independent q for each block of a sum, which may be on its own device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from ..._arguments import items
from ...core.decomposed import flat_blocks
from ...core.latents import LatentGPs, latent_gps
from ...devices import move_parameters, resolve_devices
from ...posteriors.groups import block_groups
from ...training.natural_gradients import Pair
from .q import Q


class QPerBlock(Q):
    """Independent q's, one for each block of the inducing variables of a sum.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.HarmonicKernel(gpflow.kernels.Matern32(), idm.transforms.Negation())
    >>> points = idm.inducing_variables.HarmonicInducingPoints.for_kernel(kernel, np.ones([4, 2]))
    >>> q = idm.models.QPerBlock(kernel, points)
    >>> [q_mu.shape for q_mu in q.q_mu]
    [TensorShape([4, 1]), TensorShape([4, 1])]

    :param kernel: The kernel of the model, as for :class:`AdditiveSVGP`.
    :param inducing_variable: The blocks, as for :class:`AdditiveSVGP`.
    :param num_latent_gps: As for :class:`JointQ`, as are ``whiten``, ``q_diag`` and ``q_shared``.
    :param q_mu: Initial values ``[m_t, L]`` for each block, with the largest m_t of all latent GPs;
        zeros by default.
    :param q_sqrt: Initial values ``[L, m_t, m_t]`` for each block, or ``[m_t, L]`` if ``q_diag``;
        the identity by default.
    :param devices: Names of devices, to which the blocks are assigned in turn; "auto" for all
        logical GPUs (if there are two or more). Parameters of the inducing variable that belong to
        a single block are created again on its device: read them from ``inducing_variable`` of q.
    :ivar devices: The names of the devices in TensorFlow; None if blocks have no devices.
    :raises ValueError: As :class:`JointQ`; if blocks and summands do not agree; unless q_mu and
        q_sqrt have one entry for each block; if some latent GPs have more blocks than others; or if
        a device does not exist.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        *,
        num_latent_gps: int | None = None,
        whiten: bool = True,
        q_diag: bool = False,
        q_shared: bool = False,
        q_mu: Sequence[TensorType] | None = None,
        q_sqrt: Sequence[TensorType] | None = None,
        devices: Sequence[str] | Literal["auto"] | None = None,
    ) -> None:
        super().__init__(kernel, inducing_variable, num_latent_gps, whiten, q_shared)
        placed = resolve_devices(devices)
        groups = latent_gps(kernel, inducing_variable)
        if placed is not None:
            for latents in groups:
                move_parameters(inducing_variable, _blocks(latents), placed)
        blocks = [_blocks(latents) for latents in groups]
        numbers = [len(latent_blocks) for latent_blocks in blocks]
        if len(set(numbers)) > 1:
            raise ValueError(
                f"inducing_variable must have as many blocks for each latent GP, found {numbers}; "
                "pass kernels with the same number of summands."
            )
        initial = []
        for name, values in (("q_mu", q_mu), ("q_sqrt", q_sqrt)):
            rule = f"a list of one entry per block, {numbers[0]}"
            listed = [None] * numbers[0] if values is None else items(name, values, rule)
            if len(listed) != numbers[0]:
                raise ValueError(f"{name} must be {rule}, found {len(listed)}.")
            initial.append(listed)
        pairs = []
        for t, alike in enumerate(zip(*blocks, strict=True)):
            # Latent GPs may have blocks of different sizes.
            size = max(int(block.num_inducing) for block in alike)
            start = [entries[t] for entries in initial]
            with tf.device(placed[t % len(placed)] if placed else None):
                pair = self._new_pair(f"[{t}]", f"block {t}", size, *start, q_diag=q_diag)
            pairs.append(pair)
        self.q_mu, self.q_sqrt = map(list, zip(*pairs, strict=True))
        self.devices = placed

    @property
    def variational_parameters(self) -> list[Pair]:
        """The pairs (q_mu, q_sqrt) of the blocks, as ``NaturalGradient.minimize`` takes them."""
        return list(zip(self.q_mu, self.q_sqrt, strict=True))

    def groups(self, kernel: Kernel) -> Any:
        options: dict[str, Any] = {"whiten": self.whiten, "devices": self.devices}
        pairs = self.variational_parameters
        return block_groups(self.inducing_variable, kernel, pairs, joint=False, **options)


def _blocks(latents: LatentGPs) -> list[InducingVariables]:
    """The blocks of inducing variables of a :class:`.LatentGPs`."""
    return [block for block, _ in flat_blocks(latents.inducing_variables[0], latents.kernel)]
