"""A layer whose posterior mean is the forward pass of a dense layer of a neural network."""

from __future__ import annotations

from typing import Any

import gpflow
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.keras import tf_keras
from gpflow.mean_functions import MeanFunction

from .._arguments import instance
from ..covariances import Kuu_operator
from ..covariances._lifted_inputs import radial_and_unit
from ..covariances.activation_features import truncated_activation
from ..inducing_variables import ActivationFeatures
from ..kernels import FiniteRank, ZonalKernel
from ..linalg import square_root
from .structured import StructuredLayer


class ActivationLayer(StructuredLayer):
    """A layer with activation features, of which activated deep GPs are made.

    Its posterior mean is what a neural network with one hidden layer computes (Dutordoir et al.
    2021; Tiao et al. 2023, section 2.3): with x~ the input with its bias, and r the radius by which
    it is divided to lift it to the sphere,

        mean(x) = r^p W^T sigma(Z x~ / r),    W = Kuu^{-1} E[u],

    with M hidden units of directions Z, and output weights W. sigma is the activation, truncated at
    the degree ``max_degree`` of the features (see
    :class:`~interdomain.inducing_variables.ActivationFeatures` for the reason).
    :meth:`as_network` returns that network.

    >>> import numpy as np, interdomain as idm
    >>> from interdomain import deep
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> kernel = idm.kernels.ArcCosine()
    >>> units = idm.inducing_variables.ActivationFeatures.from_data(kernel, X, 10, "relu", 6)
    >>> layer = deep.ActivationLayer(kernel, units, 50, q_mu=np.ones([10, 1]))
    >>> network = layer.as_network()
    >>> bool(np.allclose(network(X), layer.predict(X)[0]))
    True

    :param kernel: A zonal kernel.
    :param inducing_variable: Activation features for it.
    :param finite_rank: Whether to replace the prior by the part of the kernel that the units
        explain (:class:`~interdomain.kernels.FiniteRank`), as in a Bayesian output layer. Inner
        layers then pass on what the network computes, without the variance that the units do not
        explain.

    All other arguments are those of :class:`StructuredLayer`.

    :raises ValueError: If the kernel is not zonal or the inducing variable is of another kind;
        and as StructuredLayer.
    """

    def __init__(
        self,
        kernel: ZonalKernel,
        inducing_variable: ActivationFeatures,
        num_data: int,
        mean_function: MeanFunction | None = None,
        *,
        finite_rank: bool = False,
        **options: Any,
    ) -> None:
        instance("kernel", kernel, ZonalKernel, "a ZonalKernel", "pass for example ArcCosine()")
        remedy = "pass those, or make a StructuredLayer of other inducing variables"
        kind = "ActivationFeatures"
        instance("inducing_variable", inducing_variable, ActivationFeatures, kind, remedy)
        prior = FiniteRank(kernel, inducing_variable) if finite_rank else kernel
        super().__init__(prior, inducing_variable, num_data, mean_function, **options)
        self._zonal = kernel

    def activation(self, t: TensorType) -> tf.Tensor:
        """The activation of the units, as a function of the cosines t of the angles between their
        directions and the inputs."""
        t = tf.convert_to_tensor(t, gpflow.default_float())
        return truncated_activation(self.inducing_variable, self._zonal, t)

    def output_weights(self) -> tf.Tensor:
        """The output weights W ``[M, P]`` of the hidden units in the posterior mean."""
        operator = Kuu_operator(self.inducing_variable, self._zonal, jitter=default_jitter())
        root, mean = square_root(operator), tf.convert_to_tensor(self.q_mu)
        return root.solve(mean if self.whiten else root.solve(mean), adjoint=True)

    def as_network(self) -> Any:
        """The posterior mean as a ``tf_keras.Model``, with the present values of its parameters.

        Inputs are lifted to the sphere and go through a dense layer of M units with this
        activation. The result is multiplied by the radius and goes through a dense layer of P
        outputs; the mean function is added. The dense layers have no bias.
        """
        features, dtype = self.inducing_variable, gpflow.default_float()
        layers = tf_keras.layers
        units = layers.Dense(
            features.num_inducing, self.activation, use_bias=False, dtype=dtype, name="units"
        )
        outputs = layers.Dense(self.output_dim, use_bias=False, dtype=dtype, name="outputs")

        def computed(function: Any, name: str) -> Any:
            return layers.Lambda(function, dtype=dtype, name=name)(inputs)

        inputs = tf_keras.Input([self.input_dim], dtype=dtype)
        unit = computed(lambda x: radial_and_unit(features, self._zonal, x)[1], "lift")
        radius = computed(
            lambda x: radial_and_unit(features, self._zonal, x)[0][..., None], "radius"
        )
        hidden = layers.Multiply(dtype=dtype)([units(unit), radius])
        total = outputs(hidden) + computed(self.mean_function, "mean_function")
        units.set_weights([tf.transpose(features.directions).numpy()])
        outputs.set_weights([self.output_weights().numpy()])
        return tf_keras.Model(inputs, total)
