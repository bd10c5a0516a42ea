"""The waves of effects that carry most of the prior variance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...sphere._typing import Array, IntArray

if TYPE_CHECKING:
    from .additive import Additive, Effect

_MAX_CANDIDATES = 2**18


def largest_orders(kernel: Additive, num_features: int) -> dict[Effect, IntArray]:
    """For each effect how many periods in each of its numeric columns, ``[J, n]``.

    :param num_features: Of all effects and the constant together, at most.
    :raises ValueError: If not every effect can have a wave.
    """
    candidates: dict[Effect, IntArray] = {}
    shares: dict[Effect, Array] = {}
    sizes: dict[Effect, int] = {}
    for effect in kernel.effects:
        columns = [kernel.columns[k] for k in effect]
        sizes[effect] = math.prod(column.num_levels or 2 for column in columns)
        candidates[effect], shares[effect] = _candidates(
            kernel, effect, max(num_features // sizes[effect], 1)
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
    # What comes next in each effect, by the variance of a feature, largest first.
    order = sorted(
        ((-share, effect) for effect, of in shares.items() for share in of[1:]), key=_first
    )
    for _, effect in order:
        if sizes[effect] <= left:
            taken[effect] += 1
            left -= sizes[effect]
    return {effect: candidates[effect][: taken[effect]] for effect in kernel.effects}


def _first(entry: tuple[float, Effect]) -> float:
    return entry[0]


def _candidates(kernel: Additive, effect: Effect, count: int) -> tuple[IntArray, Array]:
    """In decreasing order of the variance that a feature has, and that variance."""
    places = [kernel.lengthscale_place(effect, column) for column in effect]
    numeric = [place for place in places if place is not None]
    levels = math.prod(kernel.columns[column].num_levels or 1 for column in effect)
    variance = float(kernel.variance_of(effect)) / levels
    if not numeric:
        return np.zeros([1, 0], np.int64), np.array([variance])
    highest = max(min(count, int(_MAX_CANDIDATES ** (1 / len(numeric)))), 1)
    of_waves = np.asarray(kernel.wave_variances(highest), float)
    product = np.array(variance)
    for place in numeric:
        product = np.multiply.outer(product, of_waves[place])
    product = product.reshape(-1)
    best = np.argsort(-product, kind="stable")[:count]
    orders = np.stack(np.unravel_index(best, [highest] * len(numeric)), axis=-1) + 1
    return orders.astype(np.int64), product[best]
