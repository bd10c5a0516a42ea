"""The parts of harmonic kernels against the complex Fourier sums of Sun et al. 2021."""

import itertools
from collections.abc import Callable, Sequence

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Kernel
from tensorflow.types.experimental import ConcreteFunction

from interdomain.kernels import ArcCosine, HarmonicKernel
from interdomain.transforms import (
    CyclicTransform,
    ImageFlip,
    ImageTranslation,
    Negation,
    Product,
    Rotation,
)
from tests.conformance.helpers import assert_same_results
from tests.conformance.kernel_cases import inputs
from tests.posteriors.graph_ops import count_ops

BASES: dict[str, tuple[Callable[[], Kernel], float]] = {
    # The distance of a point from itself is the root of a rounding error: 1e-8, not 1e-16.
    "Matern12": (lambda: gpflow.kernels.Matern12(1.3, 0.8), 1e-7),
    "Matern32": (lambda: gpflow.kernels.Matern32(1.3, 0.8), 1e-12),
    "RationalQuadratic": (lambda: gpflow.kernels.RationalQuadratic(1.3, 0.8, 1.7), 1e-12),
    "Linear": (lambda: gpflow.kernels.Linear(0.7), 1e-12),
    "ArcCosine": (lambda: ArcCosine(1, variance=1.3, bias_variance=0.6), 1e-12),
}
"""Base kernels, and how exactly two ways to compute the same entry agree."""
GROUPS: dict[str, tuple[Callable[[], list[CyclicTransform]], int, int]] = {
    "rotation-3": (lambda: [Rotation(3)], 2, 2),
    "rotation-4": (lambda: [Rotation(4)], 2, 3),
    "rotation-7": (lambda: [Rotation(7)], 2, 4),
    "rotations-3-5": (lambda: [Rotation(3, (0, 1)), Rotation(5, (3, 2))], 4, 6),
    "negation-rotation": (lambda: [Negation(2), Rotation(3)], 3, 4),
    "flips": (lambda: [ImageFlip((3, 4), 0), ImageFlip((3, 4), 1)], 12, 4),
    "shifts": (lambda: [ImageTranslation((3, 4), (1, 0))], 12, 2),
}


def make(group: str, base: Kernel | None = None) -> tuple[HarmonicKernel, int]:
    build, num_columns, _ = GROUPS[group]
    return HarmonicKernel(base or gpflow.kernels.Matern32(1.3, 0.8), build()), num_columns


def group_values(base: Kernel, transform: Product, X: np.ndarray, X2: np.ndarray) -> tf.Tensor:
    """k(x, G^s x2) for all elements of the group, ``[elements, N, N2]``."""
    elements = list(itertools.product(*(range(T) for T in transform.orders)))
    images = tf.concat([transform.power(X2, s) for s in elements], axis=0)
    return tf.stack(tf.split(base(X, images), len(elements), axis=1))


def fourier_sum(values: tf.Tensor, transform: Product, frequency: Sequence[int]) -> tf.Tensor:
    """Eq. 10 for t and, in every axis, T - t too: complex, over all elements of the group."""
    orders = transform.orders
    both = [sorted({t, (T - t) % T}) for t, T in zip(frequency, orders, strict=True)]
    factors = np.zeros(len(values), complex)
    for k, s in enumerate(itertools.product(*(range(T) for T in orders))):
        for t in itertools.product(*both):
            phase = sum(a * b / T for a, b, T in zip(t, s, orders, strict=True))
            factors[k] += np.exp(-2j * np.pi * phase) / np.prod(orders)
    total = tf.tensordot(factors, tf.cast(values, tf.complex128), 1)
    np.testing.assert_allclose(tf.math.imag(total), 0, atol=1e-7)
    return tf.math.real(total)


PAIRS = [
    *((base, "rotation-3") for base in BASES),
    *(("Matern32", group) for group in ("rotation-4", "rotations-3-5", "shifts")),
]


@pytest.mark.parametrize(("base", "group"), PAIRS)
def test_parts_are_fourier_sums_and_sum_to_the_kernel(base: str, group: str) -> None:
    build, accuracy = BASES[base]
    plain = build()
    kernel, num_columns = make(group, plain)
    assert kernel.num_components == len(kernel.frequencies) == GROUPS[group][2]
    # Each of the T complex kernels is in one part.
    assert sum(kernel.multiplicities) == kernel.transform.order
    X, X2 = inputs(5, num_columns), inputs(4, num_columns, seed=1)
    scale = np.max(plain(X, full_cov=False))
    tolerance = {"rtol": 0, "atol": accuracy * scale}
    full, cross, diagonal = np.zeros((5, 5)), np.zeros((5, 4)), np.zeros(5)
    chosen = {0, 1, kernel.num_components - 1}  # for the oracle
    cross_values, full_values = (
        group_values(plain, kernel.transform, X, points) for points in (X2, X)
    )
    for t, part in enumerate(kernel.kernels):
        K = part(X).numpy()
        np.testing.assert_array_equal(K, K.T)
        assert np.linalg.eigvalsh(K)[0] > -1e-9 * scale
        np.testing.assert_allclose(part(X, full_cov=False), np.diag(K), **tolerance)
        full, cross = full + K, cross + part(X, X2)
        diagonal = diagonal + part(X, full_cov=False)
        if t in chosen:
            expected = fourier_sum(cross_values, kernel.transform, kernel.frequencies[t])
            np.testing.assert_allclose(part(X, X2), expected, **tolerance)
            expected = fourier_sum(full_values, kernel.transform, kernel.frequencies[t])
            np.testing.assert_allclose(K, expected, **tolerance)
    np.testing.assert_allclose(full, plain(X), **tolerance)
    np.testing.assert_allclose(cross, plain(X, X2), **tolerance)
    np.testing.assert_allclose(diagonal, plain(X, full_cov=False), **tolerance)
    for arguments, form in (((X,), {}), ((X, X2), {}), ((X,), {"full_cov": False})):
        np.testing.assert_array_equal(kernel(*arguments, **form), plain(*arguments, **form))


@pytest.mark.parametrize("group", ["rotation-4", "rotation-7", "flips"])
def test_parts_are_orthogonal(group: str) -> None:
    """Lemma 3.6 on a finite set that the group maps to itself: there the inner product of the
    functions k_s(., a) and k_t(., b) in the RKHS of k is that entry of K_s K^{-1} K_t."""
    kernel, num_columns = make(group)
    X = tf.reshape(kernel.transform.orbit(inputs(3, num_columns)), [-1, num_columns]).numpy()
    K = kernel(X).numpy()
    parts = [part(X).numpy() for part in kernel.kernels]
    for s, t in itertools.product(range(len(parts)), repeat=2):
        product = parts[s] @ np.linalg.solve(K, parts[t])
        expected = parts[s] if s == t else np.zeros_like(K)
        np.testing.assert_allclose(product, expected, atol=1e-10)


def test_the_sum_costs_one_evaluation_of_the_base_kernel() -> None:
    kernel, _ = make("rotation-7")
    X, X2 = tf.constant(inputs(4, 2)), tf.constant(inputs(3, 2))

    def graph(kernel: Kernel) -> ConcreteFunction:
        def all_three() -> tuple[tf.Tensor, ...]:
            return kernel(X), kernel(X, X2), kernel(X, full_cov=False)

        return tf.function(all_three, autograph=False).get_concrete_function()

    sum_graph, base_graph, part_graph = map(graph, (kernel, kernel.base_kernel, kernel.kernels[1]))
    for names in (("Exp",), ("MatMul",), ("Sqrt",)):
        assert count_ops(sum_graph, names) == count_ops(base_graph, names)
    assert len(part_graph.graph.get_operations()) > len(base_graph.graph.get_operations())


def test_a_sum_with_another_kernel_keeps_it_whole() -> None:
    """GPflow flattens sums of sums; taken apart, the kernel would lose its own K."""
    kernel = HarmonicKernel(gpflow.kernels.Matern32(), Negation(0))
    summed = HarmonicKernel(gpflow.kernels.Matern32(), Negation(0)) + gpflow.kernels.RBF()
    assert isinstance(summed.kernels[0], HarmonicKernel) and len(summed.kernels) == 2
    X = inputs(4, 2)
    expected = kernel.base_kernel(X) + gpflow.kernels.RBF()(X)
    np.testing.assert_allclose(summed(X), expected, rtol=1e-14)


@pytest.mark.parametrize("base", ["Matern32", "RationalQuadratic"])
def test_gradients_of_parts(base: str) -> None:
    """Of hyperparameters, X and X2 against TensorFlow's, of the complex sums."""
    plain, group = BASES[base][0](), "negation-rotation"
    kernel, num_columns = make(group, plain)
    part, frequency, transform = kernel.kernels[1], kernel.frequencies[1], kernel.transform
    X, X2 = tf.Variable(inputs(3, num_columns)), tf.Variable(inputs(2, num_columns, seed=1))

    def part_values() -> list[tf.Tensor]:
        return [part(X, X2), part(X), part(X2, full_cov=False)]

    def expected_values() -> list[tf.Tensor]:
        cross, full, other = (
            fourier_sum(group_values(plain, transform, *points), transform, frequency)
            for points in ((X, X2), (X, X), (X2, X2))
        )
        return [cross, full, tf.linalg.diag_part(other)]

    assert_same_results(part_values, expected_values, [*kernel.trainable_variables, X, X2])
