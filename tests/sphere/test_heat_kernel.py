"""The heat kernel at short times, against its series."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.sphere.heat_kernel import heat_at_haversines, log_heat_constant, longest_time
from tests.sphere.references import multiplicity


def series(dimension: int, time: float, t: float) -> float:
    """``time^((d - 1) / 2) sum_l N(d, l) exp(-time x^2) P_l(t) / C``, in extended precision."""
    with mp.workdps(60):
        d, time, t = dimension, mp.mpf(time), mp.mpf(t)
        total, p, p_before, degree = mp.zero, mp.one, mp.zero, 0
        while degree < mp.sqrt(140 / time) + 4 * d:
            x = degree + mp.mpf(d - 2) / 2
            total += multiplicity(d, degree) * mp.exp(-time * x**2) * p
            below = degree + d - 2
            p_next = ((2 * degree + d - 2) * t * p - degree * p_before) / below if below else t
            p, p_before, degree = p_next, p, degree + 1
        return float(total * time ** (mp.mpf(d - 1) / 2) / mp.exp(log_heat_constant(d)))


@pytest.mark.parametrize("dimension", [2, 3, 5, 22, 50])
def test_short_times(dimension: int) -> None:
    """Values, and the slopes with respect to t: relative to the largest."""
    longest = longest_time(dimension)
    for time in (longest, longest / 3):
        angles = np.sqrt(4 * time) * np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0])
        t = tf.constant(np.cos(angles))
        with tf.GradientTape() as tape:
            tape.watch(t)
            value = heat_at_haversines((1 - t) / 2, tf.constant([time], tf.float64), dimension)[
                :, 0
            ]
        expected = [series(dimension, time, float(cosine)) for cosine in t]
        np.testing.assert_allclose(value, expected, rtol=0, atol=5e-12)
        slopes = tape.gradient(value, t) * 2 * time
        if dimension < 24:  # the dimension above has a shorter longest time
            higher = [series(dimension + 2, time, float(cosine)) for cosine in t]
            np.testing.assert_allclose(slopes, higher, rtol=0, atol=5e-12)
