"""The rows of a :class:`interdomain.models.VecchiaSGPR`: their order, merged rows, neighbours."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import gpflow
import numpy as np

from ..._arguments import Array, IntArray
from ...sums.row_batches import Rows
from .local_kernel import LocalKernel
from .merging import DISTANCES, SHARE, MergedRows, at_one_place, merged, nearby
from .whitening import NeighbourRows

_MOST_LEFT = 0.5
"""The largest share of the rows that may remain after nearby rows are merged. If more remain,
rows are not merged: the error of merging would buy little."""

_LOOKED_AT = 256
"""The number of random rows at which the variation of features and mean is compared with the noise,
before nearby rows are merged."""

_BATCH_ENTRIES = 2**22
"""The largest number of entries of a batch, in its covariances or its features: 32 MB."""


class Sample(NamedTuple):
    """Random merged rows with their neighbours.

    :ivar X: The rows and neighbours, ``[U, D]``.
    :ivar Y: Their targets, ``[U, P]``.
    :ivar places: The places in X of the neighbours and, last, of the row, ``[B, m + 1]``; -1 for
        missing neighbours.
    :ivar noise_weights: The noise weights of rows and neighbours, ``[U]``.
    :ivar shares: Weights ``[B]`` that make a weighted sum over the sample an unbiased estimate of
        the mean over all merged rows.
    :ivar rows: The numbers of the merged rows, ``[B]``.
    """

    X: Array
    Y: Array
    places: IntArray
    noise_weights: Array
    shares: Array
    rows: IntArray


class OrderedRows:
    """Rows in the order in which they are conditioned on each other.

    :param given_weights: The given weights w ``[N]`` of noise variances ``s / w``; None for ones.
    :param merge: The rule for merging rows; see :class:`interdomain.models.VecchiaSGPR`.
    :ivar noise_weights: The given weights, times the expected weights of Student-t noise, ``[N]``;
        None for ones.
    :ivar merged: The :class:`.MergedRows`, for the kernel of the last :meth:`search`.
    :ivar neighbours: The :class:`.Neighbours` of the merged rows.
    """

    def __init__(self, X: Array, Y: Array, given_weights: Array | None, merge: str | float) -> None:
        self.X, self.Y, self._merge = X, Y, merge
        self.given_weights = self.noise_weights = given_weights
        self._at_one_place = None if merge == "off" else at_one_place(X)
        self.merged = merged(X, Y, given_weights, self._at_one_place)

    @property
    def parts(self) -> tuple[Array, ...]:
        """X, Y, and given noise weights ``[N, 1]``, if there are any."""
        weights = self.given_weights
        return (self.X, self.Y) if weights is None else (self.X, self.Y, weights[:, None])

    @property
    def given_weights_of_merged(self) -> Array:
        """The given noise weights of merged rows of a single row, ``[G]``; 0 for all others."""
        groups = self.merged.groups
        weights = np.bincount(groups, self.given_weights)
        return np.where(np.bincount(groups) == 1, weights, 0.0)

    def search(
        self,
        local: LocalKernel,
        noise_variance: float,
        variations_beside: Callable[[Array, Array], Array],
        *,
        near: bool = True,
    ) -> None:
        """Merge rows, and find the neighbours of merged rows, for the present parameters.

        :param variations_beside: A function of rows and their merged rows, ``[n, D]`` each. It
            returns the mean squares ``[n]`` of the differences of f minus g between them.
        :param near: Whether nearby rows may be merged.
        """
        rows = merged(self.X, self.Y, self.noise_weights, self._at_one_place)
        groups = None
        if near and self._merge not in ("off", "exact"):
            groups = self._nearby(rows.X, rows.weights, local, noise_variance)
        by_radius = isinstance(self._merge, float)
        if groups is not None and (by_radius or groups.max() < _MOST_LEFT * len(groups)):
            fewer = merged(self.X, self.Y, self.noise_weights, groups[rows.groups])
            if by_radius or self._vary_little(fewer, noise_variance, variations_beside):
                rows = fewer
        self.merged = rows
        self.neighbours = local.neighbours(rows.X)

    def _vary_little(
        self,
        fewer: MergedRows,
        noise_variance: float,
        variations_beside: Callable[[Array, Array], Array],
    ) -> bool:
        """Whether f minus g varies within merged rows by less than a tenth of their noise. Random
        rows are looked at."""
        some = np.random.default_rng(0).permutation(len(self.X))[:_LOOKED_AT]
        own = fewer.groups[some]
        variations = variations_beside(self.X[some], fewer.X[own]) * fewer.weights[own]
        return bool(np.all(variations <= SHARE * noise_variance))

    @property
    def has_merged_nearby(self) -> bool:
        """Whether nearby rows are merged, and not only rows at one place."""
        places = self._at_one_place
        return len(self.merged.X) < (len(self.X) if places is None else int(places.max()) + 1)

    def _nearby(
        self, X: Array, weights: Array, local: LocalKernel, noise_variance: float
    ) -> IntArray | None:
        """The groups of nearby rows; None if there are no groups."""
        points, others = local.points(X), np.zeros(len(X), np.int64)
        columns = local.other_columns(X)
        if columns.shape[1]:
            same = at_one_place(columns)
            if same is None:
                return None
            others = same
        if isinstance(self._merge, float):
            noise_variance = 1.0
            variations = np.where(self._merge >= DISTANCES, 0.0, 1e300)
        else:
            variations = local.variations(DISTANCES, points.shape[1])
        points = points / local.lengthscales
        return nearby(points, others, weights, noise_variance, variations)

    def weigh(self, expected: Array) -> None:
        """Replace the expected weights ``[N]``. The groups of merged rows remain."""
        given = self.given_weights
        self.noise_weights = expected if given is None else given * expected
        self.merged = merged(self.X, self.Y, self.noise_weights, self.merged.groups)

    def extended(
        self,
        X: Array,
        Y: Array,
        given_weights: Array | None,
        expected: Array | None,
        local: LocalKernel,
    ) -> OrderedRows:
        """The rows, followed by further rows. Neighbours that were found remain.

        :param given_weights: The given weights of further rows; None for ones.
        :param expected: The expected weights of further rows; None for Gaussian noise.
        """
        longer, before = copy.copy(self), len(self.merged.X)
        longer.X, longer.Y = np.concatenate([self.X, X]), np.concatenate([self.Y, Y])
        sizes, noise_weights = (len(self.X), len(X)), given_weights
        if expected is not None:
            noise_weights = expected if given_weights is None else given_weights * expected
        longer.given_weights = _joined((self.given_weights, given_weights), sizes)
        longer.noise_weights = _joined((self.noise_weights, noise_weights), sizes)
        longer._at_one_place = None if self._merge == "off" else at_one_place(longer.X)
        groups = np.concatenate([self.merged.groups, np.full(len(X), -1)])
        places = longer._at_one_place
        if places is None:
            groups[len(self.X) :] = before + np.arange(len(X))
        else:
            first = np.unique(places, return_index=True)[1][places]  # the first row at the place
            own = first[len(self.X) :]
            is_new = own >= len(self.X)
            numbers = np.unique(own[is_new], return_inverse=True)[1]
            groups[len(self.X) :][is_new] = before + np.reshape(numbers, -1)
            groups[len(self.X) :][~is_new] = groups[own[~is_new]]
        longer.merged = merged(longer.X, longer.Y, longer.noise_weights, groups)
        new = longer.merged.X[before:]
        if len(new):
            longer.neighbours = self.neighbours.extended(local.points(new))
        return longer

    def batches(
        self,
        number: int,
        which: IntArray | None = None,
        *,
        row_entries: int = 1,
        batch_size: int | None = None,
        progress: bool = False,
    ) -> NeighbourRows:
        """The merged rows, or a part of the merged rows, with their neighbours, in batches.

        :param number: The largest number of neighbours.
        :param which: The numbers of the merged rows to read; None for all.
        :param row_entries: The number of entries in the features of a row.
        :param batch_size: The number of rows in a batch; by default so many that 32 MB hold them.
        """
        size = _BATCH_ENTRIES // max(number**2, row_entries, 1)
        batch_size = batch_size or max(256, min(8_192, size))
        arguments: dict[str, Any] = {"batch_size": batch_size, "progress": progress}
        rows = self.merged.X, self.merged.Y, self.merged.weights
        return NeighbourRows(*rows, self.neighbours, number, which=which, **arguments)

    def draw(
        self, number: int, seed: int, chances: Array | None = None, first: int = 0
    ) -> tuple[IntArray, Array]:
        """Draw random merged rows: their numbers, and ``shares`` of :class:`Sample`, ``[B]`` each.

        :param number: The number B of rows; with ``chances`` it is the largest number.
        :param chances: The probability of each row to be drawn, ``[G]``, with sum one; None for a
            uniform sample.
        :param first: The number of rows at the beginning of the order that are not drawn.
        """
        size = len(self.merged.X)
        rng, number = np.random.default_rng(seed), min(number, size - first)
        if chances is None:
            rows = np.sort(first + rng.choice(size - first, number, replace=False))
            return rows, np.full(number, 1 / number)
        later = chances[first:] / np.sum(chances[first:])
        expected = np.minimum(number * later, 1)  # systematic sampling: each row at most once
        ends = np.cumsum(expected)
        rows = np.searchsorted(ends, np.arange(rng.random(), ends[-1]))
        return first + rows, 1 / (len(later) * expected[rows])

    def sample(self, rows: IntArray, shares: Array, nearest: IntArray) -> Sample:
        """The sample of the given rows.

        :param rows: The numbers of merged rows, ``[B]``.
        :param nearest: The neighbours of these rows ``[B, m]``, -1 for missing neighbours.
        """
        X, Y, places, noise_weights = self.batches(nearest.shape[1]).batch(rows, nearest)
        return Sample(X, Y, places, noise_weights, shares, rows)


def _joined(weights: tuple[Array | None, Array | None], sizes: tuple[int, int]) -> Array | None:
    """The joined weights of two sets of rows of these ``sizes``; None if all weights are one."""
    if all(part is None for part in weights):
        return None
    parts = zip(weights, sizes, strict=True)
    return np.concatenate([np.ones(size) if part is None else part for part, size in parts])


def as_floats(rows: Rows) -> tuple[Array, Array, Array | None]:
    """X and Y in the default float, and noise weights ``[N]``; None for ones."""
    X, Y, *weights = rows.in_memory() or ()
    dtype = gpflow.default_float()
    flat = np.asarray(weights[0], np.float64).ravel() if weights else None
    return X.astype(dtype, copy=False), Y.astype(dtype, copy=False), flat
