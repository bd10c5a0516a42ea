"""Functions drawn from stationary priors: sums of sinusoids with random frequencies.

By Bochner's theorem a stationary kernel is the mean of ``variance cos(w^T (x - x'))``. The mean is
over frequencies w of its spectral density (Rahimi and Recht, *Random features for large-scale
kernel machines*, 2007).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import TypeAlias

import numpy as np
import tensorflow as tf
from gpflow.kernels import (
    Constant,
    Cosine,
    Exponential,
    Kernel,
    Product,
    RationalQuadratic,
    SquaredExponential,
    Stationary,
)

from .._arguments import Array
from ..core.columns import select_columns
from ..core.matern import MATERNS, matern_order
from ..families.harmonizable.spectral_mixture import SpectralComponent
from .base import Draws, PriorSample, as_array, constant, unknown_prior

Columns: TypeAlias = Callable[[tf.Tensor], tf.Tensor]
Spectrum: TypeAlias = tuple[Columns, Array, Array]


class Waves(PriorSample):
    """The functions ``f(x) = sum_j cosine_j cos(w_j^T x) + sine_j sin(w_j^T x)``.

    :param columns: A function from X to the columns ``[N, D]`` that the frequencies multiply.
    :param frequencies: Angular frequencies, ``[S, F, D]``; cosines and sines are ``[S, F]``.
    """

    def __init__(
        self, kernel: Kernel, columns: Columns, frequencies: Array, cosines: Array, sines: Array
    ) -> None:
        self.kernel, self._columns, self.entries_per_row = kernel, columns, 3 * cosines.size
        self._frequencies, self._cosines, self._sines = frequencies, cosines, sines
        self._angular = constant(frequencies)
        self._weights = constant(np.stack([cosines, sines]))[:, :, None]

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        angles = tf.matmul(self._angular, self._columns(X)[None], transpose_b=True)
        cosines, sines = self._weights[0], self._weights[1]
        values = tf.matmul(cosines, tf.cos(angles)) + tf.matmul(sines, tf.sin(angles))
        return values[:, 0]

    @classmethod
    def from_kernel(cls, kernel: Kernel, draws: Draws) -> Waves:
        """The functions of random Fourier features with normal weights."""
        columns, frequencies, amplitudes = spectrum(kernel, draws)
        weights = draws.rng.standard_normal((2, *draws.shape)) * amplitudes
        weights /= math.sqrt(draws.num_features)
        return cls(kernel, columns, frequencies, weights[0], weights[1])


def spectrum(kernel: Kernel, draws: Draws) -> Spectrum:
    """Frequencies drawn from a spectral density: a function that selects their columns of X,
    angular frequencies ``[S, F, D]``, and amplitudes ``[S, F]``. The mean over the frequencies of
    ``amplitude^2 cos(w^T (x - x'))`` is the kernel.

    :raises ValueError: If the spectral density of the kernel is not known.
    """
    if isinstance(kernel, Product):
        # The frequencies of all factors are concatenated. With random signs of the frequencies of
        # each factor, the mean of cos(a + b) is that of cos a cos b.
        factors = [spectrum(part, draws) for part in kernel.kernels]
        columns, frequencies, amplitudes = zip(*factors, strict=True)
        shape = *draws.shape, 1
        signed = [(draws.rng.integers(0, 2, size=shape) * 2 - 1) * w for w in frequencies]

        def joint(X: tf.Tensor) -> tf.Tensor:
            return tf.concat([select(X) for select in columns], axis=-1)

        return joint, np.concatenate(signed, axis=-1), reduce(np.multiply, amplitudes)
    if isinstance(kernel, Constant):  # waves of zero columns
        deviation = np.sqrt(as_array(kernel.variance))
        return lambda X: X[:, :0], np.zeros([*draws.shape, 0]), deviation
    if isinstance(kernel, SpectralComponent):
        # Normal frequencies about the peak; the mirror image of the peak has the same cosine.
        root = np.linalg.cholesky(as_array(kernel.lag_matrix()))
        spread = draws.rng.standard_normal((*draws.shape, kernel.dimension)) @ root.T
        frequencies = 2 * np.pi * (spread + as_array(kernel.frequency))
    elif isinstance(kernel, Stationary):
        frequencies = _unit_frequencies(kernel, draws) / as_array(kernel.lengthscales)
    else:
        raise unknown_prior(kernel)
    return partial(select_columns, kernel), frequencies, np.sqrt(as_array(kernel.variance))


def _unit_frequencies(kernel: Stationary, draws: Draws) -> Array:
    """Angular frequencies ``[S, F, D]`` for a lengthscale of one.

    :raises ValueError: If the spectral density of the kernel is not known.
    """
    rng, shape, num_columns = draws.rng, draws.shape, draws.count_columns(kernel)
    if isinstance(kernel, Cosine):
        return np.full((*shape, num_columns), 2 * np.pi)
    scales = np.ones(shape)
    if isinstance(kernel, RationalQuadratic):
        # A mixture of squared exponentials, whose precisions are gamma distributed.
        alpha = float(as_array(kernel.alpha))
        scales = np.sqrt(rng.gamma(alpha, 1 / alpha, size=shape))
    elif isinstance(kernel, (Exponential, *MATERNS)):
        # Student's t with 2 nu degrees of freedom. GPflow's Exponential is a Matern-1/2 kernel with
        # twice the lengthscale.
        is_exponential = isinstance(kernel, Exponential)
        degrees = 1 if is_exponential else 2 * matern_order(kernel) + 1
        scales = (0.5 if is_exponential else 1.0) / np.sqrt(rng.chisquare(degrees, shape) / degrees)
    elif not isinstance(kernel, SquaredExponential):
        raise unknown_prior(kernel)
    return np.asarray(scales[..., None] * rng.standard_normal((*shape, num_columns)))
