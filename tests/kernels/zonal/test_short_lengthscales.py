"""Kernels on the sphere are valid at every lengthscale, and an optimizer finds nothing else."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.config import Config, as_context

from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import (
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
)
from tests.sphere.test_laplace_beltrami import wrapped_matern

KERNELS = [SphericalMatern12, SphericalMatern32, SphericalMatern52, SphericalSquaredExponential]


@pytest.mark.parametrize(("num_columns", "dtype"), [(2, np.float64), (8, np.float32)])
def test_positive_semi_definite(num_columns: int, dtype: type) -> None:
    """With points that coincide, and others that nearly do."""
    rng = np.random.default_rng(num_columns)
    X = rng.normal(size=(40, num_columns))
    X = np.concatenate([X, X[:3], X[:3], X[:4] * (1 + 3e-7)]).astype(dtype)
    weights = rng.normal(size=(len(X), len(X)))
    with as_context(Config(float=dtype)):
        for kernel_class in KERNELS if dtype is np.float64 else KERNELS[::3]:
            for lengthscale in (1e-35, 1e-4, 0.03):
                kernel = kernel_class(lengthscale=lengthscale, radial_power=0.0)
                with tf.GradientTape() as tape:
                    K = kernel(X)
                    total = tf.reduce_sum(K * tf.constant(weights, K.dtype))
                gradients = tape.gradient(total, kernel.trainable_variables)
                case = (kernel_class.__name__, lengthscale)
                assert all(np.all(np.isfinite(gradient)) for gradient in gradients), case
                smallest = np.linalg.eigvalsh(np.asarray(K, float))[0]
                assert smallest > (-1e-9 if dtype is np.float64 else -5e-6), (*case, smallest)
                np.testing.assert_allclose(tf.linalg.diag_part(K), 1, rtol=1e-6)
                across = kernel(X, X.copy()).numpy()
                np.testing.assert_allclose(across, K, rtol=0, atol=5e-6)


@pytest.mark.parametrize("kernel_class", KERNELS)
def test_harmonics_explain_no_more_than_there_is(kernel_class: type) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    Z = SphericalHarmonics(degrees=range(5), dimension=3)
    for lengthscale in (1e-9, 0.03, 0.3, 3.0):
        kernel = kernel_class(lengthscale=lengthscale)
        Kuf = gpflow.covariances.Kuf(Z, kernel, X).numpy()
        Kuu = np.diag(gpflow.covariances.Kuu(Z, kernel).numpy())
        rest = kernel(X).numpy() - Kuf.T @ (Kuf / Kuu[:, None])
        assert np.linalg.eigvalsh(rest)[0] > -1e-9, lengthscale


def test_an_optimizer_ends_at_a_valid_kernel() -> None:
    """Noise, from which the best lengthscale is short. The likelihood at the end is that of the
    kernel wrapped around the circle."""
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-1, 1, (20, 1)), rng.normal(size=(20, 1))
    model = gpflow.models.GPR((X, Y), SphericalMatern32(lengthscale=0.05))
    gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, compile=False, options={"maxiter": 20}
    )
    kernel = model.kernel
    scaled, bias = np.sqrt(kernel.weight_variances) * X[:, 0], np.sqrt(kernel.bias_variance)
    angles, radii = np.arctan2(scaled, bias), np.hypot(scaled, bias)
    values = wrapped_matern(
        1.5, kernel.lengthscale.numpy(), (angles[:, None] - angles).ravel()
    ).reshape(20, 20)
    K = kernel.variance.numpy() * radii[:, None] * radii * values
    np.testing.assert_allclose(kernel(X), K, rtol=0, atol=1e-9 * np.max(K))
    root = np.linalg.cholesky(K + model.likelihood.variance.numpy() * np.eye(20))
    fit = np.sum(np.linalg.solve(root, Y) ** 2)
    expected = -0.5 * fit - np.sum(np.log(np.diag(root))) - 10 * np.log(2 * np.pi)
    np.testing.assert_allclose(model.log_marginal_likelihood(), expected, rtol=1e-7)
