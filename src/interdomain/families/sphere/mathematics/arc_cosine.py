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

from .dimensions import num_harmonics
from .funk_hecke import extended_coefficients, power_coefficient


@check_shapes(
    "t: [any...]",
    "return: [any...]",
)
def arc_cosine(t: tf.Tensor, order: int) -> tf.Tensor:
    """kappa_n(t), with kappa_n(1) = 1, for order n = 0, 1 or 2.

    ``kappa_n' = n^2 / (2n - 1) kappa_{n-1}`` holds for these orders, so that gradients are values
    of a lower order, and finite at t = -1 and t = 1. The slope of order 0 diverges at both ends.
    Within a rounding error of them it is set to zero, because two inputs that coincide do so for
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

    For one layer they are the squared coefficients of ``max(t, 0)^order``, in closed form. Deeper
    kernels have no closed form, and their eigenvalues fall far below the 1e-16 that a quadrature in
    float64 resolves, so they are integrated in extended precision.
    """
    if depth > 1:
        return _deep_eigenvalues(order, depth, dimension, max_degree)
    d = dimension
    scale = (2.0, 2.0 * d, 2.0 * d * (d + 2) / 3)[order]  # 1 / E[max(t, 0)^(2 order)]
    return tuple(scale * power_coefficient(order, d, l) ** 2 for l in range(max_degree + 1))


@lru_cache(maxsize=64)
def _deep_eigenvalues(order: int, depth: int, dimension: int, max_degree: int) -> tuple[float, ...]:
    def kappa(mp: Any, theta: Any) -> Any:
        for _ in range(depth):
            c, turn = mp.cos(theta), mp.pi - theta
            value = [
                turn / mp.pi,
                (mp.sin(theta) + turn * c) / mp.pi,
                (3 * mp.sin(theta) * c + turn * (1 + 2 * c * c)) / (3 * mp.pi),
            ][order]
            theta = mp.acos(min(value, mp.one))
        return value

    # lambda_l is above 1 / (N(d, l) (l + 1)^(2 order + 2 depth + 3)) or so; 25 digits remain.
    size = num_harmonics(dimension, max_degree) * (max_degree + 1) ** (2 * order + 2 * depth + 3)
    return extended_coefficients(
        kappa, dimension, range(max_degree + 1), digits=25 + len(str(size))
    )
