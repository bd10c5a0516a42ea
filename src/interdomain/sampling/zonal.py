"""Functions drawn from zonal priors: Gegenbauer polynomials of random directions.

``N(d, l) P_l(v^T x) P_l(v^T x')`` has the mean ``P_l(x^T x')`` over directions v that are uniform
on the sphere, by the addition theorem. So a sum of ``P_l(v_j^T x)`` over random directions, of all
degrees and with random weights, has a zonal covariance of any eigenvalues.
"""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from ..covariances._lifted_inputs import inverse_eigenvalues
from ..inducing_variables import ActivationFeatures, SphericalHarmonics
from ..kernels import ZonalKernel
from ..kernels._columns import select_columns
from ..sphere import num_harmonics
from ..sphere._typing import Array
from ..sphere.zonal_series import zonal_series_of_each
from .priors import MOST_ENTRIES, Draws, PriorSample, as_array, constant, prior_sample, project

_LEFT_OUT = 1e-6
"""The share of the variance that the degrees may leave out."""

_MAX_DEGREE = 128


class Directions(PriorSample):
    """``f(x) = r^p sum_j sum_l c_jl P_l(v_j^T x / r)``, p being the kernel's radial power.

    :param kernel: How inputs come onto the sphere.
    :param directions: The v_j, ``[S, F, d]``.
    :param weights: The c_jl, ``[L, S, F]``.
    """

    def __init__(self, kernel: ZonalKernel, directions: Array, weights: Array) -> None:
        self.directions, self.weights = directions, weights
        own_directions, own_weights = constant(directions), constant(weights)

        def values(X: tf.Tensor) -> tf.Tensor:
            radius, unit = kernel.to_sphere(select_columns(kernel, X))
            scale = kernel.radial_factor(radius[:, 0], kernel.radial_power)
            return scale * _sums(own_directions, unit, own_weights)

        super().__init__(values, 4 * math.prod(directions.shape[:2]))


def _sums(directions: tf.Tensor, unit: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """``sum_j sum_l c_jl P_l(v_j^T x)`` at unit vectors x ``[N, d]``, ``[S, N]``."""
    t = tf.matmul(directions, unit[None], transpose_b=True)
    values = zonal_series_of_each(t, weights[..., None], directions.shape[-1])
    return tf.reduce_sum(values, axis=1)


@prior_sample.register(ZonalKernel)
def prior_sample_zonal(kernel: ZonalKernel, draws: Draws) -> PriorSample:
    """Random directions, each with all degrees up to one that leaves out a millionth of the
    variance, or up to 128: what remains beyond is given to the last degree that the kernel has,
    so that the variance is the kernel's."""
    dimension = kernel.sphere_dimension(draws.count_columns(kernel))
    shares = variance_shares_of_degrees(kernel, dimension)
    directions = draws.rng.standard_normal((*draws.shape, dimension))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    counts = [num_harmonics(dimension, degree) for degree in range(len(shares))]
    levels = np.sqrt(shares * np.array(counts, float) * as_array(kernel.variance))
    # Signs, given the normal weight of a direction: its degrees are uncorrelated.
    signs = draws.rng.integers(0, 2, size=(len(shares), *draws.shape)) * 2.0 - 1.0
    weights = draws.rng.standard_normal(draws.shape) / math.sqrt(draws.num_features)
    return Directions(kernel, directions, levels[:, None, None] * signs * weights)


def variance_shares_of_degrees(kernel: ZonalKernel, dimension: int) -> Array:
    """The variance share of each degree, up to one that leaves out almost nothing, ``[L]``."""
    highest = 8
    while True:
        shares = as_array(kernel.variance_shares(dimension, highest))
        left = 1 - np.sum(shares)
        if left < _LEFT_OUT or highest >= _MAX_DEGREE:
            break
        highest *= 2
    last = int(np.flatnonzero(shares)[-1])
    shares[last] += max(left, 0.0)
    found: Array = shares[: last + 1]
    return found


@project.register(SphericalHarmonics, ZonalKernel, Directions)
def project_harmonics(
    inducing_variable: SphericalHarmonics, kernel: ZonalKernel, sample: Directions
) -> tf.Tensor:
    """By the addition theorem ``P_l(v^T x) = sum_m Y_m(v) Y_m(x) / N(d, l)``, and u of ``Y_m(x)``
    is Kuu's diagonal."""
    dimension, degrees = inducing_variable.dimension, inducing_variable.degrees
    eigenvalues = kernel.eigenvalues(dimension, degrees)
    scales = as_array(inverse_eigenvalues(kernel, eigenvalues))
    scales /= [num_harmonics(dimension, degree) for degree in degrees]
    S, F, _ = sample.directions.shape
    weights = np.zeros([len(degrees), S, F])
    known = [k for k, degree in enumerate(degrees) if degree < len(sample.weights)]
    weights[known] = sample.weights[[degrees[k] for k in known]] * scales[known][:, None, None]
    level_of_each = np.asarray(inducing_variable.level_of_each)
    # A few functions at a time: all harmonics of all directions would be M S F numbers.
    size = max(1, MOST_ENTRIES // (3 * F * len(level_of_each)))
    parts = []
    for first in range(0, S, size):
        directions = sample.directions[first : first + size]
        harmonics = inducing_variable.at(constant(directions.reshape(-1, dimension)))
        harmonics = tf.reshape(harmonics, [len(level_of_each), -1, F])
        of_each = tf.gather(constant(weights[:, first : first + size]), level_of_each)
        parts.append(tf.transpose(tf.reduce_sum(harmonics * of_each, axis=-1)))
    return tf.concat(parts, axis=0)


@project.register(ActivationFeatures, ZonalKernel, Directions)
def project_activations(
    inducing_variable: ActivationFeatures, kernel: ZonalKernel, sample: Directions
) -> tf.Tensor:
    """The inner product of ``P_l(v^T x)`` and the activation in the RKHS,
    ``a_l P_l(v^T z) / (variance lambda_l)``, with the activation's coefficients a_l."""
    dimension = inducing_variable.dimension
    degrees = [d for d in inducing_variable.degrees(kernel) if d < len(sample.weights)]
    eigenvalues = kernel.eigenvalues(dimension, degrees)
    inverse = inverse_eigenvalues(kernel, eigenvalues, squared=False)
    factors = np.zeros(len(sample.weights))
    factors[degrees] = inducing_variable.activation.coefficients(dimension, degrees)
    factors[degrees] *= as_array(inverse)
    weights = constant(sample.weights * factors[:, None, None])
    return _sums(constant(sample.directions), inducing_variable.directions, weights)
