"""The closed-form path of orbit sums against GPflow's kernels, evaluated image by image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.kernels import Kernel, Matern12, Matern32, Matern52, SquaredExponential

from interdomain.kernels._radial_forms import radial_terms
from interdomain.kernels.convolutional._located import LocatedKernel
from interdomain.kernels.harmonic import _orbit_sums as module
from interdomain.kernels.harmonic._orbit_sums import orbit_sums


class Plain(Matern32):
    """A subclass has no closed form: it may compute something else."""


class PlainSquaredExponential(SquaredExponential):
    pass


CLOSED = [SquaredExponential, Matern12, Matern32, Matern52]
SHAPES = [(1, True), (1, False), (3, True), (3, False)]
"""The number of sets, and whether they share the inputs."""


def arguments(num_sets: int, shared: bool) -> tuple[tf.Variable, tf.Variable, tf.Tensor]:
    """Orbits [U, 4, 6, 3], X [5, 3] or [U, 5, 3], weights [U, 2, 4]."""
    rng = np.random.default_rng(num_sets)
    orbits = rng.normal(size=(num_sets, 4, 6, 3))
    X = rng.normal(size=(5, 3) if shared else (num_sets, 5, 3))
    return tf.Variable(orbits), tf.Variable(X), tf.constant(rng.normal(size=(num_sets, 2, 4)))


def by_loops(kernel: Kernel, orbits: tf.Tensor, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    sums = []
    for u in range(orbits.shape[0]):
        inputs = X if X.shape.rank == 2 else X[u]
        values = [kernel(orbits[u, s], inputs) for s in range(orbits.shape[1])]
        for p in range(weights.shape[1]):
            sums.append(tf.add_n([weights[u, p, s] * v for s, v in enumerate(values)]))
    return tf.reshape(tf.stack(sums), [*weights.shape[:2], orbits.shape[2], -1])


def assert_same(actual: object, desired: object) -> None:
    actual, desired = tf.convert_to_tensor(actual), tf.convert_to_tensor(desired)
    scale = np.abs(desired).max()
    assert scale > 0
    np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-8 * scale)


def test_which_kernels_have_a_closed_form() -> None:
    assert all(radial_terms(kernel_class()) is not None for kernel_class in CLOSED)
    assert radial_terms(Plain()) is radial_terms(PlainSquaredExponential()) is None


@pytest.mark.parametrize(
    ("kernel_class", "num_sets", "shared", "entries"),
    [
        *((k, *shape, 2**18) for k in (Matern32, Plain) for shape in SHAPES),
        *((k, 3, k is not Matern52, 40) for k in CLOSED),
    ],
)
def test_values_and_gradients(
    kernel_class: type[Kernel],
    num_sets: int,
    shared: bool,
    entries: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CHUNK_ENTRIES", entries)
    kernel = kernel_class(variance=1.4, lengthscales=[0.6, 1.1, 0.9])
    orbits, X, weights = arguments(num_sets, shared)
    rows = module._chunk_rows(orbits, X)
    assert rows == (6 if entries == 2**18 else 2)
    upstream = np.random.default_rng(9).normal(size=(num_sets, 2, 6, 5))
    variables = [orbits, X, *kernel.trainable_variables]
    results = []
    for function in (orbit_sums, by_loops):
        with disable_check_shapes(), tf.GradientTape() as tape:
            sums = function(kernel, tf.identity(orbits), tf.identity(X), weights)
            objective = tf.reduce_sum(upstream * sums)
        results.append([sums, *tape.gradient(objective, variables)])
    for actual, desired in zip(*results, strict=True):
        assert_same(actual, desired)


def _sum() -> Kernel:
    """Of kernels that see different columns, one with a lengthscale for each."""
    matern = Matern32(variance=0.7, lengthscales=[0.6, 1.1], active_dims=[2, 0])
    return matern + SquaredExponential(variance=1.4, lengthscales=0.9, active_dims=slice(1, 3))


def _located() -> Kernel:
    parts = SquaredExponential(1.3, 0.8), SquaredExponential(0.9, [1.2])
    return LocatedKernel(*parts, patch_size=2)


@pytest.mark.parametrize("build", [_sum, _located])
def test_sums_and_products_have_a_closed_form(build: Callable[[], Kernel]) -> None:
    kernel, num_sets, shared = build(), 3, False
    assert radial_terms(kernel) is not None
    orbits, X, weights = arguments(num_sets, shared)
    upstream = np.random.default_rng(9).normal(size=(num_sets, 2, 6, 5))
    results = []
    for function in (orbit_sums, by_loops):
        with tf.GradientTape() as tape:
            sums = function(kernel, tf.identity(orbits), tf.identity(X), weights)
            objective = tf.reduce_sum(upstream * sums)
        results.append([sums, *tape.gradient(objective, [orbits, X, *kernel.trainable_variables])])
    for actual, desired in zip(*results, strict=True):
        assert_same(actual, desired)


@pytest.mark.parametrize(("kernel_class", "num_sets"), [(Matern52, 3), (Plain, 3)])
def test_compiled_with_an_unknown_number_of_inputs(
    kernel_class: type[Kernel], num_sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_ENTRIES", 2 * 4 * module._TYPICAL_COLUMNS)
    kernel = kernel_class()
    orbits, X, weights = arguments(num_sets, shared=True)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float64)], autograph=False)
    def compiled(inputs: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            sums = orbit_sums(kernel, tf.identity(orbits), inputs, weights)
            objective = tf.reduce_sum(sums**2)
        return [sums, *tape.gradient(objective, [inputs, orbits])]

    for num in (5, 2):
        inputs = tf.identity(X[:num])
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            sums = by_loops(kernel, orbits, inputs, weights)
            objective = tf.reduce_sum(sums**2)
        desired = [sums, *tape.gradient(objective, [inputs, orbits])]
        for actual, reference in zip(compiled(inputs), desired, strict=True):
            assert_same(actual, reference)


@pytest.mark.parametrize("kernel_class", CLOSED, ids=lambda c: c.__name__)
def test_gradients_where_points_and_inputs_coincide(kernel_class: type[Kernel]) -> None:
    """GPflow passes on none there, and it is right to: a minimum, or a kink."""
    kernel, points = kernel_class(), tf.constant([[0.0, 0.0], [1.0, 2.0]], tf.float64)
    weights = tf.ones([1, 1, 1], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(points)
        sums = orbit_sums(kernel, points[None, None], tf.stop_gradient(points), weights)
        diagonal = tf.linalg.diag_part(sums[0, 0])
    np.testing.assert_allclose(diagonal, 1.0, rtol=1e-7)
    np.testing.assert_allclose(tape.gradient(diagonal, points), 0.0, atol=1e-12)
    assert np.all(np.isfinite(tape.gradient(sums, points)))
