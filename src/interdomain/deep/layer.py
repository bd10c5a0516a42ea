"""A GP with any q as a layer of GPflux's deep GPs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import MeanAndVariance, TensorType
from gpflow.kernels import Kernel, LinearCoregionalization
from gpflow.mean_functions import MeanFunction, Zero
from gpflux.layers.gp_layer import GPLayer

from .._arguments import instance, integer
from .._tracing import unconverted
from ..models import JointQ, QPerBlock
from ..sampling import sample_functions

_NUM_FEATURES = 1_000
"""The number of random features of each function that is drawn from the prior."""


class Layer(GPLayer):
    """A GP with inducing variables of this library, or inducing points, as a layer of a deep GP.

    It replaces ``gpflux.layers.GPLayer``, and uses the structure of Kuu: with
    :class:`~interdomain.inducing_variables.SphericalHarmonics` Kuu needs no factorisation.
    Harmonics and activation features suit hidden layers, because they cover hidden outputs
    anywhere. A layer uses its q as an SVGP does. With a :class:`~interdomain.models.QPerBlock` and
    a :class:`~interdomain.kernels.HarmonicKernel` it has harmonic variational blocks (Sun et al.
    2021, section 4.2). With an :class:`~interdomain.models.OrthogonalQ`, points represent the part
    of the kernel that the first inducing variable does not explain (Tiao et al. 2023, eqs. 8-12).

    With activation features, the posterior mean is a neural network with one hidden layer
    (Dutordoir et al. 2021; Tiao et al. 2023, section 2.3): ``r^p W^T sigma(Z x~ / r)``. Here x~ is
    the input with its bias, and r its radius. Z are the directions, ``W = Kuu^{-1} E[u]`` the
    weights, and sigma the activation, truncated at the features' degree.

    A call returns a distribution, which becomes a sample if a tensor is needed (with the attributes
    ``num_samples``, ``full_cov`` and ``full_output_cov`` of ``GPLayer``). In training, a call also
    adds the layer's share of the KL divergence to the losses.

    >>> import gpflow, gpflux, numpy as np, interdomain as idm
    >>> from interdomain import deep
    >>> def layer(outputs, mean_function=None):
    ...     kernel = idm.kernels.SphericalMatern52()
    ...     harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 4)
    ...     prior = idm.kernels.FiniteRank(kernel, harmonics)
    ...     q = idm.models.JointQ(prior, harmonics, num_latent_gps=outputs)
    ...     return deep.Layer(prior, q, num_data=100, mean_function=mean_function)
    >>> layers = [layer(2, gpflow.mean_functions.Identity()), layer(1)]
    >>> model = gpflux.models.DeepGP(layers, gpflow.likelihoods.Gaussian())
    >>> model.predict_f(np.zeros([5, 2]))[0].shape
    TensorShape([5, 1])

    :param kernel: The kernel for which q was made.
    :param q: A q of :mod:`interdomain.models`. Start inner layers with a q_sqrt near zero.
    :param num_data: The number of rows of the data set.
    :param mean_function: The function added to the outputs; zero by default. (The default of a
        GPLayer is the identity.)
    :param name: The name in tf_keras and in error messages.
    :ivar num_latent_gps: The number L of latent GPs.
    :ivar output_dim: The number P of output columns: L, unless the kernel mixes latent GPs.
    :raises ValueError: If the kernel, the inducing variables and the mean function do not fit each
        other; the message names the layer.
    """

    def __init__(
        self,
        kernel: Kernel,
        q: JointQ | QPerBlock,
        num_data: int,
        mean_function: MeanFunction | None = None,
        *,
        name: str | None = None,
    ) -> None:
        remedy = "pass for example JointQ(kernel, inducing_variable)"
        instance("q", q, (JointQ, QPerBlock), "a q of interdomain.models", remedy)
        instance("kernel", kernel, Kernel, "a GPflow kernel")
        if mean_function is not None:
            remedy = "pass one of gpflow.mean_functions"
            instance("mean_function", mean_function, Callable, "a function of X", remedy)
        # The constructor of GPLayer always makes one q, for points, with a full covariance.
        super(GPLayer, self).__init__(
            make_distribution_fn=self._make_distribution_fn,
            convert_to_tensor_fn=self._convert_to_tensor_fn,
            dtype=gpflow.default_float(),
            name=name,
        )
        self.kernel, self.q = kernel, q
        self.num_data = integer("num_data", num_data, at_least=1)
        self.mean_function = Zero(output_dim=1) if mean_function is None else mean_function
        # GPflux then draws one sample, independently for each row, if a tensor is needed.
        self.num_samples, self.full_cov, self.full_output_cov = None, False, False
        self.num_latent_gps = q.num_latent_gps
        self.output_dim = self._num_outputs = num_outputs(kernel, q)
        if self.input_dim is not None:
            with named(self.name):
                self.check_input_dim(self.input_dim)

    inducing_variable = property(attrgetter("q.inducing_variable"), doc="Inducing variables of q.")
    q_mu = property(attrgetter("q.q_mu"), doc="The mean of q, or a list of the means of all q's.")
    q_sqrt = property(attrgetter("q.q_sqrt"), doc="The root of q's covariance, or a list of roots.")
    whiten = property(attrgetter("q.whiten"), doc="Whether q is a distribution of whitened u.")
    variational_parameters = property(
        attrgetter("q.variational_parameters"), doc="Pairs (q_mu, q_sqrt) for natural gradients."
    )

    @property
    def input_dim(self) -> int | None:
        """The number of columns of the inputs; None if kernel and q do not determine it."""
        return self.q.input_dim(self.kernel)

    @unconverted
    def predict(
        self, inputs: TensorType, *, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and (co)variance of the outputs at inputs ``[batch..., N, D]``, in GPflow's shapes,
        including the mean function."""
        posterior = self.q.posterior(self.kernel, self.mean_function, precompute_cache=None)
        return posterior.fused_predict_f(inputs, full_cov, full_output_cov)

    @unconverted
    def prior_kl(self) -> tf.Tensor:
        """The KL divergence of q from the prior, summed; a whitened q needs no factorisation."""
        return self.q.prior_kl(self.kernel)

    @unconverted
    def marginals_and_kl(self, inputs: TensorType) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Mean and variance of the outputs, ``[N, P]`` each, at inputs ``[N, D]``, and the KL
        divergence of all q's, with a single factorisation of each Kuu."""
        return self.q.marginals_and_kl(self.kernel, inputs, self.mean_function)

    def sample(self) -> Any:
        """A random function from the posterior, from inputs ``[N, D]`` to outputs ``[N, P]``,
        including the mean function. Its random numbers depend on ``tf.random.set_seed``.
        ``gpflux.models.deep_gp.sample_dgp`` combines such functions into functions of a deep GP."""
        seed = int(tf.random.uniform([], maxval=2**31 - 1, dtype=tf.int32))
        posterior = self.q.posterior(self.kernel, self.mean_function, precompute_cache=None)
        functions = sample_functions(posterior, 1, seed=seed, num_features=_NUM_FEATURES)
        return lambda X: functions(X)[0]

    def _make_distribution_fn(self, previous_layer_outputs: TensorType) -> Any:
        if self.full_cov or self.full_output_cov:
            return super()._make_distribution_fn(previous_layer_outputs)
        mean, variance = self.predict(previous_layer_outputs)
        return tfp.distributions.MultivariateNormalDiag(mean, deviations(variance))

    def check_input_dim(self, num_columns: int) -> None:
        """Check that inputs may have ``num_columns`` columns; a ValueError otherwise."""
        self.q.check_inputs(self.kernel, num_columns)
        mean = self.mean_function(tf.zeros([0, num_columns], gpflow.default_float()))
        if mean.shape[-1] not in (1, self._num_outputs):
            raise ValueError(
                f"mean_function must return {self._num_outputs} columns, as many as the layer has "
                f"outputs, found {mean.shape[-1]} for inputs of {num_columns}; pass "
                "gpflow.mean_functions.Linear with a matrix of that shape."
            )

    def check_hidden_inputs(self, num_columns: int) -> None:
        """Check that any inputs with ``num_columns`` columns are valid, because the outputs of the
        previous layer are unbounded.

        :raises ValueError: If some inputs are invalid.
        """
        self.q.check_unbounded_inputs(self.kernel, num_columns)
        self.check_input_dim(num_columns)


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """A context that puts ``name`` in front of the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def num_outputs(kernel: Kernel, q: JointQ | QPerBlock) -> int:
    """The number of outputs for a row of inputs."""
    mixes = isinstance(kernel, LinearCoregionalization)
    return int(kernel.W.shape[0] if mixes else q.num_latent_gps)


def deviations(variances: tf.Tensor) -> tf.Tensor:
    """Standard deviations, whose gradient is zero instead of infinite if the variance is zero."""
    return tf.sqrt(tf.maximum(variances, np.finfo(variances.dtype.as_numpy_dtype).tiny))
