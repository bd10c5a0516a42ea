"""Functions drawn from harmonizable priors: sinusoids under a Gaussian window.

With the notation of :mod:`interdomain.kernels.spectral._algebra`, the kernel is a window at either
input, times a squared exponential of precision ``excess``, times ``Re phi^T B conj(phi)``. A random
frequency of the squared exponential shifts the component's frequencies up and down; what comes out
are sinusoids under the window, whose Fourier transforms are normal densities.
"""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from ..covariances.fourier_features import kept_rows
from ..inducing_variables import FourierFeatures
from ..kernels import HarmonizableComponent
from ..kernels.spectral._algebra import fourier_variances
from ..sphere._typing import Array
from .draws import Draws, as_array, constant
from .priors import PriorSample, prior_sample, project
from .waves import Waves


class WindowedWaves(PriorSample):
    """``f(y) = exp(-pi^2 y^T S y) Re sum_k C_k exp(2 pi i xi_k^T y)``, y being x less the centre.

    :param kernel: The component.
    :param frequencies: The xi_k, in cycles, ``[S, K, D]``.
    :param amplitudes: The C_k, complex ``[S, K]``.
    """

    def __init__(self, kernel: HarmonizableComponent, frequencies: Array, amplitudes: Array):
        self._kernel = kernel
        self.frequencies, self.amplitudes = frequencies, amplitudes
        angular = 2 * np.pi * frequencies
        self._waves = Waves(lambda Y: Y, angular, amplitudes.real, -amplitudes.imag)
        self.envelope = as_array(kernel.tensors().envelope)
        self._envelope = constant(self.envelope)

    @property
    def entries_per_row(self) -> int:
        return self._waves.entries_per_row

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        Y = self._kernel.centred(X)
        squares = tf.reduce_sum(tf.matmul(Y, self._envelope) * Y, axis=-1)
        return tf.exp(-(math.pi**2) * squares) * self._waves(Y)


@prior_sample.register(HarmonizableComponent)
def prior_sample_harmonizable(kernel: HarmonizableComponent, draws: Draws) -> PriorSample:
    """Random shifts of the component's frequencies."""
    component = kernel.tensors()
    root = as_array(component.real).astype(complex)  # W, [Q, R]
    if component.imaginary is not None:
        root += 1j * as_array(component.imaginary)
    S, F = draws.shape
    weights = draws.weights(2, S, F, root.shape[1]) * math.sqrt(2 / F)
    amplitudes = (weights[0] - 1j * weights[1]) @ root.T / 2  # [S, F, Q]
    phases = np.exp(2j * np.pi * draws.rng.uniform(size=(S, F, 1)))
    amplitudes = np.concatenate([amplitudes * phases, amplitudes / phases], axis=1)
    excess = np.linalg.cholesky(as_array(component.excess))
    shifts = draws.rng.standard_normal((S, F, 1, kernel.dimension)) @ excess.T
    frequencies = as_array(component.frequencies)
    frequencies = np.concatenate([frequencies + shifts, frequencies - shifts], axis=1)
    return WindowedWaves(
        kernel, frequencies.reshape(S, -1, kernel.dimension), amplitudes.reshape(S, -1)
    )


@project.register(FourierFeatures, HarmonizableComponent, WindowedWaves)
def project_fourier(
    inducing_variable: FourierFeatures, kernel: HarmonizableComponent, sample: WindowedWaves
) -> tf.Tensor:
    """The transform of the window is a normal density of covariance ``S / 2``."""
    w = inducing_variable.validate_kernel(kernel)
    scales = np.sqrt(as_array(fourier_variances(kernel.tensors(), w)))
    whiten = np.linalg.inv(np.linalg.cholesky(sample.envelope / 2))
    height = np.linalg.det(whiten) / (2 * np.pi) ** (kernel.dimension / 2)
    xi = sample.frequencies @ whiten.T
    real, imaginary = [], []
    for frequency in as_array(w) @ whiten.T:
        same = height * np.exp(-np.sum(np.square(frequency - xi), axis=-1) / 2)
        opposite = height * np.exp(-np.sum(np.square(frequency + xi), axis=-1) / 2)
        real.append(np.sum(sample.amplitudes.real * (same + opposite), axis=1) / 2)
        imaginary.append(np.sum(sample.amplitudes.imag * (same - opposite), axis=1) / 2)
    rows = np.stack([*real, *imaginary]) / scales[:, None]  # [2 m, S]
    return tf.transpose(kept_rows(inducing_variable, constant(rows)))
