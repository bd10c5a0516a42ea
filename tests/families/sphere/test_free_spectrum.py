"""Zonal kernels with free eigenvalues: what they begin as, and what training may make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    FreeSpectrum,
    SphericalMatern12,
    SphericalMatern52,
    ZonalKernel,
)
from interdomain.models import StructuredSGPR
from interdomain.sphere import num_harmonics
from tests.conformance.helpers import assert_refused
from tests.conformance.kernel_cases import inputs

SCALES = {"weight_variances": [0.6, 1.4, 0.9], "bias_variance": 0.8}
KERNELS: dict[str, Callable[[], ZonalKernel]] = {
    "matern-12": lambda: SphericalMatern12(
        variance=1.7, lengthscale=0.4, radial_power=0.5, **SCALES
    ),
    "arc-cosine": lambda: ArcCosine(1, variance=0.6, **SCALES),
}


@pytest.mark.parametrize("build", KERNELS.values(), ids=KERNELS)
def test_begins_as_what_the_harmonics_explain(build: Callable[[], ZonalKernel]) -> None:
    kernel, X, X2 = build(), tf.constant(inputs(7, 3)), tf.constant(inputs(4, 3, seed=1))
    free = FreeSpectrum.from_kernel(kernel, 3, 3)
    assert free.degrees == free.nonzero_degrees(4, 9) == kernel.nonzero_degrees(4, 3)
    harmonics = SphericalHarmonics(4, free.degrees)

    def explained(X: tf.Tensor, X2: tf.Tensor) -> tf.Tensor:
        left = Kuu_operator(harmonics, kernel).solve(Kuf(harmonics, kernel, X))
        return tf.matmul(left, Kuf(harmonics, kernel, X2), transpose_a=True)

    np.testing.assert_allclose(free(X, X2), explained(X, X2), atol=1e-12)
    np.testing.assert_allclose(free(X), explained(X, X), atol=1e-12)
    np.testing.assert_allclose(free(X, full_cov=False), np.diag(explained(X, X)), atol=1e-12)


def test_shares_nothing_with_what_it_was_made_from() -> None:
    kernel = SphericalMatern52(active_dims=[2, 0], **(SCALES | {"weight_variances": [0.6, 1.4]}))
    gpflow.set_trainable(kernel.weight_variances, False)
    free, X = FreeSpectrum.from_kernel(kernel, 2, 3), inputs(4, 3)
    assert free.variance.trainable and not free.weight_variances.trainable
    before = free(X).numpy()
    kernel.variance.assign(2.0)
    kernel.weight_variances.assign([1.0, 1.0])
    np.testing.assert_array_equal(free(X), before)
    np.testing.assert_allclose(FreeSpectrum.from_kernel(free, 2, 1).ratios, free.ratios[:1])


@pytest.mark.parametrize("seed", range(2))
def test_any_ratios_make_a_kernel(seed: int) -> None:
    """Positive semi-definite; its trace is that of the squared radii."""
    rng = np.random.default_rng(seed)
    ratios = tf.sigmoid(rng.normal(scale=6, size=5)).numpy()
    kernel, X = FreeSpectrum(ratios, variance=1.3, radial_power=2.0), inputs(40, 2)
    K = kernel(X).numpy()
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]
    np.testing.assert_allclose(np.trace(K), 1.3 * np.sum((1 + np.sum(X**2, 1)) ** 2), rtol=1e-12)
    values = kernel.eigenvalues(3, range(7)).numpy()
    assert np.all(np.diff(values[:6]) <= 0) and values[6] == 0
    shares = [num_harmonics(3, degree) * value for degree, value in enumerate(values)]
    assert np.sum(shares) == pytest.approx(1)


def test_small_ratios() -> None:
    """They are what was given; where one underflows on the way, gradients remain numbers."""
    given = np.array([0.9999999, 1e-12, 1e-200])
    kernel = FreeSpectrum(given)
    np.testing.assert_allclose(kernel.ratios, given, rtol=1e-12)
    values = kernel.eigenvalues(3, range(4)).numpy()
    np.testing.assert_allclose(values[1:] / values[:-1], given, rtol=1e-12)
    kernel.ratios.unconstrained_variable.assign([-1e4, 1e4, -800.0])
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(kernel(inputs(4, 2)))
    for gradient in tape.gradient(total, kernel.trainable_variables):
        assert np.all(np.isfinite(gradient))


def test_of_the_sums_of_another_model() -> None:
    """No rows are read, whatever the ratios are; its docstring trains them."""
    X = inputs(30, 2)
    data = X, np.sin(3 * X[:, :1]) + X[:, 1:] ** 2
    kernel = SphericalMatern52(weight_variances=[0.9, 1.3])
    harmonics = SphericalHarmonics(3, range(4))
    for parameter in (kernel.weight_variances, kernel.bias_variance):
        gpflow.set_trainable(parameter, False)
    model = StructuredSGPR(data, kernel, harmonics, noise_variance=0.1, progress=False)
    statistics = model.statistics
    kernel.lengthscale.assign(0.3)
    free = FreeSpectrum.from_kernel(kernel, 2, 3)
    of_sums = StructuredSGPR(statistics, free, harmonics, noise_variance=0.1)
    of_rows = StructuredSGPR(data, free, harmonics, likelihood=of_sums.likelihood, progress=False)
    assert {p.split(".")[-1] for p in of_sums.feature_parameters} == {
        "weight_variances",
        "bias_variance",
    }
    before = of_sums.elbo().numpy()
    np.testing.assert_allclose(before, of_rows.elbo(), rtol=1e-10)
    free.ratios.assign(0.5 * free.ratios)
    assert abs(of_sums.elbo() - before) > 0.1
    np.testing.assert_allclose(of_sums.elbo(), of_rows.elbo(), rtol=1e-10)


class Increasing(ArcCosine):
    def eigenvalues(self, dimension: int, degrees: Any) -> tf.Tensor:
        return tf.constant([0.1 + degree for degree in degrees], tf.float64)


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: FreeSpectrum([0.5, 1.0]), r"ratios must be .* less than 1, found \[0.5, 1.0\]"),
    (
        lambda: FreeSpectrum.from_kernel(Increasing(), 2, 2),
        r"kernel must have .* decrease .* found \{0: 0.1, 1: 1.1, 2: 2.1\}",
    ),
    (
        lambda: Kuf(SphericalHarmonics(3, [0, 1, 2]), FreeSpectrum([0.5]), np.ones([4, 2])),
        r"nonzero eigenvalues under FreeSpectrum .* \[2\]",
    ),
]


def test_errors() -> None:
    assert_refused(ERRORS)
