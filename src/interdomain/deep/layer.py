"""The base class of all layers of deep GPs, with everything except their q's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import MeanAndVariance, TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, LinearCoregionalization
from gpflow.mean_functions import MeanFunction, Zero
from gpflow.posteriors import PrecomputeCacheType
from gpflux.layers.gp_layer import GPLayer
from gpflux.sampling.sample import Sample

from .._arguments import Array, instance, integer
from .._tracing import unconverted
from ..core.domains import boxed_parts, boxes
from ..core.finite_rank import Kuu_operator
from ..core.inputs import (
    check_inputs,
    num_columns_of_latents,
    validate_inducing_variable,
    validate_mean_function,
)
from ..core.latents import latent_gps
from ..families.scaled_parts import validate_rows
from ..sampling import sample_functions
from ..svgp.initial_q import WithQ
from ..svgp.one_pass import number_of_latent_gps

_NUM_FEATURES = 1_000
"""The number of features of each function of the prior."""

_FAR = 1e3
"""Hidden outputs may be anywhere; here, for example."""


class Layer(WithQ, GPLayer):
    """A GP with inducing variables of this library, as a layer of GPflux and tf_keras.

    It is used like ``gpflux.layers.GPLayer``. A call returns a distribution, which becomes a sample
    where a tensor is needed. In training, a call also adds the layer's share of the KL divergence
    to the losses. The posterior and the KL divergence make use of the structure of Kuu. All weights
    are tracked by tf_keras and by ``tf.train.Checkpoint``.

    :ivar num_latent_gps: The number L of latent GPs.
    :ivar output_dim: The number P of output columns: L, unless the kernel mixes latent GPs.
    """

    output_dim: int

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        num_data: int,
        mean_function: MeanFunction | None = None,
        *,
        num_latent_gps: int | None = None,
        whiten: bool = True,
        num_samples: int | None = None,
        full_cov: bool = False,
        full_output_cov: bool = False,
        name: str | None = None,
        **q: Any,
    ) -> None:
        instance("kernel", kernel, Kernel, "a GPflow kernel")
        validate_inducing_variable("inducing_variable", inducing_variable)
        validate_mean_function(mean_function)
        num_latent_gps = number_of_latent_gps(kernel, num_latent_gps)
        self._begin(num_data, num_samples, name, full_cov, full_output_cov)
        self.kernel = kernel
        self.inducing_variable = inducing_variable
        self.mean_function = Zero(output_dim=1) if mean_function is None else mean_function
        self.whiten = whiten
        self.num_latent_gps = num_latent_gps
        mixes = isinstance(kernel, LinearCoregionalization)
        self.output_dim = int(kernel.W.shape[0]) if mixes else num_latent_gps
        self._check_parts()
        self._make_q(**q)

    def _begin(
        self,
        num_data: int,
        num_samples: int | None,
        name: str | None,
        full_cov: bool = False,
        full_output_cov: bool = False,
    ) -> None:
        """What GPflux and tf_keras need of a layer. The constructor of ``GPLayer`` itself makes one
        q, of a full covariance, for points."""
        num_data = integer("num_data", num_data, at_least=1)
        if num_samples is not None:
            num_samples = integer("num_samples", num_samples, at_least=1)
        if full_cov and full_output_cov:
            raise ValueError(
                "full_cov, full_output_cov: found True for both, which GPflux cannot sample; pass "
                "one of them."
            )
        super(GPLayer, self).__init__(
            make_distribution_fn=self._make_distribution_fn,
            convert_to_tensor_fn=self._convert_to_tensor_fn,
            dtype=gpflow.default_float(),
            name=name,
        )
        self.num_data = num_data
        self.num_samples = num_samples
        self.full_cov, self.full_output_cov = full_cov, full_output_cov
        self.verbose = False

    @property
    def input_dim(self) -> int | None:
        """The number of columns of the inputs; None if kernel and inducing variable do not
        determine it."""
        return self._input_dim_of(self.inducing_variable)

    def _input_dim_of(self, inducing_variable: InducingVariables) -> int | None:
        return num_columns_of_latents(latent_gps(self.kernel, inducing_variable))

    @property
    def layer_of_inputs(self) -> Layer | None:
        """The layer whose kernel acts on the columns of the inputs; None if there is none."""
        return self

    @unconverted
    def predict(
        self, inputs: TensorType, *, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and (co)variance of the outputs, in GPflow's shapes, mean function included.

        :param inputs: ``[batch..., N, D]``.
        """
        posterior = self.posterior(PrecomputeCacheType.NOCACHE)
        found: MeanAndVariance = posterior.fused_predict_f(inputs, full_cov, full_output_cov)
        return found

    def sample(self) -> Sample:
        """A function drawn from the posterior, from inputs ``[N, D]`` to outputs ``[N, P]``, its
        mean function included.

        It is drawn by :func:`interdomain.sample_functions`, with random numbers that
        depend on ``tf.random.set_seed``, as those of GPflux do.
        ``gpflux.models.deep_gp.sample_dgp`` combines such functions into functions of a deep GP.

        :raises ValueError: For kernels and inducing variables for which no functions can
            be drawn.
        """
        seed = int(tf.random.uniform([], maxval=2**31 - 1, dtype=tf.int32))
        posterior = self.posterior(PrecomputeCacheType.NOCACHE)
        functions = sample_functions(posterior, 1, seed=seed, num_features=_NUM_FEATURES)
        return Function(lambda X: functions(X)[0])

    @unconverted
    def call(self, inputs: TensorType, *args: Any, **kwargs: Any) -> Any:
        """The distribution of the outputs. In training the KL divergence minus the log density of
        priors, divided by ``num_data``, is added to the losses."""
        outputs = super(GPLayer, self).call(inputs, *args, **kwargs)
        loss = tf.zeros([], gpflow.default_float())
        if kwargs.get("training"):
            densities = [
                module.log_prior_density()
                for module in self.submodules
                if isinstance(module, gpflow.Parameter) and module.trainable
            ]
            loss = (self.prior_kl() - sum(densities)) / self.num_data
        self.add_loss(loss)
        self.add_metric(loss, name=f"{self.name}_prior_kl", aggregation="mean")
        return outputs

    def _make_distribution_fn(self, previous_layer_outputs: TensorType) -> Any:
        if self.full_cov or self.full_output_cov:
            return super()._make_distribution_fn(previous_layer_outputs)
        mean, variance = self.predict(previous_layer_outputs)
        return tfp.distributions.MultivariateNormalDiag(mean, deviations(variance))

    def check_input_dim(self, num_columns: int) -> None:
        """:raises ValueError: Unless the layer takes inputs with so many columns."""
        check_inputs(self, num_columns)
        mean = self.mean_function(tf.ones([1, num_columns], gpflow.default_float()))
        if mean.shape[-1] not in (1, self.output_dim):
            raise ValueError(
                f"mean_function must return {self.output_dim} columns, as many as the layer has "
                f"outputs, found {mean.shape[-1]} for inputs of {num_columns}; pass "
                "gpflow.mean_functions.Linear with a matrix of that shape."
            )

    def check_hidden_inputs(self, num_columns: int) -> None:
        """Check that the layer can follow another layer, whose outputs may be anywhere.

        :raises ValueError: If it does not accept all inputs with this number of columns.
        """
        for latents in latent_gps(self.kernel, self.inducing_variable):
            pair = latents.inducing_variables[0], latents.kernel
            ends = [str(box) for box in boxes(*pair, num_columns)]
            blocks = [block for block, _ in boxed_parts(*pair)]
            ends += [end for block in blocks if (end := getattr(block, "clipped_to", None))]
            if ends:
                raise ValueError(
                    f"inducing_variable must see all of the outputs of the layer before, found "
                    f"{ends[0]}, which they leave; pass features without a box, such as "
                    "SphericalHarmonics."
                )
            rows: Array = np.full([1, num_columns], _FAR)
            validate_rows("inputs", latents.kernel, rows)

    def _check_parts(self) -> None:
        try:
            if self.input_dim is not None:
                self.check_input_dim(self.input_dim)
            else:  # at least they are of one family
                for latents in latent_gps(self.kernel, self.inducing_variable):
                    Kuu_operator(latents.inducing_variables[0], latents.kernel)
        except (ValueError, NotImplementedError) as error:
            raise ValueError(f"{self.name}: {error}") from error


class Function(Sample):
    """A function, as GPflux's samples are."""

    def __init__(self, function: Callable[[TensorType], tf.Tensor]) -> None:
        self._function = function

    def __call__(self, X: TensorType) -> tf.Tensor:
        return self._function(X)


def deviations(variances: tf.Tensor) -> tf.Tensor:
    """Standard deviations; where the variance is zero, their gradient is zero and not infinite."""
    return tf.sqrt(tf.maximum(variances, np.finfo(variances.dtype.as_numpy_dtype).tiny))
