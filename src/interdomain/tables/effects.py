"""Kernels of effects and their features, as :func:`fit_additive` makes and trains them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow_probability as tfp
from gpflow.utilities import positive

from ..inducing_variables import AdditiveFeatures
from ..kernels import Additive, FiniteRank
from ..kernels.additive.largest import largest_orders
from ..models import StructuredSGPR
from .pairs import Effect, RankedPair

_FREQUENCIES = 8
"""Of each main effect, at least, if half of the features suffice."""

_NOISE = 0.1
"""The initial noise variance, in variances of Y."""


class Beginning(NamedTuple):
    """What the rows of the subset say about scales.

    :ivar unit: The variance of Y.
    :ivar highest: For each column, the largest number of periods that its values can resolve.
    """

    unit: float
    highest: list[int]


def same_columns(
    kernel: Additive,
    effects: Sequence[Any],
    variances: Any = 1.0,
    lengthscales: Any = 0.5,
) -> Additive:
    """A kernel of the same columns with other effects."""
    return Additive(
        kernel.columns,
        effects,
        kernel_class=kernel.kernel_class,
        variances=variances,
        lengthscales=lengthscales,
        separate_lengthscales=kernel.separate_lengthscales,
        active_dims=kernel.active_dims,
    )


def first_size(kernel: Additive, num_inducing: int) -> int:
    """How many features the first model has, to which pairs are added later."""
    least = 1 + sum(_wave(kernel, effect) for effect in kernel.effects)
    enough = 1 + sum(_FREQUENCIES * _wave(kernel, effect) for effect in kernel.effects)
    return max(min(enough, num_inducing // 2), min(least, num_inducing))


def begin(
    data: Any, kernel: Additive, size: int, subset_size: int, seed: int
) -> tuple[StructuredSGPR, Beginning]:
    """A model of a subset of the rows, with initial scales from that subset.

    :raises ValueError: If Y does not vary.
    """
    features = AdditiveFeatures.for_kernel(kernel, size)
    model = StructuredSGPR(data, FiniteRank(kernel, features), features, progress=False)
    X, Y = model.draw(subset_size, seed=seed)
    unit = float(np.mean(np.var(Y, axis=0)))
    if not unit > 0:
        raise ValueError(
            f"data: Y must vary, found {Y.flat[0] if Y.size else 'no rows'} in all rows; pass the "
            "target of the regression."
        )
    # In units of Y: an optimiser does not see what these are.
    count, square = len(kernel.effects), float(np.mean(np.square(Y)))
    kernel.variances = _in_units(np.full(count, unit / count), unit)
    kernel.constant_variance = _in_units(square, square)
    model.likelihood.variance = _in_units(_NOISE * unit, unit, lower=1e-6)
    dims = kernel.active_dims
    columns = X[:, dims] if isinstance(dims, slice) else X[:, np.asarray(dims)]
    highest = [max(len(np.unique(column)) // 2, 1) for column in columns.T]
    features = features_for(kernel, size, highest)
    prior = FiniteRank(kernel, features)
    subset = model.model_of((X, Y), inducing_variable=features, kernel=prior)
    return subset, Beginning(unit, highest)


def features_for(kernel: Additive, num_inducing: int, highest: Sequence[int]) -> AdditiveFeatures:
    """The features of largest prior variance, always including the first waves of main effects.

    An effect that was trained with few waves may seem weaker than it is.

    :param highest: As of :class:`Beginning`.
    """
    main = [effect for effect in kernel.effects if len(effect) == 1]
    room = num_inducing // (1 if len(main) == len(kernel.effects) else 2)
    each = min(room // max(2 * len(main), 1), _FREQUENCIES)
    orders = largest_orders(
        kernel, num_inducing, at_least=dict.fromkeys(main, each), highest=highest
    )
    return AdditiveFeatures(kernel, orders)


def _wave(kernel: Additive, effect: Effect) -> int:
    """Features of a wave."""
    return math.prod(kernel.columns[column].num_levels or 2 for column in effect)


def _in_units(value: Any, unit: float, lower: float | None = None) -> gpflow.Parameter:
    scale = tfp.bijectors.Scale(np.asarray(unit, gpflow.default_float()))
    transform = tfp.bijectors.Chain([scale, positive(lower)])
    return gpflow.Parameter(value, transform=transform)


def with_pairs(kernel: Additive, pairs: Sequence[RankedPair]) -> Additive:
    """The kernel with more effects; its parameters keep their values."""
    if not pairs:
        return kernel
    effects: list[Effect] = [*kernel.effects, *(pair.effect for pair in pairs)]
    more = same_columns(kernel, effects)
    scales = dict(zip(kernel.effects, kernel.variances.numpy(), strict=True))
    scales |= {pair.effect: pair.variance for pair in pairs}
    more.variances = gpflow.Parameter(
        [scales[effect] for effect in more.effects], transform=kernel.variances.transform
    )
    more.constant_variance = kernel.constant_variance
    lengthscales = more.lengthscales.numpy()
    known = kernel.lengthscales.numpy()
    for place, (effect, column) in enumerate(more.lengthscale_columns):
        found = kernel.lengthscale_place(effect or (), column)
        if found is not None:
            lengthscales[place] = known[found]
    more.lengthscales.assign(lengthscales)
    return more
