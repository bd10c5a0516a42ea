"""Covariances of functionals under full priors, against weighted sums of the kernel's values."""

import itertools
from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)

import interdomain as idm
from interdomain.functionals import Areas, Blur, Derivative, LinearFunctional, Mean, Value
from interdomain.kernels import FiniteRank, Functional
from tests.conformance.helpers import assert_refused

NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)


def panels(low: float, high: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    ends = np.linspace(low, high, count + 1)
    half = np.diff(ends)[:, None] / 2
    return np.ravel(ends[:-1, None] + half * (1 + NODES)), np.ravel(half * WEIGHTS)


def rule(functional: LinearFunctional, column: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps along the column and their weights: of values, as many as a kink needs."""
    if isinstance(functional, Mean):
        steps, weights = panels(-0.5, 0.5, count)
        return steps * functional.widths[column], weights
    if isinstance(functional, Blur):
        steps, weights = panels(-7, 7, 5 * count)
        density = np.exp(-(steps**2) / 2) / np.sqrt(2 * np.pi)
        return steps * np.sqrt(functional.variances[column]), weights * density
    if isinstance(functional, Derivative) and functional.column == column:
        h = 2e-3 if functional.order == 1 else 1e-2
        steps = h * np.arange(-4.0, 5.0)
        powers = steps / h
        target = np.zeros(9)
        target[functional.order] = functional.order
        return steps, np.linalg.solve(
            np.vander(powers, increasing=True).T, target
        ) / h**functional.order
    return np.zeros(1), np.ones(1)


def expected(
    kernel: Kernel, functional: tuple, first: np.ndarray, second: np.ndarray, count: int = 1
) -> np.ndarray:
    """The covariances by values of the kernel at weighted points."""
    points, factors = [], []
    for part, X in zip(functional, (first, second), strict=True):
        rules = [rule(part, k, count) for k in range(X.shape[1])]
        steps = np.array(list(itertools.product(*(r[0] for r in rules))))
        points.append((X[:, None] + steps).reshape(-1, X.shape[1]))
        factors.append(np.prod(list(itertools.product(*(r[1] for r in rules))), axis=1))
    matrix = kernel(*points).numpy()
    matrix = matrix.reshape(len(first), len(factors[0]), len(second), len(factors[1]))
    return np.einsum("nqmr,q,r->nm", matrix, *factors)


X1 = np.array([[0.0], [0.31], [1.7]])
X2 = np.array([[0.0], [-0.45], [2.2]])
ROUGH = [Value(), Mean([0.5]), Mean([1.3]), Blur([0.2**2])]
SMOOTH = [*ROUGH, Derivative(0)]
SMOOTHER = [*SMOOTH, Derivative(0, 2)]
ONE_COLUMN = [
    (SquaredExponential(0.9, 0.6), SMOOTHER, 1e-7),
    (RationalQuadratic(0.9, 0.8, 1.4), SMOOTHER, 1e-7),
    (Matern52(0.9, 0.9), SMOOTH, 1e-5),
    (Matern32(0.9, 0.9), SMOOTH, 5e-3),
    (Matern12(0.9, 0.9), ROUGH, 1e-4),
]
"""The last number is for rows at the same place, where differences and panels meet the kink of the
kernel; rows at other places have 1e-7."""


def covariance(kernel: Kernel, pair: tuple, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    rows = Functional(kernel, list(pair))
    numbered = [np.insert(X, X.shape[1], k, axis=1) for k, X in enumerate((first, second))]
    return rows(*numbered).numpy()


@pytest.mark.parametrize(
    ("kernel", "functionals", "rtol"), ONE_COLUMN, ids=lambda part: type(part).__name__
)
def test_one_column(kernel: Kernel, functionals: list, rtol: float) -> None:
    """Kinks of the kernel are met by panels that end there only where no box covers them."""
    for pair in itertools.product(functionals, repeat=2):
        actual = covariance(kernel, pair, X1, X2)
        wanted = expected(kernel, pair, X1, X2, 20)
        scale = np.max(np.abs(wanted))
        error = np.abs(actual - wanted) / scale
        assert np.max(error) < rtol, (pair, np.max(error))
        assert np.max(error[2, :2]) < 1e-7, (pair, error)


TWO_COLUMNS = [
    Value(),
    Mean([0.4, 0.0]),
    Mean([0.3, 0.5]),
    Blur([0.0, 0.1**2]),
    Derivative(0),
    Derivative(1, 2),
]


def products() -> list[Kernel]:
    one = Matern52(0.8, 1.1, active_dims=[1]) * SquaredExponential(1.1, 0.9, active_dims=[0])
    points = gpflow.inducing_variables.InducingPoints(np.linspace(-2, 3, 7)[:, None] * [1.0, 1.0])
    inner = FiniteRank(SquaredExponential(0.7, 1.3), points)
    waves = RationalQuadratic(0.7, 1.2, active_dims=[0]) * inner
    return [
        SquaredExponential(0.9, [0.7, 1.1]),
        one,
        one + Linear([0.3, 0.6]) * Constant(0.9) + Constant(0.4),
        waves,
    ]


@pytest.mark.parametrize("kernel", products(), ids=["ARD", "product", "sum", "finite-rank"])
def test_two_columns(kernel: Kernel) -> None:
    first, second = np.random.default_rng(0).uniform(-1, 2, size=(2, 2, 2))
    first += [1.5, 0.0]
    for pair in itertools.product(TWO_COLUMNS, repeat=2):
        wanted = expected(kernel, pair, first, second)
        actual = covariance(kernel, pair, first, second)
        error = np.max(np.abs(actual - wanted)) / max(np.max(np.abs(wanted)), 0.1)
        assert error < 3e-6, (pair, error)


def test_kernels_that_do_not_separate() -> None:
    """An average in one column is exact; in two columns it is the sum over the default's points."""
    kernel = Matern32(0.9, [0.7, 1.1])
    first, second = np.random.default_rng(0).uniform(-1, 2, size=(2, 3, 2))
    first += [4.0, 0.0]
    exact, summed = Mean([0.4, 0.0]), Mean([0.3, 0.5], num_points=5)
    for pair in itertools.product([Value(), exact, Mean([0.0, 0.6]), Derivative(1)], repeat=2):
        actual = covariance(kernel, pair, first, second)
        np.testing.assert_allclose(actual, expected(kernel, pair, first, second, 2), atol=3e-8)
    places = idm.core.functionals.Places(tf.constant(first), tf.constant(first))
    points, weights = summed.points(places)
    values = kernel(tf.reshape(points, [-1, 2]), second).numpy().reshape(3, 25, 3)
    wanted = np.einsum("nqm,q->nm", values, weights)
    np.testing.assert_allclose(covariance(kernel, (summed, Value()), first, second), wanted)
    variances = Functional(kernel, [summed, exact, Derivative(0)])
    X = np.insert(np.concatenate([first] * 3), 2, np.repeat([0.0, 1, 2], 3), axis=1)
    assert_is_covariance(variances, X)


REGIONS = Areas(
    np.array([[0.1, 0.2], [0.4, 0.1], [1.0, 0.3], [2.0, 0.1], [1.2, 0.8]]),
    [0.5, 0.2, 0.3, 1.5, 0.7],
    [0, 0, 0, 1, 1],
)
FUNCTIONALS = [
    Mean(0.0, width_columns=[2, None]),
    2.0 * Derivative(1) - Blur([0.1, 0.0]),
    REGIONS,
]


def make_rows(num: int = 12) -> np.ndarray:
    """Inputs, widths of which some are zero, and numbers of functionals."""
    rng = np.random.default_rng(1)
    numbers = np.arange(num) % len(FUNCTIONALS)
    X = np.column_stack([rng.uniform(-1, 2, (num, 2)), rng.uniform(0, 1, num), numbers])
    X[:, 2] *= rng.uniform(size=num) > 0.3
    X[numbers == 2, 0] = rng.integers(0, 2, np.sum(numbers == 2))
    return X


def assert_is_covariance(kernel: Kernel, X: np.ndarray) -> None:
    K = kernel(X).numpy()
    np.testing.assert_allclose(K, K.T, rtol=0)
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(K), rtol=1e-9)
    np.testing.assert_allclose(kernel(X, X), K, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(K)[0] > -1e-10 * np.max(np.diag(K))
    batches = np.stack([X[:5], X[4::-1]])
    K = K[:5, :5]
    np.testing.assert_allclose(kernel(batches)[1], K[::-1, ::-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel(batches, full_cov=False)[1], np.diag(K)[::-1], rtol=1e-9)
    np.testing.assert_allclose(kernel(batches, X[:5])[0], K, rtol=1e-9, atol=1e-12)


KERNELS: list[Callable[[], Kernel]] = [
    lambda: SquaredExponential(0.9, [0.7, 1.1]),
    lambda: Matern32(0.9, 0.8),
    lambda: Matern52(0.8, 0.9, active_dims=[1]) * Matern12(active_dims=[0]) + Constant(0.3),
]


@pytest.mark.parametrize("make", KERNELS, ids=["ARD", "isotropic", "product"])
def test_mixed_rows(make: Callable[[], Kernel]) -> None:
    """Symmetric, with its diagonal, in batches, in graphs of unknown rows, with gradients."""
    kernel, X = Functional(make(), FUNCTIONALS), make_rows()
    assert_is_covariance(kernel, X)

    def value(X: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.sin(kernel(X))) + tf.reduce_sum(tf.cos(kernel(X, full_cov=False)))

    at = tf.Variable(X)
    with tf.GradientTape() as tape:
        eager = value(at)
    sources = [at, *kernel.trainable_variables]
    gradients = [g.numpy() for g in map(tf.convert_to_tensor, tape.gradient(eager, sources))]
    rng = np.random.default_rng(2)
    if isinstance(kernel.prior, SquaredExponential):
        signature = [tf.TensorSpec([None, X.shape[1]], tf.float64)]
        compiled = tf.function(kernel.K, input_signature=signature, autograph=False)
        np.testing.assert_allclose(compiled(X), kernel(X), rtol=1e-9, atol=1e-12)
    ends, total = [], 0.0
    directions = [rng.normal(size=g.shape) for g in gradients]
    directions[0][:, 3] = 0
    directions[0][X[:, 3] == 2, 0] = 0
    directions[0][X[:, 2] == 0, 2] = 0
    for sign in (1, -1):
        for source, direction in zip(sources, directions, strict=True):
            source.assign_add(sign * 1e-6 * direction)
        ends.append(value(at).numpy())
        for source, direction in zip(sources, directions, strict=True):
            source.assign_add(-sign * 1e-6 * direction)
    total = sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(total, (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_single_precision() -> None:
    X = make_rows()
    wanted = [Functional(make(), FUNCTIONALS)(X).numpy() for make in KERNELS[:2]]
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        for make, K in zip(KERNELS[:2], wanted, strict=True):
            kernel, at = Functional(make(), FUNCTIONALS), tf.Variable(X.astype(np.float32))
            with tf.GradientTape() as tape:
                actual = kernel(at)
            assert actual.dtype == tf.float32
            np.testing.assert_allclose(actual, K, atol=3e-5 * np.max(K))
            gradients = tape.gradient(actual, [at, *kernel.trainable_variables])
            assert all(np.all(np.isfinite(gradient)) for gradient in gradients)


def test_kernels_without_closed_forms() -> None:
    """Averages are sums over points. Slopes are refused by name, also slopes that do not exist."""
    waves = idm.kernels.Periodized(Matern32(lengthscales=0.5), 0.0, 4.0)
    means = Functional(waves, [Mean([0.4]), Value()])
    X = np.column_stack([np.linspace(0.5, 3, 8), np.arange(8) % 2])
    assert_is_covariance(means, X)
    steps, weights = rule(Mean([0.4]), 0, 20)
    wanted = waves(X[:1, :1] + steps[:, None], X[1:2, :1]).numpy().T @ weights
    np.testing.assert_allclose(means(X[:1], X[1:2])[0], wanted, rtol=1e-6)
    rough, points = (
        Matern12(active_dims=[1]),
        gpflow.inducing_variables.InducingPoints([[0.0, 0.0]]),
    )
    period = idm.kernels.Periodized(Matern12(), 0.0, 4.0)
    exists = r"functionals must have derivatives that exist .* found Derivative\(column"
    assert_refused(
        [
            (lambda: Functional(waves, Derivative(0))(X), r"functionals must .*FiniteRank\(prior"),
            (
                lambda: Functional(waves, idm.functionals.ByDegree([1.0]))(X),
                "functionals must .*Fin",
            ),
            (lambda: Functional(rough, Derivative(1)), exists),
            (lambda: Functional(rough * Matern52(), 2 * Derivative(1) + Value()), exists),
            (lambda: Functional(FiniteRank(rough, points), Derivative(1)), exists),
            (lambda: Functional(period, Derivative(0)), exists),
            (lambda: Functional(Matern32(), Derivative(0, 2)), exists),
        ]
    )
    Functional(rough * Matern52(active_dims=[0]), Derivative(0))  # another column is smooth
