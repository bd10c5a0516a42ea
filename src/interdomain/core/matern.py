"""Matern processes of one column as stochastic differential equations.

A Matern process of order p + 1/2 solves ``(d/dx + l)^(p+1) f = white noise`` of density q. The
inner product of its RKHS on [a, b] is

    <g, h> = 1/q int (Lg)(Lh) dx + v(g)^T P^-1 v(h),    L = (d/dx + l)^(p+1),

where v is the value and the first p derivatives at a, and P is the covariance of v(f).
"""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from gpflow.kernels import Matern12, Matern32, Matern52, Stationary

from .._arguments import Array, refusal

MATERNS = (Matern12, Matern32, Matern52)


def matern_order(kernel: Stationary) -> int:
    """The order p of a Matern kernel of order p + 1/2."""
    return next(p for p, kind in enumerate(MATERNS) if isinstance(kernel, kind))


def rate_of(kernel: Stationary) -> tf.Tensor:
    """The rate l of ``(d/dx + l)``."""
    return math.sqrt(2 * matern_order(kernel) + 1) / kernel.lengthscales


def noise_density(order: int) -> float:
    """The density q of the white noise for which f has variance one, at rate one."""
    return 2.0 ** (2 * order + 1) * math.factorial(order) ** 2 / math.factorial(2 * order)


INVERSE_ROOTS: tuple[Array, ...] = (
    np.eye(1),
    np.eye(2),
    np.array([[1, 0, math.sqrt(1 / 8)], [0, math.sqrt(3), 0], [0, 0, math.sqrt(9 / 8)]]),
)
"""For orders 0, 1, 2, a matrix whose product with its transpose is P^-1, at variance and rate one.
For order 2, P is ``[[1, 0, -1/3], [0, 1/3, 0], [-1/3, 0, 1]]``."""


def validate_one_lengthscale(kernel: Stationary, remedy: str) -> None:
    """Check that the kernel has a single lengthscale; a ValueError otherwise."""
    if kernel.lengthscales.shape.rank:
        rule = "be one number"
        raise refusal("kernel.lengthscales", rule, f"shape {kernel.lengthscales.shape}", remedy)
