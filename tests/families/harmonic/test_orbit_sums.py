"""The closed-form path of orbit sums against GPflow's kernels, evaluated image by image."""

from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import (
    RBF,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
)

from interdomain.core.point_sums import radial_terms
from interdomain.families.harmonic import orbit_sums as module
from interdomain.families.harmonic.orbit_sums import orbit_sums
from interdomain.kernels import ArcCosine, ChannelAdditive, HarmonicKernel
from interdomain.transforms import (
    CyclicTransform,
    ImageFlip,
    Negation,
    PrincipalNegation,
    Rotation,
    Translation,
)
from tests.conformance.helpers import (
    assert_refused,
    assert_same_results,
    compiled,
    value_and_gradients,
)


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


def test_which_kernels_have_a_closed_form() -> None:
    closed = *(kernel_class() for kernel_class in CLOSED), sum_over_columns()
    channel_sum = ChannelAdditive([Matern32(), RationalQuadratic()], (2, 2))
    mixed = Matern32() + RationalQuadratic()
    for kernel in (*closed, Plain(), PlainSquaredExponential(), mixed, channel_sum):
        assert (radial_terms(kernel) is not None) == (kernel in closed)


def ard(kernel_class: type[Kernel]) -> Callable[[], Kernel]:
    return lambda: kernel_class(variance=1.4, lengthscales=[0.6, 1.1, 0.9])


def sum_over_columns() -> Kernel:
    """A sum of kernels that see different columns, one with a lengthscale for each."""
    matern = Matern32(variance=0.7, lengthscales=[0.6, 1.1], active_dims=[2, 0])
    return matern + SquaredExponential(variance=1.4, lengthscales=0.9, active_dims=slice(1, 3))


@pytest.mark.parametrize(
    ("build", "num_sets", "shared", "entries"),
    [
        *((ard(k), *shape, 2**18) for k in (Matern32, Plain) for shape in SHAPES),
        *((ard(k), 3, k is not Matern52, 40) for k in CLOSED),
        (sum_over_columns, 3, False, 2**18),
    ],
)
def test_values_and_gradients(
    build: Callable[[], Kernel],
    num_sets: int,
    shared: bool,
    entries: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CHUNK_ENTRIES", entries)
    kernel = build()
    orbits, X, weights = arguments(num_sets, shared)
    rows = module._chunk_rows(orbits, X)
    assert rows == (6 if entries == 2**18 else 2)
    assert_same_results(
        lambda: orbit_sums(kernel, tf.identity(orbits), tf.identity(X), weights),
        lambda: by_loops(kernel, orbits, X, weights),
        [orbits, X, *kernel.trainable_variables],
    )
    # No rows are what a model asks features with, of data that it has not seen yet.
    sums = orbit_sums(kernel, tf.identity(orbits), X[..., :0, :], weights)
    assert sums.shape == (num_sets, 2, 6, 0)


@pytest.mark.parametrize("kernel_class", [Matern52, Plain])
def test_compiled_with_an_unknown_number_of_inputs(
    kernel_class: type[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_ENTRIES", 2 * 4 * module._TYPICAL_COLUMNS)
    kernel = kernel_class()
    orbits, X, weights = arguments(3, shared=True)
    function = compiled(
        lambda inputs, sets: orbit_sums(kernel, sets, inputs, weights), [None, 3], orbits.shape
    )
    for num in (5, 2):
        inputs, sets = tf.identity(X[:num]), tf.identity(orbits)
        assert_same_results(
            lambda inputs=inputs, sets=sets: function(inputs, sets),
            lambda inputs=inputs, sets=sets: by_loops(kernel, sets, inputs, weights),
            [inputs, sets],
        )


@pytest.mark.parametrize("kernel_class", CLOSED, ids=lambda c: c.__name__)
def test_gradients_where_points_and_inputs_coincide(kernel_class: type[Kernel]) -> None:
    """GPflow passes on none there, and it is right to: a minimum, or a kink."""
    kernel, points = kernel_class(), tf.constant([[0.0, 0.0], [1.0, 2.0]], tf.float64)
    weights = tf.ones([1, 1, 1], tf.float64)

    def sums() -> tf.Tensor:
        return orbit_sums(kernel, points[None, None], tf.stop_gradient(points), weights)[0, 0]

    diagonal, slope = value_and_gradients(lambda: tf.linalg.diag_part(sums()), points)
    np.testing.assert_allclose(diagonal, 1.0, rtol=1e-7)
    np.testing.assert_allclose(slope, 0.0, atol=1e-12)
    assert np.all(np.isfinite(value_and_gradients(sums, points)[1]))


# Kernels that a decomposition would be wrong for are refused.

X = np.random.default_rng(0).normal(size=(60, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0, 0, 0.5]]


def principal() -> CyclicTransform:
    return PrincipalNegation.from_data(X, 2)


NOT_INVARIANT: dict[str, tuple[Callable[[], Kernel], Callable[[], CyclicTransform]]] = {
    "ard-principal": (lambda: RBF(lengthscales=[0.5, 1.0, 2.0]), principal),
    "slightly-ard": (lambda: RBF(lengthscales=[1.0, 1.001, 1.0]), principal),
    "tiny-lengthscales": (lambda: RBF(lengthscales=[1e-3, 2e-3]), lambda: Rotation(4)),
    "not-periodic": (RBF, lambda: Translation(4, 0, 2.0)),
    "other-period": (lambda: Periodic(RBF(), period=1.7), lambda: Translation(4, 0, 2.0)),
    "linear-centre": (Linear, lambda: Negation(0, centre=1.0)),
    "one-summand": (lambda: RBF() + Linear(), lambda: Negation(0, centre=1.0)),
}
INVARIANT: dict[str, tuple[Callable[[], Kernel], Callable[[], CyclicTransform]]] = {
    "ard-axis": (lambda: RBF(lengthscales=[0.5, 1.0, 2.0]), lambda: Negation(1, centre=3.0)),
    "equal-lengthscales": (lambda: RBF(lengthscales=[0.7, 0.7, 0.7]), principal),
    "ard-other-columns": (lambda: RBF(lengthscales=[0.7, 0.7, 2.0]), lambda: Rotation(3)),
    "periodic": (lambda: Periodic(RBF(), period=2.0), lambda: Translation(4, 0, 2.0)),
    "arc-cosine": (lambda: ArcCosine(1), lambda: Rotation(3)),
    "sum": (lambda: RBF() + Linear(), lambda: Negation(0)),
    "active-dims": (lambda: RBF(active_dims=[2]), lambda: Rotation(4)),
}


@pytest.mark.parametrize("name", NOT_INVARIANT)
def test_kernels_that_are_not_invariant(name: str) -> None:
    kernel, transform = NOT_INVARIANT[name]
    with pytest.raises(ValueError, match=r"base_kernel \(\w+\) is not invariant to .*ass "):
        HarmonicKernel(kernel(), transform())


@pytest.mark.parametrize("name", INVARIANT)
def test_kernels_that_are_invariant(name: str) -> None:
    """And all their parts are positive semi-definite, which those refused would not have."""
    kernel, transform = INVARIANT[name]
    harmonic = HarmonicKernel(kernel(), transform())
    for part in harmonic.kernels:
        assert np.linalg.eigvalsh(part(X[:20]))[0] > -1e-10
    total = sum(part(X[:20], X[20:]).numpy() for part in harmonic.kernels)
    np.testing.assert_allclose(total, harmonic(X[:20], X[20:]), atol=1e-12)


def test_lengthscales_that_part_in_training() -> None:
    kernel = HarmonicKernel(RBF(lengthscales=[0.7, 0.7, 0.7]), principal())
    kernel.base_kernel.lengthscales.assign([0.9, 0.9, 0.9])
    kernel.validate()
    kernel.base_kernel.lengthscales.assign([0.7, 0.9, 0.9])
    with pytest.raises(ValueError, match="is not invariant to PrincipalNegation"):
        kernel.validate()


@pytest.mark.parametrize("kernel_class", [Matern12, Linear])
def test_single_precision(kernel_class: type[Kernel]) -> None:
    """Its rounding is not taken for a kernel that is not invariant; a real one is found."""
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        HarmonicKernel(kernel_class(), [Rotation(7), Negation(2)])
        with pytest.raises(ValueError, match="is not invariant"):
            HarmonicKernel(RBF(lengthscales=[0.5, 1.0]), Rotation(7))


def test_errors() -> None:
    several, ard = gpflow.kernels.SharedIndependent(RBF(), 2), RBF(lengthscales=[1.0, 1.0])
    columns = "cannot be evaluated on inputs of 12 columns, which Image"
    assert_refused(
        (lambda kernel=kernel, transform=transform: HarmonicKernel(kernel, transform), message)
        for kernel, transform, message in (
            (several, Negation(0), "must have one output, found SharedInd"),
            (ard, ImageFlip((3, 4), 0), columns),
        )
    )
