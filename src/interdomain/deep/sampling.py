"""GPflux's function samples, for inducing variables of this library.

``gpflux.sampling.efficient_sample`` needs inducing points, and features only of special kernels;
for other kernels it conditions on all values that were evaluated before. When this module is
imported, it draws functions by :mod:`interdomain.sampling` instead. A layer's ``sample()`` then
works, and ``gpflux.models.deep_gp.sample_dgp`` draws functions of a deep GP that have the same
value at the same place in every call.
"""

from __future__ import annotations

import tensorflow as tf
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
from gpflow.posteriors import AbstractPosterior
from gpflux.sampling.kernel_with_feature_decomposition import KernelWithFeatureDecomposition
from gpflux.sampling.sample import Sample, efficient_sample

from ..inducing_variables import (
    InterDomainInducingVariables,
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from ..posteriors import StructuredPosterior
from ..sampling import FunctionSamples, sample_functions

NUM_FEATURES = 1_000
"""Of each function of the prior."""


class FunctionSample(Sample):
    """A function, as GPflux's samples are.

    :param functions: Functions, of which there is one.
    """

    def __init__(self, functions: FunctionSamples) -> None:
        self._functions = functions

    def __call__(self, X: TensorType) -> tf.Tensor:
        """The values ``[N, P]`` at X ``[N, D]``."""
        return self._functions(X)[0]


def function_of(posterior: AbstractPosterior) -> FunctionSample:
    """A function of a posterior, its mean function included. Its random numbers depend on
    ``tf.random.set_seed``, as those of GPflux do.

    :raises ValueError: As :func:`interdomain.sampling.sample_functions`.
    """
    seed = int(tf.random.uniform([], maxval=2**31 - 1, dtype=tf.int32))
    return FunctionSample(sample_functions(posterior, 1, seed=seed, num_features=NUM_FEATURES))


def efficient_sample_structured(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    q_mu: TensorType,
    *,
    q_sqrt: TensorType | None = None,
    whiten: bool = False,
) -> FunctionSample:
    """A function of the posterior, as :func:`function_of`, without a mean function.

    :param q_mu: ``[M, P]``.
    :param q_sqrt: ``[M, P]`` or ``[P, M, M]``; None for a covariance of zero.
    :raises ValueError: As :func:`interdomain.sampling.sample_functions`.
    """
    posterior = StructuredPosterior(
        kernel, inducing_variable, q_mu, q_sqrt, whiten=whiten, precompute_cache=None
    )
    return function_of(posterior)


_KERNELS = (
    Kernel,
    KernelWithFeatureDecomposition,
    MultioutputKernel,
    IndependentLatent,
    SharedIndependent,
    SeparateIndependent,
    LinearCoregionalization,
)

efficient_sample.register(
    (
        InterDomainInducingVariables,
        SharedIndependentInducingVariables,
        SeparateIndependentInducingVariables,
    ),
    _KERNELS,
    object,
)(efficient_sample_structured)
