"""The posterior of a model whose q is optimal, and therefore follows from its parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable

import tensorflow as tf
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

from .structured import StructuredPosterior

Q = tuple[tf.Tensor, tf.Tensor]


class CollapsedPosterior(StructuredPosterior):
    """The posterior of models whose whitened q is computed when it is needed, and not trained.

    It is a :class:`StructuredPosterior`. Call ``update_cache`` after changes of the model's
    parameters or of its data.

    :param optimal_q: Function that returns q_mu ``[M, P]`` and q_sqrt ``[P, M, M]``, or
        ``[1, M, M]`` if all outputs have the same; both whitened by the root of ``Kuu_operator``.
    :param precompute_cache: "tensor", "variable" or "nocache", as in GPflow.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        optimal_q: Callable[[], Q],
        *,
        mean_function: MeanFunction,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> None:
        AbstractPosterior.__init__(self, kernel, inducing_variable, mean_function=mean_function)
        self.whiten = True
        self._optimal_q = optimal_q
        self._q: Q | None = None
        self.update_cache(_validate_precompute_cache_type(precompute_cache))

    @property
    def q_mu(self) -> tf.Tensor:
        return (self._q or self._optimal_q())[0]

    @property
    def q_sqrt(self) -> tf.Tensor:
        return (self._q or self._optimal_q())[1]

    def _at_optimum(self) -> CollapsedPosterior:
        """This posterior with q computed once."""
        copied = copy.copy(self)
        copied._q = self._optimal_q()
        return copied

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        fused = StructuredPosterior._conditional_fused
        return fused(self._at_optimum(), Xnew, full_cov, full_output_cov)

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        optimal = self._at_optimum()
        values = StructuredPosterior._precompute(optimal)
        self._kept = optimal._kept
        return values
