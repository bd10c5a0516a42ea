"""Fourier features: what is refused, which frequencies are picked, and their covariances."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

from interdomain.families.harmonizable import fourier_features
from interdomain.inducing_variables import HarmonizableFourierFeatures, SumInducingVariables
from interdomain.kernels import FiniteRank, HarmonizableComponent, HarmonizableMixture
from interdomain.testing import check_family
from tests.conformance.helpers import assert_close, assert_refused, value_and_gradients
from tests.families.harmonizable.harmonizable_cases import (
    FORMS,
    HALF_WIDTH,
    STEP,
    Values,
    component,
    grid,
    real_kernel,
)


def test_errors() -> None:
    make: Any = HarmonizableFourierFeatures
    kernel, matern = component(FORMS[0]), gpflow.kernels.Matern32()
    negatives = r"found \[0.1, -0.2\] and .* rows 0 and 1, which are negatives of each other; pass"
    number = "num_frequencies must be an integer from 1 .*, found 0"
    assert_refused(
        [
            (lambda: make([[0.1], [0.3], [0.1]]), r"found \[0.1\] and \[0.1\], rows 0 and 2"),
            (lambda: make([[0.1, -0.2], [-0.1, 0.2]]), negatives),
            (lambda: make.for_kernel(kernel, 0), number),
            (lambda: make.for_kernel(matern, 3), "must be a HarmonizableMixture or .*, found"),
        ]
    )


def test_zero_has_no_imaginary_part_and_stays() -> None:
    """Its gradient is zero, whatever depends on the features."""
    kernel = component(FORMS[0])
    features = HarmonizableFourierFeatures([[0.3], [0.0], [0.7]])
    assert features.with_imaginary_part == (0, 2)
    assert features.num_inducing == features.shape[0] == 5
    X = np.random.default_rng(0).normal(size=(8, 1))
    _, (gradient,) = value_and_gradients(
        lambda: [tf.sin(Kuf(features, kernel, X)), tf.sin(Kuu(features, kernel))],
        features.trainable_variables,
    )
    assert gradient[1, 0] == 0.0
    assert np.all(np.abs(gradient)[::2] > 1e-3)


def unexplained(kernel: Any, features: HarmonizableFourierFeatures, X: np.ndarray) -> float:
    """``tr(Kff - Kfu Kuu^-1 Kuf)``, of features that may depend on each other."""
    kuf, dense = Kuf(features, kernel, X).numpy(), Kuu(features, kernel).numpy()
    explained = kuf.T @ np.linalg.pinv(dense, rcond=1e-12, hermitian=True) @ kuf
    return float(np.trace(kernel(X).numpy() - explained))


@pytest.mark.parametrize("name", ["1d", "2d-full"])
def test_picked_frequencies(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All distinct; the first where the transform's variance is largest, each next one a gain."""
    (form,) = (form for form in FORMS if form.name == name)
    monkeypatch.setattr(fourier_features, "_CANDIDATES", 256)
    kernel = component(form)
    w = HarmonizableFourierFeatures.for_kernel(kernel, 6).frequencies.numpy()
    assert w.shape == (6, form.dimension)
    both = np.concatenate([w, -w])
    distances = np.linalg.norm(both[:, None] - both, axis=-1) + np.eye(12)
    zeros = np.linalg.norm(both, axis=1) == 0
    assert np.min(distances[~zeros]) > 1e-3
    axis = np.linspace(-1.5, 1.5, 401 if form.dimension == 1 else 21)
    mesh = np.stack(np.meshgrid(*[axis] * form.dimension, indexing="ij"), axis=-1)
    everywhere = mesh.reshape(-1, form.dimension)
    density = kernel.generalized_spectral_density(everywhere, everywhere).numpy().real
    first = kernel.generalized_spectral_density(w[:1], w[:1]).numpy().real.item()
    assert first > (0.999 if form.dimension == 1 else 0.9) * np.max(np.diag(density))
    # Each prefix is what fewer would have been.
    np.testing.assert_array_equal(
        HarmonizableFourierFeatures.for_kernel(kernel, 3).frequencies, w[:3]
    )


def test_picked_frequencies_beat_equally_spaced_ones() -> None:
    """Peaks far apart, of unequal height: over the window, in the mean."""
    kernel = HarmonizableComponent(
        [[0.5], [3.0]], amplitudes=[1.0, 0.6], envelope=0.02, lag=0.01, centre=0.4
    )
    X = np.linspace(-4.0, 4.8, 60)[:, None]
    picked = HarmonizableFourierFeatures.for_kernel(kernel, 6)
    spaced = HarmonizableFourierFeatures(np.linspace(0.0, 3.5, 6)[:, None])
    assert unexplained(kernel, picked, X) < 0.7 * unexplained(kernel, spaced, X)


def test_for_a_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set for each component, as for the component alone."""
    monkeypatch.setattr(fourier_features, "_CANDIDATES", 64)
    parts = [component(FORMS[0], seed) for seed in range(2)]
    features = HarmonizableFourierFeatures.for_kernel(HarmonizableMixture(parts), 3)
    assert isinstance(features, SumInducingVariables)
    assert len(features.inducing_variables) == len(parts)
    for part, block in zip(parts, features.inducing_variables, strict=True):
        alone = HarmonizableFourierFeatures.for_kernel(part, 3)
        np.testing.assert_array_equal(block.frequencies, alone.frequencies)


# Covariances against integrals of the real kernel, by the trapezoid rule.

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


def explained(kernel: Any, features: HarmonizableFourierFeatures, X: np.ndarray) -> np.ndarray:
    kuf, dense = Kuf(features, kernel, X).numpy(), Kuu(features, kernel).numpy()
    return np.asarray(kuf.T @ np.linalg.solve(dense, kuf))


@pytest.mark.parametrize("name", ["1d", "2d-full"])
def test_of_a_whole_mixture(name: str) -> None:
    """Transforms about zero of the sum, by the trapezoid rule over the kernel. Of one component
    they say what those about its centre say."""
    kernel = HarmonizableMixture([component(BY_NAME[name], seed) for seed in range(2)])
    w = frequencies(3, kernel.components[0].dimension)
    features = HarmonizableFourierFeatures(w)
    X = inputs(kernel.components[0], 6)
    check_family(features, kernel, X)
    values = [Values.of(part) for part in kernel.components]
    y, volume = grid(len(values[0].centre), HALF_WIDTH, STEP)
    y += np.mean([value.centre for value in values], axis=0)
    angle = 2 * np.pi * w @ y.T
    waves = volume * np.concatenate([np.cos(angle), -np.sin(angle)[np.any(w != 0, axis=1)]])
    rows = np.array_split(np.arange(len(y)), len(y) // 500 + 1)
    itself, process = (
        sum(part(value) for value in values)
        for part in (
            lambda v: sum(waves @ real_kernel(v, y, y[some]) @ waves[:, some].T for some in rows),
            lambda v: waves @ real_kernel(v, y, X),
        )
    )
    deviations = np.sqrt(np.diag(itself))
    assert_close(Kuf(features, kernel, X), process / deviations[:, None], rtol=1e-9)
    assert_close(Kuu(features, kernel), itself / np.outer(deviations, deviations), rtol=1e-9)
    prior = FiniteRank(kernel, features)
    assert_close(prior(X), explained(kernel, features, X), rtol=1e-5)  # jitter
    alone = kernel.components[0]
    mixture_of_one = explained(HarmonizableMixture([alone]), features, X)
    assert_close(mixture_of_one, explained(alone, features, X), rtol=1e-9)


def test_frequencies_of_a_whole_mixture() -> None:
    """As many say more than one set for each component, and no more are taken than there are."""
    parts = [
        HarmonizableComponent([[0.4 + k], [1.0]], centre=2.0 * k, envelope=0.3, lag=0.2)
        for k in range(3)
    ]
    kernel, X = HarmonizableMixture(parts), np.linspace(-1.5, 5.5, 60)[:, None]
    whole = HarmonizableFourierFeatures.for_kernel(kernel, 20, per_component=False)
    blocks = HarmonizableFourierFeatures.for_kernel(kernel, 7)
    assert whole.num_inducing == blocks.num_inducing
    left, left_by_blocks = (unexplained(kernel, features, X) for features in (whole, blocks))
    assert left < left_by_blocks / 3
    with pytest.raises(ValueError, match="num_frequencies must be at most .*, found 300: the"):
        HarmonizableFourierFeatures.for_kernel(kernel, 300, per_component=False)


def test_many_frequencies_explain_the_kernel() -> None:
    kernel = component(BY_NAME["1d"])
    X = kernel.centre.numpy() + np.linspace(-0.7, 0.7, 15)[:, None]
    missing = []
    for count in (4, 8, 13):
        features = HarmonizableFourierFeatures(0.25 * np.arange(count)[:, None])
        left = kernel(X) - explained(kernel, features, X)
        missing.append(np.max(np.abs(left)) / np.max(kernel(X)))
    assert missing[0] > missing[1] > missing[2]
    assert missing[-1] < 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_nearly_zero_frequency(dtype: type) -> None:
    """Its imaginary part has a variance that rounding swallows: still numbers."""
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        kernel = component(BY_NAME["1d"])
        X = inputs(kernel, 4).astype(dtype)
        for size in (1e-7, 1e-200):
            features = HarmonizableFourierFeatures([[size], [0.4]])
            values = value_and_gradients(
                lambda iv=features: [tf.sin(Kuf(iv, kernel, X)), tf.sin(Kuu(iv, kernel))],
                (*kernel.trainable_variables, *features.trainable_variables),
            )
            assert all(np.all(np.isfinite(value)) for value in tf.nest.flatten(values))
