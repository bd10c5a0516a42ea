"""Interpolation in the angle: against the functions themselves, with their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from interdomain.sphere import MaternSpectrum, SquaredExponentialSpectrum, laplace_beltrami
from interdomain.sphere.angle_table import NODES, AtNodes, tabulated
from tests.tiers import in_tiers

ANGLES = np.pi * NODES
T = np.concatenate([np.cos(np.linspace(0, np.pi, 1_003)), 1 - np.logspace(-12, -3, 40)])


def nodes(function, slope) -> AtNodes:
    return AtNodes(tf.constant(function(ANGLES)), tf.constant(slope(ANGLES)))


def test_a_known_function_and_its_gradients() -> None:
    """exp(a t): value, d/dt and, through the nodes, d/da."""
    a, t = tf.Variable(1.7, dtype=tf.float64), tf.Variable(T)
    upstream = tf.cos(20 * T)
    cosine, sine = np.cos(ANGLES), np.sin(ANGLES)
    with tf.GradientTape() as tape:
        at_nodes = tf.exp(a * cosine)
        slopes = -a * sine * at_nodes
        value = tabulated((1 - t) / 2, AtNodes(at_nodes, slopes), AtNodes(a * at_nodes, a * slopes))
        total = tf.reduce_sum(upstream * value)
    to_t, to_a = tape.gradient(total, (t, a))
    exact = np.exp(1.7 * T)
    np.testing.assert_allclose(value, exact, rtol=1e-13)
    np.testing.assert_allclose(to_t, upstream * 1.7 * exact, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(to_a, np.sum(upstream * T * exact), rtol=1e-12)


def test_a_diverging_slope() -> None:
    """(1 - t)^(1/2): the gradient is right up to t = 1, and zero there."""
    t = tf.Variable(np.append(T[T < 1], 1.0))
    function = nodes(
        lambda theta: np.sqrt(2) * np.sin(theta / 2), lambda theta: np.cos(theta / 2) / np.sqrt(2)
    )
    constant = nodes(lambda theta: np.full_like(theta, -0.5), np.zeros_like)
    with tf.GradientTape() as tape:
        value = tabulated((1 - t) / 2, function, constant, root=True)
    gradient = tape.gradient(value, t)
    # The angle itself is known to 1e-16 / angle only.
    np.testing.assert_allclose(value, np.sqrt(1 - t), atol=1e-10)
    np.testing.assert_allclose(gradient[:-1], -0.5 / np.sqrt(1 - t[:-1]), rtol=1e-12)
    assert gradient[-1] == 0


def test_outside_of_the_interval_by_a_rounding_error() -> None:
    ramp = nodes(np.cos, lambda theta: -np.sin(theta))
    ones = nodes(np.ones_like, np.zeros_like)
    np.testing.assert_allclose(
        tabulated(tf.constant([-1e-15, 1 + 1e-15], tf.float64), ramp, ones), [1, -1]
    )


def test_a_table_that_ends_before_pi() -> None:
    """(angle - 1)^2 up to 1, and nothing, with no gradient, beyond."""
    angles = np.array([0.0, 0.3, 0.99, 1.0, 2.0, np.pi])
    t = tf.Variable(np.cos(angles))
    function = AtNodes(tf.constant((NODES - 1) ** 2), tf.constant(2 * (NODES - 1)))
    sine = np.sin(np.maximum(NODES, 1e-3))
    slope = 2 * (1 - NODES) / sine
    derivative = AtNodes(tf.constant(slope), tf.constant(np.gradient(slope, NODES)))
    with tf.GradientTape() as tape:
        value = tabulated((1 - t) / 2, function, derivative, reach=1.0)
    gap = np.maximum(1 - angles, 0)
    np.testing.assert_allclose(value, gap**2, atol=1e-14)
    expected = 2 * gap[1:] / np.maximum(np.sin(angles[1:]), 1e-3)
    np.testing.assert_allclose(tape.gradient(value, t)[1:], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("dimension", "dtype"),
    in_tiers(
        [(d, dtype) for d in (2, 5) for dtype in (tf.float64, tf.float32)],
        quick=[(2, tf.float32), (5, tf.float64)],
    ),
    ids=lambda value: value.name if isinstance(value, tf.DType) else str(value),
)
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, None])
def test_kernels_are_tabulated_as_they_are_summed(
    monkeypatch: pytest.MonkeyPatch, dimension: int, nu: float | None, dtype: tf.DType
) -> None:
    """Values and gradients to t and to the lengthscale, with the sum in float64 as the truth."""

    def evaluate(dtype: tf.DType, least: int) -> tuple[np.ndarray, ...]:
        monkeypatch.setattr(laplace_beltrami, "_LEAST_TABULATED", least)
        # Nearer to t = 1 neither an angle nor its slope is known as well as elsewhere.
        t = tf.constant(T[T < 1 - 1e-4], dtype)
        lengthscale = tf.constant(0.6, dtype)
        with tf.GradientTape() as tape:
            tape.watch((t, lengthscale))
            if nu is None:
                spectrum = SquaredExponentialSpectrum(dimension, lengthscale)
            else:
                spectrum = MaternSpectrum(dimension, lengthscale, nu)
            value = spectrum.shape_function(t)
            total = tf.reduce_sum(tf.cos(20 * t) * value)
        return (value.numpy(), *(g.numpy() for g in tape.gradient(total, (t, lengthscale))))

    single = dtype == tf.float32
    expected = evaluate(tf.float64, 10**9)
    found = evaluate(dtype, 1)
    for name, a, b in zip(("value", "t", "lengthscale"), found, expected, strict=True):
        scale = np.max(np.abs(b))
        np.testing.assert_allclose(a, b, atol=scale * (5e-4 if single else 1e-9), err_msg=name)
    assert not np.array_equal(found[0], expected[0])  # two ways indeed
