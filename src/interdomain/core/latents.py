"""Latent GPs of multi-output models, grouped by their kernel and inducing variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import (
    FallbackSeparateIndependentInducingVariables,
    FallbackSharedIndependentInducingVariables,
    InducingVariables,
)
from gpflow.kernels import (
    Kernel,
    LinearCoregionalization,
    MultioutputKernel,
    SeparateIndependent,
    SharedIndependent,
)

from .combined import num_inducing


@dataclass(frozen=True)
class LatentGPs:
    """Latent GPs with one prior and the same inducing variables; they share a factorisation.

    :ivar kernel: The kernel of each latent GP, of one output.
    :ivar inducing_variables: The inducing variables of each latent GP, one for each in the model.
    :ivar positions: Their positions among all latent GPs; None if these are all.
    """

    kernel: Kernel
    inducing_variables: tuple[InducingVariables, ...]
    positions: tuple[int, ...] | None = None


def split_q(
    groups: Sequence[LatentGPs],
    blocks: Sequence[InducingVariables],
    q_mu: TensorType,
    q_sqrt: TensorType | None,
) -> list[tuple[TensorType, TensorType | None]]:
    """The q of each group of latent GPs, sliced from the q of all latent GPs.

    Each parameter is read and split only once. A parameter is computed again at every read, and the
    gradient of a slice is as large as the whole tensor.

    :param blocks: The inducing variables of each group.
    :param q_mu: ``[M, L]``. A group with fewer inducing variables uses the first rows.
    :param q_sqrt: ``[M, L]`` or ``[L, M, M]``.
    """
    means = _split(groups, q_mu, 1)
    roots: Sequence[TensorType | None] = [None] * len(groups)
    root_axes: tuple[int, ...] = ()
    if q_sqrt is not None:
        is_diagonal = len(q_sqrt.shape) == 2
        roots = _split(groups, q_sqrt, 1 if is_diagonal else 0)
        root_axes = (0,) if is_diagonal else (1, 2)
    if len(groups) == 1:
        return list(zip(means, roots, strict=True))
    sizes = [num_inducing(block) for block in blocks]
    return [
        (_first(mean, size, (0,)), None if root is None else _first(root, size, root_axes))
        for mean, root, size in zip(means, roots, sizes, strict=True)
    ]


def _split(groups: Sequence[LatentGPs], values: TensorType, axis: int) -> list[TensorType]:
    if len(groups) == 1:
        return [values]
    positions, values = _positions(groups), tf.convert_to_tensor(values)
    if positions != sorted(positions):
        values = tf.gather(values, positions, axis=axis)
    return list(tf.split(values, [len(group.positions or ()) for group in groups], axis=axis))


def _positions(groups: Sequence[LatentGPs]) -> list[int]:
    return [position for group in groups for position in group.positions or ()]


def _first(values: tf.Tensor, size: int | tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    """The first ``size`` entries along some axes."""
    for axis in axes:
        if values.shape[axis] != size or tf.is_tensor(size):
            values = values[(slice(None),) * axis + (slice(size),)]
    return values


def latent_gps(kernel: Kernel, *inducing_variables: InducingVariables) -> list[LatentGPs]:
    """The latent GPs of a kernel, grouped if kernel and inducing variables are the same objects; a
    single group for a kernel of one output.

    :param inducing_variables: Each is one for all latent GPs, a
        ``SharedIndependentInducingVariables``, or a ``SeparateIndependentInducingVariables``.
    :raises ValueError: If there are not as many inducing variables as latent GPs, or the latent GPs
        of the kernel are not known.
    """
    if not isinstance(kernel, MultioutputKernel):
        return [LatentGPs(kernel, inducing_variables)]
    if not isinstance(kernel, (SharedIndependent, SeparateIndependent, LinearCoregionalization)):
        raise ValueError(
            f"kernel must be made of independent latent GPs, found {type(kernel).__name__}; pass "
            "gpflow.kernels.SharedIndependent, SeparateIndependent or LinearCoregionalization."
        )
    count = int(kernel.num_latent_gps)
    kernels = kernel.latent_kernels
    kernels = kernels * count if len(kernels) == 1 else kernels
    tuples = list(zip(*(_variables_per_latent(u, count) for u in inducing_variables), strict=True))
    tuples = tuples or [()] * count
    groups: dict[tuple[int, ...], LatentGPs] = {}
    for position, (latent, variables) in enumerate(zip(kernels, tuples, strict=True)):
        key = (id(latent), *map(id, variables))
        before = groups[key].positions or () if key in groups else ()
        groups[key] = LatentGPs(latent, variables, (*before, position))
    return list(groups.values())


def _variables_per_latent(
    inducing_variable: InducingVariables, count: int
) -> Sequence[InducingVariables]:
    if isinstance(inducing_variable, FallbackSeparateIndependentInducingVariables):
        entries = inducing_variable.inducing_variables
        if len(entries) != count:
            raise ValueError(
                f"inducing_variable_list must have {count} entries, one for each latent GP of the "
                f"kernel, found {len(entries)}."
            )
        return entries
    if isinstance(inducing_variable, FallbackSharedIndependentInducingVariables):
        return [inducing_variable.inducing_variable] * count
    return [inducing_variable] * count


def in_order(groups: Sequence[LatentGPs], parts: Sequence[tf.Tensor], axis: int) -> tf.Tensor:
    """The parts of all groups, concatenated and in the order of the latent GPs.

    :param parts: The part of each group; the latent GPs of a group are along ``axis``.
    """
    if len(groups) == 1:
        return parts[0]
    joint, positions = tf.concat(parts, axis=axis), _positions(groups)
    if positions == sorted(positions):
        return joint
    return tf.gather(joint, [positions.index(k) for k in range(len(positions))], axis=axis)
