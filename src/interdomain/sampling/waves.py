"""Functions drawn from stationary priors: sums of sinusoids of random frequencies.

By Bochner's theorem a stationary kernel is the mean of ``variance cos(w^T (x - x'))`` over
frequencies w of its spectral density (Rahimi and Recht, *Random features for large-scale kernel
machines*, 2007).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, singledispatch

import numpy as np
import tensorflow as tf
from gpflow.kernels import (
    Cosine,
    Exponential,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    Stationary,
)
from scipy.stats import t as student

from ..kernels._columns import select_columns
from ..kernels.periodic.spectral_density import matern_order
from ..kernels.spectral.spectral_mixture import SpectralComponent
from ..sphere._typing import Array
from .draws import Draws, as_array, as_float, constant
from .priors import PriorSample, prior_sample


class Waves(PriorSample):
    """``f(x) = sum_j cosine_j cos(w_j^T x) + sine_j sin(w_j^T x)``, for each function.

    :param columns: From X to the columns ``[N, D]`` that the frequencies belong to.
    :param frequencies: Angular, ``[S, F, D]``.
    :param cosines: ``[S, F]``.
    :param sines: ``[S, F]``.
    """

    def __init__(
        self,
        columns: Callable[[tf.Tensor], tf.Tensor],
        frequencies: Array,
        cosines: Array,
        sines: Array,
    ) -> None:
        self.frequencies, self.cosines, self.sines = frequencies, cosines, sines
        self._columns = columns
        self._frequencies = constant(frequencies)
        self._weights = constant(np.stack([cosines, sines]))[:, :, None]

    @property
    def entries_per_row(self) -> int:
        return 3 * self.cosines.size

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        angles = tf.matmul(self._frequencies, self._columns(X)[None], transpose_b=True)
        cosines, sines = self._weights[0], self._weights[1]
        values = tf.matmul(cosines, tf.cos(angles)) + tf.matmul(sines, tf.sin(angles))
        return values[:, 0]


@singledispatch
def unit_frequencies(
    kernel: Stationary, rng: np.random.Generator, shape: tuple[int, ...], num_columns: int
) -> tuple[Array, Array | float]:
    """Angular frequencies ``[*shape, D]`` for a lengthscale of one, and the amplitudes ``[*shape]``
    of sinusoids whose mean is the kernel of variance one.

    :raises ValueError: For a kernel of another family.
    """
    raise ValueError(
        f"kernel: no frequencies can be drawn for {type(kernel).__name__}, whose spectral density "
        "is not known; use Matern12, Matern32, Matern52, SquaredExponential, Exponential, "
        "RationalQuadratic or Cosine of gpflow.kernels."
    )


@unit_frequencies.register(SquaredExponential)
def unit_frequencies_squared_exponential(
    kernel: SquaredExponential,
    rng: np.random.Generator,
    shape: tuple[int, ...],
    num_columns: int,
) -> tuple[Array, float]:
    """Normal."""
    return rng.standard_normal((*shape, num_columns)), 1.0


@unit_frequencies.register(RationalQuadratic)
def unit_frequencies_rational_quadratic(
    kernel: RationalQuadratic, rng: np.random.Generator, shape: tuple[int, ...], num_columns: int
) -> tuple[Array, float]:
    """A mixture of squared exponentials, whose precisions are gamma distributed."""
    alpha = as_float(kernel.alpha)
    precisions = rng.gamma(alpha, 1 / alpha, size=shape)
    return np.sqrt(precisions)[..., None] * rng.standard_normal((*shape, num_columns)), 1.0


@unit_frequencies.register(Matern12)
@unit_frequencies.register(Matern32)
@unit_frequencies.register(Matern52)
def unit_frequencies_matern(
    kernel: Stationary, rng: np.random.Generator, shape: tuple[int, ...], num_columns: int
) -> tuple[Array, Array | float]:
    """Student's t of 2 nu degrees of freedom.

    Those of one column are drawn from a Cauchy distribution, and amplitudes make up for it: the
    derivatives of functions, and what features of an interval are of them, then have finite fourth
    moments, and estimates of their covariances finite errors.
    """
    degrees = 2 * matern_order(type(kernel))
    if num_columns == 1 and degrees > 1:
        frequencies = rng.standard_cauchy((*shape, 1))
        ratios = student.pdf(frequencies[..., 0], degrees) / student.pdf(frequencies[..., 0], 1)
        return frequencies, np.sqrt(ratios)
    scales = np.sqrt(rng.chisquare(degrees, size=shape) / degrees)
    return rng.standard_normal((*shape, num_columns)) / scales[..., None], 1.0


@unit_frequencies.register(Exponential)
def unit_frequencies_exponential(
    kernel: Exponential, rng: np.random.Generator, shape: tuple[int, ...], num_columns: int
) -> tuple[Array, Array | float]:
    """GPflow's is a Matern-1/2 kernel of twice the lengthscale."""
    frequencies, amplitudes = unit_frequencies_matern(Matern12(), rng, shape, num_columns)
    return frequencies / 2, amplitudes


@unit_frequencies.register(Cosine)
def unit_frequencies_cosine(
    kernel: Cosine, rng: np.random.Generator, shape: tuple[int, ...], num_columns: int
) -> tuple[Array, float]:
    """One frequency."""
    return np.full((*shape, num_columns), 2 * np.pi), 1.0


def random_waves(
    draws: Draws,
    columns: Callable[[tf.Tensor], tf.Tensor],
    frequencies: Array,
    amplitudes: Array | float,
) -> Waves:
    """Sinusoids of these frequencies, with normal weights.

    :param amplitudes: The root of each one's variance, were it the only one; ``[S, F]``, or one
        number.
    """
    weights = draws.weights(2, *draws.shape) * (amplitudes / math.sqrt(draws.num_features))
    return Waves(columns, frequencies, weights[0], weights[1])


@prior_sample.register(Stationary)
def prior_sample_stationary(kernel: Stationary, draws: Draws) -> PriorSample:
    """Random Fourier features."""
    number = draws.count_columns(kernel)
    frequencies, amplitudes = unit_frequencies(kernel, draws.rng, draws.shape, number)
    frequencies = frequencies / as_array(kernel.lengthscales)
    amplitudes = amplitudes * math.sqrt(as_float(kernel.variance))
    return random_waves(draws, partial(select_columns, kernel), frequencies, amplitudes)


@prior_sample.register(SpectralComponent)
def prior_sample_spectral(kernel: SpectralComponent, draws: Draws) -> PriorSample:
    """Normal frequencies about the peak; those about its mirror image have the same cosine."""
    lag = as_array(kernel.lag_matrix())
    spread = draws.rng.standard_normal((*draws.shape, kernel.dimension)) @ np.linalg.cholesky(lag).T
    frequencies = 2 * np.pi * (spread + as_array(kernel.frequency))
    amplitude = math.sqrt(as_float(kernel.variance))
    return random_waves(draws, partial(select_columns, kernel), frequencies, amplitude)


@prior_sample.register(Periodic)
def prior_sample_periodic(kernel: Periodic, draws: Draws) -> PriorSample:
    """Functions of GPflow's periodic kernel: those of the base kernel, on circles of radius 1/2.

    The chords of such a circle are the sines that the periodic kernel is made of.

    :raises ValueError: For a kernel that is not a function of the sum of their squares.
    """
    base = kernel.base_kernel
    number = draws.count_columns(base)
    if number > 1 and hasattr(base, "K_r"):
        raise ValueError(
            f"kernel: Periodic({type(base).__name__}) of {number} columns is a function of the sum "
            "of sines, not of their squares, and no features of it are known; use a product of "
            "Periodic kernels of one column each, or a SquaredExponential base kernel."
        )
    frequencies, amplitudes = unit_frequencies(base, draws.rng, draws.shape, 2 * number)
    amplitudes = amplitudes * math.sqrt(as_float(base.variance))
    return random_waves(draws, partial(_on_circles, kernel), frequencies, amplitudes)


def _on_circles(kernel: Periodic, X: tf.Tensor) -> tf.Tensor:
    angles = 2 * np.pi * select_columns(kernel.base_kernel, X) / kernel.period
    radii = 0.5 / kernel.base_kernel.lengthscales
    return tf.concat([radii * tf.cos(angles), radii * tf.sin(angles)], axis=-1)
