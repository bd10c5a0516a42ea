"""Convolutional kernels against patches by loops over pixels, values and gradients."""

from collections.abc import Callable
from functools import cache
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

from interdomain import _tracing
from interdomain.core import set_kernel
from interdomain.families.images.patch_grid import PatchGrid
from interdomain.inducing_variables import InducingPatches
from interdomain.kernels import Convolutional
from interdomain.linalg import chunks
from tests.conformance.helpers import (
    assert_close,
    assert_same_results,
    compiled,
    value_and_gradients,
)
from tests.families.images.references import BY_NAME, Case, by_broadcasting

NUM_X, NUM_X2 = 3, 2


def covariances(
    kernel: Convolutional, points: InducingPatches, X: tf.Tensor, X2: tf.Tensor
) -> list[tf.Tensor]:
    return [
        kernel(X),
        kernel(X, X2),
        kernel(X, full_cov=False),
        Kuf(points, kernel, X),
        Kuu(points, kernel),
    ]


def data(case: Case) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.constant(case.images(NUM_X)), tf.constant(case.images(NUM_X2, seed=1))


def few_at_a_time(monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
    """All that is done in parts is done in several: groups, the points of a group, Z and inputs."""
    monkeypatch.setattr(chunks, "CHUNK_ENTRIES", entries)
    monkeypatch.setattr(set_kernel, "_MAX_POINT_ENTRIES", entries)
    monkeypatch.setattr(set_kernel, "_MINIBATCH", NUM_X)


def assert_as_by_broadcasting(case: Case) -> None:
    """The covariances, and gradients to all parameters, to X and to X2."""
    kernel, points = case.build()
    arguments = kernel, points, *data(case)
    assert_same_results(
        lambda: covariances(*arguments),
        lambda: by_broadcasting(case, *arguments),
        [*kernel.trainable_variables, *points.trainable_variables, *arguments[2:]],
        rtol=1e-10,
    )


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "se"])
def test_values_and_gradients(name: str) -> None:
    assert_as_by_broadcasting(BY_NAME[name])


@pytest.mark.parametrize(
    ("name", "entries"), [("se", 60), ("rational-quadratic-same", 5), ("sum-with-active-dims", 2)]
)
def test_in_parts(name: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels with and without a closed form; the fewer entries, the more in parts. Eager calls
    compile many parts, unless a tape records them."""
    few_at_a_time(monkeypatch, entries)
    assert_as_by_broadcasting(BY_NAME[name])
    graphs: list[Any] = []
    monkeypatch.setattr(chunks, "_FEW_CHUNKS", 0)
    monkeypatch.setattr(chunks, "compiled", lambda f: graphs.append(f) or _tracing.compiled(f))
    arguments = *BY_NAME[name].build(), *data(BY_NAME[name])
    values, desired = covariances(*arguments), by_broadcasting(BY_NAME[name], *arguments)
    assert_close(values, desired, rtol=1e-10)
    assert graphs


def test_as_gpflows() -> None:
    image_shape, patch_shape, channels = (5, 4), (2, 3), 3
    base = gpflow.kernels.Matern32(1.3, np.linspace(1, 2, 6))
    weights = np.random.default_rng(0).normal(size=4 * 2 * channels)
    kernel = Convolutional(
        base, (*image_shape, channels), patch_shape, weights=weights, separate_channels=True
    )
    theirs = gpflow.kernels.Convolutional(base, image_shape, patch_shape, weights, channels)
    X, X2 = np.random.default_rng(1).normal(size=(2, 4, 20 * channels))
    np.testing.assert_array_equal(kernel.get_patches(X), theirs.get_patches(X))
    Z = np.random.default_rng(2).normal(size=(3, 6))
    points = InducingPatches(Z), gpflow.inducing_variables.InducingPatches(Z)
    both = zip((kernel, theirs), points, strict=True)
    assert_close(*(covariances(*pair, X, X2) for pair in both), rtol=1e-12)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("image_shape", "patch_shape", "stride"),
    [
        ((5, 4, 2), (2, 3), (1, 1)),
        ((7, 6), (3, 2), (2, 3)),
        ((4, 9, 3), (4, 1), (3, 1)),
        ((6, 5), (2, 2), (3, 4)),  # some pixels are in no patch
    ],
)
def test_patches_are_tensorflows(
    image_shape: tuple[int, ...],
    patch_shape: tuple[int, int],
    stride: tuple[int, int],
    padding: Any,
) -> None:
    grid = PatchGrid(image_shape, patch_shape, stride, padding)
    shape = image_shape if len(image_shape) == 3 else (*image_shape, 1)
    X = np.random.default_rng(0).normal(size=(2, int(np.prod(shape))))
    desired = tf.image.extract_patches(
        X.reshape(-1, *shape), [1, *patch_shape, 1], [1, *stride, 1], [1, 1, 1, 1], padding
    )
    assert (*grid.grid_shape, grid.patch_size) == tuple(desired.shape[1:])
    assert grid.num_patches == np.prod(grid.grid_shape)
    actual = grid.extract(tf.constant(X))
    np.testing.assert_array_equal(actual, tf.reshape(desired, actual.shape))


MEMORY_POINTS = InducingPatches(np.random.default_rng(0).normal(size=(20, 9)))
NUM_IMAGES = 1000
COVARIANCES: dict[str, tuple[Callable[[Any, tf.Tensor], tf.Tensor], int]] = {
    "K_diag": (lambda k, X: k(X, full_cov=False), 64**2 * NUM_IMAGES),
    "K": (lambda k, X: k(X), 64 * NUM_IMAGES**2),
    "Kuf": (lambda k, X: Kuf(MEMORY_POINTS, k, X), 20 * 64 * NUM_IMAGES),
}
"""And the entries of the smallest tensor that there must not be: of all kernel values, or of K
with one of its inputs' patches."""


@cache
def gradient_nodes(base_class: type[gpflow.kernels.Kernel], name: str) -> list[Any]:
    """The nodes of a graph of the covariance and its gradients, with their shapes."""
    kernel = Convolutional(base_class(), (10, 10), (3, 3))
    covariance, _ = COVARIANCES[name]

    def gradients(X: tf.Tensor) -> list[tf.Tensor]:
        variables = [X, *kernel.trainable_variables]
        return value_and_gradients(lambda: covariance(kernel, X) ** 2, variables)[1]

    graph = compiled(gradients, [NUM_IMAGES, 100]).get_concrete_function().graph
    graph = graph.as_graph_def(add_shapes=True)
    nodes = list(graph.node)
    for function in graph.library.function:
        nodes.extend(function.node_def)
    return nodes


def shapes(node: Any) -> list[list[int]]:
    return [[d.size for d in s.dim] for s in node.attr["_output_shapes"].list.shape]


@pytest.mark.parametrize("name", COVARIANCES)
@pytest.mark.parametrize("base", [gpflow.kernels.Matern32, gpflow.kernels.RationalQuadratic])
def test_memory(base: type[gpflow.kernels.Kernel], name: str) -> None:
    """No tensor is as large as all kernel values, and no loop saves what it computes."""
    nodes = gradient_nodes(base, name)
    assert not [node.op for node in nodes if "PushBack" in node.op]
    every = [shape for node in nodes for shape in shapes(node)]
    assert sum(-1 in shape for shape in every) <= 4  # they would tell nothing
    largest = max(int(np.prod(shape)) for shape in every if -1 not in shape)
    inputs_and_result = max(NUM_IMAGES**2 if name == "K" else 0, NUM_IMAGES * 64 * 11)
    assert largest <= inputs_and_result < COVARIANCES[name][1]


def test_the_gradient_of_variances_evaluates_no_kernel() -> None:
    """The forward pass computes all that the gradient needs."""
    matrices = [
        node.op
        for node in gradient_nodes(gpflow.kernels.Matern32, "K_diag")
        if any(len(shape) >= 2 and shape[-2:] == [64, 64] for shape in shapes(node))
    ]
    assert matrices.count("Exp") == 1
