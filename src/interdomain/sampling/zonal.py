"""Functions drawn from zonal priors: Gegenbauer polynomials of random directions.

By the addition theorem, ``N(d, l) P_l(v^T x) P_l(v^T x')`` has the mean ``P_l(x^T x')`` over
directions v that are uniform on the sphere. A randomly weighted sum of ``P_l(v_j^T x)``, over
random directions and all degrees, therefore has a zonal covariance with any eigenvalues.
"""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables

from .._arguments import Array
from ..families.sphere.activation_features import ActivationFeatures
from ..families.sphere.harmonics import SphericalHarmonics
from ..families.sphere.kernel import ZonalKernel
from ..families.sphere.mathematics.dimensions import num_harmonics
from ..families.sphere.mathematics.zonal_series import level_multiplicities, zonal_series
from ..families.sphere.on_sphere import inverse_eigenvalues
from .base import MOST_ENTRIES, Draws, PriorSample, as_array, constant

_LEFT_OUT = 1e-6
"""The largest share of the variance that higher degrees may leave out."""

_MAX_DEGREE = 128


class Directions(PriorSample):
    """The functions ``f(x) = r^p sum_j sum_l c_jl P_l(v_j^T x / r)``; p is the radial power.

    The v_j are random directions. Each has all degrees up to a degree beyond which a millionth of
    the variance is left, or up to 128. The last nonzero degree gets the variance of higher degrees,
    so that the variance is the kernel's.
    """

    def __init__(self, kernel: ZonalKernel, draws: Draws) -> None:
        dimension = kernel.lift.dimension(draws.count_columns(kernel), "num_columns")
        shares = variance_shares_of_degrees(kernel, dimension)
        directions = draws.rng.standard_normal((*draws.shape, dimension))
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        counts = level_multiplicities(dimension, len(shares))
        levels = np.sqrt(shares * counts * as_array(kernel.variance))
        # The degrees of a direction share a normal weight; random signs make them uncorrelated.
        signs = draws.rng.integers(0, 2, size=(len(shares), *draws.shape)) * 2.0 - 1.0
        weights = draws.rng.standard_normal(draws.shape) / math.sqrt(draws.num_features)
        self.kernel, self.entries_per_row = kernel, 4 * math.prod(draws.shape)
        self._directions = constant(directions)  # [S, F, d]
        self._weights = levels[:, None, None] * signs * weights  # [L, S, F]
        self._series = constant(self._weights)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        scale, unit = self.kernel.to_scaled_sphere(self.kernel.seen(X))
        return scale[:, 0] * self._sums(unit, self._series)

    def _sums(self, unit: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """The sums ``sum_j sum_l c_jl P_l(v_j^T x)`` at unit vectors x ``[N, d]``, ``[S, N]``."""
        t = tf.matmul(self._directions, unit[None], transpose_b=True)
        values = zonal_series(t, weights[..., None], self._directions.shape[-1])
        return tf.reduce_sum(values, axis=1)

    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        if isinstance(inducing_variable, SphericalHarmonics):
            return self._harmonics(inducing_variable)
        if isinstance(inducing_variable, ActivationFeatures):
            return self._activations(inducing_variable)
        return super().project(inducing_variable)

    def _harmonics(self, inducing_variable: SphericalHarmonics) -> tf.Tensor:
        """The harmonics of the functions. By the addition theorem, ``P_l(v^T x) = sum_m Y_m(v)
        Y_m(x) / N(d, l)``, and u of ``Y_m(x)`` is an entry of Kuu's diagonal."""
        dimension, degrees = inducing_variable.dimension, inducing_variable.degrees
        eigenvalues = self.kernel.eigenvalues(dimension, degrees)
        scales = as_array(inverse_eigenvalues(self.kernel, eigenvalues))
        scales /= [num_harmonics(dimension, degree) for degree in degrees]
        S, F, _ = self._directions.shape
        missing = max(0, degrees[-1] + 1 - len(self._weights))
        levels = np.pad(self._weights, [(0, missing), (0, 0), (0, 0)])[list(degrees)]
        weights = levels * scales[:, None, None]
        level_of_each = np.asarray(inducing_variable.level_of_each)
        # A few functions at a time: all harmonics of all directions would be M S F values.
        size = max(1, MOST_ENTRIES // (3 * F * len(level_of_each)))
        parts = []
        for first in range(0, S, size):
            directions = self._directions[first : first + size]
            harmonics = inducing_variable.at(tf.reshape(directions, [-1, dimension]))
            harmonics = tf.reshape(harmonics, [len(level_of_each), -1, F])
            harmonic_weights = tf.gather(constant(weights[:, first : first + size]), level_of_each)
            parts.append(tf.transpose(tf.reduce_sum(harmonics * harmonic_weights, axis=-1)))
        return tf.concat(parts, axis=0)

    def _activations(self, inducing_variable: ActivationFeatures) -> tf.Tensor:
        """The activation features of the functions: the RKHS inner product of ``P_l(v^T x)`` and
        the activation, ``a_l P_l(v^T z) / (variance lambda_l)``; a_l are its coefficients."""
        dimension = inducing_variable.dimension
        degrees = [d for d in inducing_variable.degrees(self.kernel) if d < len(self._weights)]
        eigenvalues = self.kernel.eigenvalues(dimension, degrees)
        inverse = inverse_eigenvalues(self.kernel, eigenvalues, squared=False)
        factors = np.zeros(len(self._weights))
        factors[degrees] = inducing_variable.activation.coefficients(dimension, degrees)
        factors[degrees] *= as_array(inverse)
        weights = constant(self._weights * factors[:, None, None])
        return self._sums(inducing_variable.directions, weights)


def variance_shares_of_degrees(kernel: ZonalKernel, dimension: int) -> Array:
    """The share of the variance of each degree ``[L]``, up to a degree that leaves out little."""
    highest = 8
    while True:
        shares = as_array(kernel.variance_shares(dimension, highest))
        left = 1 - np.sum(shares)
        if left < _LEFT_OUT or highest >= _MAX_DEGREE:
            break
        highest *= 2
    last = int(np.flatnonzero(shares)[-1])
    shares[last] += max(left, 0.0)
    return shares[: last + 1]
