"""Fourier features of an interval for sums of sinusoids: inner products in the RKHS of a Matern
kernel, in closed form (:mod:`interdomain.covariances.interval_fourier_features` has the norm)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from gpflow.kernels import Matern12, Matern32, Matern52, Stationary

from ..covariances.interval_fourier_features import (
    INVERSE_ROOTS,
    derivatives_at_ends,
    matern_order,
    noise_density,
    rate_of,
)
from ..inducing_variables import IntervalFourierFeatures
from .draws import as_array, as_float, constant
from .priors import project
from .waves import Waves

ComplexArray: TypeAlias = np.ndarray[Any, np.dtype[np.complex128]]


@project.register(IntervalFourierFeatures, (Matern12, Matern32, Matern52), Waves)
def project_interval(
    inducing_variable: IntervalFourierFeatures, kernel: Stationary, sample: Waves
) -> tf.Tensor:
    """For ``f = Re sum_j C_j exp(i w_j x)``, with x from the interval's beginning on and lengths in
    units of one over the kernel's rate: the integral of ``Lf Lh``, and what value and derivatives
    at the beginning add to it."""
    inducing_variable.validate_kernel(kernel)
    order, rate = matern_order(kernel), as_float(rate_of(kernel))
    angular = sample.frequencies[..., 0]
    start = np.exp(1j * angular * inducing_variable.lower)
    amplitudes = (sample.cosines - 1j * sample.sines) * start  # [S, F]
    nu, length = angular / rate, inducing_variable.length * rate
    filtered = amplitudes * (1 + 1j * nu) ** (order + 1)

    def integral(w: float) -> ComplexArray:
        """Of ``Lf L exp(i w x)``, without the density of the noise, complex ``[S]``."""
        half = (nu + w) * length / 2
        integrals = length * np.exp(1j * half) * np.sinc(half / np.pi)
        of_all: ComplexArray = np.sum(filtered * integrals, axis=1)
        return of_all * (1 + 1j * w) ** (order + 1)

    def conjugate(w: float) -> ComplexArray:
        """As the integral, of ``conj(Lf)``: f itself is the mean of both."""
        mirrored: ComplexArray = np.conj(integral(-w))
        return mirrored

    cosines, sines = [], []
    for w in inducing_variable.angular_frequencies / rate:
        # Re sum C exp(i nu x) = (sum C exp(i nu x) + conj) / 2, and so for the features.
        plus = (integral(w) + conjugate(w)) / 2
        cosines.append(np.real(plus))
        sines.append(np.imag(plus))
    found = np.stack([np.real(integral(0.0)), *cosines, *sines], axis=1)  # [S, M]
    found /= as_float(kernel.variance) * noise_density(order)
    powers = np.stack([(1j * nu) ** n for n in range(order + 1)], axis=-1)
    values = np.real(np.einsum("sf,sfn->sn", amplitudes, powers))  # of f, at the beginning
    root = INVERSE_ROOTS[order]
    ends = as_array(derivatives_at_ends(inducing_variable, order, rate_of(kernel)))
    found += values @ root @ (ends @ root).T / as_float(kernel.variance)
    return constant(found)
