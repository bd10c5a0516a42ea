"""Fourier features of a box: waves, the RKHS's inner products, Mercer's sum."""

from __future__ import annotations

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential

from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import Periodized
from tests.conformance.helpers import assert_close
from tests.families.waves.references import LOWER, PERIODS, UPPER


def box(num_columns: int, kind: type = Matern32) -> Periodized:
    lengthscales = np.array([0.3, 0.5, 0.2, 0.4])[:num_columns]
    base = kind(variance=1.3, lengthscales=lengthscales)
    return Periodized(base, LOWER[:num_columns], UPPER[:num_columns])


KERNELS = {
    "one column": lambda: box(1, Matern12),
    "two columns": lambda: box(2),
    "three columns": lambda: box(3, Matern52),
}


def features(kernel: Periodized, count: int = 30) -> BoxFourierFeatures:
    return BoxFourierFeatures.for_kernel(kernel, count)


def inputs(num_columns: int, count: int = 9, seed: int = 0) -> np.ndarray:
    """In the box, at its corners, and outside."""
    rng = np.random.default_rng(seed)
    corners = np.array([LOWER, UPPER])[:, :num_columns]
    turns = rng.uniform(-0.7, 1.7, [count, num_columns])
    return np.concatenate([corners, corners[0] + turns * PERIODS[:num_columns]])


def grid(num_columns: int, counts: list[int]) -> np.ndarray:
    """Points of the rectangle rule, which is exact for waves of fewer periods than half of them."""
    axes = [
        LOWER[i] + PERIODS[i] * (np.arange(count) + 0.3) / count for i, count in enumerate(counts)
    ]
    return np.array(list(itertools.product(*axes))).reshape(-1, num_columns)


def wave(number: int, turns: np.ndarray) -> np.ndarray:
    """The orthonormal functions of a period of one, by their numbers."""
    if not number:
        return np.ones_like(turns)
    function = np.cos if number % 2 else np.sin
    return np.sqrt(2) * function(2 * np.pi * ((number + 1) // 2) * turns)


@pytest.mark.parametrize("name", ["one column", "three columns"])
def test_kuf_is_waves(name: str) -> None:
    """Products of the waves of each column, in the order of `functions`, beyond the box too."""
    kernel = KERNELS[name]()
    iv, D = features(kernel), kernel.num_columns
    X = inputs(D)
    turns = (X - LOWER[:D]) / PERIODS[:D]
    for row, numbers in zip(Kuf(iv, kernel, X).numpy(), iv.functions, strict=True):
        columns = [
            wave(number, turns[:, i]) / np.sqrt(PERIODS[i]) for i, number in enumerate(numbers)
        ]
        np.testing.assert_allclose(row, np.prod(columns, axis=0), rtol=0, atol=1e-13)


GRIDS = {
    "one column": ([64], [4000]),
    "two columns": ([24, 24], [12, 12]),
}
"""Points in each column, and how many aliases on either side carry more than 1e-6 together."""


@pytest.mark.parametrize("name", GRIDS)
def test_waves_are_eigenfunctions(name: str) -> None:
    """``int k(x, y) phi_m(y) dy = phi_m(x) / Kuu_mm`` over the box, so that ``<k(x, .), phi_m>`` is
    phi_m(x) in the RKHS, and ``<phi_m, phi_m>`` is Kuu_mm.

    By the rectangle rule: what it makes of a wave has the density of all waves that are the same on
    the grid, its aliases, in place of its own."""
    kernel = KERNELS[name]()
    D, (counts, reach) = kernel.num_columns, GRIDS[name]
    iv, points = features(kernel, 15), grid(kernel.num_columns, counts)
    X = points[[3, len(points) // 2, -5]]
    weight = np.prod(PERIODS[:D]) / np.prod(counts)
    smoothed = kernel(X, points).numpy() @ Kuf(iv, kernel, points).numpy().T * weight
    axes = [n * np.arange(-r, r + 1) for n, r in zip(counts, reach, strict=True)]
    aliases = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, D)
    waves, waves_of_X = (iv.functions + 1) // 2, Kuf(iv, kernel, X).numpy()
    densities = [np.sum(kernel.spectral_density(j + aliases)) for j in waves]
    assert_close(smoothed, waves_of_X.T * densities, rtol=1e-5)
    own = 1 / np.diag(Kuu(iv, kernel))
    shares = own / densities
    assert np.all(shares < 1 + 1e-12) and np.all(shares[:5] > 0.98)
    np.testing.assert_allclose(
        own, [kernel.spectral_density([j]).numpy()[0] for j in waves], rtol=1e-13
    )


@pytest.mark.parametrize("name", ["two columns", "three columns"])
def test_mercer(name: str) -> None:
    """``Kfu Kuu^-1 Kuf`` grows to K: never above in any direction, and no further from it than the
    variance that is left out."""
    kernel = KERNELS[name]()
    X = inputs(kernel.num_columns)
    covariance, total = kernel(X).numpy(), float(kernel.total_variance())
    before = np.zeros_like(covariance)
    for count in (1, 10, 100, 1000):
        iv = features(kernel, count)
        values = Kuf(iv, kernel, X).numpy()
        explained = values.T @ (values / np.diag(Kuu(iv, kernel))[:, None])
        for more, less in ((explained, before), (covariance, explained)):
            assert np.linalg.eigvalsh(more - less)[0] >= -1e-12
        left = total - float(kernel.explained_variance(iv.frequencies))
        np.testing.assert_allclose(np.diag(explained), total - left, rtol=1e-12)
        assert np.max(np.abs(covariance - explained)) <= left + 1e-12
        before = explained
    assert left < 0.2 * total


def test_high_frequencies_alone() -> None:
    """What lies between them costs nothing."""
    kernel = Periodized(Matern12(lengthscales=0.1), 0.0, 1.0)
    iv = BoxFourierFeatures(0.0, 1.0, [[0], [10**8]])
    X = np.array([[0.0], [2.5e-9], [0.5]])
    expected = [[1, 1, 1], np.sqrt(2) * np.array([1, 0, 1]), np.sqrt(2) * np.array([0, 1, 0])]
    # A turn is rounded to 1e-16, of which there are 1e8.
    np.testing.assert_allclose(Kuf(iv, kernel, X), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_densities_that_underflow(dtype: type) -> None:
    """Features of no effect, whose Kuu is finite as are its gradients."""
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        kernel = Periodized(SquaredExponential(lengthscales=1.0), 0.0, 1.0)
        iv = features(kernel, 61)
        with tf.GradientTape() as tape:
            diagonal = tf.linalg.diag_part(Kuu(iv, kernel))
            total = tf.reduce_sum(1 / diagonal)
        gradients = tape.gradient(total, kernel.trainable_variables)
        for value in (diagonal, tf.sqrt(diagonal), *gradients):
            assert np.all(np.isfinite(value))
        np.testing.assert_allclose(total, kernel.total_variance(), rtol=1e-6)
