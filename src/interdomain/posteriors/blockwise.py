"""What all posteriors of this library share: everything but where q comes from."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.posteriors import PrecomputedValue

from .groups import Group, conditional, outputs_of
from .inputs import TakesRealInputs


class BlockwisePosterior(TakesRealInputs):
    """A sparse posterior that keeps the structure of ``Kuu_operator``.

    A diagonal Kuu costs no Cholesky factor and no triangular solve, a block-diagonal one only those
    of its blocks. The same holds for a cached posterior. Latent GPs with the same kernel and
    inducing variables share one factorisation.
    """

    @abc.abstractmethod
    def _groups(self, *, kept: bool = False) -> Sequence[Group]:
        """The latent GPs with their inducing variables and their q.

        :param kept: Whether what was kept takes the place of q, of any device, and of all algebra
            that has no new point in it.
        """

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        """The tensors of ``L^{-1}`` and of the whitened q, for all inducing variables."""
        kept, values = [], []
        for group in self._groups():
            of_group, tensors = group.keep()
            kept.append((of_group, len(tensors)))
            values += tensors
        self._kept = tuple(kept)
        return tuple(PrecomputedValue(value, (False,) * value.shape.rank) for value in values)

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        parts = [(group.latents, group.parts()) for group in self._groups()]
        mean, cov = conditional(parts, Xnew, full_cov)
        return outputs_of(self.kernel, mean, cov, full_cov, full_output_cov)

    @inherit_check_shapes
    def _conditional_with_precompute(
        self,
        cache: tuple[tf.Tensor, ...],
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
    ) -> MeanAndVariance:
        parts, first = [], 0
        for group, (kept, num_tensors) in zip(self._groups(kept=True), self._kept, strict=True):
            own = tuple(cache[first : first + num_tensors])
            parts.append((group.latents, group.kept_parts(kept, own)))
            first += num_tensors
        mean, cov = conditional(parts, Xnew, full_cov)
        return outputs_of(self.kernel, mean, cov, full_cov, full_output_cov)
