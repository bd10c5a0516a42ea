"""The common base of this library's posteriors, for any source of q."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gpflow
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.kernels import Kernel
from gpflow.posteriors import (
    AbstractPosterior,
    PrecomputeCacheType,
    PrecomputedValue,
    _validate_precompute_cache_type,
)

from .._arguments import Array, numeric
from .._tracing import unconverted
from ..core.columns import validate_rows
from .groups import Group
from .marginals import conditional, outputs_of


def as_inputs(kernel: Kernel, Xnew: TensorType) -> tf.Tensor:
    """Xnew in ``gpflow.default_float()``.

    :raises ValueError: If Xnew is not real numbers; or if an array is not valid input of the
        kernel. Tensors are not checked: a training step may have moved points over a pole.
    """
    dtype = gpflow.default_float()
    if isinstance(Xnew, tfp.distributions.Distribution):
        Xnew = tf.convert_to_tensor(Xnew)  # the output of a GPflux layer becomes a sample
    if not tf.is_tensor(Xnew):
        values: Array = numeric("Xnew", Xnew, "[N, D]").astype(dtype, copy=False)
        validate_rows("Xnew", kernel, values)
        return tf.convert_to_tensor(values)
    if not (Xnew.dtype.is_floating or Xnew.dtype.is_integer or Xnew.dtype.is_bool):
        raise ValueError(f"Xnew must be real numbers, found entries of type {Xnew.dtype.name}.")
    return Xnew if Xnew.dtype == dtype else tf.cast(Xnew, dtype)


def cache_type(precompute_cache: PrecomputeCacheType | str | None) -> PrecomputeCacheType:
    """The type of a cache, as GPflow reads it: "tensor", "variable" or "nocache"."""
    return _validate_precompute_cache_type(precompute_cache)


class PosteriorOfAnyInputs(AbstractPosterior):
    """A posterior whose new inputs may be integers, or floats of another precision."""

    def fill_cache(self, precompute_cache: PrecomputeCacheType | str | None) -> None:
        """Compute the cache, as the last step of a constructor.

        :param precompute_cache: "tensor", "variable" or "nocache", as in GPflow.
        """
        self.update_cache(cache_type(precompute_cache))

    def inputs(self, Xnew: TensorType) -> tf.Tensor:
        """New inputs, checked and converted for predictions; see :func:`as_inputs`."""
        return as_inputs(self.kernel, Xnew)

    @inherit_check_shapes
    @unconverted
    def predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return super().predict_f(self.inputs(Xnew), full_cov, full_output_cov)

    @inherit_check_shapes
    @unconverted
    def fused_predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return super().fused_predict_f(self.inputs(Xnew), full_cov, full_output_cov)


class BlockwisePosterior(PosteriorOfAnyInputs):
    """A sparse posterior that keeps the structure of ``Kuu_operator``.

    A diagonal Kuu needs no Cholesky factor and no triangular solve, and a block-diagonal Kuu only
    those of its blocks. The same holds for a cached posterior. Latent GPs with the same kernel and
    inducing variables share one factorisation.
    """

    @abc.abstractmethod
    def groups(self) -> Sequence[Group]:
        """The latent GPs with their inducing variables and their q."""

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        """The tensors of ``L^{-1}`` and of the whitened q, for all inducing variables.

        :raises tf.errors.InvalidArgumentError: If a tensor is not finite, for example because Kuu
            has no Cholesky factor. GPflow's posteriors raise the same error.
        """
        groups = self.groups()
        kept = [group.keep() for group in groups]

        def without_tensors(leaf: Any) -> Any:
            return tf.Tensor if tf.is_tensor(leaf) else leaf  # the class stands for its tensor

        self._structures = tuple(
            (replace(group, q=()), tf.nest.map_structure(without_tensors, structure))
            for group, structure in zip(groups, kept, strict=True)
        )
        values = [
            tf.debugging.check_numerics(value, "Kuu has no Cholesky factor, or q is not finite")
            if value.dtype.is_floating
            else value
            for value in filter(tf.is_tensor, tf.nest.flatten(kept))
        ]
        return tuple(PrecomputedValue(value, (False,) * value.shape.rank) for value in values)

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        parts = [(group.latents, group.parts()) for group in self.groups()]
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
        tensors = iter(cache)

        def with_tensors(leaf: Any) -> Any:
            return next(tensors) if leaf is tf.Tensor else leaf

        parts = [
            (group.latents, group.parts(tf.nest.map_structure(with_tensors, structure)))
            for group, structure in self._structures
        ]
        mean, cov = conditional(parts, Xnew, full_cov)
        return outputs_of(self.kernel, mean, cov, full_cov, full_output_cov)
