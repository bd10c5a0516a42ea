"""The posterior of a sum of independent GPs with an independent q(u) for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.conditionals.util import expand_independent_outputs
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import (
    PrecomputeCacheType,
    PrecomputedValue,
    _validate_precompute_cache_type,
)

from .._tracing import map_fn
from ..covariances.blocks import block_batches
from .block_terms import add_variance, additive_terms, whitened_batch
from .gaussian import is_diagonal
from .inputs import TakesRealInputs
from .quadratic_forms import covariance_change, mean_of_blocks, variance_change


class AdditivePosterior(TakesRealInputs):
    """The posterior of :class:`interdomain.models.AdditiveSVGP`, as GPflow's posteriors are.

    :param kernel: The whole kernel.
    :param inducing_variable: The blocks.
    :param q_mu: For each block ``[m_t, P]``.
    :param q_sqrt: For each block ``[m_t, P]`` or ``[P, m_t, m_t]``.
    :param whiten: Whether q is over the whitened variables.
    :param mean_function: Added to the mean.
    :param precompute_cache: "tensor", "variable" or "nocache", as in GPflow.
    :param devices: Where ``fused_predict_f`` computes the blocks; cached predictions do not.
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

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        """For each batch of blocks: ``L^{-T} E[v]``, ``L^{-1}`` (its diagonal, if that is all) and
        the whitened q_sqrt."""
        values = []
        for batch in block_batches(self.X_data, self.kernel):
            q = whitened_batch(batch, self.q_mu, self.q_sqrt, self.whiten)
            assert q.root is not None
            if is_diagonal(q.root):
                inverse = 1 / q.root.diag_part()
            else:
                size = q.root.domain_dimension_tensor()
                inverse = q.root.solve(tf.eye(size, dtype=q.root.dtype))
            values += [q.root.solve(q.q_mu, adjoint=True), inverse, q.q_sqrt]
        return tuple(PrecomputedValue(value, (False,) * value.shape.rank) for value in values)

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        def terms(X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            mean, change, _ = additive_terms(
                self.X_data,
                self.kernel,
                self.q_mu,
                self.q_sqrt,
                X,
                whiten=self.whiten,
                full_cov=full_cov,
                devices=self._devices,
            )
            return mean, change

        return self._conditional(terms, Xnew, full_cov, full_output_cov)

    @inherit_check_shapes
    def _conditional_with_precompute(
        self,
        cache: tuple[tf.Tensor, ...],
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
    ) -> MeanAndVariance:
        batches = block_batches(self.X_data, self.kernel)

        def terms(X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            means, changes = [], []
            for k, batch in enumerate(batches):
                alpha, inverse, q_sqrt = cache[3 * k : 3 * k + 3]
                columns = batch.features(X)
                A = inverse[:, :, None] * columns if inverse.shape.rank == 2 else inverse @ columns
                means.append(mean_of_blocks(columns, alpha))
                change = covariance_change if full_cov else variance_change
                changes.append(change(A, q_sqrt))
            return tf.add_n(means), tf.add_n(changes)

        return self._conditional(terms, Xnew, full_cov, full_output_cov)

    def _conditional(
        self,
        terms: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
        Xnew: TensorType,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        """Kff and the terms together, in the shapes GPflow asks for."""
        Xnew = tf.convert_to_tensor(Xnew)
        if full_cov:
            mean, cov = _over_batches(terms, Xnew)
            cov = self.kernel(Xnew)[..., None, :, :] + cov
        else:
            mean, change = terms(tf.reshape(Xnew, [-1, Xnew.shape[-1]]))
            cov = add_variance(self.kernel(Xnew, full_cov=False), change)
            shape = tf.concat([tf.shape(Xnew)[:-1], tf.shape(mean)[-1:]], axis=0)
            mean, cov = tf.reshape(mean, shape), tf.reshape(cov, shape)
        return mean, expand_independent_outputs(cov, full_cov, full_output_cov)


def _over_batches(
    terms: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]], Xnew: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """``terms`` for each leading index of Xnew ``[batch..., N, D]``."""
    if Xnew.shape.rank == 2:
        return terms(Xnew)
    leading = tf.shape(Xnew)[:-2]
    flat = tf.reshape(Xnew, tf.concat([[-1], tf.shape(Xnew)[-2:]], axis=0))
    flat = tf.ensure_shape(flat, [None, *Xnew.shape[-2:]])
    mean, cov = map_fn(terms, flat, fn_output_signature=(Xnew.dtype, Xnew.dtype))
    return (
        tf.reshape(mean, tf.concat([leading, tf.shape(mean)[1:]], axis=0)),
        tf.reshape(cov, tf.concat([leading, tf.shape(cov)[1:]], axis=0)),
    )
