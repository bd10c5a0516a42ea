"""Periodized kernels: sums over images, limits of their parameters, and spectral densities."""

import gpflow
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import tensorflow as tf
from gpflow.kernels import Matern12

from interdomain.families.waves.spectral_density import spectral_density
from interdomain.kernels import Periodized
from interdomain.linalg.periodic import _SWITCH, _theta

from .references import (
    KINDS,
    LENGTHSCALES,
    LOWER,
    PERIODS,
    SHAPES,
    UPPER,
    VARIANCE,
    images,
    lags,
    shape,
    stationary,
    value,
)

EACH = pytest.mark.parametrize("name", KINDS)


def periodized(kernel: gpflow.kernels.Kernel, num_columns: int = 1) -> Periodized:
    return Periodized(kernel, LOWER[:num_columns], UPPER[:num_columns])


@pytest.mark.parametrize(("name", "num_columns"), [*((name, 1) for name in KINDS), ("Matern52", 3)])
def test_sum_over_images(name: str, num_columns: int) -> None:
    """So many that exp(-r) is below 1e-16 beyond: in three columns that are 17^3 of them."""
    reach = {1: 8, 2: 6, 3: 4}[num_columns]
    tau, periods = lags(num_columns), PERIODS[:num_columns]
    scale = 0.45 if num_columns == 3 else 0.8
    k = periodized(stationary(name, num_columns, scale), num_columns)
    lengthscales = scale * LENGTHSCALES[:num_columns]
    expected = VARIANCE * images(lambda t: shape(name, t, lengthscales), tau, periods, reach)
    np.testing.assert_allclose(value(k, tau), expected, rtol=0, atol=1e-11)
    at_zero = VARIANCE * images(lambda t: shape(name, t, lengthscales), 0 * tau[:1], periods, reach)
    np.testing.assert_allclose(k.total_variance(), at_zero[0], rtol=1e-12)


@pytest.mark.parametrize("lengthscale", [1e-3, 0.1, 1.0, 30.0, 1e4])
def test_closed_form_of_one_column(lengthscale: float) -> None:
    """The closed form of Matern-1/2: a geometric series, for any lengthscale."""
    k = periodized(Matern12(variance=VARIANCE, lengthscales=lengthscale))
    tau = np.concatenate([[0.0, 1e-9], np.linspace(0, PERIODS[0], 30)])[:, None]
    away = np.abs(PERIODS[0] / 2 - np.abs(tau[:, 0])) - PERIODS[0] / 2
    half = PERIODS[0] / (2 * lengthscale)
    # cosh(away + half) / sinh(half), without overflow
    expected = np.exp(away / lengthscale) + np.exp(-away / lengthscale - 2 * half)
    expected *= VARIANCE / -np.expm1(-2 * half)
    np.testing.assert_allclose(value(k, tau), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("order", [1, 2])
def test_long_lengthscales_against_the_series(order: int) -> None:
    """In one column Poisson's series of a Matern kernel is one of digamma functions' relatives; at
    a lag of zero it is a sum of powers, continued by Hurwitz's zeta function."""
    name, nu = ("Matern32", "Matern52")[order - 1], order + 0.5
    lengthscale = 40 * PERIODS[0]
    k = periodized(KINDS[name](variance=VARIANCE, lengthscales=lengthscale))
    tau = np.linspace(0, PERIODS[0], 9)[:, None]
    j = np.arange(1, 20_001)
    q = (2 * np.pi * j * lengthscale / PERIODS[0]) ** 2
    factor = 2 * np.sqrt(np.pi) * scipy.special.gamma(nu + 0.5) / scipy.special.gamma(nu)
    factor *= lengthscale * VARIANCE * (2 * nu) ** nu / PERIODS[0]
    waves = np.cos(2 * np.pi * j * tau / PERIODS[0])
    # The rest is below 1e-16 of the constant: (2 pi 40 20,000)^-3.
    series = factor * ((2 * nu) ** (-nu - 0.5) + 2 * waves @ (2 * nu + q) ** (-nu - 0.5))
    np.testing.assert_allclose(value(k, tau), series, rtol=1e-13)


def test_where_the_series_takes_over_from_the_images() -> None:
    """Both have the same few terms left out, about exp(-32) of the largest."""
    widths = np.concatenate([np.geomspace(1e-4, 1e4, 41), np.linspace(0.9, 1.1, 21) * _SWITCH])
    turns = np.linspace(-0.5, 0.5, 23)
    n = np.arange(-1200, 1201)[:, None]
    for width, actual in zip(widths, _theta(tf.constant(turns), tf.constant(widths)), strict=True):
        expected = np.sum(np.exp(-((turns + n) ** 2) / (4 * width)), axis=0)
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=3e-14)


@EACH
def test_limits_of_long_and_short_lengthscales(name: str) -> None:
    """A constant, ``S(0) / prod P``: what varies is smaller by (lengthscale / period)^-2 and more;
    and the kernel itself."""
    k = periodized(KINDS[name](variance=VARIANCE, lengthscales=1e6), 2)
    density = k.spectral_density([[0, 0]]).numpy()[0] / np.prod(PERIODS[:2])
    np.testing.assert_allclose(value(k, lags(2)), density, rtol=1e-11)
    base = KINDS[name](variance=VARIANCE, lengthscales=[0.01, 0.02])
    tau = np.random.default_rng(0).uniform(-0.05, 0.05, size=(20, 2))
    np.testing.assert_allclose(
        value(periodized(base, 2), tau), value(base, tau), rtol=0, atol=1e-13
    )


# Spectral densities against numerical Fourier transforms, and the series they are the terms of.

POWER = {"Matern12": 2, "Matern32": 4, "Matern52": 6}
"""The power of decay of the density in one column."""


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
    k, tau, orders = periodized(stationary(name, 1, 8.0)), lags(1), np.arange(40_001)
    shares = k.spectral_density(orders[:, None]).numpy() / PERIODS[0]
    counts = np.where(orders, 2, 1)
    series = np.cos(2 * np.pi * tau / PERIODS[0] * orders) @ (counts * shares)
    # sum_(j > J) c j^-p is c J^(1 - p) / (p - 1); the squared exponential leaves nothing.
    left_out = 2 * shares[-1] * orders[-1] / (POWER.get(name, 2) - 1)
    np.testing.assert_allclose(value(k, tau), series, rtol=0, atol=1e-12 + 1.01 * left_out)


def test_explained_variance_reaches_the_total() -> None:
    """Never above, and what is left falls as the density's tail does."""
    for name, order in (("Matern12", 1), ("Matern52", 5)):
        k = periodized(stationary(name))
        total = float(k.total_variance())
        counts = (1, 10, 100, 200, 400)
        left = [total - float(k.explained_variance(np.arange(n)[:, None])) for n in counts]
        assert np.all(np.diff(left) < 0) and left[-1] > 0
        assert np.log2(left[-2] / left[-1]) == pytest.approx(order, abs=0.02)
    smooth = periodized(stationary("SquaredExponential", 2), 2)
    grid = np.stack(np.meshgrid(np.arange(60), np.arange(60)), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(smooth.explained_variance(grid), smooth.total_variance(), rtol=1e-13)
