"""Spectral mixtures: against the formula, and as Fourier transforms of their densities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from interdomain.kernels import SpectralComponent, SpectralMixture
from tests.conformance.helpers import assert_close

from .harmonizable_cases import as_matrix, grid

LAGS = {"scalar": 0.1, "diagonal": [0.1, 0.15], "full": [[0.15, 0.04], [0.04, 0.1]]}
EACH_LAG = pytest.mark.parametrize("lag", LAGS.values(), ids=list(LAGS))
FREQUENCY = np.array([0.4, -0.3])


def inputs(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 2))


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
    X, X2 = inputs(6), inputs(4, seed=1)
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
    X, X2 = inputs(4), inputs(3, seed=1)
    lags = X[:, None] - X2
    integral = np.cos(2 * np.pi * lags @ w.T) @ density
    assert_close(integral, kernel(X, X2), rtol=1e-10)


def test_mixture() -> None:
    kernel = mixture()
    X, X2, w = inputs(6), inputs(4, seed=1), inputs(5, seed=2)
    parts = kernel.kernels
    assert_close(kernel(X, X2), sum(formula(part, X, X2) for part in parts), rtol=1e-13)
    assert_close(kernel(X), sum(formula(part, X, X) for part in parts), rtol=1e-13)
    assert_close(kernel(X, full_cov=False), np.full(6, 1.7), rtol=1e-14)
    density = kernel.spectral_density(w)
    assert_close(density, sum(part.spectral_density(w).numpy() for part in parts), rtol=1e-14)
    assert_close(kernel.wigner(X, w), np.tile(density, (6, 1)), rtol=1e-14)


def test_bad_components() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"frequency": [[0.1]]}, r"frequency must be a number or \[D\], found shape \(1, 1\)"),
        ({"lag": -0.1}, "lag must be positive definite, found -0.1"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            SpectralComponent(**{"frequency": FREQUENCY, **arguments})


def test_bad_mixtures_and_inputs() -> None:
    with pytest.raises(ValueError, match="must be SpectralComponent, found SpectralMixture; add"):
        SpectralMixture([mixture()])
