"""Periodized kernels against sums over images, and limits of their parameters."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import scipy.special
import tensorflow as tf
from gpflow.kernels import Matern12

from interdomain.kernels import Periodized
from interdomain.linalg.periodic import _SWITCH, _theta

from .references import (
    KINDS,
    LENGTHSCALES,
    LOWER,
    PERIODS,
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


@pytest.mark.parametrize(
    ("name", "num_columns"),
    [*((name, 1) for name in KINDS), ("Matern52", 3)],
)
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
    """Of Matern-1/2: a geometric series, for any lengthscale."""
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
    # What is beyond is below 1e-16 of the constant: (2 pi 40 20,000)^-3.
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
