"""Structured posteriors with one q, given or optimal, and the KL divergence from the prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import (
    IndependentLatent,
    Kernel,
    LinearCoregionalization,
    MultioutputKernel,
    SeparateIndependent,
    SharedIndependent,
)
from gpflow.kullback_leiblers import prior_kl
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import (
    AbstractPosterior,
    IndependentPosterior,
    PrecomputeCacheType,
    get_posterior_class,
)

from .._tracing import unconverted
from ..core.combined import (
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from ..core.family import InterDomainInducingVariables
from .blockwise import BlockwisePosterior
from .groups import BlockGroup, block_groups


class StructuredPosterior(BlockwisePosterior, IndependentPosterior):
    """The posterior of stock GPflow models with inducing variables of this library.

    It keeps the structure of ``Kuu_operator``, also with several outputs.
    """

    def groups(self) -> Sequence[BlockGroup]:
        q = [(self.q_mu, self.q_sqrt)]
        return block_groups(self.X_data, self.kernel, q, whiten=self.whiten, joint=True)


Wrappers = (SharedIndependentInducingVariables, SeparateIndependentInducingVariables)


@get_posterior_class.register(Kernel, InterDomainInducingVariables)
@get_posterior_class.register(
    (
        MultioutputKernel,
        IndependentLatent,
        SharedIndependent,
        SeparateIndependent,
        LinearCoregionalization,
    ),
    Wrappers,
)
@unconverted
def get_structured_posterior_class(
    kernel: Kernel, inducing_variable: InducingVariables
) -> type[StructuredPosterior]:
    """The structured posterior, for every inter-domain inducing variable of this library and its
    wrappers for several outputs."""
    return StructuredPosterior


@prior_kl.register((InterDomainInducingVariables, *Wrappers), Kernel, object, object)
@unconverted
@check_shapes(
    "q_mu: [M, P]",
    "q_sqrt: [M_P_or_P_M_M...]",
    "return: []",
)
def prior_kl_structured(
    inducing_variable: InterDomainInducingVariables,
    kernel: Kernel,
    q_mu: TensorType,
    q_sqrt: TensorType,
    whiten: bool = False,
) -> tf.Tensor:
    """``KL[q(u) || p(u)]`` with a factorisation of ``Kuu_operator``, or none if ``whiten``."""
    q = [(q_mu, q_sqrt)]
    groups = block_groups(inducing_variable, kernel, q, whiten=whiten, joint=True)
    return tf.add_n([group.kl() for group in groups])


Q = tuple[tf.Tensor, tf.Tensor]


class CollapsedPosterior(StructuredPosterior):
    """The posterior of models whose whitened q is not trained, but computed when it is needed.

    It is a :class:`StructuredPosterior`. Call ``update_cache`` if the model's parameters or data
    have changed.

    :param optimal_q: A function that returns q_mu ``[M, P]`` and q_sqrt ``[P, M, M]``, or
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
        self.fill_cache(precompute_cache)

    @property
    def q_mu(self) -> tf.Tensor:
        return self._optimal_q()[0]

    @property
    def q_sqrt(self) -> tf.Tensor:
        return self._optimal_q()[1]

    def groups(self) -> Sequence[BlockGroup]:
        q = [self._optimal_q()]
        return block_groups(self.X_data, self.kernel, q, whiten=True, joint=True)
