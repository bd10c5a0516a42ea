"""Inducing variables of several latent GPs that keep their structure.

GPflow's classes of the same names send a model down a dense path, whatever is inside. With these a
model has the posterior and the KL divergence of this library: what the latent GPs share is
computed once, and nothing is factorised that does not have to be. With one inducing variable for
all latent GPs no wrapper is needed at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import tensorflow as tf
from check_shapes import Shape
from gpflow.inducing_variables import InducingVariables

from .._arguments import instance
from .combined import checked_list


class SharedIndependentInducingVariables(
    gpflow.inducing_variables.SharedIndependentInducingVariables
):
    """One inducing variable that all latent GPs of a multi-output kernel share.

    It keeps its structure, unlike in GPflow's class of this name. The kernel is a
    ``gpflow.kernels.SharedIndependent``, ``SeparateIndependent`` or ``LinearCoregionalization``.
    The models also take the inducing variable itself, without this wrapper, with the same meaning;
    the wrapper is needed where GPflow asks for ``Kuu`` and ``Kuf`` of several outputs.

    :param inducing_variable: The inducing variable of every latent GP.
    :raises ValueError: If it is not an inducing variable.
    """

    def __init__(self, inducing_variable: InducingVariables) -> None:
        instance("inducing_variable", inducing_variable, InducingVariables, "an inducing variable")
        super().__init__(inducing_variable)


class SeparateIndependentInducingVariables(
    gpflow.inducing_variables.SeparateIndependentInducingVariables
):
    """A separate inducing variable for each latent GP of a multi-output kernel.

    They keep their structure, unlike in GPflow's class of this name. Their sizes may differ.
    GPflow's models have one ``q_mu`` for all latent GPs, with as many rows as the largest: a latent
    GP with fewer variables uses the first rows of its column, and the other rows have no effect.

    :param inducing_variable_list: One for each latent GP of the kernel, in its order. If the same
        object is given several times, it is computed once for those latent GPs that share a kernel
        too.
    :raises ValueError: If there is none, or one is not an inducing variable.
    """

    def __init__(self, inducing_variable_list: Sequence[InducingVariables]) -> None:
        entries = checked_list("inducing_variable_list", inducing_variable_list, "latent GP")
        super().__init__(entries)

    @property
    def num_inducing(self) -> int | tf.Tensor:
        """The number M of variables of the largest entry."""
        sizes = [num_inducing(entry) for entry in self.inducing_variable_list]
        return max(sizes) if all(isinstance(size, int) for size in sizes) else tf.reduce_max(sizes)

    @property
    def shape(self) -> Shape:
        """``(M, D, L)``; D is None where entries differ in it."""
        columns = {entry.shape[1] if entry.shape else None for entry in self.inducing_variable_list}
        only = columns.pop() if len(columns) == 1 else None
        size = self.num_inducing
        return (size if isinstance(size, int) else None, only, len(self.inducing_variable_list))


def num_inducing(inducing_variable: InducingVariables) -> int | tf.Tensor:
    """The number of variables, as a number if it is known before anything is computed."""
    size = inducing_variable.shape[0] if inducing_variable.shape else None
    return inducing_variable.num_inducing if size is None else size
