"""The moments of f at rows, at which the first sites of a fit are tangent.

Tangents at the prior say nothing about a likelihood that is far away from it. For Poisson counts of
500 and a prior rate of one, they make a q whose rates overflow. So the first sites are tangent near
the likelihood. A level g of each latent GP is searched on a sample of rows, as if f were
``m(x) + g``: by growing steps, then by Newton's method. Each row then has a separate q,
``N(mu_n, v_n)``, which maximises

    E[log p(y_n | f_n)] - KL(N(mu_n, v_n) | N(m(x_n) + g, k(x_n, x_n)))

by natural-gradient steps. A step that lowers this objective is rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._arguments import Array

_FIRST_LEVEL, _FACTOR, _FURTHEST = 1 / 16, 4.0, 1e7
"""Absolute values of levels that are tried: the first, the ratio of successive ones, a limit."""

_NARROW = 1e-4
"""The variance of f in the search of the level."""

_NARROW_ROW = 0.01
"""The initial variance of the q of a row, or its share of the prior variance if this is less."""

_STEPS_OF_LEVEL, _STEPS_OF_ROWS = 50, 40
_ROUNDING, _LEAST_SHARE = 1e-12, 1e-3
_SMALL = 1e-3  # nats, of a row or of all rows: a step that gains less is the last

Moments = Callable[[Array, Array], tuple[Array, Array, Array]]
"""A function of means and variances of f, ``[n, L]``, that returns the expected log-likelihood of
each row ``[n]``, alpha and beta ``[n, L]``."""


class _Penalty(NamedTuple):
    """The penalty in nats for a level of a latent GP, as if f were constant under its prior.

    :ivar variance: The prior variance; infinity if a mean function learns the level.
    :ivar learns: Whether the variance is trained, which makes a large level cheap.
    """

    variance: float
    learns: bool

    def __call__(self, level: Array) -> float:
        ratios = np.square(level) / self.variance
        return float(np.sum(np.log1p(ratios) if self.learns else ratios)) / 2

    def slope(self, level: Array) -> Array:
        """The derivative of the penalty."""
        return level * self.curvature(level)

    def curvature(self, level: Array) -> Array:
        """The slope divided by the level, which stands for the curvature and is never negative."""
        more: Array = self.variance + self.learns * np.square(level)
        return 1 / more


def level_of(moments: Moments, mean: Array, factor: float, variance: float, learns: bool) -> Array:
    """The level of each latent GP, ``[L]``.

    :param moments: The moments of some rows.
    :param mean: The mean function at these rows, ``[n, L]``.
    :param factor: The number of all rows divided by the number of these rows.
    :param variance: The prior variance; infinity if a mean function learns the level.
    :param learns: Whether the variance is trained.
    """
    penalty, narrow = _Penalty(variance, learns), np.full_like(mean, _NARROW)

    def at(level: Array) -> tuple[float, Array, Array]:
        values, slopes, curvatures = moments(mean + level.astype(mean.dtype), narrow)
        total = factor * float(np.sum(values, dtype=np.float64)) - penalty(level)
        slope = factor * np.sum(slopes, axis=0, dtype=np.float64) - penalty.slope(level)
        curvature = factor * np.sum(np.maximum(curvatures, 0.0), axis=0, dtype=np.float64)
        return total, slope, curvature + penalty.curvature(level)

    level = np.zeros(mean.shape[1])
    best, slope, curvature = at(level)
    for number in np.flatnonzero(np.square(slope) > _SMALL * curvature):
        size = _FIRST_LEVEL * np.sign(slope[number])
        while abs(size) < _FURTHEST:
            other = level.copy()
            other[number] = size
            total = at(other)[0]
            if not total > best + _SMALL:
                break
            level, best, size = other, total, _FACTOR * size
    share = 1.0
    best, slope, curvature = at(level)
    for _ in range(_STEPS_OF_LEVEL):
        most = share * np.maximum(np.abs(level), 1.0)
        step = np.clip(share * slope / np.maximum(curvature, 1e-300), -most, most)
        if not np.all(np.isfinite(step)):
            break
        now = at(level + step)
        if now[0] < best or not np.isfinite(now[0]):
            share /= 2
            continue
        gain, level = now[0] - best, level + step
        best, slope, curvature = now
        if gain < _SMALL and np.all(np.abs(step) < most):
            break
        share = min(1.0, 2 * share)
    return level


def moments_of_rows(moments: Moments, mean: Array, variance: Array) -> tuple[Array, Array]:
    """The mean and variance of the q of each row, ``[n, L]`` each.

    :param mean: The prior mean of f at the rows, ``[n, L]``.
    :param variance: The prior variance, ``[n, L]``.
    """
    precision = 1 / np.minimum(_NARROW_ROW, _NARROW_ROW * variance) - 1 / variance
    sites = np.stack([precision, precision * mean])

    def q_of(sites: Array) -> tuple[Array, Array]:
        q_variance = 1 / (1 / variance + sites[0])
        return q_variance * (mean / variance + sites[1]), q_variance

    def at(q: tuple[Array, Array]) -> tuple[Array, Array]:
        values, slopes, curvatures = moments(*q)
        ratios = q[1] / variance
        kl = np.sum(ratios - 1 - np.log(ratios) + np.square(q[0] - mean) / variance, axis=1) / 2
        precisions = np.maximum(curvatures, 0.0)
        return values - kl, np.stack([precisions, slopes + precisions * q[0]])

    q = q_of(sites)
    best, tangent = at(q)
    shares = np.ones(len(mean))
    for _ in range(_STEPS_OF_ROWS):
        trial = sites + shares[:, None] * (tangent - sites)
        new_q = q_of(trial)
        now, new_tangent = at(new_q)
        finite = np.isfinite(now) & np.all(np.isfinite(new_tangent), axis=(0, 2))
        better = finite & ~(now < best - _ROUNDING * np.abs(best))
        gain = np.where(better, now - best, np.inf)
        best, column = np.where(better, now, best), better[:, None]
        sites = np.where(column, trial, sites)
        tangent = np.where(column, new_tangent, tangent)
        q = np.where(column, new_q[0], q[0]), np.where(column, new_q[1], q[1])
        shares = np.where(better, np.minimum(1.0, 2 * shares), shares / 2)
        if np.all((gain < _SMALL) | (shares < _LEAST_SHARE)):
            break
    return q
