"""A ranking of pairs of columns by the gain of their interaction, from one pass over the rows.

Let c and ``I + H`` be ``products`` and ``precisions`` of
:class:`interdomain.sums.residuals.CandidateSums` for the features of a pair, under a prior of
variance one. An interaction of prior variance v then raises the log marginal likelihood by

    gain(v) = (v c^T (I + v H)^{-1} c - log det(I + v H)) / 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import gpflow
import numpy as np

from .._arguments import Array, IntArray
from .._progress import progress_bar
from ..models import StructuredSGPR
from .features import AdditiveFeatures
from .kernel import Additive, Effect
from .orders import atom_size

SHARE = 16
"""The number of features that are reserved for a pair, if its first waves need no more."""

_LEAST_GAIN = 1.0
"""The nats that a chosen pair must gain on the subset."""

_FREQUENCIES = 2
"""The number of frequencies in each numeric column of a pair."""

_GROUP = 1024
"""The largest number of features that are compared together."""

_LENGTHSCALE = 0.5

_VARIANCES = 10 ** np.linspace(-5, 1, 49)
"""The prior variances of a pair that are compared, in units of the variance of Y."""


class RankedPair(NamedTuple):
    """Two columns, the nats by which their interaction raises the log marginal likelihood, and the
    prior variance with the largest gain."""

    effect: Effect
    gain: float
    variance: float


class _Sums(NamedTuple):
    """The sums c, ``[K, P]``, and H, ``[K, K]``, of all features of a group of pairs, and the
    numbers of the features of each pair."""

    products: Array
    matrix: Array
    places: dict[Effect, IntArray]

    def ranked(self, pairs: Iterable[Effect], unit: float) -> list[RankedPair]:
        """The gain of each pair and its best variance; ``unit`` is the unit of variances."""
        return [RankedPair(pair, *self._best(self.places[pair], unit)) for pair in pairs]

    def _best(self, rows: IntArray, unit: float) -> tuple[float, float]:
        eigenvalues, vectors = np.linalg.eigh(self.matrix[np.ix_(rows, rows)])
        squares = np.sum(np.square(vectors.T @ self.products[rows]), axis=1)
        v = unit * _VARIANCES[:, None]
        scales = v * np.maximum(eigenvalues, 0)
        fit = np.sum(v * squares / (1 + scales), axis=1)
        gains = (fit - self.products.shape[1] * np.sum(np.log1p(scales), axis=1)) / 2
        place = int(np.argmax(gains))
        return float(gains[place]), unit * float(_VARIANCES[place])

    def with_pair(self, pair: Effect, variance: float) -> _Sums:
        """The sums that remain when a pair has become a part of the model."""
        rows, count = self.places[pair], self.products.shape[1]
        inner = variance * self.matrix[np.ix_(rows, rows)] + np.eye(len(rows))
        solved = np.linalg.solve(inner, np.hstack([self.products[rows], self.matrix[rows]]))
        taken = variance * self.matrix[:, rows] @ solved
        products, matrix = self.products - taken[:, :count], self.matrix - taken[:, count:]
        return _Sums(products, matrix, self.places)


def choose_pairs(
    model: StructuredSGPR, kernel: Additive, *, room: int, unit: float, progress: bool
) -> tuple[list[RankedPair], list[RankedPair]]:
    """The pairs that raise the log marginal likelihood most, each given the pairs before it; and
    all pairs by themselves, best first.

    :param model: A trained model, of main effects for example.
    :param kernel: The kernel of the model; its pairs are not chosen again.
    :param room: The largest number of features of all chosen pairs together.
    :param unit: The unit of variances: the variance of Y.
    """
    pairs = itertools.combinations(range(kernel.num_columns), 2)
    possible = [p for p in pairs if p not in kernel.effects and features_of(kernel, p) <= room]
    residuals = model.residuals()

    def compared(some: Sequence[Effect]) -> _Sums:
        unit_kernel = Additive(kernel.columns, some, lengthscales=_LENGTHSCALE)
        highest = {pair: _highest(kernel, pair) for pair in unit_kernel.effects}
        features = AdditiveFeatures(unit_kernel, highest)
        sums = residuals.compare((features, unit_kernel))
        ends = np.cumsum([1, *map(len, features.functions[1:])])
        by_pair = dict(zip(unit_kernel.effects, map(np.arange, ends, ends[1:]), strict=True))
        (precision,) = sums.precisions
        return _Sums(sums.products, precision - np.eye(len(precision)), by_pair)

    ranking: list[RankedPair] = []
    groups = _groups(kernel, possible)
    with progress_bar("pairs", "pair", len(possible), shown=progress) as bar:
        for group in groups:
            sums = compared(group)
            ranking += sums.ranked(sums.places, unit)
            bar.update(len(group))
    ranking.sort(key=lambda pair: (-pair.gain, pair.effect))
    worthwhile = [pair.effect for pair in ranking if pair.gain > _LEAST_GAIN]
    if len(groups) > 1 and worthwhile:  # the best of all groups, compared together
        sums = compared(sorted(_groups(kernel, worthwhile)[0]))
    waiting = list(sums.places) if worthwhile else []
    chosen: list[RankedPair] = []
    while waiting := [pair for pair in waiting if features_of(kernel, pair) <= room]:
        best = max(sums.ranked(waiting, unit), key=lambda pair: pair.gain)
        if best.gain <= _LEAST_GAIN:
            break
        chosen.append(best)
        sums = sums.with_pair(best.effect, best.variance)
        room -= features_of(kernel, best.effect)
        waiting.remove(best.effect)
    return chosen, ranking


def features_of(kernel: Additive, pair: Effect) -> int:
    """The number of features that are reserved for a pair."""
    return max(atom_size(kernel, pair), SHARE)


def with_pairs(kernel: Additive, pairs: Sequence[RankedPair]) -> Additive:
    """The kernel with more effects; its parameters keep their values."""
    scales = dict(zip(kernel.effects, kernel.variances.numpy(), strict=True))
    scales |= {pair.effect: pair.variance for pair in pairs}
    separate = kernel.separate_lengthscales
    more = Additive(kernel.columns, list(scales), separate_lengthscales=separate)
    more.variances = gpflow.Parameter(
        [scales[effect] for effect in more.effects], transform=kernel.variances.transform
    )
    more.constant_variance = kernel.constant_variance
    lengthscales, known = more.lengthscales.numpy(), kernel.lengthscales.numpy()
    for place, (effect, column) in enumerate(more.lengthscale_columns):
        before = kernel.lengthscale_place(effect or (), column)
        lengthscales[place] = lengthscales[place] if before is None else known[before]
    more.lengthscales.assign(lengthscales)
    return more


def _highest(kernel: Additive, pair: Effect) -> int:
    """The number of frequencies with which a pair is ranked: one, if it has many levels."""
    return _FREQUENCIES if atom_size(kernel, pair, _FREQUENCIES) <= _GROUP else 1


def _groups(kernel: Additive, pairs: Sequence[Effect]) -> list[list[Effect]]:
    """The pairs in order, in groups with few enough features to be compared together."""
    groups: dict[int, list[Effect]] = {}
    ends = np.cumsum([atom_size(kernel, pair, _highest(kernel, pair)) for pair in pairs])
    for pair, end in zip(pairs, ends, strict=True):
        groups.setdefault(end // (_GROUP + 1), []).append(pair)
    return list(groups.values())
