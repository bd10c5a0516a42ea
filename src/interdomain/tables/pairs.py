"""Ranks pairs of columns by how much their interaction would explain, from one pass over the rows.

Let c and ``I + H`` be ``products`` and ``precisions`` of
:class:`interdomain.models.residuals.CandidateSums` for the features of a pair, under a prior of
variance one. An interaction of prior variance v then raises the log marginal likelihood by

    gain(v) = (v c^T (I + v H)^{-1} c - log det(I + v H)) / 2.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ..inducing_variables import AdditiveFeatures
from ..kernels import Additive
from ..models import StructuredSGPR
from ..sphere._typing import Array, IntArray

Effect = tuple[int, ...]

_FREQUENCIES = 2
"""In each numeric column of a pair."""

_GROUP = 1024
"""Features that are compared at a time, the shortlist excepted."""

_SHORTLIST = 1024

_LENGTHSCALE = 0.5

_VARIANCES = 10 ** np.linspace(-5, 1, 49)
"""In units of the variance of Y."""


class RankedPair(NamedTuple):
    """An interaction of two columns, and how much it would explain.

    :ivar effect: The numbers of the two columns.
    :ivar name: The name of the interaction, such as ``age x cement``.
    :ivar gain: By how many nats it raises the log marginal likelihood of the rows that it was
        ranked on.
    :ivar variance: The prior variance of the interaction at which the gain is largest.
    """

    effect: Effect
    name: str
    gain: float
    variance: float


class _Block(NamedTuple):
    """A pair, and where its features are."""

    effect: Effect
    features: IntArray


class _Sums(NamedTuple):
    """The c, ``[K, P]``, and H, ``[K, K]``, of all features of a group."""

    products: Array
    matrix: Array

    def best(self, block: _Block, unit: float) -> tuple[float, float]:
        """The gain of a pair, and its variance.

        :param unit: Of variances.
        """
        own = block.features
        eigenvalues, vectors = np.linalg.eigh(self.matrix[np.ix_(own, own)])
        squares = np.sum(np.square(vectors.T @ self.products[own]), axis=1)
        v = unit * _VARIANCES[:, None]
        scales = v * np.maximum(eigenvalues, 0)
        fit = np.sum(v * squares / (1 + scales), axis=1)
        gains = (fit - self.products.shape[1] * np.sum(np.log1p(scales), axis=1)) / 2
        place = int(np.argmax(gains))
        return float(gains[place]), unit * float(_VARIANCES[place])

    def with_pair(self, block: _Block, variance: float) -> _Sums:
        """What is left when a pair has become a part of the model."""
        own = block.features
        cross = variance * self.matrix[:, own]
        inner = variance * self.matrix[np.ix_(own, own)] + np.eye(len(own))
        solved = np.linalg.solve(inner, np.hstack([self.products[own], self.matrix[own]]))
        taken = cross @ solved
        count = self.products.shape[1]
        return _Sums(self.products - taken[:, :count], self.matrix - taken[:, count:])


def choose_pairs(
    model: StructuredSGPR,
    kernel: Additive,
    *,
    room: int,
    share: int,
    unit: float,
    least_gain: float,
    progress: bool,
) -> tuple[list[RankedPair], list[RankedPair]]:
    """The pairs that raise the log marginal likelihood most, each given those before; and all pairs
    by themselves, best first.

    :param model: Of main effects and others, trained.
    :param kernel: Of these effects; pairs among them are not chosen again.
    :param room: Features for all chosen pairs together.
    :param share: Features that a pair takes of them; the first waves of one with more levels.
    :param unit: Of variances: that of Y.
    :param least_gain: Of a pair that is chosen.
    """
    count = kernel.num_columns
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    possible: list[Effect] = [
        pair
        for pair in pairs
        if pair not in kernel.effects and features_of(kernel, pair, share) <= room
    ]
    residuals = model.residuals()

    def compared(some: Sequence[Effect]) -> tuple[list[_Block], _Sums]:
        block = _block(kernel, some)
        found = residuals.compare(block)
        ends = np.cumsum([1, *(part.num_inducing for part in block[0].of_effects[1:])])
        parts = [
            _Block(effect, np.arange(start, end))
            for effect, start, end in zip(block[1].effects, ends, ends[1:], strict=False)
        ]
        (precision,) = found.precisions
        return parts, _Sums(found.products, precision - np.eye(len(precision)))

    ranked: list[tuple[float, float, Effect]] = []
    groups = list(_groups(kernel, possible))
    with tqdm(
        total=len(possible),
        desc="pairs",
        unit="pair",
        disable=not progress,
        file=sys.stderr,
        dynamic_ncols=True,
    ) as bar:
        for group in groups:
            parts, sums = compared(group)
            ranked += [(*sums.best(part, unit), part.effect) for part in parts]
            bar.update(len(group))
    ranked.sort(key=lambda entry: (-entry[0], entry[2]))
    worthwhile = [effect for gain, _, effect in ranked if gain > least_gain]
    if len(groups) > 1 and worthwhile:
        parts, sums = compared(_shortlist(kernel, worthwhile))
    chosen: list[RankedPair] = []
    waiting = list(parts) if worthwhile else []
    while waiting := [p for p in waiting if features_of(kernel, p.effect, share) <= room]:
        found = [(*sums.best(part, unit), part) for part in waiting]
        gain, variance, part = max(found, key=lambda entry: entry[0])
        if gain <= least_gain:
            break
        chosen.append(_named(kernel, part.effect, gain, variance))
        sums = sums.with_pair(part, variance)
        room -= features_of(kernel, part.effect, share)
        waiting = [other for other in waiting if other is not part]
    return chosen, [_named(kernel, effect, gain, v) for gain, v, effect in ranked]


def features_of(kernel: Additive, pair: Effect, share: int) -> int:
    """How many features are set apart for a pair: its share, or its first waves."""
    return max(_size(kernel, pair, 1), share)


def _named(kernel: Additive, effect: Effect, gain: float, variance: float) -> RankedPair:
    name = " x ".join(kernel.names[column] for column in effect)
    return RankedPair(effect, name, gain, variance)


def _block(kernel: Additive, pairs: Sequence[Effect]) -> tuple[AdditiveFeatures, Additive]:
    own = Additive(
        kernel.columns,
        pairs,
        kernel_class=kernel.kernel_class,
        lengthscales=_LENGTHSCALE,
        active_dims=kernel.active_dims,
    )
    return AdditiveFeatures(own, {e: _highest(kernel, e) for e in own.effects}), own


def _highest(kernel: Additive, pair: Effect) -> int:
    """How many frequencies a pair is ranked with: one, if its levels are many."""
    return _FREQUENCIES if _size(kernel, pair, _FREQUENCIES) <= _GROUP else 1


def _size(kernel: Additive, pair: Effect, frequencies: int) -> int:
    """Features of a pair."""
    return math.prod(kernel.columns[column].num_levels or 2 * frequencies for column in pair)


def _groups(kernel: Additive, pairs: Sequence[Effect]) -> Iterator[list[Effect]]:
    """Pairs with so many features that they are compared at a time."""
    group: list[Effect] = []
    total = 0
    for pair in pairs:
        size = _size(kernel, pair, _highest(kernel, pair))
        if group and total + size > _GROUP:
            yield group
            group, total = [], 0
        group.append(pair)
        total += size
    if group:
        yield group


def _shortlist(kernel: Additive, pairs: Sequence[Effect]) -> list[Effect]:
    """The first of some pairs, in the order of the kernel's effects."""
    sizes = np.cumsum([_size(kernel, pair, _highest(kernel, pair)) for pair in pairs])
    return sorted(pairs[: max(int(np.searchsorted(sizes, _SHORTLIST, side="right")), 1)])
