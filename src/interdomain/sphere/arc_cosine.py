"""The (deep) arc-cosine kernel as a function of the inner product, and its eigenvalues.

Cho & Saul, *Kernel Methods for Deep Learning*, 2009, eqs. 3-6, divided by the value at t = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from mpmath.ctx_mp import MPContext

from .dimensions import num_harmonics
from .funk_hecke import power_coefficient


@check_shapes(
    "t: [any...]",
    "return: [any...]",
)
def arc_cosine(t: tf.Tensor, order: int) -> tf.Tensor:
    """kappa_n(t), with kappa_n(1) = 1, for order n = 0, 1 or 2.

    ``kappa_n' = n^2 / (2n - 1) kappa_{n-1}`` holds for these three, so that gradients are those
    of a lower order and finite at t = -1 and t = 1. The slope of order 0 diverges there; within a
    rounding error of the ends it is taken to be zero, because a pair that coincides does so for
    all hyperparameters.

    :param t: Inner products of unit vectors; rounding errors beyond [-1, 1] are clipped.
    """

    @tf.custom_gradient
    def evaluate(t: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        clipped = tf.clip_by_value(t, -1, 1)
        theta = tf.acos(clipped)
        sine_squared = (1 - clipped) * (1 + clipped)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            if order > 0:
                return upstream * (order**2 / (2 * order - 1)) * arc_cosine(t, order - 1)
            inside = sine_squared > 4 * np.finfo(t.dtype.as_numpy_dtype).eps
            slope = 1 / (np.pi * tf.sqrt(tf.where(inside, sine_squared, tf.ones_like(t))))
            return upstream * tf.where(inside, slope, tf.zeros_like(t))

        if order == 0:
            return 1 - theta / np.pi, gradient
        sine = tf.sqrt(sine_squared)
        if order == 1:
            return (sine + (np.pi - theta) * clipped) / np.pi, gradient
        turned = (np.pi - theta) * (1 + 2 * tf.square(clipped))
        return (3 * sine * clipped + turned) / (3 * np.pi), gradient

    return evaluate(t)


def arc_cosine_has_degree(order: int, depth: int, degree: int) -> bool:
    """Whether the eigenvalue of this degree is not zero.

    One layer of order n has no degrees l > n with l - n even. Every degree follows the first
    composition, because all Taylor coefficients of opposite parity are positive and mix.
    """
    return depth > 1 or degree <= order or (degree - order) % 2 == 1


def arc_cosine_eigenvalues(
    order: int, depth: int, dimension: int, max_degree: int
) -> tuple[float, ...]:
    """The eigenvalues of degrees 0 to ``max_degree``, each to full relative accuracy.

    One layer is the square of the expansion of ``max(t, 0)^order``, in closed form. Deeper kernels
    have no closed form, and eigenvalues far below the 1e-16 that a float64 quadrature resolves, so
    they are integrated in extended precision.
    """
    if depth > 1:
        return _deep_eigenvalues(order, depth, dimension, max_degree)
    d = dimension
    scale = (2.0, 2.0 * d, 2.0 * d * (d + 2) / 3)[order]  # 1 / E[max(t, 0)^(2 order)]
    return tuple(scale * power_coefficient(order, d, l) ** 2 for l in range(max_degree + 1))


@lru_cache(maxsize=64)
def _deep_eigenvalues(order: int, depth: int, dimension: int, max_degree: int) -> tuple[float, ...]:
    mp = MPContext()
    # lambda_l is above 1 / (N(d, l) (l + 1)^(2 order + 2 depth + 3)) or so; 25 digits remain.
    size = num_harmonics(dimension, max_degree) * (max_degree + 1) ** (2 * order + 2 * depth + 3)
    mp.dps = 25 + len(str(size))

    def kappa(theta: Any) -> Any:
        for _ in range(depth):
            c, turn = mp.cos(theta), mp.pi - theta
            value = [
                turn / mp.pi,
                (mp.sin(theta) + turn * c) / mp.pi,
                (3 * mp.sin(theta) * c + turn * (1 + 2 * c * c)) / (3 * mp.pi),
            ][order]
            theta = mp.acos(min(value, mp.one))
        return value

    def sums_over(points: range, step: Any) -> list[Any]:
        """The trapezoidal sum, for each degree, after theta = pi / (1 + exp(-pi sinh(k step)))."""
        sums = [mp.zero] * (max_degree + 1)
        for k in points:
            decay = mp.exp(-mp.pi * mp.sinh(k * step))
            theta = mp.pi / (1 + decay)
            weight = mp.cosh(k * step) * mp.pi**2 * decay / (1 + decay) ** 2
            weight *= kappa(theta) * mp.sin(theta) ** (dimension - 2)
            p, p_before, t = mp.one, mp.zero, mp.cos(theta)
            for l in range(max_degree + 1):
                sums[l] += weight * p
                divisor = l + dimension - 2
                p_next = (
                    ((2 * l + dimension - 2) * t * p - l * p_before) / divisor if divisor else t
                )
                p, p_before = p_next, p
        return sums

    # Halve the step until all relative changes are below a float's precision.
    reach = mp.asinh((mp.dps + 2) * mp.log(10) / mp.pi)
    step, half = reach / 8, 8
    totals = sums_over(range(-half, half + 1), step)
    while True:
        step, half = step / 2, 2 * half
        finer = [
            a + b for a, b in zip(totals, sums_over(range(1 - half, half, 2), step), strict=True)
        ]
        change = max(abs(2 * a - b) / abs(b) for a, b in zip(totals, finer, strict=True))
        totals = finer
        if change < 1e-18:
            break
    norm = step / mp.beta(mp.mpf(1) / 2, mp.mpf(dimension - 1) / 2)
    return tuple(float(norm * total) for total in totals)
