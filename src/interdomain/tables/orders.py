"""The choice of the waves of columns that have most of the prior variance of each effect."""

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
    at_least: Mapping[Effect, int] | None = None,
    highest: Sequence[int] | None = None,
) -> dict[Effect, IntArray]:
    """The numbers of periods, ``[J, n]``, of the waves of each effect in its numeric columns.

    :param num_features: The largest number of features of all effects and the constant together.
    :param at_least: The least number of waves of effects, 1 by default, if there is room.
    :param highest: The largest number of periods in each column of the table.
    :raises ValueError: If ``num_features`` is too small for a wave of every effect.
    """
    sizes = {effect: atom_size(kernel, effect) for effect in kernel.effects}
    left = num_features - 1 - sum(sizes.values())
    if left < 0:
        raise ValueError(
            f"num_inducing must be {num_features - left} or more, with which every effect has a "
            f"feature for each of its first waves and its levels, found {num_features}; pass more, "
            "or a kernel with fewer effects."
        )
    wave_variances = kernel.wave_variances(max(num_features // 2, 1)).numpy()
    candidates: dict[Effect, IntArray] = {}
    order: list[tuple[bool, float, Effect]] = []
    for effect, variance in zip(kernel.effects, kernel.variances.numpy(), strict=True):
        count, wanted = max(num_features // sizes[effect], 1), (at_least or {}).get(effect, 1)
        candidates[effect], shares = _candidates(kernel, effect, count, highest, wave_variances)
        further = enumerate(shares[1:], start=1)
        order += [(number >= wanted, -share * variance, effect) for number, share in further]
    # First the least number of waves of each effect; then by the variance of a feature.
    taken = dict.fromkeys(kernel.effects, 1)
    for _, _, effect in sorted(order, key=operator.itemgetter(0, 1)):
        if sizes[effect] <= left:
            taken[effect] += 1
            left -= sizes[effect]
    return {effect: candidates[effect][: taken[effect]] for effect in kernel.effects}


def atom_size(kernel: Additive, effect: Effect, frequencies: int = 1) -> int:
    """The number of features of a wave of an effect, or of all ``frequencies`` in each column."""
    return math.prod(kernel.columns[k].num_levels or 2 * frequencies for k in effect)


def _candidates(
    kernel: Additive, effect: Effect, count: int, most: Sequence[int] | None, wave_variances: Array
) -> tuple[IntArray, Array]:
    """The ``count`` waves of largest variance in an effect of variance one, largest first; and the
    variance of one of the features of each wave.

    :param most: The largest number of periods in each column of the table.
    :param wave_variances: The variance of waves in a kernel of variance one, for each lengthscale,
        ``[P, J]``.
    """
    numeric = [k for k in effect if kernel.columns[k].num_levels is None]
    product = np.array(1 / math.prod(kernel.columns[k].num_levels or 1 for k in effect))
    if not numeric:
        return np.zeros([1, 0], np.int64), product[None]
    highest = max(min(count, int(_MAX_CANDIDATES ** (1 / len(numeric)))), 1)
    for k in numeric:
        waves = wave_variances[kernel.lengthscale_place(effect, k)]
        product = np.multiply.outer(product, waves[: min(highest, most[k] if most else highest)])
    best = np.argsort(-product, axis=None, kind="stable")[:count]
    orders = np.stack(np.unravel_index(best, product.shape), axis=-1) + 1
    return orders.astype(np.int64), product.ravel()[best]
