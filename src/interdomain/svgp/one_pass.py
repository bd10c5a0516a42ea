"""What the models of this library add to GPflow's SVGP: one factorisation for the whole bound."""

from __future__ import annotations

from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import RegressionData, TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.mean_functions import MeanFunction

from .._arguments import instance, integer
from ..core.inputs import validate_inducing_variable, validate_mean_function
from ..core.latents import latent_gps
from .initial_q import WithQ


class OnePassSVGP(WithQ, gpflow.models.SVGP):
    """A sparse variational GP with several q's, whose bound takes one factorisation of each Kuu."""

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Likelihood,
        inducing_variable: InducingVariables,
        *,
        mean_function: MeanFunction | None = None,
        num_latent_gps: int | None = None,
        whiten: bool = True,
        num_data: int | TensorType | None = None,
        **q: Any,
    ) -> None:
        instance("kernel", kernel, Kernel, "a GPflow kernel")
        validate_inducing_variable("inducing_variable", inducing_variable)
        instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
        validate_mean_function(mean_function)
        num_latent_gps = number_of_latent_gps(kernel, num_latent_gps)
        if num_data is not None and not isinstance(num_data, (tf.Tensor, tf.Variable)):
            num_data = integer("num_data", num_data, at_least=1)
        gpflow.models.GPModel.__init__(self, kernel, likelihood, mean_function, num_latent_gps)
        self.inducing_variable = inducing_variable
        self.whiten = whiten
        self.num_data = num_data
        self._make_q(**q)

    @inherit_check_shapes
    def elbo(self, data: RegressionData) -> tf.Tensor:
        """The evidence lower bound. Each Kuu is factorised once for all terms."""
        X, Y = data
        mean, variance, kl = self.marginals_and_kl(X)
        expectations = self.likelihood.variational_expectations(X, mean, variance, Y)
        scale = tf.cast(1.0, kl.dtype)
        if self.num_data is not None:
            scale = tf.cast(self.num_data, kl.dtype) / tf.cast(tf.shape(X)[0], kl.dtype)
        return tf.reduce_sum(expectations) * scale - kl


def number_of_latent_gps(kernel: Kernel, given: int | None) -> int:
    """:raises ValueError: If it is not that of a kernel of several outputs."""
    if given is not None:
        given = integer("num_latent_gps", given, at_least=1)
    if not isinstance(kernel, gpflow.kernels.MultioutputKernel):
        return 1 if given is None else given
    latent_gps(kernel)  # only kinds that are known
    found = int(kernel.num_latent_gps)
    if given not in (None, found):
        raise ValueError(
            f"num_latent_gps must be {found}, the number of the kernel's latent GPs, found "
            f"{given}; leave it out."
        )
    return found
