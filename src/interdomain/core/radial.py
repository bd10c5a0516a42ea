"""Derivatives of stationary kernels in closed form, also at distance zero.

The kernel depends on ``r^2 = sum_a t_a^2`` for scaled lags ``t_a``. Let ``G_n = ((1/r) d/dr)^n k``.
A derivative of k by several lags is a sum over the ways to pair equal lags: every lag without a
partner gives a factor ``t_a``, and n lags and pairs together give a factor ``G_n``. (Automatic
differentiation of GPflow's kernels is wrong at distance zero, where they clip the distance.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.kernels import (
    Combination,
    Exponential,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
    Stationary,
)

from .._arguments import IntArray, refusal
from .functionals import Derivative, LinearFunctional

_SMOOTH = (Matern32, Matern52, RationalQuadratic, SquaredExponential)
_LEAST_SQUARE = 1e-36
"""The least squared distance, as in GPflow; its root is a normal number in float32."""

_COLUMNS = 10_000


class Lag(NamedTuple):
    """A column by which a kernel is differentiated.

    :ivar steps: The scaled lags ``t_a``.
    :ivar lengthscale: The lengthscale of the column.
    :ivar order: How often the kernel is differentiated.
    """

    steps: tf.Tensor
    lengthscale: tf.Tensor
    order: int


def radial_derivative(kernel: Any, squares: tf.Tensor, lags: Sequence[Lag]) -> tf.Tensor:
    """The derivative of a kernel of variance one by some lags.

    :param kernel: A stationary kernel with a ``K_r2``; for derivatives one that has slopes.
    :param squares: The squared scaled distances.
    """
    lags = [lag for lag in lags if lag.order]
    if not lags:
        is_normal = isinstance(kernel, SquaredExponential)
        return tf.exp(-squares / 2) if is_normal else kernel.K_r2(squares) / kernel.variance
    distances = tf.sqrt(tf.maximum(squares, tf.constant(_LEAST_SQUARE, squares.dtype)))
    terms = []
    for pairs in itertools.product(*(range(lag.order // 2 + 1) for lag in lags)):
        count, factors = 1, []
        for lag, paired in zip(lags, pairs, strict=True):
            alone = lag.order - 2 * paired
            ways = 2**paired * math.factorial(paired) * math.factorial(alone)
            count *= math.factorial(lag.order) // ways
            factors += [lag.steps] * alone
        number = sum(lag.order for lag in lags) - sum(pairs)
        term, power = _G(kernel, squares, distances, number)
        for place, factor in enumerate(factors):
            term *= factor / distances if place < power else factor
        terms.append(count * term)
    scale = [lag.lengthscale for lag in lags for _ in range(lag.order)]
    return tf.add_n(terms) / math.prod(scale[1:], start=scale[0])


def _G(kernel: Any, squares: tf.Tensor, distances: tf.Tensor, n: int) -> tuple[tf.Tensor, int]:
    """``G_n r^q`` for n of 1 to 4, and q, the order of the pole of ``G_n`` at zero."""
    if isinstance(kernel, SquaredExponential):
        return (-1.0) ** n * tf.exp(-squares / 2), 0
    if isinstance(kernel, RationalQuadratic):
        alpha = tf.convert_to_tensor(kernel.alpha)
        rising = math.prod([(alpha + k) / alpha for k in range(1, n)], start=(-1.0) ** n)
        return rising * (1 + squares / (2 * alpha)) ** (-alpha - n), 0
    rate = math.sqrt(3 if isinstance(kernel, Matern32) else 5)
    decay = tf.exp(-rate * distances)
    if isinstance(kernel, Matern32):
        return (-(rate**2) * decay, 0) if n == 1 else (rate**3 * decay, 1)
    return (
        (-(rate**2) / 3 * (1 + rate * distances) * decay, 0),
        (rate**4 / 3 * decay, 0),
        (-(rate**5) / 3 * decay, 1),
        (rate**5 / 3 * (1 + rate * distances) * decay, 3),
    )[n - 1]


def has_slopes(kernel: Kernel) -> bool:
    """Whether the derivatives of a stationary kernel are known."""
    return isinstance(kernel, _SMOOTH)


def check_slopes(prior: Kernel, functionals: Sequence[LinearFunctional]) -> None:
    """Check that f has the derivatives of functionals under a prior.

    The prior of features of a kernel counts as the kernel, because slopes of more and more features
    of a Matern-1/2 process have no limit.

    :raises ValueError: If a part of the prior is not as often differentiable along a column.
    """
    terms = [part for functional in functionals for _, part in functional.terms]
    for part in terms:
        if isinstance(part, Derivative):
            for kernel in _stationary_parts(prior, np.arange(_COLUMNS), part.column):
                check_smooth(kernel, part)


def check_smooth(kernel: Kernel, slope: Derivative) -> None:
    """Check that functions of a stationary kernel have a derivative; a ValueError otherwise."""
    is_rough = isinstance(kernel, (Matern12, Exponential))
    most = 0 if is_rough else 1 if isinstance(kernel, Matern32) else slope.order
    if slope.order > most:
        times = "" if is_rough else " twice"
        raise refusal(
            "functionals",
            f"have derivatives that exist under the prior, which is not differentiable{times}",
            f"{slope} with {type(kernel).__name__}",
            "pass a smoother kernel, such as Matern52, or a Mean",
        )


def _stationary_parts(kernel: Any, columns: IntArray, column: int) -> Iterator[Kernel]:
    """The stationary kernels from which a kernel is made and that see an input."""
    if hasattr(kernel, "base_for"):  # a prior of finite rank
        yield from _stationary_parts(kernel.kernel, columns, column)
    elif isinstance(kernel, Combination):
        for part in kernel.kernels:
            yield from _stationary_parts(part, columns, column)
    elif column in columns[kernel.active_dims]:
        parts = (kernel, *kernel.submodules)
        yield from (part for part in parts if isinstance(part, Stationary))
