"""Invariant kernels against loops over the group, and what sampling its elements does."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

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
    "rotation-3": (lambda: [Rotation(3)], [turn(2 * np.pi * k / 3) for k in range(3)], 2),
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
    # None of these is invariant to the groups, but for the first to some.
    "SquaredExponential": lambda D: gpflow.kernels.SquaredExponential(1.3, 1.7),
    "Matern52-ARD": lambda D: gpflow.kernels.Matern52(1.3, np.linspace(1, 2, D)),
    "ArcCosine": lambda D: gpflow.kernels.ArcCosine(1, 1.3, np.linspace(1, 2, D)),
}


close = functools.partial(assert_close, rtol=1e-12)


def make(group: str, base: str, **options: Any) -> tuple[Invariant, list[Map], int]:
    transforms, elements, num_columns = GROUPS[group]
    return Invariant(BASES[base](num_columns), transforms(), **options), elements, num_columns


def orbit(elements: list[Map], x: np.ndarray) -> np.ndarray:
    return np.stack([element(x) for element in elements])


@pytest.mark.parametrize(
    ("group", "base", "entries"),
    [("negation-rotation", "Matern52-ARD", 30), ("shifts", "ArcCosine", 2**18)],
)
def test_means_over_the_group(
    group: str, base: str, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which are invariant to it."""
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
    """To the base kernel's parameters, X, X2 and Z, also of samples of all elements."""
    group, base = "negation-rotation", "Matern52-ARD"
    kernel, elements, D = make(group, base)
    sampled, _, _ = make(group, base, num_samples=6)
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
    sampled.base_kernel = g
    for k in (kernel, sampled):
        assert_same_results(
            lambda k=k: [k(X), k(X, X2), k(X, full_cov=False), Kuf(points, k, X)],
            by_definition,
            variables,
            rtol=1e-10,
        )


def draws(kernel: Invariant, points: OrbitInducingPoints, x: np.ndarray, number: int) -> Any:
    """Many samples of the covariances of one input with u ``[number, M]``, and of its variance."""
    X = np.repeat(x[None], number, axis=0)
    tf.random.set_seed(4)
    return Kuf(points, kernel, X).numpy().T, kernel(X, full_cov=False).numpy()


def test_samples_are_subsets_and_unbiased() -> None:
    """Each input draws its own; every subset comes up, as often as the others."""
    base = "Matern52-ARD"
    kernel, elements, D = make("negation-rotation", base, num_samples=2)
    g, x, Z = kernel.base_kernel, inputs(1, D)[0], inputs(2, D, seed=1)
    whole, points = make("negation-rotation", base)[0], OrbitInducingPoints(Z)
    images, T, number = orbit(elements, x), 6, 3000
    subsets = list(itertools.combinations(range(T), 2))
    columns = np.array([np.mean(g(Z, images[list(s)]), axis=1) for s in subsets])
    # Of T^2 pairs T are of an element with itself, which the two of a subset show.
    of_pairs = [g(images[list(s)]).numpy() for s in subsets]
    variances = np.array([np.mean(np.diag(k)) / T + k[0, 1] * (1 - 1 / T) for k in of_pairs])
    # The re-derived estimates are unbiased: no probability is involved.
    close(columns.mean(axis=0), Kuf(points, whole, x[None])[:, 0])
    close(variances.mean(), whole(x[None], full_cov=False)[0])

    features, of_f = draws(kernel, points, x, number)
    for found, possible in ((features, columns), (of_f[:, None], variances[:, None])):
        apart = np.abs(found[:, None] - possible).max(axis=-1)
        assert apart.min(axis=1).max() < 1e-12
        if found is features:  # which differ from subset to subset
            counts = np.bincount(apart.argmin(axis=1), minlength=len(subsets))
            assert counts.sum() == number
            # 15 subsets of 3000 draws: 200 each, and 5 standard errors of 13.7.
            assert np.abs(counts - 200).max() < 5 * 13.7


def test_what_is_not_sampled() -> None:
    kernel, _, D = make("negation-rotation", "Matern52-ARD", num_samples=2)
    whole = make("negation-rotation", "Matern52-ARD")[0]
    X, points = inputs(4, D), OrbitInducingPoints(inputs(3, D, seed=2))
    np.testing.assert_array_equal(kernel(X), whole(X))
    np.testing.assert_array_equal(Kuu(points, kernel), Kuu(points, whole))
    kernel.num_samples = None
    np.testing.assert_array_equal(Kuf(points, kernel, X), Kuf(points, whole, X))


def test_the_expected_bound() -> None:
    """The statement in the docstring, over all draws of the one row's covariances with u and of its
    variance, which are drawn apart: three subsets for each."""
    whole, elements, D = make("rotation-3", "Matern52-ARD")
    g, X, y, noise = whole.base_kernel, inputs(1, D), 0.7, 0.3
    points = OrbitInducingPoints(inputs(2, D, seed=1))
    rng = np.random.default_rng(2)
    mean, root = rng.normal(size=(2, 1)), np.tril(rng.normal(size=(2, 2)))
    likelihood, q = gpflow.likelihoods.Gaussian(noise), {"q_mu": mean, "q_sqrt": root[None]}
    model = gpflow.models.SVGP(whole, likelihood, points, whiten=False, **q)
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        exact = float(model.elbo((X, [[y]])) + model.prior_kl())
    subsets = [orbit(elements, X[0])[list(s)] for s in itertools.combinations(range(3), 2)]
    columns = np.array([np.mean(g(points.Z, images), axis=1) for images in subsets])
    of_pairs = [g(images).numpy() for images in subsets]
    variances = [np.mean(np.diag(k)) / 3 + k[0, 1] * 2 / 3 for k in of_pairs]
    Kzz = Kuu(points, whole).numpy()

    def fit(column: np.ndarray, variance: float) -> float:
        """The row's expected log density."""
        weights = np.linalg.solve(Kzz, column)
        squares = (y - weights @ mean[:, 0]) ** 2 + variance
        squares += weights @ (root @ root.T - Kzz) @ weights
        return -0.5 * (np.log(2 * np.pi * noise) + squares / noise)

    fits = [fit(*draw) for draw in itertools.product(columns, variances)]
    inverse = np.linalg.inv(Kzz)
    inner = inverse @ (mean @ mean.T + root @ root.T - Kzz) @ inverse
    difference = -np.trace(inner @ np.cov(columns.T, bias=True)) / (2 * noise)
    assert np.ptp(fits) > 1e-3 and abs(difference) > 1e-3
    np.testing.assert_allclose(np.mean(fits) - exact, difference, rtol=1e-9)


def test_sampled_batches_of_unknown_numbers() -> None:
    kernel, _, D = make("negation-rotation", "Matern52-ARD", num_samples=6)
    whole = make("negation-rotation", "Matern52-ARD")[0]
    points = OrbitInducingPoints(inputs(3, D))
    X = np.stack([inputs(4, D), inputs(4, D, seed=1)])

    @tf.function(input_signature=[tf.TensorSpec([2, None, D], tf.float64)], autograph=False)
    def compiled(X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return Kuf(points, kernel, X), kernel(X, full_cov=False)

    close(compiled(X), (Kuf(points, whole, X), whole(X, full_cov=False)))


def test_number_of_samples() -> None:
    message = "num_samples must be an integer between 2 and the number of elements, 6, found"
    kernel, _, _ = make("negation-rotation", "ArcCosine")
    values: list[Any] = [1, 7, 2.5]
    for value in values:
        with pytest.raises(ValueError, match=message):
            make("negation-rotation", "ArcCosine", num_samples=value)
        with pytest.raises(ValueError, match=message):
            kernel.num_samples = value
