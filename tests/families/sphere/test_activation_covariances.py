"""Kuf and Kuu of activation features, by coordinates in the basis of harmonics."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import ActivationFeatures
from interdomain.kernels import SphericalMatern52
from tests.conformance.helpers import assert_close, assert_same_objective, value_and_gradients
from tests.families.sphere.mathematics.references import Mpf, legendre_in, mp, multiplicity

from .cases import SETTINGS, Function, activations, by_coordinates, inputs, relu, swish


@pytest.mark.parametrize(
    ("function", "name", "max_degree"),
    [
        (swish, "matern", 4),
        (relu, "arc-cosine", 6),
        (swish, "circle", 6),
    ],
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
