"""Which waves of a table's columns carry most of the prior variance of each effect."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence

import numpy as np

from .._arguments import Array, IntArray
from .kernel import Additive, Effect

_MAX_CANDIDATES = 2**18


def largest_orders(
    kernel: Additive,
    num_features: int,
    *,
    at_least: Mapping[Effect, int] | None = None,
    highest: Sequence[int] | None = None,
) -> dict[Effect, IntArray]:
    """For each effect how many periods in each of its numeric columns, ``[J, n]``.

    :param num_features: Of all effects and the constant together, at most.
    :param at_least: So many waves of an effect are taken before others, if it has as many.
    :param highest: The most periods in each column of the table.
    :raises ValueError: If not every effect can have a wave.
    """
    candidates: dict[Effect, IntArray] = {}
    shares: dict[Effect, Array] = {}
    sizes: dict[Effect, int] = {}
    of_effects = kernel.variances.numpy()
    of_waves = kernel.wave_variances(max(num_features // 2, 1)).numpy()
    for effect, variance in zip(kernel.effects, of_effects, strict=True):
        sizes[effect] = atom_size(kernel, effect)
        candidates[effect], shares[effect] = _candidates(
            kernel, effect, max(num_features // sizes[effect], 1), highest, variance, of_waves
        )
    needed = 1 + sum(sizes.values())
    if needed > num_features:
        raise ValueError(
            f"num_inducing must be {needed} or more, with which every effect has a feature for "
            f"each of its first waves and its levels, found {num_features}; pass more, or a "
            "kernel with fewer effects."
        )
    left = num_features - needed
    taken = dict.fromkeys(kernel.effects, 1)
    # What comes next in each effect: first what it has at least, then by the variance of a feature.
    wanted = at_least or {}
    order = sorted(
        (
            (number >= wanted.get(effect, 1), -share, effect)
            for effect, of in shares.items()
            for number, share in enumerate(of)
            if number
        ),
        key=operator.itemgetter(0, 1),
    )
    for _, _, effect in order:
        if sizes[effect] <= left:
            taken[effect] += 1
            left -= sizes[effect]
    return {effect: candidates[effect][: taken[effect]] for effect in kernel.effects}


def atom_size(kernel: Additive, effect: Effect) -> int:
    """The number of features of a wave of an effect."""
    return math.prod(kernel.columns[k].num_levels or 2 for k in effect)


def _candidates(
    kernel: Additive,
    effect: Effect,
    count: int,
    most: Sequence[int] | None,
    variance: float,
    of_waves: Array,
) -> tuple[IntArray, Array]:
    """In decreasing order of the variance that a feature has, and that variance.

    :param count: Of waves, at most.
    :param most: The most periods in each column of the table.
    :param variance: Of the effect.
    :param of_waves: What waves carry of a variance of one, for each lengthscale, ``[P, J]``.
    """
    places = [kernel.lengthscale_place(effect, column) for column in effect]
    numeric = [place for place in places if place is not None]
    levels = math.prod(kernel.columns[column].num_levels or 1 for column in effect)
    if not numeric:
        return np.zeros([1, 0], np.int64), np.array([variance / levels])
    highest = max(min(count, int(_MAX_CANDIDATES ** (1 / len(numeric)))), 1)
    product = np.array(variance / levels, float)
    columns = [k for k in effect if kernel.columns[k].num_levels is None]
    for place, column in zip(numeric, columns, strict=True):
        product = np.multiply.outer(
            product, of_waves[place, : min(highest, most[column] if most else highest)]
        )
    shape = product.shape
    product = product.reshape(-1)
    best = np.argsort(-product, kind="stable")[:count]
    orders = np.stack(np.unravel_index(best, shape), axis=-1) + 1
    return orders.astype(np.int64), product[best]
