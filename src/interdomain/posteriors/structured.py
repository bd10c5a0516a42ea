"""The posterior and the prior KL of every inter-domain inducing variable in stock models."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.conditionals import conditional
from gpflow.kernels import (
    IndependentLatent,
    Kernel,
    LinearCoregionalization,
    MultioutputKernel,
    SeparateIndependent,
    SharedIndependent,
)
from gpflow.kullback_leiblers import prior_kl
from gpflow.posteriors import IndependentPosterior, get_posterior_class
from gpflow.utilities import Dispatcher

from .._tracing import unconverted
from ..inducing_variables import (
    InterDomainInducingVariables,
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from .blockwise import BlockwisePosterior
from .groups import BlockGroup, joint_groups


class StructuredPosterior(BlockwisePosterior, IndependentPosterior):
    """The posterior of stock GPflow models with inducing variables of this library.

    It keeps the structure of ``Kuu_operator``, also for several outputs.
    """

    def _groups(self, *, kept: bool = False) -> Sequence[BlockGroup]:
        q = None if kept else (self.q_mu, self.q_sqrt)
        return joint_groups(self.X_data, self.kernel, q, whiten=self.whiten)


@get_posterior_class.register(Kernel, InterDomainInducingVariables)
@unconverted
def get_structured_posterior_class(
    kernel: Kernel, inducing_variable: InterDomainInducingVariables
) -> type[StructuredPosterior]:
    """Every inter-domain inducing variable of this library has the structured posterior."""
    return StructuredPosterior


Wrappers = (SharedIndependentInducingVariables, SeparateIndependentInducingVariables)


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
def get_structured_posterior_class_multioutput(
    kernel: Kernel,
    inducing_variable: SharedIndependentInducingVariables | SeparateIndependentInducingVariables,
) -> type[StructuredPosterior]:
    """This library's wrappers for several outputs have the structured posterior, too."""
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
    """``KL[q(u) || p(u)]``, with the factorisation of ``Kuu_operator``; none if ``whiten``."""
    groups = joint_groups(inducing_variable, kernel, (q_mu, q_sqrt), whiten=whiten)
    return tf.add_n([group.kl() for group in groups])


@unconverted
def conditional_structured(
    Xnew: TensorType,
    inducing_variable: InterDomainInducingVariables,
    kernel: MultioutputKernel,
    f: TensorType,
    *,
    full_cov: bool = False,
    full_output_cov: bool = False,
    q_sqrt: TensorType | None = None,
    white: bool = False,
) -> MeanAndVariance:
    """``gpflow.conditionals.conditional`` of several outputs: that of the posterior."""
    posterior = StructuredPosterior(
        kernel, inducing_variable, f, q_sqrt, whiten=white, precompute_cache=None
    )
    return posterior.fused_predict_f(Xnew, full_cov=full_cov, full_output_cov=full_output_cov)


# GPflow's `conditional` asks `get_posterior_class` for one output alone. Its `register` warns those
# who would do without a posterior; the dispatcher's own method says nothing.
Dispatcher.register(
    conditional,
    object,
    (InterDomainInducingVariables, *Wrappers),
    (SharedIndependent, SeparateIndependent, IndependentLatent, LinearCoregionalization),
    object,
)(conditional_structured)
