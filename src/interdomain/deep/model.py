"""A deep GP that is also a GPflow model, which :func:`interdomain.fit` trains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import gpflow
import gpflux.models.deep_gp
import numpy as np
import tensorflow as tf
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.likelihoods import Likelihood
from gpflow.models import BayesianModel
from gpflow.models.training_mixins import ExternalDataTrainingLossMixin
from scipy.special import ndtri
from scipy.stats import qmc

from .._arguments import Array, check_squares, instance, integer, items, sliceable
from .._tracing import unconverted
from .convolutional import ConvolutionalLayer
from .layer import Layer, deviations, named

_MOST_SOBOL = 21_201
"""The largest dimension of SciPy's Sobol sequence."""

_LARGEST_SEED = 2**31 - 1
"""The largest seed of TensorFlow's stateless draws, a 32-bit integer."""


class DeepGP(gpflux.models.deep_gp.DeepGP, BayesianModel, ExternalDataTrainingLossMixin):
    """A deep GP: layers of :mod:`interdomain.deep` and a likelihood (Salimbeni & Deisenroth 2017).

    It is a ``gpflux.models.DeepGP`` with its Keras models, and also a GPflow model.
    :func:`interdomain.fit` trains it, with natural gradients for the last layer. The bound is

        E[log p(y | f_L)] - sum_l KL(q_l),

    where the expectation is over samples of the hidden layers. New samples are drawn at every step;
    they depend on the seed and the number of the step. L-BFGS uses the same draws throughout, so
    that it minimises a deterministic function.

    Predictions average over samples of the hidden layers: means, variances and densities are those
    of the mixture. The draws are evenly spread, and are the same for all rows and every call. As in
    GPflux, predictions have no covariances, because outputs are not Gaussian. To draw functions,
    which are consistent across rows, use ``gpflux.models.deep_gp.sample_dgp(model)``.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> from interdomain import deep
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = deep.build(X, widths=[2, 1], num_inducing=9)
    >>> result = idm.fit(
    ...     model, (X, X[:, :1]), batch_size=10, steps=2, progress=False
    ... )
    >>> mean, variance = model.predict_y(X, num_samples=8)
    >>> mean.shape, model.predict_log_density((X, X[:, :1])).shape
    (TensorShape([50, 1]), TensorShape([50]))

    :param f_layers: The layers, first to last: any :class:`Layer`. (To combine them with other
        layers, use a ``gpflux.models.DeepGP``.)
    :param likelihood: Any likelihood of GPflow.
    :param num_samples: The number of samples of the hidden layers in the bound, for each row.
    :param num_prediction_samples: The default number of samples over which predictions average.
    :param seed: The seed of all draws.
    :raises ValueError: If a number of samples is not a positive integer, or the seed is not an
        integer from 0 to 2^31 - 1; if there are no layers, a layer is not of this library, or their
        ``num_data`` differ; if a layer does not accept the outputs of the previous layer, or its
        inducing variable has a box, which these outputs may leave. The message names the layer.
    """

    def __init__(
        self,
        f_layers: Sequence[Layer],
        likelihood: Likelihood,
        *,
        num_samples: int = 1,
        num_prediction_samples: int = 32,
        seed: int = 0,
    ) -> None:
        layers = items("f_layers", f_layers, "a list of layers")
        if not layers:
            raise ValueError("f_layers must have at least one layer, found none.")
        remedy = "use gpflux.models.DeepGP for layers of other libraries"
        for index, layer in enumerate(layers):
            instance(f"f_layers[{index}]", layer, Layer, "a layer of interdomain.deep", remedy)
            if index > 0:
                with named(f"f_layers[{index}] ({layer.name})"):
                    layer.check_hidden_inputs(layers[index - 1].output_dim)
        instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
        super().__init__(layers, likelihood, input_dim=layers[0].input_dim)
        self.num_samples = integer("num_samples", num_samples, at_least=1)
        self.num_prediction_samples = integer(
            "num_prediction_samples", num_prediction_samples, at_least=1
        )
        self.seed = integer("seed", seed, at_least=0, at_most=_LARGEST_SEED)
        self._step = tf.Variable(0, trainable=False, dtype=tf.int64, name="step")

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood, as a GPflow object; the Keras layer ``likelihood_layer`` contains it."""
        return self.likelihood_layer.likelihood  # type: ignore[no-any-return]

    @property
    def num_latent_gps(self) -> int:
        """The number of outputs of the last layer, which are the likelihood's inputs."""
        return int(self.f_layers[-1].output_dim)

    @property
    def layer_of_inputs(self) -> Layer | None:
        """The layer whose kernel acts on the columns of X; None if the columns are pixels."""
        first: Layer = self.f_layers[0]
        return None if isinstance(first, ConvolutionalLayer) else first

    @property
    def variational_parameters(self) -> list[tuple[gpflow.Parameter, gpflow.Parameter]]:
        """The pairs (q_mu, q_sqrt) of the last layer, for natural gradients: given hidden layers,
        its bound is that of a single-layer GP. The other optimizer trains all other q's."""
        return list(self.f_layers[-1].variational_parameters)

    def set_step(self, step: int) -> None:
        """Select the draws of the bound by a step number, which :func:`interdomain.fit` sets."""
        self._step.assign(step)

    def check_input_dim(self, num_columns: int) -> None:
        """Check that X may have ``num_columns`` columns; a ValueError otherwise."""
        first: Layer = self.f_layers[0]
        with named(f"f_layers[0] ({first.name})"):
            first.check_input_dim(num_columns)

    def elbo(self, data: RegressionData) -> tf.Tensor:
        """The evidence lower bound, scaled to ``num_data`` rows, with the draws of this step.

        :param data: X ``[N, D]`` and Y ``[N, P]``, all rows or a minibatch.
        """
        X, Y = _as_inputs(data[0]), tf.convert_to_tensor(data[1])
        samples = self.num_samples if len(self.f_layers) > 1 else 1
        inputs, kls = self._last_inputs(
            X, lambda layer, width: self._numbers(layer, [samples, tf.shape(X)[0], width])
        )
        mean, variance, kl = self.f_layers[-1].marginals_and_kl(inputs)
        expectations = self.likelihood.variational_expectations(
            _repeated(X, samples), mean, variance, _repeated(Y, samples)
        )
        scale = self.num_data / tf.cast(samples * tf.shape(X)[0], kl.dtype)
        return tf.reduce_sum(expectations) * scale - tf.add_n([*kls, kl])

    maximum_log_likelihood_objective = elbo

    @unconverted
    def predict_f(self, Xnew: InputData, *, num_samples: int | None = None) -> MeanAndVariance:
        """Mean and variance of f, ``[N, P]`` each, of the mixture over ``num_samples`` samples of
        the hidden layers (``num_prediction_samples`` by default)."""
        _, mean, variance, samples = self._mixture(Xnew, num_samples)
        return _moments(mean, variance, samples)

    def predict_y(self, Xnew: InputData, *, num_samples: int | None = None) -> MeanAndVariance:
        """Mean and variance of y, ``[N, P]`` each; for classes, the mean is their probabilities."""
        X, mean, variance, samples = self._mixture(Xnew, num_samples)
        return _moments(*self.likelihood.predict_mean_and_var(X, mean, variance), samples)

    def predict_log_density(
        self, data: RegressionData, *, num_samples: int | None = None
    ) -> tf.Tensor:
        """The log density of each row of Y under the mixture, ``[N]``."""
        X, mean, variance, samples = self._mixture(data[0], num_samples)
        Y = _repeated(tf.convert_to_tensor(data[1]), samples)
        densities = self.likelihood.predict_log_density(X, mean, variance, Y)
        by_sample = tf.reshape(densities, [samples, -1])
        return tf.reduce_logsumexp(by_sample, axis=0) - np.log(samples)

    @unconverted
    def _mixture(
        self, Xnew: InputData, num_samples: int | None
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, int]:
        """Rows ``[S N, D]``, ordered by sample of the hidden layers; the mean and variance of f at
        each row, ``[S N, P]``; and S."""
        widths = [layer.output_dim for layer in self.f_layers[:-1]]
        samples = self.num_prediction_samples if num_samples is None else num_samples
        samples = integer("num_samples", samples, at_least=1)
        samples = samples if widths else 1
        draws = spread_draws(widths, samples, self.seed) if widths else []
        X = _as_inputs(Xnew)
        inputs, _ = self._last_inputs(X, lambda layer, _: draws[layer])
        return _repeated(X, samples), *self.f_layers[-1].predict(inputs), samples

    @unconverted
    def _last_inputs(
        self, X: tf.Tensor, numbers_of: Callable[[int, int], tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Samples of the inputs of the last layer ``[S N, D]``, ordered by sample, and the KL
        divergences of the layers before it. The first layer is computed only once, because its
        inputs are the same for all samples.

        :param numbers_of: A function of a layer's index and its number P of outputs, which returns
            standard normal numbers ``[S, N or 1, P]``.
        """
        inputs = X
        kls: list[tf.Tensor] = []
        for index, layer in enumerate(self.f_layers[:-1]):
            mean, variance, kl = layer.marginals_and_kl(inputs)
            numbers = numbers_of(index, layer.output_dim)
            if index > 0:
                mean, variance = (_per_sample(part, numbers.shape[0]) for part in (mean, variance))
            values = mean + deviations(variance) * numbers
            inputs = tf.reshape(values, [-1, layer.output_dim])
            kls.append(kl)
        return inputs, kls

    def _numbers(self, layer: int, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
        """Standard normal numbers for the bound, which depend only on the seed and the step. A
        resumed fit therefore repeats its draws, and one step has the same draws throughout."""
        step = tf.cast(self._step, tf.int32)
        seed = tf.random.experimental.stateless_fold_in(tf.constant([self.seed, layer]), step)
        return tf.random.stateless_normal(shape, seed, dtype=gpflow.default_float())


def spread_draws(widths: Sequence[int], num_samples: int, seed: int) -> list[Array]:
    """Draws for predictions, ``[S, 1, P]`` for each hidden layer of P outputs.

    They are evenly spread (a scrambled Sobol sequence of all hidden outputs together), so that few
    draws are enough. They are the same for every row. A prediction is therefore independent of the
    other rows, and a smooth function of the inputs.
    """
    total = sum(widths)
    if total <= _MOST_SOBOL:
        size = 2 ** int(np.ceil(np.log2(num_samples)))
        uniform = qmc.Sobol(total, scramble=True, seed=seed).random(size)[:num_samples]
        values = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    else:
        values = np.random.default_rng(seed).standard_normal([num_samples, total])
    parts = np.split(values.astype(gpflow.default_float()), np.cumsum(widths)[:-1], axis=1)
    return [part[:, None] for part in parts]


def _as_inputs(X: InputData) -> tf.Tensor:
    rows = sliceable("X", X, "[N, D]")
    if not tf.is_tensor(X):
        check_squares("X", rows, gpflow.default_float())
    return tf.cast(tf.convert_to_tensor(rows), gpflow.default_float())


def _per_sample(values: tf.Tensor, num_samples: int) -> tf.Tensor:
    """Values ``[S N, P]`` in the shape ``[S, N, P]``."""
    return tf.reshape(values, [num_samples, -1, values.shape[-1]])


def _repeated(values: tf.Tensor, num_samples: int) -> tf.Tensor:
    """The rows repeated for each sample, ordered by sample."""
    return values if num_samples == 1 else tf.tile(values, [num_samples, 1])


def _moments(mean: tf.Tensor, variance: tf.Tensor, num_samples: int) -> MeanAndVariance:
    """The moments ``[N, P]`` of the mixture of the samples ``[S N, P]``."""
    mean, variance = _per_sample(mean, num_samples), _per_sample(variance, num_samples)
    middle = tf.reduce_mean(mean, axis=0)
    spread = tf.reduce_mean(tf.square(mean - middle), axis=0)
    return middle, tf.reduce_mean(variance, axis=0) + spread
