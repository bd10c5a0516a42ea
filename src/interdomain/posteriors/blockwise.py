"""What all posteriors of this library share but where q comes from, and those of several q."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import gpflow
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import (
    AbstractPosterior,
    PrecomputeCacheType,
    PrecomputedValue,
    _validate_precompute_cache_type,
)

from .._arguments import Array, numeric
from .._tracing import unconverted
from ..core.scaled_parts import validate_rows
from .groups import BlockGroup, Group, additive_groups, conditional, outputs_of
from .orthogonal_terms import OrthogonalGroup, OrthogonalPair, OrthogonalValues, orthogonal_groups


def as_inputs(kernel: Kernel, Xnew: TensorType) -> tf.Tensor:
    """Xnew in ``gpflow.default_float()``.

    :raises ValueError: Unless it is real numbers, and, as an array, inputs of the kernel: a tensor
        may hold points in training, which a step has taken over a pole.
    """
    dtype = gpflow.default_float()
    if isinstance(Xnew, tfp.distributions.Distribution):
        Xnew = tf.convert_to_tensor(Xnew)  # the output of a layer of GPflux, which is a sample then
    if not tf.is_tensor(Xnew):
        values: Array = numeric("Xnew", Xnew, "[N, D]").astype(dtype, copy=False)
        validate_rows("Xnew", kernel, values)
        return tf.convert_to_tensor(values)
    if not (Xnew.dtype.is_floating or Xnew.dtype.is_integer or Xnew.dtype.is_bool):
        raise ValueError(f"Xnew must be real numbers, found entries of type {Xnew.dtype.name}.")
    return Xnew if Xnew.dtype == dtype else tf.cast(Xnew, dtype)


class BlockwisePosterior(AbstractPosterior):
    """A sparse posterior that keeps the structure of ``Kuu_operator``.

    A diagonal Kuu costs no Cholesky factor and no triangular solve, a block-diagonal one only those
    of its blocks. The same holds for a cached posterior. Latent GPs with the same kernel and
    inducing variables share one factorisation. New inputs may be integers, or floats of another
    precision.
    """

    @abc.abstractmethod
    def groups(self, *, kept: bool = False) -> Sequence[Group]:
        """The latent GPs with their inducing variables and their q.

        :param kept: Whether what was kept takes the place of q, of any device, and of all algebra
            that has no new point in it.
        """

    @inherit_check_shapes
    @unconverted
    def predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return super().predict_f(as_inputs(self.kernel, Xnew), full_cov, full_output_cov)

    @inherit_check_shapes
    @unconverted
    def fused_predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return super().fused_predict_f(as_inputs(self.kernel, Xnew), full_cov, full_output_cov)

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        """The tensors of ``L^{-1}`` and of the whitened q, for all inducing variables."""
        kept, values = [], []
        for group in self.groups():
            of_group, tensors = group.keep()
            kept.append((of_group, len(tensors)))
            values += tensors
        self._kept = tuple(kept)
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
        parts, first = [], 0
        for group, (kept, num_tensors) in zip(self.groups(kept=True), self._kept, strict=True):
            of_group = tuple(cache[first : first + num_tensors])
            parts.append((group.latents, group.kept_parts(kept, of_group)))
            first += num_tensors
        mean, cov = conditional(parts, Xnew, full_cov)
        return outputs_of(self.kernel, mean, cov, full_cov, full_output_cov)


class AdditivePosterior(BlockwisePosterior):
    """The posterior of :class:`interdomain.models.AdditiveSVGP`, to be used like GPflow's.

    The arguments are those of the model, with lists of its q_mu and q_sqrt. ``fused_predict_f``
    computes the blocks on the devices; cached predictions do not use them.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        q_mu: Sequence[TensorType],
        q_sqrt: Sequence[TensorType],
        *,
        whiten: bool,
        mean_function: MeanFunction | None = None,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
        devices: Sequence[str] | None = None,
    ) -> None:
        super().__init__(kernel, inducing_variable, mean_function=mean_function)
        self.q_mu = list(q_mu)
        self.q_sqrt = list(q_sqrt)
        self.whiten = whiten
        self._devices = None if devices is None else tuple(devices)
        self.update_cache(_validate_precompute_cache_type(precompute_cache))

    def groups(self, *, kept: bool = False) -> Sequence[BlockGroup]:
        return additive_groups(
            self.X_data,
            self.kernel,
            None if kept else list(zip(self.q_mu, self.q_sqrt, strict=True)),
            whiten=self.whiten,
            devices=self._devices,
        )


class OrthogonalPosterior(BlockwisePosterior):
    """The posterior of :class:`interdomain.models.OrthogonalSVGP`, to be used like GPflow's.

    The arguments are those of the model; without ``q_sqrt_orthogonal``, q(v') has the prior's
    covariance.

    :ivar pair: Both inducing variables.
    :ivar q: Both q's.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        orthogonal_inducing_variable: InducingVariables,
        q_mu: TensorType,
        q_sqrt: TensorType,
        q_mu_orthogonal: TensorType,
        q_sqrt_orthogonal: TensorType | None,
        *,
        whiten: bool,
        mean_function: MeanFunction | None = None,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> None:
        super().__init__(kernel, inducing_variable, mean_function=mean_function)
        self.pair = OrthogonalPair(inducing_variable, orthogonal_inducing_variable)
        self.q = OrthogonalValues(q_mu, q_sqrt, q_mu_orthogonal, q_sqrt_orthogonal)
        self.whiten = whiten
        self.update_cache(_validate_precompute_cache_type(precompute_cache))

    def groups(self, *, kept: bool = False) -> Sequence[OrthogonalGroup]:
        q = None if kept else self.q
        return orthogonal_groups(self.pair, self.kernel, q, whiten=self.whiten)
