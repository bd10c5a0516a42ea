"""Fourier features: covariances against integrals of the real kernel, by the trapezoid rule."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

from interdomain.inducing_variables import HarmonizableFourierFeatures
from interdomain.kernels import HarmonizableComponent
from tests.conformance.helpers import assert_close
from tests.families.harmonizable.harmonizable_cases import (
    FORMS,
    HALF_WIDTH,
    STEP,
    Values,
    component,
    grid,
    real_kernel,
)

BY_NAME = {form.name: form for form in FORMS}


def frequencies(count: int, dimension: int) -> np.ndarray:
    """Zero among them, and the others well away from each other and their negatives."""
    w = np.random.default_rng(0).uniform(-0.2, 0.2, size=[count, dimension])
    w[:, 0] += 0.4 * np.arange(count)
    w[0] = 0.0
    return w[::-1].copy()


def inputs(kernel: HarmonizableComponent, count: int) -> np.ndarray:
    shape = (count, kernel.dimension)
    return kernel.centre.numpy() + np.random.default_rng(1).uniform(-1, 1, size=shape)


def by_integrals(values: Values, w: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The covariances of ``int f(x + centre) cos(2 pi w^T x) dx`` and of the same with -sin, but
    for w = 0, with themselves and with f(X)."""
    y, volume = grid(len(values.centre), HALF_WIDTH, STEP)
    angle = 2 * np.pi * w @ y.T
    waves = volume * np.concatenate([np.cos(angle), -np.sin(angle)[np.any(w != 0, axis=1)]])
    points = y + values.centre
    with_itself = sum(
        waves @ real_kernel(values, points, points[rows]) @ waves[:, rows].T
        for rows in np.array_split(np.arange(len(points)), len(points) // 500 + 1)
    )
    return waves @ real_kernel(values, points, X), with_itself


@pytest.mark.parametrize(("name", "count"), [("1d", 3), ("1d-real", 3), ("2d-full", 3), ("1d", 1)])
def test_covariances(name: str, count: int) -> None:
    """Of w = 0 alone, too, which has no imaginary part."""
    kernel = component(BY_NAME[name])
    w, X = frequencies(count, kernel.dimension), inputs(kernel, 6)
    features = HarmonizableFourierFeatures(w)
    assert features.num_inducing == 2 * count - 1
    with_process, with_itself = by_integrals(Values.of(kernel), w, X)
    deviations = np.sqrt(np.diag(with_itself))
    kuf, kuu = Kuf(features, kernel, X).numpy(), Kuu(features, kernel).numpy()
    assert_close(kuf, with_process / deviations[:, None], rtol=1e-9)
    assert_close(kuu, with_itself / np.outer(deviations, deviations), rtol=1e-9)
    np.testing.assert_allclose(np.diag(kuu), 1.0, rtol=1e-14)
    joint = np.block([[kuu, kuf], [kuf.T, kernel(X).numpy()]])
    eigenvalues = np.linalg.eigvalsh(joint)
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


def test_many_frequencies_explain_the_kernel() -> None:
    kernel = component(BY_NAME["1d"])
    X = kernel.centre.numpy() + np.linspace(-0.7, 0.7, 15)[:, None]
    missing = []
    for count in (4, 8, 13):
        features = HarmonizableFourierFeatures(0.25 * np.arange(count)[:, None])
        kuf, dense = Kuf(features, kernel, X).numpy(), Kuu(features, kernel).numpy()
        explained = kuf.T @ np.linalg.solve(dense, kuf)
        missing.append(np.max(np.abs(kernel(X) - explained)) / np.max(kernel(X)))
    assert missing[0] > missing[1] > missing[2]
    assert missing[-1] < 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_nearly_zero_frequency(dtype: type) -> None:
    """Its imaginary part has a variance that rounding swallows: still numbers."""
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        kernel = component(BY_NAME["1d"])
        for size in (1e-7, 1e-200):
            features, X = (
                HarmonizableFourierFeatures([[size], [0.4]]),
                inputs(kernel, 4).astype(dtype),
            )
            variables = (*kernel.trainable_variables, *features.trainable_variables)
            with tf.GradientTape() as tape:
                covariances = Kuf(features, kernel, X), Kuu(features, kernel)
                total = tf.add_n([tf.reduce_sum(tf.sin(part)) for part in covariances])
            for value in (total, *tape.gradient(total, variables)):
                assert np.all(np.isfinite(value))
