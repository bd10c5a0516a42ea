"""A best-first search for the harmonics with the most prior variance over some data, and an
orthogonal dictionary of harmonics: its atoms are chains of degrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np
import tensorflow as tf

from ..._arguments import Array, IntArray
from ...core.dictionaries import Dictionary, rows_of
from ...core.family import Block
from ...linalg.diagonal import least_eigenvalue
from .kernel import ZonalKernel
from .mathematics.dimensions import chains_of, neighbours_of, num_harmonics
from .mathematics.harmonics import planar_norms, raise_factors

Raises = tuple[tuple[int, int], ...]
"""A harmonic, as a tuple of pairs (j, a): coordinate j raises the degree by a. The pairs are sorted
by j. For j = 2, the first two coordinates, a has the sign of k_2: plus for a cosine."""

MAX_ROWS = 2_000
"""The largest number of rows over which variances are averaged; more rows are sampled."""

NEGLIGIBLE_SHARE = 1e-12
"""The smallest share of the prior variance over the rows of a harmonic that is selected."""

LONGEST_GAP = 8
"""The largest number of consecutive missing degrees that are crossed; arc-cosine kernels lack one
at a time."""


def lifted_rows(kernel: ZonalKernel, X: Array, most: int | None = MAX_ROWS) -> tuple[Array, Array]:
    """The unit vectors ``[N, d]`` of rows, and each row's share in the prior variance, ``[N]``.

    :param most: The largest number of rows; more rows are sampled with a fixed seed, in order.
    :raises ValueError: If the kernel expects rows on a sphere, and they are not.
    """
    if most is not None and len(X) > most:
        X = X[np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))]
    inputs, _ = kernel.slice(tf.constant(X, kernel.variance.dtype), None)
    kernel.lift.validate("X", inputs.numpy())
    kernel.lift.warn("X", inputs.numpy())
    scale, unit = (part.numpy().astype(float) for part in kernel.to_scaled_sphere(inputs))
    weights = (scale[:, 0] / np.max(scale)) ** 2
    return unit, weights / np.sum(weights)


def columns_by_scale(kernel: ZonalKernel, X: Array) -> tuple[int, ...]:
    """All coordinates except the last (often the bias), sorted by increasing second moment."""
    unit, weights = lifted_rows(kernel, X)
    return tuple(np.argsort(weights @ unit[:, :-1] ** 2, kind="stable").tolist())


def grown_chains(
    kernel: ZonalKernel, X: Array, order: Sequence[int], num_inducing: int, max_degree: int | None
) -> IntArray:
    """The chains of up to ``num_inducing`` harmonics, grown from the constant by single raises.

    A harmonic becomes a candidate when all harmonics one raise below it are in the set, so few
    harmonics of high degree are evaluated. The candidate with the largest variance over the rows is
    added next. Harmonics of degrees that the kernel lacks are crossed, but not selected.

    :param order: The order of the kernel's active columns in the chains.
    :return: ``[M, d - 1]``, in the order of selection; M = 0 if there are none.
    """
    unit, weights = lifted_rows(kernel, X)
    dimension = unit.shape[1]
    squares = HarmonicSquares(unit[:, [*order, dimension - 1]], weights)
    spectrum = Spectrum(kernel, dimension, max_degree)
    waiting, taken = list[tuple[float, int, Raises]](), list[Raises]()
    num_below: Counter[Raises] = Counter()

    def look_at(raises: Raises) -> None:
        degree = sum(abs(a) for _, a in raises)
        eigenvalue = spectrum.from_degree(degree)
        share = squares.mean(raises) * eigenvalue if eigenvalue > 0 else 0.0
        if share >= NEGLIGIBLE_SHARE:
            # Rounded, so that the order of equal shares does not depend on rounding errors.
            rank = -float(f"{share:.9e}") if spectrum.has_degree(degree) else -np.inf
            heappush(waiting, (rank, degree, raises))

    look_at(())
    while waiting and len(taken) < num_inducing:
        rank, _, raises = heappop(waiting)
        if rank > -np.inf:
            taken.append(raises)
        for above in _raised(raises, dimension):
            num_below[above] += 1
            if num_below[above] == len(above):
                del num_below[above]
                look_at(above)
    dense = np.zeros((len(taken), dimension - 1), np.int64)
    for row, raises in enumerate(taken):
        for j, a in raises:
            dense[row, j - 2] = a
    return chains_of(dense)


def _raised(raises: Raises, dimension: int) -> Iterator[Raises]:
    """All harmonics one raise above a harmonic."""
    place = 0
    for j in range(2, dimension + 1):
        below, above = raises[:place], raises[place:]
        if above and above[0][0] == j:
            a = above[0][1]
            yield (*below, (j, a + 1 if a > 0 else a - 1), *above[1:])
            place += 1
        else:
            yield (*below, (j, 1), *above)
            if j == 2:
                yield (*below, (j, -1), *above)


class HarmonicSquares:
    """Weighted means of squared harmonics over unit vectors ``[n, d]``, with weights ``[n]``.

    A harmonic is the product of its last factor and a harmonic with one factor less. Both are
    cached, so that a mean is one inner product of two rows of squares.
    """

    def __init__(self, X: Array, weights: Array) -> None:
        self._x = np.ascontiguousarray(X.T)
        self._squared_norms = np.cumsum(self._x**2, axis=0)
        self._weights = weights
        self._factor, self._product = cache(self._new_factor), cache(self._new_product)

    def mean(self, raises: Raises) -> float:
        """The weighted mean of the square of one harmonic."""
        if not raises:
            return float(np.sum(self._weights))
        return float(self._product(raises[:-1]) @ self._last_square(raises))

    def _new_product(self, raises: Raises) -> Array:
        """The squares of a harmonic, times the weights."""
        if not raises:
            return self._weights
        return self._product(raises[:-1]) * self._last_square(raises)

    def _last_square(self, raises: Raises) -> Array:
        (j, a), below = raises[-1], raises[:-1]
        return np.square(self._factor(j, sum(abs(raised) for _, raised in below), a))

    def _new_factor(self, j: int, k: int, a: int) -> Array:
        """The factor of coordinate j, which raises the degree from k to k + a."""
        dimension, x = self._x.shape[0], self._x[j - 1]
        if j == 2:
            power = (self._x[0] + 1j * x) ** abs(a) * planar_norms(dimension, abs(a))[-1]
            return np.asarray(power.real if a > 0 else power.imag)
        if a == 0:
            return np.ones_like(x)
        first, second = raise_factors(dimension, j, k, a)
        factor = first * x * self._factor(j, k, a - 1)
        if a > 1:
            factor -= second * self._squared_norms[j - 1] * self._factor(j, k, a - 2)
        return np.asarray(factor)


class Spectrum:
    """The eigenvalues of a kernel, computed for more degrees when they are needed."""

    def __init__(self, kernel: ZonalKernel, dimension: int, max_degree: int | None) -> None:
        self._kernel, self._dimension, self._max_degree = kernel, dimension, max_degree
        self._eigenvalues: dict[int, float] = {}
        self._reach = -1

    def has_degree(self, degree: int) -> bool:
        """Whether harmonics of this degree can be selected."""
        self._extend(degree)
        return degree in self._eigenvalues

    def from_degree(self, degree: int) -> float:
        """The eigenvalue of a degree, or of the next degree that the kernel has; 0 if none."""
        self._extend(degree)
        for following in range(degree, degree + LONGEST_GAP + 1):
            if following in self._eigenvalues:
                return self._eigenvalues[following]
        return 0.0

    def _extend(self, degree: int) -> None:
        """Compute the eigenvalues up to twice the degree that is needed."""
        ahead = degree + LONGEST_GAP
        if ahead <= self._reach or self._reach == self._max_degree:
            return
        reach = 2 * ahead
        self._reach = reach if self._max_degree is None else min(reach, self._max_degree)
        degrees = self._kernel.nonzero_degrees(self._dimension, self._reach)
        if degrees:
            values = self._kernel.eigenvalues(self._dimension, degrees)
            # Zero, as the smallest invertible eigenvalue would overstate the explained variance.
            kept = np.where(values >= least_eigenvalue(values.dtype), values, 0.0)
            self._eigenvalues = dict(zip(degrees, kept.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class HarmonicDictionary(Dictionary):
    """The spherical harmonics with positive eigenvalues; an atom is a chain of degrees.

    :ivar harmonics: A SphericalHarmonics; its module imports this one, so the type is Any.
    """

    harmonics: Any
    kernel: ZonalKernel

    @property
    def atoms(self) -> IntArray:
        chains: IntArray = self.harmonics.chains
        return chains

    def arranged(self, X: Array) -> Dictionary:
        """The dictionary with columns in order of increasing scale, if all degrees are whole."""
        dimension, degrees = self.harmonics.dimension, self.harmonics.degrees
        numbers = [num_harmonics(dimension, degree) for degree in degrees]
        if list(self.harmonics.multiplicities) != numbers:
            return self
        order = columns_by_scale(self.kernel, X)
        harmonics = type(self.harmonics)(dimension, degrees, column_order=order)
        return replace(self, harmonics=harmonics)

    def likeliest(self, X: Array, count: int) -> IntArray:
        return grown_chains(self.kernel, X, self.harmonics.column_order, count, None)

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """The neighbours with eigenvalues that can be inverted, across degrees that are missing."""
        spectrum = Spectrum(self.kernel, self.harmonics.dimension, None)
        seen, near = set(map(tuple, atoms.tolist())), list[tuple[int, ...]]()
        for atom in atoms:
            around = neighbours_of(atom[None])
            while len(around):
                reached = dict.fromkeys(map(tuple, around.tolist()))
                new = [chain for chain in reached if chain not in seen]
                seen.update(new)
                new = [chain for chain in new if spectrum.from_degree(abs(chain[-1])) > 0]
                near += [chain for chain in new if spectrum.has_degree(abs(chain[-1]))]
                across = [chain for chain in new if not spectrum.has_degree(abs(chain[-1]))]
                around = neighbours_of(rows_of(across, atoms.shape[1]))
            if limit is not None and len(near) >= limit:
                break
        return rows_of(near, atoms.shape[1])[:limit]

    def features(self, atoms: IntArray) -> Block:
        dimension, order = self.harmonics.dimension, self.harmonics.column_order
        return type(self.harmonics)(dimension, chains=atoms, column_order=order), self.kernel
