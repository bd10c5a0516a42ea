"""Kvu for every pair of inducing variables, by coordinates in the basis of harmonics."""

from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.linalg
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from interdomain.covariances import Kvu
from interdomain.inducing_variables import (
    ActivationFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import SphericalMatern52
from tests.conformance.helpers import (
    assert_close,
    assert_refused,
    assert_same_objective,
    value_and_gradients,
)

from .cases import KINDS, SETTINGS, activations, by_coordinates, relu


@pytest.mark.parametrize(
    ("orthogonal", "base", "name"),
    [
        ("harmonics", "points", "circle"),
        ("activations", "points", "matern"),
        ("harmonics", "harmonics", "matern"),
        ("harmonics", "activations", "arc-cosine"),
        ("activations", "activations", "matern"),
    ],
)
def test_values_and_gradients(name: str, orthogonal: str, base: str) -> None:
    setting = SETTINGS[name]
    kernel, dimension = setting.kernel(), setting.input_dim + 1
    v, u = KINDS[orthogonal](setting, 1), KINDS[base](setting, 0)
    expected = by_coordinates(kernel, v, u, dimension)
    assert np.max(np.abs(expected)) > 1e-2
    assert_close(Kvu(v[0], u[0], kernel), expected, rtol=1e-12)
    assert_close(Kvu(u[0], v[0], kernel), tf.transpose(expected), rtol=1e-12)

    weights = np.random.default_rng(1).normal(size=expected.shape)
    variables = (
        *depends_on(kernel, orthogonal, base),
        *v[0].trainable_variables,
        *u[0].trainable_variables,
    )
    assert_same_objective(
        lambda: tf.reduce_sum(weights * Kvu(v[0], u[0], kernel)),
        lambda: tf.reduce_sum(weights * by_coordinates(kernel, v, u, dimension)),
        variables,
        rtol=1e-10,
    )


def depends_on(kernel: Any, *kinds: str) -> list[tf.Variable]:
    """The map to the sphere matters to points; the spectrum, unless it cancels: that of points and
    anything else does (v = f, and u = <f, phi>)."""
    on_sphere = [kernel.weight_variances, kernel.bias_variance]
    spectrum = [kernel.variance, *([kernel.lengthscale] if hasattr(kernel, "lengthscale") else [])]
    num_points = kinds.count("points")
    parameters = (on_sphere if num_points else []) + (spectrum if num_points != 1 else [])
    return [parameter.unconstrained_variable for parameter in parameters]


@pytest.mark.parametrize("name", ["matern", "circle"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_parallel_units(name: str, sign: float) -> None:
    """w = z and w = -z, where t is 1 or -1: also with another activation, and the gradient."""
    setting = SETTINGS[name]
    kernel, dimension = setting.kernel(), setting.input_dim + 1
    u, relu_units = activations(setting, 0), activations(setting, 1)
    units = ActivationFeatures(sign * u[0].Z.numpy(), relu_units[0].activation, 6)
    v = (units, relu)
    weights = np.random.default_rng(2).normal(size=(3, 3))
    assert_same_objective(
        lambda: tf.reduce_sum(weights * Kvu(v[0], u[0], kernel)),
        lambda: tf.reduce_sum(weights * by_coordinates(kernel, v, u, dimension)),
        (*units.trainable_variables, *u[0].trainable_variables),
        rtol=1e-10,
    )


def test_activations_without_a_common_degree() -> None:
    """An odd and an even function: independent, and no gradient goes astray."""
    setting = SETTINGS["matern"]
    kernel = setting.kernel()
    odd = ActivationFeatures(activations(setting, 0)[0].Z, tf.sin, 3)
    even = ActivationFeatures(activations(setting, 1)[0].Z, tf.cos, 6)
    value, gradients = value_and_gradients(
        lambda: tf.reduce_sum(Kvu(odd, even, kernel) ** 2), odd.trainable_variables
    )
    np.testing.assert_array_equal(Kvu(odd, even, kernel), np.zeros((3, 4)))
    assert value == 0 and all(g is None or not np.any(g) for g in gradients)


def test_sums() -> None:
    """Block-diagonal; but all summands see points, next to which nothing is."""
    setting, Z = SETTINGS["matern"], np.random.default_rng(0).normal(size=(5, 2))
    kernel = gpflow.kernels.Sum([setting.kernel(), gpflow.kernels.Matern32()])
    v = [activations(setting, 1)[0], InducingPoints(Z[:2])]
    u = [KINDS["harmonics"](setting, 0)[0], InducingPoints(Z)]
    blocks = (Kvu(*both, k).numpy() for *both, k in zip(v, u, kernel.kernels, strict=True))
    base, expected = SumInducingVariables(u), scipy.linalg.block_diag(*blocks)
    np.testing.assert_array_equal(Kvu(SumInducingVariables(v), base, kernel), expected)
    next_to_points = gpflow.covariances.Kuf(base, kernel, Z)
    assert_close(Kvu(InducingPoints(Z), base, kernel), tf.transpose(next_to_points), rtol=1e-15)
    assert_close(Kvu(base, InducingPoints(Z), kernel), next_to_points, rtol=1e-15)


def test_errors() -> None:
    zonal, units = SphericalMatern52(), ActivationFeatures.random(2, 3, "relu", 4)
    harmonics, wide = SphericalHarmonics(3, [0, 1]), SphericalHarmonics(4, [0, 1])
    assert_refused(
        (lambda arguments=arguments: Kvu(*arguments), message)
        for *arguments, message in (
            (units, harmonics, gpflow.kernels.RBF(), "between ActivationFeatures and Spherical"),
            (SumInducingVariables([units]), units, zonal + zonal, "SumInducingVariables and Ac"),
            (InducingPoints(np.zeros((2, 3))), units, zonal, "kernel sees 3 columns of Xnew"),
            (harmonics, wide, zonal, "iv_v has dimension 3, but iv_u has 4"),
        )
    )
