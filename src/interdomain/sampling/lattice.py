"""Random waves of a box: integer frequencies, drawn by the variance that each carries.

A squared exponential kernel, summed over the images of a box, has in each column frequencies of a
discrete normal distribution. A Matern kernel is a mixture of such kernels, and the same point of
the mixture belongs to all columns: it is drawn first (:mod:`interdomain.kernels.periodic._images`).
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np
from gpflow.kernels import (
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Product,
    SquaredExponential,
    Stationary,
    Sum,
)

from ..kernels.periodic._images import images_mixture
from ..kernels.periodic.spectral_density import raise_unknown
from ..sphere._typing import Array, IntArray
from .draws import as_array, as_float

_WIDE = 30.0
"""A discrete normal distribution of a larger standard deviation is that of rounded normal numbers,
to a relative error below 1e-6."""


def _log_masses(width: float, *, constant: bool) -> tuple[IntArray, Array]:
    """Integers, and the logarithms of ``sqrt(4 pi width) exp(-4 pi^2 width n^2)``; those of the
    others are next to nothing."""
    deviation = 1 / (2 * math.pi * math.sqrt(2 * width))
    reach = 2 + int(10 * deviation)
    n = np.arange(-reach, reach + 1)
    if not constant:
        n = n[n != 0]
    return n, math.log(4 * math.pi * width) / 2 - 4 * math.pi**2 * width * n.astype(float) ** 2


def _log_total(width: float, *, constant: bool) -> float:
    """Of all integers, or of all but zero."""
    deviation = 1 / (2 * math.pi * math.sqrt(2 * width))
    if deviation > _WIDE:
        return 0.0 if constant else math.log1p(-math.sqrt(4 * math.pi * width))
    _, logs = _log_masses(width, constant=constant)
    highest = float(np.max(logs))
    return highest + math.log(float(np.sum(np.exp(logs - highest))))


def discrete_normal(
    rng: np.random.Generator, width: float, size: int, *, constant: bool = True
) -> IntArray:
    """Integers of a probability in proportion to ``exp(-4 pi^2 width n^2)``, ``[size]``.

    :param constant: Whether zero is one of them.
    """
    deviation = 1 / (2 * math.pi * math.sqrt(2 * width))
    if deviation > _WIDE:
        scale = math.sqrt(deviation**2 - 1 / 12)
        found: IntArray = np.rint(rng.normal(0, scale, size)).astype(np.int64)
        while not constant and not np.all(found):
            zeros = np.flatnonzero(found == 0)
            found[zeros] = np.rint(rng.normal(0, scale, len(zeros))).astype(np.int64)
        return found
    n, logs = _log_masses(width, constant=constant)
    masses = np.exp(logs - np.max(logs))
    chosen: IntArray = rng.choice(n, size=size, p=masses / np.sum(masses))
    return chosen


def of_mixture(
    kind: type[Stationary],
    squares: Array,
    rng: np.random.Generator,
    size: int,
    *,
    constant: bool = True,
) -> tuple[IntArray, float]:
    """Frequencies of a kernel of variance one, ``[size, D]``, and the variance of its sum over
    images.

    :param squares: The squared lengthscales, in periods, ``[D]``.
    :param constant: Whether zero is one of the frequencies of each column.
    """
    t, weights = images_mixture(kind)
    logs = np.log(weights)
    for square in squares:
        logs = logs + [_log_total(width, constant=constant) for width in t * square]
    masses = np.exp(logs - np.max(logs))
    variance = float(np.exp(np.max(logs)) * np.sum(masses))
    places = rng.choice(len(t), size=size, p=masses / np.sum(masses))
    found = np.zeros([size, len(squares)], np.int64)
    for place in np.unique(places):
        rows = np.flatnonzero(places == place)
        for column, square in enumerate(squares):
            width = float(t[place] * square)
            found[rows, column] = discrete_normal(rng, width, len(rows), constant=constant)
    return found, variance


@singledispatch
def lattice_frequencies(
    kernel: Kernel, periods: Array, rng: np.random.Generator, size: int
) -> tuple[IntArray, float]:
    """Integer frequencies of a kernel that is summed over the images of a box, ``[size, D]``, each
    with the probability of its share of the variance; and the variance.

    :param kernel: The stationary kernel.
    :param periods: Of the columns that its ``active_dims`` select from, ``[D]``.
    """
    raise_unknown(kernel)


@lattice_frequencies.register(Matern12)
@lattice_frequencies.register(Matern32)
@lattice_frequencies.register(Matern52)
@lattice_frequencies.register(SquaredExponential)
def lattice_frequencies_stationary(
    kernel: Stationary, periods: Array, rng: np.random.Generator, size: int
) -> tuple[IntArray, float]:
    """Those of the mixture."""
    own = np.arange(len(periods))[kernel.active_dims]
    squares = np.square(as_array(kernel.lengthscales) / periods[own])
    found, variance = of_mixture(type(kernel), squares, rng, size)
    return _at_columns(found, own, len(periods)), variance * as_float(kernel.variance)


@lattice_frequencies.register(Sum)
def lattice_frequencies_sum(
    kernel: Sum, periods: Array, rng: np.random.Generator, size: int
) -> tuple[IntArray, float]:
    """Of a summand that is drawn by its variance."""
    own = np.arange(len(periods))[kernel.active_dims]
    parts = [lattice_frequencies(part, periods[own], rng, size) for part in kernel.kernels]
    variances = np.array([variance for _, variance in parts])
    chosen = rng.choice(len(parts), size=size, p=variances / np.sum(variances))
    found = np.stack([frequencies for frequencies, _ in parts])[chosen, np.arange(size)]
    return _at_columns(found, own, len(periods)), float(np.sum(variances))


@lattice_frequencies.register(Product)
def lattice_frequencies_product(
    kernel: Product, periods: Array, rng: np.random.Generator, size: int
) -> tuple[IntArray, float]:
    """Of each factor in its columns."""
    own = np.arange(len(periods))[kernel.active_dims]
    parts = [lattice_frequencies(part, periods[own], rng, size) for part in kernel.kernels]
    found = np.sum([frequencies for frequencies, _ in parts], axis=0)
    return _at_columns(found, own, len(periods)), math.prod(variance for _, variance in parts)


def _at_columns(found: IntArray, own: IntArray, num_columns: int) -> IntArray:
    """Zero in all other columns."""
    joint = np.zeros([len(found), num_columns], np.int64)
    joint[:, own] = found
    return joint
