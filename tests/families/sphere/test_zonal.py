"""Zonal kernels: the lift to the sphere, their construction, and free eigenvalues."""

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
    SphericalMatern32,
    SphericalMatern52,
    ZonalKernel,
)
from interdomain.models import StructuredSGPR
from interdomain.sphere import num_harmonics
from tests.conformance.helpers import assert_refused, value_and_gradients
from tests.conformance.kernel_cases import ZONAL_CASES, KernelCase, inputs

each_case = pytest.mark.parametrize("case", ZONAL_CASES, ids=str)


@each_case
def test_covariance_is_radial_times_zonal(case: KernelCase) -> None:
    """Pair by pair, from the definition."""
    kernel, X, X2 = case.build(3), inputs(3, 3), inputs(2, 3, seed=1)
    weights, bias = kernel.weight_variances.numpy(), float(kernel.bias_variance.numpy())
    K = kernel(X, X2).numpy()
    cosines, radial = np.zeros([3, 2]), np.zeros([3, 2])
    for i, x in enumerate(X):
        for j, y in enumerate(X2):
            a, b = (np.append(np.sqrt(weights) * z, np.sqrt(bias)) for z in (x, y))
            norms = np.sqrt(a @ a) * np.sqrt(b @ b)
            cosines[i, j], radial[i, j] = a @ b / norms, 1.3 * norms**kernel.radial_power
    zonal = kernel.shape_in_dimension(tf.constant(cosines), 4).numpy()
    np.testing.assert_allclose(K, radial * zonal, rtol=1e-12)


@pytest.mark.parametrize("order, factor", [(0, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("weights", [0.6, [0.5, 1.5, 1.0]])
def test_equals_gpflow_s(order: int, factor: int, weights: Any) -> None:
    settings = {"variance": 1.4, "weight_variances": weights, "bias_variance": 0.7}
    ours, theirs = ArcCosine(order, **settings), gpflow.kernels.ArcCosine(order, **settings)
    X, X2 = inputs(6, 3), inputs(4, 3, seed=1)
    K, diagonal = factor * ours(X), factor * ours(X, full_cov=False)
    np.testing.assert_allclose(factor * ours(X, X2), theirs(X, X2), rtol=1e-12)
    np.testing.assert_allclose(K, theirs(X), rtol=5e-8)  # theirs shifts by 1e-15
    np.testing.assert_allclose(diagonal, theirs(X, full_cov=False), rtol=1e-12)
    # Order 0 would make 1e-8 of the rounding of a cosine.
    np.testing.assert_allclose(np.diag(K), diagonal, rtol=1e-13)


def test_default_lengthscale_follows_the_dimension() -> None:
    settings: list[tuple[float, dict[str, Any]]] = [
        *((0.5, {"weight_variances": np.ones(8)}), (1.0, {"weight_variances": np.ones(2)})),
        *((0.5, {"active_dims": range(1, 9)}), (1.0, {"active_dims": [1, 3]})),
        *((0.5, {}), (0.5, {"active_dims": slice(0, 2)}), (0.3, {"lengthscale": 0.3})),
    ]
    for expected, options in settings:
        np.testing.assert_allclose(SphericalMatern52(**options).lengthscale, expected)


def test_the_shape_function_needs_the_dimension() -> None:
    kernel, t = SphericalMatern32(), tf.constant([0.2], tf.float64)
    with pytest.raises(ValueError, match="dimension must be given.*SphericalMatern32"):
        kernel.shape_function(t)
    in_three, in_nine = (kernel.shape_function(t, dimension).numpy() for dimension in (3, 9))
    assert abs(in_three - in_nine) > 1e-3
    np.testing.assert_array_equal(kernel.shape_in_dimension(t, 3), in_three)


# Free eigenvalues: what they begin as, and what training may make of them.

SCALES = {"weight_variances": [0.6, 1.4, 0.9], "bias_variance": 0.8}


@pytest.mark.parametrize(
    "build",
    [
        lambda: SphericalMatern12(variance=1.7, lengthscale=0.4, radial_power=0.5, **SCALES),
        lambda: ArcCosine(1, variance=0.6, **SCALES),
    ],
)
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
    values = value_and_gradients(lambda: kernel(inputs(4, 2)), kernel.trainable_variables)
    assert all(np.all(np.isfinite(gradient)) for gradient in values[1])


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
    by_sums = StructuredSGPR(statistics, free, harmonics, noise_variance=0.1)
    by_rows = StructuredSGPR(data, free, harmonics, likelihood=by_sums.likelihood, progress=False)
    assert {p.split(".")[-1] for p in by_sums.feature_parameters} == {
        "weight_variances",
        "bias_variance",
    }
    before = by_sums.elbo().numpy()
    np.testing.assert_allclose(before, by_rows.elbo(), rtol=1e-10)
    free.ratios.assign(0.5 * free.ratios)
    assert abs(by_sums.elbo() - before) > 0.1
    np.testing.assert_allclose(by_sums.elbo(), by_rows.elbo(), rtol=1e-10)


class Increasing(ArcCosine):
    def eigenvalues(self, dimension: int, degrees: Any) -> tf.Tensor:
        return tf.constant([0.1 + degree for degree in degrees], tf.float64)


def test_errors() -> None:
    kernel, X, free = ArcCosine(weight_variances=np.ones(3)), inputs(5, 4), FreeSpectrum([0.5])
    as_many = "X must have 3 columns, one for each entry of weight_variances, found 4; pass X with"
    decrease = r"kernel must have .* decrease .* found \{0: 0.1, 1: 1.1, 2: 2.1\}"
    lacks = r"nonzero eigenvalues under FreeSpectrum .* \[2\]"
    harmonics = SphericalHarmonics(3, [0, 1, 2])
    assert_refused(
        [
            (
                lambda: SphericalMatern12(lengthscale=-1.0),
                "^lengthscale must be finite and positive",
            ),
            (lambda: ArcCosine(3), "order must be an integer from 0 to 2, found 3"),
            (lambda: kernel(X), as_many),
            (
                lambda: FreeSpectrum([0.5, 1.0]),
                r"ratios must be .* less than 1, found \[0.5, 1.0\]",
            ),
            (lambda: FreeSpectrum.from_kernel(Increasing(), 2, 2), decrease),
            (lambda: Kuf(harmonics, free, np.ones([4, 2])), lacks),
        ]
    )
