"""Funk-Hecke coefficients of functions of an angle, and the functions of arc-cosine kernels."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.families.sphere.arc_cosine import arc_cosine
from interdomain.families.sphere.mathematics.funk_hecke import funk_hecke_rule, power_coefficient
from interdomain.kernels import ArcCosine
from interdomain.sphere import funk_hecke_coefficients
from tests.conformance.helpers import assert_gradients, value_and_gradients
from tests.families.sphere.mathematics.references import (
    EIGENVALUE_DEGREES,
    EIGENVALUE_DIMENSIONS,
    Mpf,
    ZonalFunction,
    cosine_and_sine,
    relative_error,
    smooth_funk_hecke,
)


def is_zero(power: int, degree: int) -> bool:
    return degree > power and (degree - power) % 2 == 0


@pytest.mark.parametrize("power", [0, 1, 2])
def test_power_coefficient(power: int) -> None:
    """Against quadratures: mpmath's, and the library's own to higher degrees."""
    angles = (mp.zero, mp.pi / 2)
    for dimension in EIGENVALUE_DIMENSIONS:
        values = [power_coefficient(power, dimension, degree) for degree in range(60)]
        for degree, value in enumerate(values):  # exactly
            assert (value == 0) == is_zero(power, degree)
        reference = [
            mp.zero
            if is_zero(power, degree)
            else smooth_funk_hecke(
                lambda a: cosine_and_sine(a)[0] ** power, dimension, degree, angles
            )
            for degree in EIGENVALUE_DEGREES
        ]
        actual = np.array([values[degree] for degree in EIGENVALUE_DEGREES])
        assert relative_error(actual, reference) <= 1e-10
        actual = funk_hecke_coefficients(
            lambda t: tf.cast(t > 0, tf.float64) * t**power, dimension, range(41), breaks=(0.0,)
        )
        np.testing.assert_allclose(actual, values[:41], rtol=0, atol=1e-14)


FUNCTIONS: list[tuple[Callable[..., object], Callable[..., object], tuple[float, ...]]] = [
    (lambda t: tf.exp(2 * (t - 1)), lambda t: mp.exp(2 * (t - 1)), ()),
    (lambda t: tf.abs(t - 0.3), lambda t: abs(t - mp.mpf(0.3)), (0.3,)),
    (
        lambda t: tf.maximum(t, 0.5) + tf.maximum(-t, 0.25),
        lambda t: max(t, mp.mpf(0.5)) + max(-t, mp.mpf(0.25)),
        (0.5, -0.25),
    ),
]


@pytest.mark.parametrize("function, exact, breaks", FUNCTIONS)
def test_coefficients_of_any_function(
    function: Callable[[tf.Tensor], tf.Tensor],
    exact: Callable[[object], object],
    breaks: tuple[float, ...],
) -> None:
    angles = (mp.zero, *sorted(mp.acos(mp.mpf(b)) for b in breaks), mp.pi)
    for dimension in (2, 3, 9):
        actual = funk_hecke_coefficients(function, dimension, EIGENVALUE_DEGREES, breaks=breaks)
        expected = [
            smooth_funk_hecke(lambda a: exact(cosine_and_sine(a)[0]), dimension, degree, angles)
            for degree in EIGENVALUE_DEGREES
        ]
        np.testing.assert_allclose(actual, np.array(expected, float), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "max_degree, accuracy", [(0, 2e-15), (2, 2e-15), (60, 5e-15), (150, 5e-14)]
)
@pytest.mark.parametrize("dimension", [2, 3, 10])
def test_the_rule_is_orthogonal(dimension: int, max_degree: int, accuracy: float) -> None:
    """Constant one has only degree zero, with coefficient one; the nodes are inside (-1, 1)."""
    t, matrix = funk_hecke_rule(dimension, max_degree, (0.2,))
    assert matrix.shape == (max_degree + 1, len(t))
    assert np.all(np.abs(t) < 1)
    np.testing.assert_allclose(matrix.sum(axis=1), np.eye(max_degree + 1)[0], atol=accuracy)


def test_gradients() -> None:
    """With respect to a parameter of the function, as a user's kernel has."""
    rate = tf.Variable(1.7, dtype=tf.float64)
    assert_gradients(
        lambda: funk_hecke_coefficients(lambda t: tf.exp(rate * (t - 1)), 4, (0, 1, 3)), [rate]
    )


# The functions of the arc-cosine kernels.

ORDERS = [0, 1, 2]


def exact_arc_cosine(order: int) -> ZonalFunction:
    """Cho & Saul's J_n(theta) / J_n(0), a function of the angle, with a memory."""

    @cache
    def kappa(theta: Mpf) -> Mpf:
        s, c, turn = mp.sin(theta), mp.cos(theta), mp.pi - theta
        return ((turn, s + turn * c, 3 * s * c + turn * (1 + 2 * c**2))[order]) / (
            mp.pi * (1, 1, 3)[order]
        )

    return kappa


@pytest.mark.parametrize("order", ORDERS)
def test_eigenvalues(order: int) -> None:
    """Against quadrature; and those that are zero are those that are named."""
    kappa, kernel = exact_arc_cosine(order), ArcCosine(order)
    for dimension in EIGENVALUE_DIMENSIONS:
        reference = [
            smooth_funk_hecke(kappa, dimension, degree, (mp.zero, mp.pi))
            if degree <= order or (degree - order) % 2
            else mp.zero
            for degree in EIGENVALUE_DEGREES
        ]
        actual = kernel.eigenvalues(dimension, EIGENVALUE_DEGREES).numpy()
        assert relative_error(actual, reference) <= 1e-10, dimension
        values = kernel.eigenvalues(dimension, range(21)).numpy()
        assert kernel.nonzero_degrees(dimension, 20) == tuple(np.flatnonzero(values > 0).tolist())


T = np.array([-1.0, -0.9, -0.2, 0.0, 0.5, 0.999, 1.0])


@pytest.mark.parametrize("order", ORDERS)
def test_values(order: int) -> None:
    kappa = exact_arc_cosine(order)
    expected = [float(kappa(mp.acos(mp.mpf(float(v))))) for v in T]
    np.testing.assert_allclose(arc_cosine(tf.constant(T), order), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("order", ORDERS)
def test_slopes(order: int) -> None:
    """The first derivative, and the second."""
    t = tf.Variable(T[1:-1])

    def value() -> tf.Tensor:
        return arc_cosine(t, order)

    assert_gradients(value, [t], step=1e-6)
    if order > 0:
        assert_gradients(lambda: value_and_gradients(value, t)[1], [t], step=1e-6)


@pytest.mark.parametrize("order, slopes", [(0, [0.0, 0.0]), (1, [0.0, 1.0]), (2, [0.0, 4 / 3])])
def test_the_ends(order: int, slopes: list[float]) -> None:
    """Slopes, and rounding errors beyond, which are clipped."""
    for beyond in (0.0, 1e-15):
        t = tf.constant([-1 - beyond, 1 + beyond], tf.float64)
        value, found = value_and_gradients(lambda t=t: arc_cosine(t, order), t)
        np.testing.assert_allclose(value, [0, 1], atol=1e-15)
        np.testing.assert_allclose(found, slopes, atol=1e-15)
