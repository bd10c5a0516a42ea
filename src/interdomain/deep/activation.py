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
    """A layer of activation features: an activated deep GP is made of these.

    Its posterior mean is what a neural network of one hidden layer computes (Dutordoir et al. 2021;
    Tiao et al. 2023, section 2.3): with x~ the input with its bias, lifted to the sphere with the
    radius r,

        mean(x) = r^p W^T sigma(Z x~ / r),    W = Kuu^{-1} E[u],

    M hidden units with the directions Z, and weights W of the outputs. sigma is the activation up
    to the degree ``max_degree`` of the features (see
    :class:`~interdomain.inducing_variables.ActivationFeatures` for why it ends).
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
    :param finite_rank: Whether the prior is what the units explain of the kernel
        (:class:`~interdomain.kernels.FiniteRank`): that of a Bayesian output layer. Inner layers
        then hand on what the network computes, without the noise of what it cannot.

    All other arguments are those of :class:`StructuredLayer`.

    :raises ValueError: If kernel or inducing variable are of another kind; and as StructuredLayer.
    """

    def __init__(
        self,
        kernel: ZonalKernel,
        inducing_variable: ActivationFeatures,
        num_data: int,
        mean_function: MeanFunction | None = None,
        *,
        finite_rank: bool = False,
        num_latent_gps: int | None = None,
        q_diag: bool = False,
        q_mu: TensorType | None = None,
        q_sqrt: TensorType | None = None,
        whiten: bool = True,
        num_samples: int | None = None,
        full_cov: bool = False,
        full_output_cov: bool = False,
        allow_large: bool = False,
        name: str | None = None,
    ) -> None:
        instance("kernel", kernel, ZonalKernel, "a ZonalKernel", "pass for example ArcCosine()")
        remedy = "pass those, or make a StructuredLayer of other inducing variables"
        kind = "ActivationFeatures"
        instance("inducing_variable", inducing_variable, ActivationFeatures, kind, remedy)
        super().__init__(
            FiniteRank(kernel, inducing_variable) if finite_rank else kernel,
            inducing_variable,
            num_data,
            mean_function,
            num_latent_gps=num_latent_gps,
            q_diag=q_diag,
            q_mu=q_mu,
            q_sqrt=q_sqrt,
            whiten=whiten,
            num_samples=num_samples,
            full_cov=full_cov,
            full_output_cov=full_output_cov,
            allow_large=allow_large,
            name=name,
        )
        self._zonal = kernel

    def activation(self, t: TensorType) -> tf.Tensor:
        """The activation of the units, of the cosines t between their directions and the inputs."""
        t = tf.convert_to_tensor(t, gpflow.default_float())
        return truncated_activation(self.inducing_variable, self._zonal, t)

    def output_weights(self) -> tf.Tensor:
        """W ``[M, P]``: the mean's weights of the hidden units."""
        operator = Kuu_operator(self.inducing_variable, self._zonal, jitter=default_jitter())
        root, mean = square_root(operator), tf.convert_to_tensor(self.q_mu)
        return root.solve(mean if self.whiten else root.solve(mean), adjoint=True)

    def as_network(self) -> Any:
        """The posterior mean with its present values as a ``tf_keras.Model``: dense layers of M
        units with this activation, without a bias of their own, and of P outputs, between the lift
        to the sphere and the radius; plus the mean function."""
        features, dtype = self.inducing_variable, gpflow.default_float()
        units = tf_keras.layers.Dense(
            features.num_inducing, self.activation, use_bias=False, dtype=dtype, name="units"
        )
        outputs = tf_keras.layers.Dense(
            self.output_dim, use_bias=False, dtype=dtype, name="outputs"
        )
        lift = tf_keras.layers.Lambda(
            lambda x: radial_and_unit(features, self._zonal, x)[1], dtype=dtype, name="lift"
        )
        scale = tf_keras.layers.Lambda(
            lambda x: radial_and_unit(features, self._zonal, x)[0][..., None],
            dtype=dtype,
            name="radius",
        )
        mean = tf_keras.layers.Lambda(self.mean_function, dtype=dtype, name="mean_function")
        inputs = tf_keras.Input([self.input_dim], dtype=dtype)
        hidden = tf_keras.layers.Multiply(dtype=dtype)([units(lift(inputs)), scale(inputs)])
        total = outputs(hidden) + mean(inputs)
        units.set_weights([tf.transpose(features.directions).numpy()])
        outputs.set_weights([self.output_weights().numpy()])
        return tf_keras.Model(inputs, total)
