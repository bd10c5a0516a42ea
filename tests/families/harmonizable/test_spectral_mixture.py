"""Spectral mixtures: against the formula, and as Fourier transforms of their densities."""

from typing import Any

import numpy as np
import pytest

from interdomain.families.harmonizable.initialisation import find_peaks
from interdomain.kernels import HarmonizableMixture, SpectralComponent, SpectralMixture
from tests.conformance.helpers import assert_close, assert_refused
from tests.conformance.kernel_cases import inputs

from .harmonizable_cases import as_matrix, grid

LAGS = {"scalar": 0.1, "diagonal": [0.1, 0.15], "full": [[0.15, 0.04], [0.04, 0.1]]}
EACH_LAG = pytest.mark.parametrize("lag", LAGS.values(), ids=list(LAGS))
FREQUENCY = np.array([0.4, -0.3])


def formula(kernel: SpectralComponent, X: np.ndarray, X2: np.ndarray) -> np.ndarray:
    """Eq. 4."""
    t = X[:, None] - X2
    lag = as_matrix(kernel.lag.numpy(), kernel.dimension)
    decay = np.exp(-2 * np.pi**2 * np.einsum("nkd,de,nke->nk", t, lag, t))
    return kernel.variance.numpy() * decay * np.cos(2 * np.pi * t @ kernel.frequency.numpy())


def mixture() -> SpectralMixture:
    return SpectralMixture(
        [
            SpectralComponent(FREQUENCY, variance=1.3, lag=LAGS["full"]),
            SpectralComponent([0.0, 0.8], variance=0.4, lag=LAGS["scalar"]),
        ]
    )


@EACH_LAG
def test_component(lag: Any) -> None:
    kernel = SpectralComponent(FREQUENCY, variance=1.3, lag=lag)
    X, X2 = inputs(6, 2), inputs(4, 2, seed=1)
    assert_close(kernel(X), formula(kernel, X, X), rtol=1e-13)
    assert_close(kernel(X, X2), formula(kernel, X, X2), rtol=1e-13)
    assert_close(kernel(X, full_cov=False), np.full(6, 1.3), rtol=1e-14)


@EACH_LAG
def test_density_of_a_component(lag: Any) -> None:
    """Its integral with cosines gives the kernel back; it is even, and its mass the variance."""
    kernel = SpectralComponent(FREQUENCY, variance=1.3, lag=lag)
    w, volume = grid(2, 4.0, 0.1)
    density = volume * kernel.spectral_density(w).numpy()
    assert_close(density, density[::-1], rtol=1e-12)
    assert np.sum(density) == pytest.approx(1.3, rel=1e-12)
    X, X2 = inputs(4, 2), inputs(3, 2, seed=1)
    lags = X[:, None] - X2
    integral = np.cos(2 * np.pi * lags @ w.T) @ density
    assert_close(integral, kernel(X, X2), rtol=1e-10)


def test_mixture() -> None:
    kernel = mixture()
    X, X2, w = inputs(6, 2), inputs(4, 2, seed=1), inputs(5, 2, seed=2)
    parts = kernel.kernels
    assert_close(kernel(X, X2), sum(formula(part, X, X2) for part in parts), rtol=1e-13)
    assert_close(kernel(X), sum(formula(part, X, X) for part in parts), rtol=1e-13)
    assert_close(kernel(X, full_cov=False), np.full(6, 1.7), rtol=1e-14)
    density = kernel.spectral_density(w)
    assert_close(density, sum(part.spectral_density(w).numpy() for part in parts), rtol=1e-14)
    assert_close(kernel.wigner(X, w), np.tile(density, (6, 1)), rtol=1e-14)


# Mixtures from data find the sinusoids that the data were made of, where they are.

RNG = np.random.default_rng(0)
GRID = np.linspace(0.0, 10.0, 240)[:, None]
SCATTERED = np.sort(RNG.uniform(0.0, 10.0, (240, 1)), axis=0)


def noisy(values: np.ndarray, size: float = 0.1) -> np.ndarray:
    return values + size * RNG.normal(size=values.shape)


def wave(X: np.ndarray, *frequency: float, phase: float = 0.4) -> np.ndarray:
    return np.cos(2 * np.pi * X @ np.array(frequency)[:, None] + phase)


def test_peaks_in_two_dimensions_and_of_two_outputs() -> None:
    X = RNG.uniform(0.0, 6.0, (250, 2))
    Y = noisy(np.concatenate([wave(X, 0.4, -0.9), 0.5 * wave(X, 0.7, 0.3)], axis=1))
    frequencies, powers = find_peaks(X, Y, np.ones(len(X)), np.std(X, axis=0), 2)
    np.testing.assert_allclose(frequencies, [[0.4, -0.9], [0.7, 0.3]], atol=0.01)
    np.testing.assert_allclose(powers, [0.5, 0.125], rtol=0.15)


def test_each_component_has_the_frequencies_around_it() -> None:
    Y = noisy(np.where(SCATTERED < 5.0, wave(SCATTERED, 0.8), 0.5 * wave(SCATTERED, 2.9)))
    kernel = HarmonizableMixture.from_data(SCATTERED, Y, 4, 1, centres="grid")
    centres = [component.centre.numpy()[0] for component in kernel.kernels]
    frequencies = [component.frequencies.numpy()[0, 0] for component in kernel.kernels]
    np.testing.assert_allclose(centres, [1.25, 3.75, 6.25, 8.75], atol=0.05)
    np.testing.assert_allclose(frequencies, [0.8, 0.8, 2.9, 2.9], atol=0.08)
    variances = kernel(SCATTERED, full_cov=False).numpy()
    np.testing.assert_allclose(np.mean(variances), np.mean(np.square(Y)))
    # Larger where the data are.
    assert np.mean(variances[SCATTERED[:, 0] < 3]) > 2 * np.mean(variances[SCATTERED[:, 0] > 7])


@pytest.mark.parametrize("centres", ["k-means", "grid"])
def test_centres_and_forms(centres: Any) -> None:
    X = RNG.uniform(0.0, 6.0, (80, 2))
    kernel = HarmonizableMixture.from_data(
        X, wave(X, 0.3, 0.2)[:, 0], 4, 3, centres=centres, active_dims=[2, 0]
    )
    if centres == "grid":
        places = np.stack([component.centre.numpy() for component in kernel.kernels])
        lower, size = X.min(axis=0), np.ptp(X, axis=0)
        expected = [[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]]
        np.testing.assert_allclose(places, lower + size * expected)
    for component in kernel.kernels:
        assert len(np.unique(np.abs(component.frequencies.numpy()), axis=0)) == 3
    wide = np.concatenate([X[:, 1:], np.full([80, 1], np.nan), X[:, :1]], axis=1)
    assert np.all(np.linalg.eigvalsh(kernel(wide).numpy()) > -1e-10)


def test_spectral_mixture() -> None:
    Y = noisy(1.5 * wave(SCATTERED, 1.31) + 0.7 * wave(SCATTERED, 3.87))
    kernel = SpectralMixture.from_data(SCATTERED, Y, 2)
    found = [component.frequency.numpy()[0] for component in kernel.kernels]
    np.testing.assert_allclose(found, [1.31, 3.87], atol=0.01)
    np.testing.assert_allclose(kernel(GRID, full_cov=False), np.mean(np.square(Y)))


def test_errors() -> None:
    X, from_data = RNG.uniform(size=(50, 2)), HarmonizableMixture.from_data
    assert_refused(
        [
            (lambda: from_data(GRID, GRID, 300, 2), "num_components must be an integer from 1 to"),
            (lambda: from_data(GRID, 0 * GRID, 3, 2), "Y must vary, found a Y of zeros alone"),
            (
                lambda: from_data(X, wave(X, 0.3, 0.2), 5, 1, centres="grid"),
                r"n\^2, for an .* found 5; pass for example 4",
            ),
            (lambda: SpectralComponent(FREQUENCY, lag=-0.1), "lag must be .*positive definite"),
            (lambda: SpectralMixture([]), "components must be one or more .*, found none; pass"),
            (
                lambda: SpectralMixture([SpectralComponent(w) for w in ([1.0], [1.0, 2.0])]),
                r"\[1, 2\]",
            ),
            (lambda: SpectralMixture([mixture()]), "SpectralComponent, found SpectralMixture; add"),
        ]
    )
