"""The oracle for inducing variables on the sphere: coordinates in the basis of harmonics.

What is of degree L at most is a finite vector. With the orthonormal harmonics Y_lj, every inducing
variable is ``u = <f, phi>`` for a function ``phi = r^p sum_lj phi_lj Y_lj`` (points for
``k(x, .)``), and ``<phi, psi> = sum_lj phi_lj psi_lj / (variance lambda_l)``. Neither zonal
functions nor recurrences are needed for that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from scipy.integrate import quad
from scipy.special import beta

from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import ZonalKernel
from interdomain.sphere import num_harmonics, spherical_harmonics
from tests.sphere.references import monomial_coefficients

Function = Callable[[float], float]
LAST_DEGREE = 6
"""L; no features here have higher ones."""


@cache
def coefficient(function: Function, dimension: int, degree: int) -> float:
    """The Funk-Hecke coefficient by SciPy's adaptive quadrature, to 1e-14."""
    polynomial = np.polynomial.Polynomial(
        [float(c) for c in monomial_coefficients(dimension, degree)]
    )

    def integrand(theta: float) -> float:
        t = np.cos(theta)
        return function(t) * polynomial(t) * np.sin(theta) ** (dimension - 2)

    halves = [(0, np.pi / 2), (np.pi / 2, np.pi)]
    total = sum(quad(integrand, *half, epsabs=1e-14, epsrel=1e-13)[0] for half in halves)
    return total / beta(0.5, (dimension - 1) / 2)


def per_harmonic(levels: tf.Tensor, dimension: int) -> tf.Tensor:
    """Each degree's number once for each of its harmonics."""
    counts = [num_harmonics(dimension, degree) for degree in range(levels.shape[0])]
    return tf.repeat(levels, counts)


def weights(kernel: ZonalKernel, dimension: int) -> tf.Tensor:
    """``variance lambda_l`` of every harmonic, zero where the kernel lacks the degree."""
    degrees = kernel.nonzero_degrees(dimension, LAST_DEGREE)
    levels = tf.scatter_nd(
        [[degree] for degree in degrees],
        kernel.variance * kernel.eigenvalues(dimension, degrees),
        [LAST_DEGREE + 1],
    )
    return per_harmonic(levels, dimension)


def harmonic_rows(unit: tf.Tensor, max_degree: int) -> tf.Tensor:
    """``Y_lj`` at each unit vector, ``[N, all harmonics]``."""
    return tf.transpose(spherical_harmonics(unit, range(max_degree + 1)))


def coordinates(
    inducing_variable: InducingVariables, kernel: ZonalKernel, function: Function | None = None
) -> tf.Tensor:
    """phi_lj of each inducing variable, ``[M, all harmonics]``.

    :param function: What the activation of :class:`ActivationFeatures` computes, written again.
    """
    if isinstance(inducing_variable, InducingPoints):
        radius, unit = kernel.to_sphere(kernel.slice(tf.convert_to_tensor(inducing_variable.Z))[0])
        rows = radius**kernel.radial_power * harmonic_rows(unit, LAST_DEGREE)
        return rows * weights(kernel, unit.shape[-1])
    dimension = inducing_variable.dimension
    levels = np.arange(LAST_DEGREE + 1)
    degrees = per_harmonic(tf.constant(levels), dimension).numpy()
    if isinstance(inducing_variable, SphericalHarmonics):
        return tf.constant(np.eye(len(degrees))[np.isin(degrees, inducing_variable.degrees)])
    assert isinstance(inducing_variable, ActivationFeatures) and function is not None
    found = np.array([coefficient(function, dimension, int(degree)) for degree in levels])
    kept = (degrees <= inducing_variable.max_degree) & (weights(kernel, dimension).numpy() > 0)
    directions = inducing_variable.Z / tf.norm(inducing_variable.Z, axis=1, keepdims=True)
    return tf.constant(found[degrees] * kept) * harmonic_rows(directions, LAST_DEGREE)


def inner_products(first: tf.Tensor, second: tf.Tensor, diagonal: tf.Tensor) -> tf.Tensor:
    """``<psi_k, phi_m>``; a harmonic that the kernel lacks is in neither.

    :param diagonal: ``variance lambda_l``, from :func:`weights`.
    """
    inverse = tf.where(diagonal > 0, 1 / tf.where(diagonal > 0, diagonal, 1.0), 0.0)
    return tf.matmul(first * inverse, second, transpose_b=True)
