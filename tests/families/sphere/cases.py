"""Kernels on the sphere, inducing variables of each kind for them, and the oracle: coordinates in
the basis of harmonics.

What is of degree L at most is a finite vector. With the orthonormal harmonics Y_lj, every inducing
variable is ``u = <f, phi>`` for a function ``phi = r^p sum_lj phi_lj Y_lj`` (points for
``k(x, .)``), and ``<phi, psi> = sum_lj phi_lj psi_lj / (variance lambda_l)``. Neither zonal
functions nor recurrences are needed for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from mpmath import mp

from interdomain.families.sphere.mathematics.harmonics import spherical_harmonics
from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    SphericalMatern52,
    SphericalSquaredExponential,
    ZonalKernel,
)
from interdomain.sphere import num_harmonics
from tests.families.sphere.mathematics.references import (
    DIGITS,
    Mpf,
    cosine_and_sine,
    smooth_funk_hecke,
)

Function = Callable[[Mpf], Mpf]
LAST_DEGREE = 6
"""L; no features here have higher ones."""


@cache
def coefficient(function: Function, dimension: int, degree: int) -> float:
    """The Funk-Hecke coefficient by mpmath's quadrature."""
    with mp.workdps(DIGITS):
        angles = (mp.zero, mp.pi / 2, mp.pi)
        eigenvalue = smooth_funk_hecke(
            lambda theta: function(cosine_and_sine(theta)[0]), dimension, degree, angles
        )
        return float(eigenvalue)


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


def relu(t: Mpf) -> Mpf:
    return max(t, mp.zero)


def swish(t: Mpf) -> Mpf:
    return t / (1 + mp.exp(-4 * t))


ACTIVATIONS: dict[Function, Any] = {relu: "relu", swish: lambda t: t * tf.sigmoid(4 * t)}
"""The activation that is integrated, and the argument that the library gets."""


@dataclass(frozen=True)
class Setting:
    """A kernel, and sets of harmonics for a base and an orthogonal inducing variable."""

    kernel: Callable[[], ZonalKernel]
    input_dim: int
    degrees: tuple[tuple[int, ...], tuple[int, ...]]


SETTINGS: dict[str, Setting] = {
    "matern": Setting(
        lambda: SphericalMatern52(variance=1.3, weight_variances=[0.6, 1.7], bias_variance=0.8),
        2,
        ((0, 1, 3), (1, 2, 3, 5)),
    ),
    "arc-cosine": Setting(
        lambda: ArcCosine(1, variance=0.7, weight_variances=[1.2, 0.5]), 2, ((0, 1, 4), (1, 2))
    ),
    "circle": Setting(
        lambda: SphericalSquaredExponential(
            variance=1.6, lengthscale=0.4, weight_variances=0.9, radial_power=0.5
        ),
        1,
        ((0, 2, 6), (1, 2, 3)),
    ),
}


def inputs(setting: Setting, num_rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num_rows, setting.input_dim))


def points(setting: Setting, which: int) -> tuple[InducingVariables, None]:
    return InducingPoints(inputs(setting, 4 + which, seed=which)), None


def harmonics(setting: Setting, which: int) -> tuple[InducingVariables, None]:
    return SphericalHarmonics(setting.input_dim + 1, setting.degrees[which]), None


def activations(
    setting: Setting, which: int, function: Function | None = None, max_degree: int | None = None
) -> tuple[ActivationFeatures, Function]:
    """Activation features; the features of the base end at another degree than the others."""
    function = function or (swish, relu)[which]
    Z = np.random.default_rng(20 + which).normal(size=(3 + which, setting.input_dim + 1))
    max_degree = (3, 6)[which] if max_degree is None else max_degree
    return ActivationFeatures(Z, ACTIVATIONS[function], max_degree), function


KINDS = {"points": points, "harmonics": harmonics, "activations": activations}


def by_coordinates(
    kernel: ZonalKernel,
    first: tuple[InducingVariables, Function | None],
    second: tuple[InducingVariables, Function | None],
    dimension: int,
) -> tf.Tensor:
    """``<psi_k, phi_m>`` of the two; a harmonic that the kernel lacks is in neither."""
    rows, columns = (coordinates(pair[0], kernel, pair[1]) for pair in (first, second))
    diagonal = weights(kernel, dimension)
    inverse = tf.where(diagonal > 0, 1 / tf.where(diagonal > 0, diagonal, 1.0), 0.0)
    return tf.matmul(rows * inverse, columns, transpose_b=True)
