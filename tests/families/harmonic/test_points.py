"""Inducing points of harmonic kernels, and their covariances against loops over the parts."""

import gpflow
import numpy as np
import pytest
import scipy.linalg
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

import interdomain as idm
from interdomain.core.clustering import k_means
from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import HarmonicInducingPoints
from interdomain.kernels import Convolutional, HarmonicKernel
from interdomain.transforms import CyclicTransform, Negation, Rotation
from tests.conformance.helpers import assert_refused, assert_same_results, compiled
from tests.conformance.kernel_cases import inputs

GROUPS: dict[str, list[CyclicTransform]] = {
    "rotation-3": [Rotation(3)],
    "rotation-4": [Rotation(4)],
    "rotation-7": [Rotation(7, centre=0.2)],
    "negation-rotation": [Negation(2), Rotation(3)],
    "rotations-3-5": [Rotation(3), Rotation(5, (2, 3))],
}
NUM_POINTS, NUM_COLUMNS = 3, 4


def make(
    group: str, style: str, base: str = "Matern52"
) -> tuple[HarmonicKernel, HarmonicInducingPoints]:
    kernel = HarmonicKernel(getattr(gpflow.kernels, base)(1.3, 1.7), GROUPS[group])
    if style.startswith("distinct"):
        Z = np.stack([inputs(NUM_POINTS, NUM_COLUMNS, t + 1) for t in range(kernel.num_components)])
    else:
        Z = inputs(NUM_POINTS, NUM_COLUMNS)
    complete = style.endswith("complete")
    return kernel, HarmonicInducingPoints.for_kernel(kernel, Z, complete=complete)


def placed_points(kernel: HarmonicKernel, points: HarmonicInducingPoints) -> list[np.ndarray]:
    """Where the variables of each part are: the images one after the other, of all points each."""
    transform, places = kernel.transform, []
    complete = max(points.multiplicities) > 1
    for t, frequency in enumerate(kernel.frequencies):
        Z = points.Z_per_component[0 if points.shared else t]
        shifts = [()]
        for f, T in zip(frequency, transform.orders, strict=True):
            choices = (0, 1) if complete and f not in (0, T / 2) else (0,)
            shifts = [(*shift, s) for shift in shifts for s in choices]
        places.append(np.concatenate([transform.power(Z, shift) for shift in shifts]))
    return places


def test_multiplicities() -> None:
    """One of each for frequency 0 and T / 2, two for every axis between."""
    assert make("rotation-7", "complete")[1].multiplicities == (1, 2, 2, 2)
    assert make("rotation-4", "complete")[1].multiplicities == (1, 2, 1)
    assert make("negation-rotation", "complete")[1].multiplicities == (1, 2, 1, 2)
    assert make("rotations-3-5", "complete")[1].multiplicities == (1, 2, 2, 2, 4, 4)
    assert make("rotation-7", "distinct")[1].multiplicities == (1, 1, 1, 1)


@pytest.mark.parametrize("style", ["distinct", "shared", "complete", "distinct-complete"])
def test_shapes(style: str) -> None:
    """Z is as of other inducing variables ``[M, D]``: a row for each variable, in their order."""
    kernel, points = make("negation-rotation", style)
    T = kernel.num_components
    number = kernel.transform.order if style.endswith("complete") else T
    assert points.shared == (not style.startswith("distinct"))
    assert points.num_components == len(points.inducing_variables) == T
    assert points.num_inducing == NUM_POINTS * number
    assert points.points().shape == (1 if points.shared else T, NUM_POINTS, NUM_COLUMNS)
    assert len(points.parameters) == (1 if points.shared else T)
    places = [
        np.tile(rows[:NUM_POINTS], (len(rows) // NUM_POINTS, 1))
        for rows in placed_points(kernel, points)
    ]
    np.testing.assert_array_equal(points.Z, np.concatenate(places))


@pytest.mark.parametrize(
    ("group", "style", "base"),
    [
        ("rotation-3", "distinct", "Matern52"),
        ("rotation-4", "shared", "Matern52"),
        ("negation-rotation", "complete", "Matern52"),
        ("rotations-3-5", "distinct-complete", "Matern52"),
        ("negation-rotation", "complete", "RationalQuadratic"),
    ],
)
def test_covariances(group: str, base: str, style: str) -> None:
    kernel, points = make(group, style, base)
    X = inputs(5, NUM_COLUMNS, seed=9)
    places = placed_points(kernel, points)
    parts = list(zip(kernel.kernels, places, strict=True))
    features = np.concatenate([part(place, X) for part, place in parts])
    np.testing.assert_allclose(Kuf(points, kernel, X), features, atol=1e-13)
    blocks = [part(place).numpy() for part, place in parts]
    dense = scipy.linalg.block_diag(*blocks)
    actual = Kuu(points, kernel, jitter=0.1).numpy()
    np.testing.assert_allclose(actual, dense + 0.1 * np.eye(len(dense)), atol=1e-13)
    np.testing.assert_array_equal(actual, actual.T)
    operator = Kuu_operator(points, kernel, jitter=0.1)
    assert isinstance(operator, tf.linalg.LinearOperatorBlockDiag)
    np.testing.assert_array_equal(operator.to_dense(), actual)
    # One part by itself, as the blocks of a sum are.
    last = kernel.num_components - 1
    block, part = points.inducing_variables[last], kernel.kernels[last]
    np.testing.assert_allclose(Kuu(block, part), blocks[last], atol=1e-13)
    np.testing.assert_allclose(Kuf(block, part, X), part(places[last], X), atol=1e-13)


@pytest.mark.parametrize(
    ("group", "style"), [("rotation-3", "distinct-complete"), ("rotation-4", "complete")]
)
def test_gradients_of_covariances(group: str, style: str) -> None:
    """To Z, X and hyperparameters: GPflow's through the parts at the places, for the oracle."""
    kernel, points = make(group, style)
    generic = HarmonicKernel(Plain(1.3, 1.7), GROUPS[group])
    X = tf.Variable(inputs(5, NUM_COLUMNS, seed=9))
    assert_same_results(
        lambda: [Kuf(points, kernel, tf.identity(X)), Kuu(points, kernel)],
        lambda: [Kuf(points, generic, tf.identity(X)), Kuu(points, generic)],
        [*points.trainable_variables, X],
        rtol=1e-10,
    )


class Plain(gpflow.kernels.Matern52):
    """Has no closed form."""


KERNEL = HarmonicKernel(gpflow.kernels.Matern52(), Rotation(7))


def test_errors() -> None:
    Z2, Z3, make = np.zeros((3, 2)), np.zeros((4, 3, 2)), HarmonicInducingPoints
    number, rbf = r"num_components must be ", gpflow.kernels.RBF()
    assert_refused(
        [
            (lambda: make(np.zeros(3)), r"Z must be \[T, m, D\] .* found shape \(3,\)"),
            (lambda: make(Z2), number + r"given where Z is \[m, D\], found None; pass num"),
            (lambda: make(Z3, 3), number + "4, as Z has, found 3; pass"),
            (lambda: make.for_kernel(rbf, Z2), "must be a HarmonicKernel, found Squared"),
            (
                lambda: make.for_kernel(KERNEL, Z3[:3]),
                r"points for the 4 components of the kernel, found 3",
            ),
        ]
    )


def test_from_data() -> None:
    X = inputs(200, 2)
    points = HarmonicInducingPoints.from_data(KERNEL, X, 6, complete=True)
    assert points.multiplicities == KERNEL.multiplicities
    blocks = [Z.numpy() for Z in points.Z_per_component]
    assert len(blocks) == 4 and blocks[0].shape == (6, 2)
    assert len({tuple(np.sort(Z[:, 0]).round(3)) for Z in blocks}) == 4  # a seed for each
    again = HarmonicInducingPoints.from_data(KERNEL, X, 6, complete=True)
    np.testing.assert_array_equal(again.points(), points.points())
    other = HarmonicInducingPoints.from_data(KERNEL, X, 6, seed=10)
    assert np.abs(other.points() - points.points()).max() > 1e-3
    shared = HarmonicInducingPoints.from_data(KERNEL, X, 6, shared=True)
    assert shared.shared and shared.num_components == 4
    assert shared.multiplicities == (1, 1, 1, 1)


def test_columns_that_the_kernel_selects() -> None:
    """Points have the selected columns; graphs and functions of the prior accept all columns."""
    X, kernel = inputs(20, 3), HarmonicKernel(gpflow.kernels.Matern32(), Negation())
    chosen = X[:, [2, 0]]
    points = HarmonicInducingPoints.from_data(kernel, chosen, 3)
    expected = Kuf(points, kernel, chosen)
    kernel.active_dims = [2, 0]
    same = HarmonicInducingPoints.from_data(kernel, X, 3)
    np.testing.assert_array_equal(same.points(), points.points())
    graph = compiled(lambda rows: Kuf(points, kernel, rows), [None, None])
    np.testing.assert_allclose(graph(X), expected, rtol=1e-12)
    assert points.num_columns(kernel) is None
    assert idm.sample_functions(kernel, 2, input_dim=3)(X).shape == (2, 20, 1)


def test_k_means_with_repeated_rows() -> None:
    """Clusters of no points stay at rows of the data; nothing is NaN, and nothing is warned."""
    rows = np.array([[0.0, 1.0], [2.0, 3.0]])
    found = k_means(np.repeat(rows, 20, axis=0), 5)
    assert found.shape == (5, 2)
    assert {tuple(row) for row in found.round(12)} <= {tuple(row) for row in rows}


def test_points_of_images_are_patches() -> None:
    """The base function of a convolutional kernel lives there: k-means of all patches, by hand."""
    images = np.random.default_rng(1).normal(size=(6, 16))
    base = Convolutional(gpflow.kernels.SquaredExponential(lengthscales=2.0), (4, 4), (3, 3))
    kernel = HarmonicKernel(base, Negation())
    squares = images.reshape(6, 4, 4)
    patches = np.concatenate(
        [squares[:, i : i + 3, j : j + 3].reshape(6, 9) for i in range(2) for j in range(2)]
    )
    points = HarmonicInducingPoints.from_data(kernel, images, 24)
    for Z in points.Z_per_component:  # as many as there are: each is a centre
        order = [rows[np.lexsort(rows.T)] for rows in (Z.numpy(), patches)]
        np.testing.assert_allclose(*order, rtol=1e-12)
    assert Kuf(points, kernel, images).shape == (48, 6)
    with pytest.raises(ValueError, match="num_inducing must be an integer from 1 to 24, found 25"):
        HarmonicInducingPoints.from_data(kernel, images, 25)
