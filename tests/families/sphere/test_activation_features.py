"""ActivationFeatures: what they are made of, what they refuse, and that only directions matter."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.config import default_jitter
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import ActivationFeatures
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalMatern52,
    ZonalKernel,
)
from tests.conformance.helpers import (
    assert_close,
    assert_refused,
    assert_same_objective,
    value_and_gradients,
)
from tests.families.sphere.mathematics.references import Mpf, legendre_in, mp, multiplicity

from .cases import SETTINGS, Function, activations, by_coordinates, inputs, relu, swish

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2))
Z = RNG.normal(size=(5, 3))
kernel = SETTINGS["matern"].kernel
pytestmark = pytest.mark.usefixtures("no_jitter")


def features(name: str = "relu", directions: Any = Z, max_degree: int = 6) -> Any:
    return ActivationFeatures(directions, name, max_degree)


def test_only_directions_matter() -> None:
    """At the start lengths are set to one; later, a change of them changes nothing."""
    units, scales = features(), np.array([[0.1], [2.0], [1.0], [30.0], [0.7]])
    np.testing.assert_allclose(np.linalg.norm(units.Z, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(units.directions, Z / np.linalg.norm(Z, axis=1, keepdims=True))
    before = Kuu(units, kernel()), Kuf(units, kernel(), X)
    assert_close(features(directions=scales * Z).Z, units.Z, rtol=1e-15)
    units.Z.assign(scales * units.Z)
    assert_close((Kuu(units, kernel()), Kuf(units, kernel(), X)), before, rtol=1e-13)


def test_degrees() -> None:
    """The degrees of the activation, of the kernel, and up to both limits."""
    assert features("relu").degrees(kernel()) == (0, 1, 2, 4, 6)
    assert features("erf", max_degree=5).degrees(ArcCosine(2)) == (1, 3, 5)
    assert features("erf", Z[:3], 5).degrees(ArcCosine(1)) == (1,)
    assert features("relu", Z[:4]).degrees(ArcCosine(0)) == (0, 1)


def test_from_data() -> None:
    """Where k-means finds the data on the sphere: here in three far directions."""
    arc = ArcCosine(weight_variances=[4.0, 0.25], bias_variance=2.0, active_dims=[2, 0])
    centres = np.array([[8.0, 9.0, 0.0], [-8.0, 9.0, 3.0], [0.0, 9.0, -3.0]])
    data = np.repeat(centres, 10, axis=0) + 1e-3 * RNG.normal(size=(30, 3))
    units = ActivationFeatures.from_data(arc, data, 3, "relu", 4, seed=5)
    lifted = np.stack([2 * centres[:, 2], 0.5 * centres[:, 0], np.full(3, np.sqrt(2))], axis=1)
    expected = lifted / np.linalg.norm(lifted, axis=1, keepdims=True)
    cosines = units.directions.numpy() @ expected.T
    np.testing.assert_allclose(np.sort(cosines, axis=0)[-1], 1.0, atol=1e-5)


def test_random() -> None:
    """Uniform: the mean of the directions is zero, and that of z z^T is I / d."""
    units = ActivationFeatures.random(2, 4000, "relu", 100, seed=3)
    directions = units.directions.numpy()
    assert units.dimension == 3
    standard_error = 1 / np.sqrt(3 * 4000)
    np.testing.assert_allclose(directions.mean(axis=0), 0, atol=4 * standard_error)
    np.testing.assert_allclose(directions.T @ directions / 4000, np.eye(3) / 3, atol=0.02)


# Kuf and Kuu, by coordinates in the basis of harmonics.


@pytest.mark.parametrize(
    ("function", "name", "max_degree"),
    [(swish, "matern", 4), (relu, "arc-cosine", 6), (swish, "circle", 6)],
)
def test_values_and_gradients(function: Function, name: str, max_degree: int) -> None:
    """With respect to the kernel's parameters and Z."""
    setting = SETTINGS[name]
    kernel, X = setting.kernel(), InducingPoints(inputs(setting, 6, seed=9))
    units = activations(setting, 0, function, max_degree)
    kernel_and_Z = (*kernel.trainable_variables, *units[0].trainable_variables)
    weights = np.random.default_rng(1).normal(size=(3, 9))
    dimension = setting.input_dim + 1

    def covariances() -> tf.Tensor:
        return tf.concat([Kuf(units[0], kernel, X.Z), Kuu(units[0], kernel)], axis=1)

    def expected() -> tf.Tensor:
        return tf.concat(
            [by_coordinates(kernel, units, other, dimension) for other in ((X, None), units)],
            axis=1,
        )

    assert_close(covariances(), expected(), rtol=1e-12)
    assert_same_objective(
        lambda: tf.reduce_sum(weights * covariances()),
        lambda: tf.reduce_sum(weights * expected()),
        kernel_and_Z,
        rtol=1e-10,
    )


def in_extended_precision(z: np.ndarray, w: np.ndarray, levels: list[Mpf], d: int) -> float:
    with mp.workdps(40):
        t = mp.fsum(mp.mpf(a) * mp.mpf(b) for a, b in zip(z, w, strict=True))
        t /= mp.sqrt(mp.fsum(mp.mpf(a) ** 2 for a in z) * mp.fsum(mp.mpf(b) ** 2 for b in w))
        return float(mp.fsum(v * legendre_in(d, degree, t) for degree, v in enumerate(levels)))


def test_high_dimension() -> None:
    """d = 20 up to degree 30: the eigenvalues fall to 1e-16, their harmonics are 1e13 in number."""
    kernel = SphericalMatern52(lengthscale=0.4)
    rng = np.random.default_rng(3)
    Z, X = rng.normal(size=(2, 20)), rng.normal(size=(2, 19))
    units = ActivationFeatures(Z, "relu", 30)
    degrees = units.degrees(kernel)
    values = dict(zip(degrees, units.activation.coefficients(20, degrees), strict=True))
    eigenvalues = dict(zip(degrees, kernel.eigenvalues(20, degrees).numpy(), strict=True))
    a = [mp.mpf(values.get(n, 0.0)) * multiplicity(20, n) for n in range(31)]
    b = [
        a[n] ** 2 / multiplicity(20, n) / mp.mpf(eigenvalues[n]) if n in values else mp.zero
        for n in range(31)
    ]
    lifted = np.concatenate([X, np.ones((2, 1))], axis=1)
    expected = [[in_extended_precision(z, x, a, 20) for x in lifted] for z in Z]
    radius = np.linalg.norm(lifted, axis=1)
    assert_close(Kuf(units, kernel, X), expected * radius, rtol=1e-12)
    expected = [[in_extended_precision(z, w, b, 20) for w in Z] for z in Z]
    assert_close(Kuu(units, kernel), np.array(expected), rtol=1e-12)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_where_x_and_z_are_parallel(name: str, sign: float) -> None:
    """t = 1 or -1: every P_l is 1 or (-1)^l, and turning z changes nothing to first order."""
    setting = SETTINGS[name]
    kernel, X = setting.kernel(), inputs(setting, 3, seed=4)
    radius, unit = kernel.to_sphere(X)
    units = ActivationFeatures(sign * unit, "relu", 8)
    degrees = np.array(units.degrees(kernel))
    values = units.activation.coefficients(units.dimension, degrees)
    counts = np.array([multiplicity(units.dimension, int(degree)) for degree in degrees])
    expected = np.sum(values * counts * sign**degrees) * radius[:, 0] ** kernel.radial_power

    kuf = tf.linalg.diag_part(Kuf(units, kernel, X))
    np.testing.assert_allclose(kuf, expected, rtol=1e-13)
    _, (gradient,) = value_and_gradients(
        lambda: tf.reduce_sum(tf.linalg.diag_part(Kuf(units, kernel, X))),
        (units.Z.unconstrained_variable,),
    )
    # (I - z z^T) z, with rounding, times the slope at t = 1.
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


def test_a_whole_network_in_the_limit() -> None:
    """Kuf tends to the hidden unit's output, r^p sigma(z^T x / r)."""
    kernel, X = SphericalMatern52(), np.random.default_rng(0).normal(size=(5, 2))
    Z = np.random.default_rng(1).normal(size=(4, 3))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    lifted = np.concatenate([X, np.ones((5, 1))], axis=1)
    smooth = Kuf(ActivationFeatures(Z, tf.exp, 24), kernel, X)
    radius = np.linalg.norm(lifted, axis=1)
    expected = radius * np.exp(Z @ lifted.T / radius)
    assert_close(smooth, expected, rtol=1e-13)
    errors = [
        np.max(
            np.abs(
                Kuf(ActivationFeatures(Z, "relu", degree), kernel, X) - np.maximum(Z @ lifted.T, 0)
            )
        )
        for degree in (10, 40, 160)
    ]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.02


def test_errors() -> None:
    without, rbf = gpflow.Parameter(Z * [[1], [1], [0], [1], [1]]), gpflow.kernels.RBF()
    zeros = "Z must have no rows of zeros, which have no direction, found 1; pass Z without them"
    too_many = (
        r"Z has 5 rows, but the degrees up to max_degree = 1 that the activation has, \[0, 1\], "
        "have 4 harmonics in dimension 3, .* pass at most 4 rows, or a higher max_degree"
    )
    zonal = "kernel must be a ZonalKernel, found SquaredExponential; .*ArcCosine"
    assert_refused(
        [
            (
                lambda: features(directions=Z[:, :1]),
                "dimension must be an integer of 2 or more, found 1",
            ),
            (lambda: features(directions=without), zeros),
            (lambda: features(max_degree=-1), "max_degree must be .*, found -1"),
            (lambda: features("relu", max_degree=1), too_many),
            (lambda: ActivationFeatures.from_data(rbf, X, 3, "relu", 2), zonal),
        ]
    )


# Activation features never explain more than there is: no negative variance, whatever Z is.

KERNELS: list[tuple[Callable[[], ZonalKernel], Any, int, int, int]] = [
    (lambda: ArcCosine(0, bias_variance=0.4), "relu", 2, 3, 6),
    (lambda: ArcCosine(1, weight_variances=2.1), tf.exp, 5, 12, 6),
    (lambda: ArcCosine(2, weight_variances=0.4), "relu", 3, 6, 30),
    (lambda: SphericalMatern12(lengthscale=0.3), lambda t: abs(t - 0.3), 3, 30, 30),
    (lambda: SphericalMatern52(lengthscale=1.4, bias_variance=2.5), tf.exp, 9, 9, 1),
    (lambda: ChordalSquaredExponential(lengthscale=0.8), tf.exp, 20, 30, 30),
]
"""Each with an activation, a dimension, how many units, and up to which degree."""


# 30 points: rounding moves an eigenvalue of a matrix with trace <= 30 by some multiples of 30 eps,
# 7e-15 or 4e-6, and the solve with Kuu adds up to eps times its condition number, which the jitter,
# relative to Kuu, bounds by 30 / jitter: 7e-9 and 0.02. Both are very rarely approached.
@pytest.mark.parametrize(
    ("dtype", "jitter", "tolerance"), [(np.float64, 1e-6, 1e-10), (np.float32, 1e-4, 2e-3)]
)
def test_variances_are_not_negative(dtype: type, jitter: float, tolerance: float) -> None:
    """``Kff - Kfu (Kuu + jitter)^{-1} Kuf`` at random points, and some at the units' directions."""
    with gpflow.config.as_context(gpflow.config.Config(float=dtype, jitter=jitter)):
        for seed, (make, activation, dimension, count, degree) in enumerate(KERNELS):
            kernel, rng = make(), np.random.default_rng(seed)
            directions = rng.normal(size=(count, dimension))
            directions[:, -1] = np.abs(directions[:, -1]) + 0.1  # where data are
            units = ActivationFeatures(directions, activation, degree)
            ratio = np.sqrt(kernel.bias_variance / kernel.weight_variances)
            at_units = directions[:15, :-1] / directions[:15, -1:] * ratio
            X = np.concatenate([at_units, rng.normal(size=(15, dimension - 1))]).astype(dtype)
            root = tf.linalg.cholesky(Kuu(units, kernel, jitter=default_jitter()))
            whitened = tf.linalg.triangular_solve(root, Kuf(units, kernel, X))
            prior = kernel(X)
            deviations = np.sqrt(tf.linalg.diag_part(prior))
            residual = prior - tf.matmul(whitened, whitened, transpose_a=True)
            relative = residual.numpy() / np.multiply.outer(deviations, deviations)
            assert np.linalg.eigvalsh(relative).min() > -tolerance, seed
