"""Densities of rows given their neighbours, which train the local kernel and the noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood, StudentT
from gpflow.utilities import parameter_dict, positive
from tensorflow_probability import bijectors

from ..._arguments import Array
from ..noise import least_noise_variance, noise_variance_of
from .local_kernel import LocalKernel, conditional_weights
from .student_t import log_density

_NODES = 48
"""Nodes for a Student-t density: errors are far below the deviations between samples."""


class Given(NamedTuple):
    """Rows with their neighbours, and the residuals of features and mean.

    :ivar points: The coordinates of the neighbours and, last, of the row, ``[B, m + 1, d]``.
    :ivar mask: Whether each neighbour exists, and True for the row, ``[B, m + 1]``.
    :ivar shares: The weights of rows in the mean, ``[B]``.
    :ivar residuals: The targets minus features and mean, ``[B, m + 1, P]``.
    :ivar noise_weights: The noise weights, ``[B, m + 1]``.
    :ivar own_weights: The given weights of rows that are not merged, ``[B]``; 0 for merged rows.
    :ivar within: The means over merged rows of the ``rows`` and ``squares`` of :class:`.Within`,
        and the logarithm of the standard deviation of Y: ``[3]``.
    """

    points: Any
    mask: Any
    shares: Any
    residuals: Any
    noise_weights: Any
    own_weights: Any
    within: Any


class Conditionals(gpflow.models.BayesianModel, gpflow.models.ExternalDataTrainingLossMixin):
    """The densities of rows given their neighbours, for the residuals of features and mean.

    The densities are a random sample of the terms of the evidence, at the posterior mean of the
    features. The parameters are copies. Positive parameters without a prior are exponentials of
    variables, so that the units of rows do not affect training.

    :param local: The local kernel that is copied.
    :param likelihood: The likelihood that is copied.
    """

    def __init__(self, local: LocalKernel, likelihood: Likelihood) -> None:
        super().__init__()
        self.local_kernel = _in_logarithms(gpflow.utilities.deepcopy(local.kernel))
        self.likelihood = _in_logarithms(gpflow.utilities.deepcopy(likelihood))
        self.local = LocalKernel(self.local_kernel, local.inputs)

    def take(self, kernel: Kernel, likelihood: Likelihood) -> None:
        """Copy the values of a kernel and a likelihood of the same classes."""
        _copy_values(kernel, self.local_kernel)
        _copy_values(likelihood, self.likelihood)

    def give(self, kernel: Kernel, likelihood: Likelihood) -> None:
        """Assign the present values to a kernel and a likelihood of the same classes."""
        _copy_values(self.local_kernel, kernel)
        _copy_values(self.likelihood, likelihood)

    @property
    def noise_parameter(self) -> gpflow.Parameter:
        """The parameter of the likelihood that determines the noise: its variance or scale."""
        variance = getattr(self.likelihood, "variance", None)
        parameter: gpflow.Parameter = self.likelihood.scale if variance is None else variance
        return parameter

    def assign_noise(self, variance: float) -> None:
        """Assign a noise variance, raised above the lower bound, if it is trainable."""
        parameter = self.noise_parameter
        variance = max(variance, 1.01 * least_noise_variance(self.likelihood))
        if parameter.trainable:
            is_variance = parameter is getattr(self.likelihood, "variance", None)
            parameter.assign(variance if is_variance else variance**0.5)

    def values(self) -> list[Array]:
        """The values of all variables."""
        return [variable.numpy() for variable in self.variables]

    def assign(self, values: Iterable[Array]) -> None:
        """Assign values to all variables."""
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)

    def maximum_log_likelihood_objective(self, data: tuple[tf.Tensor, ...]) -> tf.Tensor:
        """The mean log density of a merged row in units of Y: see :class:`Given`."""
        given = Given(*data)
        noise, num_outputs = noise_variance_of(self.likelihood), given.residuals.shape[-1]
        scores, log_variances = self._scores(given)
        densities = tf.square(scores) + log_variances[:, None] + np.log(2 * np.pi)
        if isinstance(self.likelihood, StudentT):
            densities = self._student_t_densities(given, scores, log_variances, densities)
        rows, squares, log_unit = tf.unstack(given.within, num=3)
        within = num_outputs * rows * tf.math.log(2 * np.pi * noise) + squares / noise
        density = -(tf.reduce_sum(given.shares[:, None] * densities) + within) / 2
        density += num_outputs * (1 + rows) * log_unit
        return tf.cast(density, gpflow.default_float())

    def mean_square_score(self, data: tuple[Array, ...]) -> float:
        """The mean square of the normal scores (errors in standard deviations) of all rows. The
        evidence is highest if variance and noise are multiplied by this number."""
        given = Given(*map(tf.constant, data))
        rows, squares, _ = given.within.numpy()
        scores, _ = self._scores(given)
        merged_squares = given.shares.numpy() @ np.mean(np.square(scores), axis=1)
        noise = float(noise_variance_of(self.likelihood))
        return float((merged_squares + squares / noise / scores.shape[1]) / (1 + rows))

    def _scores(self, given: Given) -> tuple[tf.Tensor, tf.Tensor]:
        """The errors of rows given their neighbours in standard deviations ``[B, P]``, and the
        logarithms of the variances ``[B]``."""
        noises = noise_variance_of(self.likelihood) / given.noise_weights
        covariance = self.local.covariance(given.points)
        weights, log_variances = conditional_weights(covariance, given.mask, noises)
        return tf.reduce_sum(weights[:, :, None] * given.residuals, axis=1), log_variances

    def _student_t_densities(
        self, given: Given, errors: tf.Tensor, log_variances: tf.Tensor, densities: tf.Tensor
    ) -> tf.Tensor:
        """Minus twice the log densities, ``[B, 1]``. Rows that are not merged get the Student-t
        density without an expected weight, so that outliers stay outliers under any kernel."""
        noise, own = noise_variance_of(self.likelihood), given.own_weights
        variances = tf.exp(log_variances)
        f_variances = tf.maximum(variances - noise / given.noise_weights[:, -1], 0.0)
        errors *= tf.sqrt(variances)[:, None]
        scales = tf.sqrt(noise / tf.where(own > 0, own, tf.ones_like(own)))[:, None]
        f_variances, zeros = f_variances[:, None] + tf.zeros_like(errors), tf.zeros_like(errors)
        df = self.likelihood.df
        alone = -2 * log_density(zeros, f_variances, scales, df, errors, _NODES)
        return tf.where(own > 0, alone, tf.reduce_sum(densities, axis=1))[:, None]


def _in_logarithms(module: Any) -> Any:
    """The module, with positive parameters as exponentials of their variables."""
    for part in (module, *module.submodules):
        for name, parameter in list(vars(part).items()):
            if isinstance(parameter, gpflow.Parameter) and parameter.prior is None:
                lower = _lower_bound(parameter.transform)
                if lower is not None:
                    transform = positive(lower, base="exp")
                    value, trainable = _above(parameter.numpy(), lower), parameter.trainable
                    new = gpflow.Parameter(value, transform=transform, trainable=trainable)
                    setattr(part, name, new)
    return module


def _lower_bound(transform: Any) -> float | None:
    """The lower bound of a parameter that GPflow keeps positive; None for other transforms."""
    if isinstance(transform, bijectors.Softplus):
        return 0.0
    if isinstance(transform, bijectors.Chain) and len(transform.bijectors) == 2:
        shift, positive_part = transform.bijectors
        if isinstance(shift, bijectors.Shift) and isinstance(positive_part, bijectors.Softplus):
            return float(shift.shift)
    return None


def _above(value: Any, lower: float) -> Any:
    """The value, or the least number above a lower bound that a transform can resolve."""
    tiny = float(np.finfo(gpflow.default_float()).tiny)
    return np.maximum(value, max(lower * (1 + 1e-4), tiny))


def _copy_values(source: Any, target: Any) -> None:
    values: Mapping[str, Any] = parameter_dict(source)
    for name, parameter in parameter_dict(target).items():
        lower, value = _lower_bound(parameter.transform), values[name].numpy()
        parameter.assign(value if lower is None else _above(value, lower))
