"""Invariant kernels against loops over the group."""

import functools
from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.kernels import Kernel

from interdomain.inducing_variables import OrbitInducingPoints
from interdomain.kernels import Invariant
from interdomain.linalg import chunks
from interdomain.transforms import CyclicTransform, ImageTranslation, Negation, Rotation
from tests.conformance.helpers import assert_close, assert_same_results
from tests.conformance.kernel_cases import inputs

Map = Callable[[np.ndarray], np.ndarray]


def turn(angle: float) -> Map:
    """The first two columns, turned."""
    c, s = np.cos(angle), np.sin(angle)

    def turned(x: np.ndarray) -> np.ndarray:
        return np.concatenate([[c * x[0] - s * x[1], s * x[0] + c * x[1]], x[2:]])

    return turned


GROUPS: dict[str, tuple[Callable[[], list[CyclicTransform]], list[Map], int]] = {
    "negation-rotation": (
        lambda: [Negation(2), Rotation(3)],
        [
            lambda x, k=k, s=s: turn(2 * np.pi * k / 3)(x * [1, 1, s])
            for s in (1, -1)
            for k in range(3)
        ],
        3,
    ),
    "shifts": (
        lambda: [ImageTranslation((2, 3), (0, 1))],
        [lambda x, k=k: np.roll(x.reshape(2, 3), k, axis=1).ravel() for k in range(3)],
        6,
    ),
}
"""Transformations, the elements of the group they generate, and a number of columns."""
BASES: dict[str, Callable[[int], Kernel]] = {
    # None of these is invariant to the groups.
    "Matern52-ARD": lambda D: gpflow.kernels.Matern52(1.3, np.linspace(1, 2, D)),
    "ArcCosine": lambda D: gpflow.kernels.ArcCosine(1, 1.3, np.linspace(1, 2, D)),
}


close = functools.partial(assert_close, rtol=1e-12)


def make(group: str, base: str) -> tuple[Invariant, list[Map], int]:
    transforms, elements, num_columns = GROUPS[group]
    return Invariant(BASES[base](num_columns), transforms()), elements, num_columns


def orbit(elements: list[Map], x: np.ndarray) -> np.ndarray:
    return np.stack([element(x) for element in elements])


@pytest.mark.parametrize(
    ("group", "base", "entries"),
    [("negation-rotation", "Matern52-ARD", 30), ("shifts", "ArcCosine", 2**18)],
)
def test_means_over_the_group(
    group: str, base: str, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means over the group are invariant to it."""
    kernel, elements, D = make(group, base)
    g = kernel.base_kernel
    X, X2, Z = inputs(4, D), inputs(3, D, seed=1), inputs(5, D, seed=2)
    points = OrbitInducingPoints(Z)

    def matrix(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        rows = [[np.mean(g(orbit(elements, a), orbit(elements, b))) for b in B] for a in A]
        return np.array(rows)

    full, cross = matrix(X, X), matrix(X, X2)
    features = np.array([[np.mean(g(z[None], orbit(elements, x))) for x in X] for z in Z])
    monkeypatch.setattr(chunks, "CHUNK_ENTRIES", entries)
    close(kernel(X), full)
    close(kernel(X, X2), cross)
    close(kernel(X, full_cov=False), np.diag(full))
    close(Kuf(points, kernel, X), features)
    close(Kuu(points, kernel, jitter=0.5), g(Z) + 0.5 * np.eye(5))
    for element in elements[1:]:
        moved = np.stack([element(x) for x in X])
        assert np.abs(moved - X).max() > 0.1
        close(kernel(moved, X2), cross)
        close(Kuf(points, kernel, moved), features)


def test_gradients() -> None:
    """To the base kernel's parameters, X, X2 and Z."""
    group, base = "negation-rotation", "Matern52-ARD"
    kernel, elements, D = make(group, base)
    points = OrbitInducingPoints(inputs(5, D, seed=2))
    X, X2 = tf.constant(inputs(4, D)), tf.constant(inputs(3, D, seed=1))
    g, Z = kernel.base_kernel, points.Z
    turned = [np.stack([element(x) for x in np.eye(D)], axis=1) for element in elements]

    def by_definition() -> list[tf.Tensor]:
        images, images2 = (tf.concat([x @ m.T for m in turned], axis=0) for x in (X, X2))
        means = [
            tf.reduce_mean(tf.reshape(g(images, other), [6, 4, 6, -1]), axis=[0, 2])
            for other in (images, images2)
        ]
        features = tf.reshape(g(tf.convert_to_tensor(Z), images), [5, 6, 4])
        return [*means, tf.linalg.diag_part(means[0]), tf.reduce_mean(features, axis=1)]

    variables = [*g.trainable_variables, *points.trainable_variables, X, X2]
    assert_same_results(
        lambda: [kernel(X), kernel(X, X2), kernel(X, full_cov=False), Kuf(points, kernel, X)],
        by_definition,
        variables,
        rtol=1e-10,
    )
