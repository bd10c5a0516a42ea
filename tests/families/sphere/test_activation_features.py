"""ActivationFeatures: what they are made of, what they refuse, and that only directions matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.config import default_jitter
from gpflow.covariances import Kuf, Kuu

from interdomain.inducing_variables import ActivationFeatures
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalMatern52,
    ZonalKernel,
)
from interdomain.sphere import Softplus
from tests.conformance.helpers import assert_close, assert_refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2))
Z = RNG.normal(size=(5, 3))
ACTIVATIONS: dict[str, Any] = {
    "relu": "relu",
    "softplus": Softplus(3.0),
    "gelu": "gelu",
    "erf": "erf",
    "function": tf.exp,
}


pytestmark = pytest.mark.usefixtures("no_jitter")


def kernel() -> SphericalMatern52:
    return SphericalMatern52(variance=1.3, weight_variances=[0.6, 1.7], bias_variance=0.8)


def features(name: str = "relu", directions: Any = Z, max_degree: int = 6) -> Any:
    return ActivationFeatures(directions, ACTIVATIONS[name], max_degree)


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
    """Those of the activation, of the kernel, and up to both limits."""
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
    again = ActivationFeatures.from_data(arc, data, 3, "relu", 4, seed=5)
    np.testing.assert_array_equal(units.Z, again.Z)


def test_random() -> None:
    """Uniform: the mean of the directions is zero, and that of z z^T is I / d."""
    units = ActivationFeatures.random(2, 4000, "relu", 100, seed=3)
    directions = units.directions.numpy()
    assert units.dimension == 3
    standard_error = 1 / np.sqrt(3 * 4000)
    np.testing.assert_allclose(directions.mean(axis=0), 0, atol=4 * standard_error)
    np.testing.assert_allclose(directions.T @ directions / 4000, np.eye(3) / 3, atol=0.02)
    same, other = (ActivationFeatures.random(2, 5, "relu", 6, seed=seed) for seed in (3, 4))
    np.testing.assert_allclose(same.Z[:5], directions[:5], rtol=1e-14)
    assert not np.any(np.isclose(same.Z, other.Z))


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: features(directions=Z[:, :1]), "dimension must be 2 or more, found 1"),
    (
        lambda: features(directions=gpflow.Parameter(Z * [[1], [1], [0], [1], [1]])),
        "Z must have no rows of zeros, which have no direction, found 1; pass Z without them",
    ),
    (lambda: features(max_degree=-1), "max_degree must be .*, found -1"),
    (
        lambda: features("relu", max_degree=1),
        r"Z has 5 rows, but the degrees up to max_degree = 1 that the activation has, \[0, 1\], "
        "have 4 harmonics in dimension 3, .* pass at most 4 rows, or a higher max_degree",
    ),
    (
        lambda: ActivationFeatures.from_data(gpflow.kernels.RBF(), X, 3, "relu", 2),
        "kernel must be a ZonalKernel, found SquaredExponential; .*ArcCosine",
    ),
]


def test_errors() -> None:
    assert_refused(ERRORS)


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
