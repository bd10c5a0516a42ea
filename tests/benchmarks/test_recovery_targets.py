"""Kernels that mixtures are to recover: against the formulas, entry by entry."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from benchmarks.kernel_recovery.recovery_targets import (
    GeneralizedSpectralMixture,
    TimeInvertedFractionalBrownianMotion,
)
from interdomain.kernels import SpectralComponent, SpectralMixture
from tests.benchmarks.recovery_cases import CASES, Amplitude, Frequency, Lengthscale
from tests.conformance.helpers import assert_close
from tests.kernels import test_contract as contract
from tests.kernels.cases import KernelCase
from tests.kernels.test_contract import single_precision  # noqa: F401 - a fixture


def generalized(dimension: int) -> GeneralizedSpectralMixture:
    """Q = 2."""
    return GeneralizedSpectralMixture(
        Amplitude(dimension), Lengthscale(dimension), Frequency(dimension)
    )


def by_entries(kernel: GeneralizedSpectralMixture, X: np.ndarray, X2: np.ndarray) -> np.ndarray:
    """Eqs. 72 and 73."""
    D = X.shape[1]
    functions = [
        [part.numpy() for part in (kernel.amplitude(x), kernel.lengthscale(x), kernel.frequency(x))]
        for x in (X, X2)
    ]
    (w, length, mu), (w2, length2, mu2) = functions
    K = np.zeros([len(X), len(X2)])
    for n, k, q in np.ndindex(len(X), len(X2), 2):
        l1, l2 = length[n, q], length2[k, q]
        gibbs = (2 * l1 * l2 / (l1**2 + l2**2)) ** (D / 2)
        gibbs *= np.exp(-np.sum((X[n] - X2[k]) ** 2) / (l1**2 + l2**2))
        angle = np.sum(mu[n, q] * X[n]) - np.sum(mu2[k, q] * X2[k])
        K[n, k] += w[n, q] * w2[k, q] * gibbs * np.cos(2 * np.pi * angle)
    return K


@pytest.mark.parametrize("dimension", [1, 2])
def test_generalized_spectral_mixture(dimension: int) -> None:
    kernel = generalized(dimension)
    rng = np.random.default_rng(0)
    X, X2 = rng.normal(size=(6, dimension)), rng.normal(size=(4, dimension))
    assert_close(kernel(X), by_entries(kernel, X, X), rtol=1e-13)
    assert_close(kernel(X, X2), by_entries(kernel, X, X2), rtol=1e-13)
    assert_close(kernel(X, full_cov=False), np.diag(by_entries(kernel, X, X)), rtol=1e-13)
    batch = rng.normal(size=(2, 3, 4, dimension))
    assert_close(kernel(batch)[1, 2], kernel(batch[1, 2]), rtol=1e-13)
    assert_close(kernel(batch, X)[1, 2], kernel(batch[1, 2], X), rtol=1e-13)
    many = kernel(rng.normal(size=(60, dimension))).numpy()
    eigenvalues = np.linalg.eigvalsh(many)
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


@pytest.mark.parametrize("dimension", [1, 2])
def test_constant_functions_make_a_spectral_mixture(dimension: int) -> None:
    """l^2 = 1 / (4 pi^2 lag)."""
    lags, variances = np.array([0.05, 0.2]), np.array([1.3, 0.4])
    frequencies = np.array([[0.3, -0.2], [0.8, 0.1]])[:, :dimension]

    def constant(value: np.ndarray) -> Callable[[tf.Tensor], tf.Tensor]:
        return lambda X: tf.broadcast_to(
            tf.constant(value), tf.concat([tf.shape(X)[:-1], value.shape], axis=0)
        )

    kernel = GeneralizedSpectralMixture(
        constant(np.sqrt(variances)),
        constant(1 / (2 * np.pi * np.sqrt(lags))),
        constant(frequencies if dimension == 2 else frequencies[:, 0]),
    )
    mixture = SpectralMixture(
        [
            SpectralComponent(f, variance=v, lag=s)
            for f, v, s in zip(frequencies, variances, lags, strict=True)
        ]
    )
    X = np.random.default_rng(0).normal(size=(7, dimension))
    assert_close(kernel(X), mixture(X), rtol=1e-12)
    assert_close(kernel(X, X[:3]), mixture(X, X[:3]), rtol=1e-12)


def test_functions_that_are_modules_are_trained() -> None:
    kernel = generalized(2)
    X = np.random.default_rng(0).normal(size=(5, 2))
    assert len(kernel.trainable_variables) == 6
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(kernel(X))
    for gradient in tape.gradient(total, kernel.trainable_variables):
        assert np.all(np.isfinite(gradient)) and np.any(np.abs(gradient) > 1e-6)


@pytest.mark.parametrize("argument", ["amplitude", "lengthscale", "frequency"])
def test_what_is_no_function(argument: str) -> None:
    functions: dict[str, Any] = dict.fromkeys(
        ("amplitude", "lengthscale", "frequency"), tf.identity
    )
    functions[argument] = 0.5
    message = rf"{argument} must be a function of the inputs, found 0.5; .*`lambda X: constant"
    with pytest.raises(ValueError, match=message):
        GeneralizedSpectralMixture(**functions)


@pytest.mark.parametrize(
    ("argument", "shape"),
    [
        ("amplitude", (5,)),
        ("amplitude", (5, 2, 1)),
        ("lengthscale", (5, 3)),
        ("lengthscale", (1, 2)),
        ("frequency", (5, 2)),
        ("frequency", (5, 2, 2)),
    ],
)
def test_what_functions_return(argument: str, shape: tuple[int, ...]) -> None:
    """Five inputs of three columns, two parts."""
    shapes = {"amplitude": (5, 2), "lengthscale": (5, 2), "frequency": (5, 2, 3)} | {
        argument: shape
    }
    functions = {name: lambda X, size=size: tf.ones(size, X.dtype) for name, size in shapes.items()}
    message = rf"^{argument} must return shape .*, found {re.escape(str(shape))}: \[N, Q\]"
    with pytest.raises(ValueError, match=message):
        GeneralizedSpectralMixture(**functions)(np.ones([5, 3]))


TIMES = np.array([0.2, 0.5, 0.9, 1.0, 2.5, 7.0])[:, None]


@pytest.mark.parametrize("hurst", [0.2, 0.5, 0.7])
def test_brownian_motion_at_inverse_times(hurst: float) -> None:
    kernel = TimeInvertedFractionalBrownianMotion(hurst, variance=1.3)
    expected = [
        [
            1.3 / 2 * (t ** (-2 * hurst) + s ** (-2 * hurst) - abs(1 / t - 1 / s) ** (2 * hurst))
            for s in TIMES[:, 0]
        ]
        for t in TIMES[:, 0]
    ]
    expected = np.array(expected)
    assert_close(kernel(TIMES), expected, rtol=1e-13)
    assert_close(kernel(TIMES, TIMES[:4]), expected[:, :4], rtol=1e-13)
    assert_close(kernel(TIMES, full_cov=False), np.diag(expected), rtol=1e-13)
    if hurst == 0.5:
        assert_close(kernel(TIMES), 1.3 / np.maximum(TIMES, TIMES.T), rtol=1e-13)
    many = kernel(np.random.default_rng(0).uniform(0.05, 3.0, size=(60, 1))).numpy()
    eigenvalues = np.linalg.eigvalsh(many)
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


@pytest.mark.parametrize("hurst", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("two", [False, True], ids=["X", "X-and-X2"])
def test_gradients_where_times_are_equal(hurst: float, two: bool) -> None:
    kernel = TimeInvertedFractionalBrownianMotion(hurst)
    gpflow.set_trainable(kernel, True)
    X = tf.constant(np.array([[0.4], [0.4], [1.5]]))
    with tf.GradientTape() as tape:
        tape.watch(X)
        total = tf.reduce_sum(kernel(X, X) if two else kernel(X))
    for gradient in tape.gradient(total, [X, *kernel.trainable_variables]):
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hurst": 0.0}, "hurst must be between 0 and 1, found 0.0"),
        ({"hurst": 1.0}, "hurst must be between 0 and 1, found 1.0"),
        ({"hurst": [0.5]}, r"hurst must be a number, found shape \(1,\)"),
        ({"hurst": np.nan}, "hurst must be finite, found nan"),
        ({"variance": -1.0}, "variance must be positive, found -1.0"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TimeInvertedFractionalBrownianMotion(**arguments)


def test_bad_times() -> None:
    kernel = TimeInvertedFractionalBrownianMotion()
    with pytest.raises(ValueError, match="X must have one column, the time, found 2; select it"):
        kernel(np.ones([3, 2]))
    for X in (np.array([[1.0], [0.0]]), np.array([[-0.5], [1.0]])):
        with pytest.raises(ValueError, match="X must be positive: times at which 1 / t exists"):
            kernel(X)
    compiled = tf.function(
        kernel.K, input_signature=[tf.TensorSpec([None, 1], tf.float64)], autograph=False
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="X must be positive"):
        compiled(tf.constant([[1.0], [0.0]], tf.float64))


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(
    "of_kernels",
    [
        contract.test_positive_semidefinite_with_its_diagonal,
        contract.test_one_argument_or_two,
        contract.test_batch_dimensions,
        contract.test_active_dims,
        contract.test_gradients_and_compiled_with_an_unknown_number_of_points,
        contract.test_gradients_at_coinciding_and_opposite_points,
        contract.test_the_diagonal_of_the_matrix_has_the_gradient_of_the_diagonal,
        contract.test_each_parameter_is_listed_once,
        contract.test_copies_are_equal_and_apart,
    ],
)
def test_contract(of_kernels: Callable[[KernelCase], None], case: KernelCase) -> None:
    of_kernels(case)


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=str)
def test_single_precision(case: KernelCase, single_precision: None) -> None:  # noqa: F811
    contract.test_single_precision(case, single_precision)
