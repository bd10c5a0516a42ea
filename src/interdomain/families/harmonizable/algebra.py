"""The formulas of a harmonizable component, for given values of its parameters.

Let ``S`` be the precision of the window (envelope) and ``b`` that of the squared exponential
(excess), both in units of x. The paper's Sigma_2 is then ``b + S / 4``, and its kernel is

    exp(-pi^2 y^T S y) exp(-pi^2 y'^T S y') exp(-2 pi^2 t^T b t) Re phi(y)^T B conj(phi(y')),

where y and y' are inputs minus the centre, t is their difference, ``B = W W^H``, and
``phi_i(y) = exp(2 pi i frequency_i^T y)``. All computations use real numbers.

A product of Matern functions of the entries of t, of order p + 1/2, may replace the squared
exponential. ``order`` is then p, and S is diagonal or zero; otherwise ``order`` is None.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.utilities.ops import square_distance

from .gaussian_factors import log_normaliser, normal_densities, once_per_shape, turns
from .matern_factors import matern_densities


class ComponentTensors(NamedTuple):
    """The values of a component's parameters.

    ``frequencies`` are ``[Q, D]``. ``real`` and ``imaginary`` (None if B is real) are the parts of
    W ``[Q, Q]``. ``envelope`` and ``excess`` are S and b, ``[D, D]``.
    """

    frequencies: tf.Tensor
    real: tf.Tensor
    imaginary: tf.Tensor | None
    envelope: tf.Tensor
    excess: tf.Tensor

    @property
    def amplitudes(self) -> tuple[tf.Tensor, tf.Tensor | None]:
        """The real and the imaginary part of B ``[Q, Q]``; the imaginary part may be None."""
        square = tf.matmul(self.real, self.real, transpose_b=True)
        if self.imaginary is None:
            return square, None
        square += tf.matmul(self.imaginary, self.imaginary, transpose_b=True)
        cross = tf.matmul(self.imaginary, self.real, transpose_b=True)
        return square, cross - tf.transpose(cross)


class Densities(NamedTuple):
    """The spectral densities S(w, v) and S(w, -v) of the real process about its centre: real and
    imaginary parts ``[n, k]``. The imaginary parts are None if B is real."""

    same: tf.Tensor
    opposite: tf.Tensor
    same_imaginary: tf.Tensor | None
    opposite_imaginary: tf.Tensor | None


@once_per_shape
def windowed_waves(component: ComponentTensors, Y: tf.Tensor) -> tf.Tensor:
    """The window times the real and imaginary parts of ``W^T phi(y)``, ``[..., N, 2 Q]``. The inner
    product of two rows is the factor of the squared exponential."""
    scaled = tf.matmul(Y, component.envelope)
    window = tf.exp(-(math.pi**2) * tf.reduce_sum(scaled * Y, axis=-1, keepdims=True))
    cosine, sine = turns(Y, component.frequencies)
    real, imaginary = tf.matmul(cosine, component.real), tf.matmul(sine, component.real)
    if component.imaginary is not None:
        real -= tf.matmul(sine, component.imaginary)
        imaginary += tf.matmul(cosine, component.imaginary)
    return window * tf.concat([real, imaginary], axis=-1)


@once_per_shape
def densities(
    component: ComponentTensors, w: tf.Tensor, v: tf.Tensor, order: int | None = None
) -> Densities:
    """The generalized spectral density at (w, v) and (w, -v), for all pairs of rows.

    The density of the complex kernel is ``sum_ij B_ij N((p + q) / 2 | 0, b + S/4) N(p - q | 0, S)``
    for ``p = w - frequency_i`` and ``q = v - frequency_j`` (eq. 16). The density of the real part
    is the mean of this density at (w, v) and its conjugate at (-w, -v). All four signs are computed
    together. The two normal densities are computed as one, from distances of vectors with 2D
    entries. For Matern functions, :func:`matern_densities` replaces the first.
    """
    size, dimension = component.frequencies.shape

    def signed(frequencies: tf.Tensor) -> tf.Tensor:
        both_signs = tf.concat([frequencies, -frequencies], axis=0)[:, None]
        return tf.reshape(both_signs - component.frequencies, [-1, dimension])

    if order is not None:
        p, q = signed(w), signed(v)
        both = matern_densities((p[:, None] + q) / 2, component.excess, component.envelope, order)
        return _amplitude_sums(component, both * normal_densities(p, q, component.envelope))
    spread = component.excess + component.envelope / 4
    roots = tf.linalg.cholesky(tf.stack([spread, component.envelope]))
    identities = tf.eye(dimension, batch_shape=[2], dtype=roots.dtype)
    inverse = tf.transpose(tf.linalg.triangular_solve(roots, identities), [2, 0, 1])

    def whitened(frequencies: tf.Tensor, sign: float) -> tf.Tensor:
        scaled = tf.tensordot(signed(frequencies), inverse, axes=1)
        return tf.concat([sign / 2 * scaled[:, 0], scaled[:, 1]], axis=1)

    logarithm = tf.reduce_sum(log_normaliser(roots))
    both = tf.exp(logarithm - square_distance(whitened(w, 1.0), whitened(v, -1.0)) / 2)
    return _amplitude_sums(component, both)


def _amplitude_sums(component: ComponentTensors, both: tf.Tensor) -> Densities:
    """The densities as sums over pairs of frequencies of ``both``, ``[2n Q, 2k Q]``, which has both
    signs of both inputs."""
    size = component.frequencies.shape[0]
    both = tf.reshape(both, [tf.shape(both)[0] // size, size, tf.shape(both)[1] // size, size])
    real, imaginary = component.amplitudes
    same, opposite = _means_of_signs(tf.einsum("nikj,ij->nk", both, real), 1.0)
    if imaginary is None:
        return Densities(same, opposite, None, None)
    sums = tf.einsum("nikj,ij->nk", both, imaginary)
    return Densities(same, opposite, *_means_of_signs(sums, -1.0))


def _means_of_signs(sums: tf.Tensor, sign: float) -> tuple[tf.Tensor, tf.Tensor]:
    """The means ``(f(w, v) + sign f(-w, -v)) / 2`` and ``(f(w, -v) + sign f(-w, v)) / 2``."""
    upper, lower = tf.split(sums, 2, axis=0)
    (same, mixed), (mixed_too, same_too) = (tf.split(part, 2, axis=1) for part in (upper, lower))
    return (same + sign * same_too) / 2, (mixed + sign * mixed_too) / 2


@once_per_shape
def fourier_covariance(component: ComponentTensors, w: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
    """The covariances ``[2m, N]`` of f with the real and the imaginary parts of its Fourier
    transform about the centre.

    Let ``a = b + S/2`` and ``T = a^-1 b``. The paper's eqs. 63 and 64, corrected, are a sum over
    the frequencies i of ``N(w - frequency_i | 0, a) exp(-2 pi i (w - frequency_i)^T T y)`` times a
    function of y: a product of matrices ``[m, Q]`` and ``[Q, N]``, times the phase
    ``exp(-2 pi i w^T T y)``. The real part of the kernel needs the mean over w and -w, which only
    adds and subtracts the densities.
    """
    spread = component.excess + component.envelope / 2
    shrunk = tf.linalg.matmul(Y, tf.linalg.solve(spread, component.excess), transpose_b=True)
    # The quadratic form y^T (a - b a^-1 b) y.
    decay = tf.linalg.matmul(Y, spread) * Y - tf.linalg.matmul(Y, component.excess) * shrunk
    window = tf.exp(-2 * math.pi**2 * tf.reduce_sum(decay, axis=-1)) / 2
    real, imaginary = _modulations(component, Y, shrunk)
    signed = tf.concat([w, -w], axis=0)
    plus, minus = tf.split(normal_densities(signed, component.frequencies, spread), 2, axis=0)
    even = tf.linalg.matmul(plus + minus, window * real)
    odd = tf.linalg.matmul(plus - minus, window * imaginary)
    cosine, sine = turns(w, shrunk)
    return tf.concat([cosine * even + sine * odd, cosine * odd - sine * even], axis=0)


@once_per_shape
def fourier_matrix(component: ComponentTensors, w: tf.Tensor) -> tf.Tensor:
    """The covariances ``[2m, 2m]`` of f's Fourier transform about the centre: real parts first,
    then imaginary parts.

    Let s and c be the densities at (w, v) and (w, -v). The covariance of real parts is
    ``Re(s + c) / 2``, and that of imaginary parts ``Re(s - c) / 2``. A real and an imaginary part
    have ``Im(c - s) / 2``; an imaginary and a real part have ``Im(s + c) / 2``.
    """
    s, c, s_imaginary, c_imaginary = densities(component, w, w)
    if s_imaginary is None or c_imaginary is None:
        s_imaginary = c_imaginary = tf.zeros_like(s)
    real = tf.concat([s + c, c_imaginary - s_imaginary], axis=1)
    imaginary = tf.concat([c_imaginary + s_imaginary, s - c], axis=1)
    matrix = tf.concat([real, imaginary], axis=0) / 2
    return (matrix + tf.linalg.matrix_transpose(matrix)) / 2


def turned(rows: tf.Tensor, w: tf.Tensor, centre: tf.Tensor) -> tf.Tensor:
    """The rows of a Fourier transform about zero, from its rows about a centre ``[D]``: real parts,
    then imaginary parts, ``[2m, n]``, are multiplied by ``exp(-2 pi i w^T centre)``."""
    cosine, sine = turns(w, centre[None])
    real, imaginary = tf.split(rows, 2)
    return tf.concat([cosine * real + sine * imaginary, cosine * imaginary - sine * real], axis=0)


def fourier_variances(matrix: tf.Tensor) -> tf.Tensor:
    """The diagonal of the covariances, at least as large as its rounding error. An imaginary part
    near w = 0 is the difference of two numbers that are as large as the real part."""
    diagonal = tf.linalg.diag_part(matrix)
    precision = np.finfo(diagonal.dtype.as_numpy_dtype)
    floor = precision.eps * tf.tile(tf.add_n(tf.split(diagonal, 2)), [2])
    return tf.maximum(diagonal, floor + precision.tiny)


def _modulations(
    component: ComponentTensors, Y: tf.Tensor, shrunk: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The real and the imaginary part, ``[Q, N]``, of ``exp(2 pi i frequency_i^T shrunk)
    sum_j B_ij exp(-2 pi i frequency_j^T y)``."""
    real, imaginary = component.amplitudes
    cosine, sine = turns(component.frequencies, Y)
    inner_real, inner_imaginary = tf.matmul(real, cosine), -tf.matmul(real, sine)
    if imaginary is not None:
        inner_real += tf.matmul(imaginary, sine)
        inner_imaginary += tf.matmul(imaginary, cosine)
    cosine, sine = turns(component.frequencies, shrunk)
    turned_real = cosine * inner_real - sine * inner_imaginary
    return turned_real, cosine * inner_imaginary + sine * inner_real


def wigner(component: ComponentTensors, Y: tf.Tensor, w: tf.Tensor, order: int | None) -> tf.Tensor:
    """The Wigner distribution ``[n, k]`` (eqs. 19 and 20, but with B_ij inside the real part)."""
    scaled = tf.matmul(Y, component.envelope)
    window = tf.exp(-2 * math.pi**2 * tf.reduce_sum(scaled * Y, axis=-1, keepdims=True))
    frequencies = component.frequencies
    means = (frequencies[:, None, :] + frequencies[None, :, :]) / 2
    means = tf.reshape(means, [-1, frequencies.shape[1]])
    both, envelope = tf.concat([w, -w], axis=0), component.envelope
    if order is None:
        density = normal_densities(both, means, component.excess + envelope / 4)
    else:
        density = matern_densities(both[:, None] - means, component.excess, envelope, order)
    density = tf.add_n(tf.split(density, 2, axis=0)) / 2
    real, imaginary = component.amplitudes
    cosine, sine = turns(Y, frequencies)
    # The cosine (and below the sine) of the difference of two angles.
    power = real * (cosine[:, :, None] * cosine[:, None] + sine[:, :, None] * sine[:, None])
    if imaginary is not None:
        mixed = sine[:, :, None] * cosine[:, None]
        power -= imaginary * (mixed - tf.linalg.matrix_transpose(mixed))
    power = tf.reshape(power, [-1, means.shape[0]])
    return window * tf.matmul(power, density, transpose_b=True)
