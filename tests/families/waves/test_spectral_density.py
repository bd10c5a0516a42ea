"""Spectral densities against numerical Fourier transforms, and the series they are the terms of."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.special

from interdomain.families.waves.spectral_density import spectral_density
from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import FiniteRank, Periodized

from .references import (
    KINDS,
    LOWER,
    PERIODS,
    SHAPES,
    UPPER,
    VARIANCE,
    lags,
    stationary,
    value,
)

EACH = pytest.mark.parametrize("name", KINDS)
POWER = {"Matern12": 2, "Matern32": 4, "Matern52": 6}
"""Of decay of the density in one column."""


@EACH
def test_one_column_by_quadrature(name: str) -> None:
    """``2 int_0^inf k(tau) cos(w tau) dtau``."""
    lengthscale = 0.7
    kernel = KINDS[name](variance=VARIANCE, lengthscales=lengthscale)
    for w in (0.0, 0.4, 3.0, 25.0):
        expected = 2 * VARIANCE * lengthscale * _cosine_transform(SHAPES[name], w * lengthscale)
        actual = spectral_density(kernel, [[w]]).numpy()[0]
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def _cosine_transform(function: object, w: float) -> float:
    options = {"epsabs": 1e-13, "epsrel": 1e-12, "limit": 400}
    if w:
        options |= {"weight": "cos", "wvar": w}
    return scipy.integrate.quad(function, 0, 45, **options)[0]


@EACH
@pytest.mark.parametrize("num_columns", [2, 3])
def test_several_columns_by_hankel_transform(name: str, num_columns: int) -> None:
    """``(2 pi)^(D/2) |w|^(1 - D/2) int_0^inf k(r) J_(D/2 - 1)(|w| r) r^(D/2) dr`` in units of the
    lengthscales."""
    lengthscales = np.array([0.7, 1.9, 0.4])[:num_columns]
    kernel = KINDS[name](variance=VARIANCE, lengthscales=lengthscales)
    w = np.array([[0.4, 0.1, 0.9], [1.5, 0.7, -2.0], [0.01, 0.0, 0.0]])[:, :num_columns]
    norms = np.linalg.norm(w * lengthscales, axis=1)
    half = num_columns / 2
    nodes, weights = np.polynomial.legendre.leggauss(1000)
    r = 22.5 * (nodes + 1)  # exp(-45) is below 1e-19
    bessel = scipy.special.jv(half - 1, norms[:, None] * r)
    integrals = 22.5 * (bessel * SHAPES[name](r) * r**half) @ weights
    expected = (2 * np.pi) ** half * norms ** (1 - half) * integrals
    expected *= VARIANCE * np.prod(lengthscales)
    np.testing.assert_allclose(spectral_density(kernel, w), expected, rtol=1e-10, atol=1e-13)


@EACH
def test_poisson_summation(name: str) -> None:
    """The kernel at differences is the sum of waves, up to those that are left out."""
    k = Periodized(stationary(name, 1, 8.0), LOWER[:1], UPPER[:1])
    tau, orders = lags(1), np.arange(40_001)
    shares = k.spectral_density(orders[:, None]).numpy() / PERIODS[0]
    counts = np.where(orders, 2, 1)
    series = np.cos(2 * np.pi * tau / PERIODS[0] * orders) @ (counts * shares)
    # sum_(j > J) c j^-p is c J^(1 - p) / (p - 1); the squared exponential leaves nothing.
    left_out = 2 * shares[-1] * orders[-1] / (POWER.get(name, 2) - 1)
    np.testing.assert_allclose(value(k, tau), series, rtol=0, atol=1e-12 + 1.01 * left_out)


def test_explained_variance_reaches_the_total() -> None:
    """Never above, and what is left falls as the density's tail does."""
    for name, order in (("Matern12", 1), ("Matern52", 5)):
        k = Periodized(stationary(name), LOWER[:1], UPPER[:1])
        total = float(k.total_variance())
        counts = (1, 10, 100, 200, 400)
        left = [total - float(k.explained_variance(np.arange(n)[:, None])) for n in counts]
        assert np.all(np.diff(left) < 0) and left[-1] > 0
        assert np.log2(left[-2] / left[-1]) == pytest.approx(order, abs=0.02)
    smooth = Periodized(stationary("SquaredExponential", 2), LOWER[:2], UPPER[:2])
    grid = np.stack(np.meshgrid(np.arange(60), np.arange(60)), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(smooth.explained_variance(grid), smooth.total_variance(), rtol=1e-13)


@pytest.mark.parametrize("num_columns", [1, 3])
def test_kernel_of_finite_rank_is_the_sum_of_its_waves(num_columns: int) -> None:
    whole = Periodized(
        stationary("Matern32", num_columns), LOWER[:num_columns], UPPER[:num_columns]
    )
    features = BoxFourierFeatures.for_kernel(whole, 60)
    frequencies, k = features.frequencies, FiniteRank(whole, features)
    tau, periods = lags(num_columns), PERIODS[:num_columns]
    density = whole.spectral_density(frequencies).numpy() / np.prod(periods)
    expected = np.zeros(len(tau))
    for j, share in zip(frequencies, density, strict=True):
        # All signs of a frequency's components together.
        signs = np.where(j, 2.0, 1.0) * np.cos(2 * np.pi * j * tau / periods)
        expected += share * np.prod(signs, axis=1)
    np.testing.assert_allclose(value(k, tau), expected, rtol=0, atol=1e-13)
    at_zero = value(k, 0 * tau[:1])
    np.testing.assert_allclose(whole.explained_variance(frequencies), at_zero[0], rtol=1e-13)
    np.testing.assert_allclose(k(0 * tau[:1], full_cov=False), at_zero, rtol=1e-13)
