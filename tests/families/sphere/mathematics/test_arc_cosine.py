from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.families.sphere.mathematics.arc_cosine import arc_cosine
from interdomain.kernels import ArcCosine
from tests.conformance.helpers import assert_gradients
from tests.families.sphere.mathematics.references import (
    EIGENVALUE_DEGREES,
    EIGENVALUE_DIMENSIONS,
    Mpf,
    ZonalFunction,
    relative_error,
    smooth_funk_hecke,
)

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

    def slopes() -> tf.Tensor:
        with tf.GradientTape() as tape:
            value = arc_cosine(t, order)
        return tape.gradient(value, t)

    assert_gradients(lambda: arc_cosine(t, order), [t], step=1e-6)
    if order > 0:
        assert_gradients(slopes, [t], step=1e-6)


@pytest.mark.parametrize("order, slopes", [(0, [0.0, 0.0]), (1, [0.0, 1.0]), (2, [0.0, 4 / 3])])
def test_the_ends(order: int, slopes: list[float]) -> None:
    """Slopes, and rounding errors beyond, which are clipped."""
    for beyond in (0.0, 1e-15):
        t = tf.constant([-1 - beyond, 1 + beyond], tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(t)
            value = arc_cosine(t, order)
        np.testing.assert_allclose(value, [0, 1], atol=1e-15)
        np.testing.assert_allclose(tape.gradient(value, t), slopes, atol=1e-15)
