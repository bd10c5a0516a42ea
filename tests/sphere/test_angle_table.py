"""Interpolation in the angle: against the functions themselves, with their gradients."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from interdomain.sphere.angle_table import NODES, AtNodes, tabulated

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
