"""Products of sines, cosines and levels of a table's columns as inducing variables of effects."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from .._arguments import Array, IntArray, check_num_inducing, instance, integer
from ..core.finite_rank import FiniteRank
from ..core.sums import SumInducingVariables
from ..families.waves.functions import check_frequencies
from .columns import Column, atoms_of
from .covariances import OfEffects, Parts
from .kernel import Additive, EffectKernel

Effect = tuple[int, ...]

_MAX_CANDIDATES = 2**18


class EffectFeatures(OfEffects):
    """The features of one effect: products over its columns of functions of each, a block of
    :class:`AdditiveFeatures`.

    :cvar clipped_to: Where values beyond an end are taken for the end itself, in words.
    :ivar columns: Those of the effect; none for the constant.
    :ivar frequencies: For each numeric one of them how many periods, ``[J, n]``.
    :ivar functions: Which function of each column every feature is a product of, ``[m, k]``.
    """

    kernels = (EffectKernel,)
    clipped_to = "the ranges of the columns of AdditiveFeatures"

    def __init__(self, columns: Sequence[Column], frequencies: IntArray) -> None:
        super().__init__()
        self.columns, self.frequencies = tuple(columns), frequencies
        self.functions = _functions(columns, frequencies)

    @property
    def num_inducing(self) -> int:
        """The number of features."""
        return len(self.functions)

    def is_subset_of(self, others: EffectFeatures) -> bool:
        """Whether they are of the same columns, and some of the products."""
        known = set(map(tuple, others.functions.tolist()))
        same = self.columns == others.columns
        return same and known.issuperset(map(tuple, self.functions.tolist()))

    def effects_of(self, kernel: EffectKernel) -> tuple[Additive, Parts]:
        self.validate_columns([kernel.parent.columns[k] for k in kernel.effect])
        return kernel.parent, [(kernel.effect, self.functions)]

    def validate_columns(self, columns: Sequence[Column]) -> None:
        """:raises ValueError: If the effect is of other columns."""
        if tuple(columns) != self.columns:
            raise ValueError(
                "kernel must have the columns and effects that the features were made for, found "
                f"one with an effect of {len(columns)} others; build the features with "
                "AdditiveFeatures.for_kernel(kernel, num_inducing)."
            )


def _functions(columns: Sequence[Column], frequencies: IntArray) -> IntArray:
    numeric = [k for k, column in enumerate(columns) if column.num_levels is None]
    rows: list[tuple[int, ...]] = []
    for frequency in frequencies:
        orders = dict(zip(numeric, frequency.tolist(), strict=True))
        choices = [
            atoms_of(column, orders[k])[-1] if k in orders else atoms_of(column, 0)[0]
            for k, column in enumerate(columns)
        ]
        rows += itertools.product(*choices)
    return np.array(rows, np.int64).reshape(len(rows), len(columns))


class AdditiveFeatures(OfEffects, SumInducingVariables):
    """Projections of each effect of :class:`~interdomain.tables.Additive` on products of functions
    of its columns.

    The functions of a numeric column are ``sqrt(2) cos(2 pi j t)`` and the sine, t being the
    position in its box as a fraction of the period. The functions of a column of categories tell
    its levels apart. They are orthonormal, and so are their products over the columns of an effect.
    ``u_m = <f, phi_m>`` in the RKHS of the kernel gives ``Kuf = phi_m(x)``, which **depends on no
    parameter of the kernel**. Kuu is diagonal: one over the prior variance that a feature carries.
    In
    :class:`interdomain.models.StructuredSGPR` one pass over the rows serves all variances,
    lengthscales and the noise.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[100, 3])
    >>> kernel = idm.tables.Additive.from_data(X, effects=["main", (0, 1)])
    >>> features = idm.tables.AdditiveFeatures(
    ...     kernel, {(0,): 4, (1,): 4, (2,): 4, (0, 1): 2}
    ... )
    >>> features.num_inducing  # the constant, two for each frequency, four for each pair of them
    41
    >>> type(idm.covariances.Kuu_operator(features, kernel)).__name__
    'Diagonal'

    It is a :class:`SumInducingVariables`, with a block for the constant and one for each effect.

    :param kernel: The kernel they will be used with, or from which a kernel of finite rank will be
        made. The features have its columns and effects.
    :param frequencies: A dict with an entry for each effect: the highest number of periods in every
        numeric column, or integers ``[J, n]``, 1 or more, one for each numeric column of the
        effect. All levels of columns of categories are always taken.
    :param allow_large: Whether to allow so many that their covariances with 1,000 rows take more
        than 4 GiB.
    :ivar columns: The column objects of the kernel.
    :ivar effects: The columns of each effect except the constant, in the order of the blocks.
    :raises ValueError: If the kernel is not an ``Additive`` one, an effect is missing from
        ``frequencies`` or unknown, a frequency is not an integer of 1 or more, or there are too
        many features.
    """

    kernels = (Additive, FiniteRank)

    def __init__(
        self,
        kernel: Additive,
        frequencies: Mapping[Effect, Any],
        *,
        allow_large: bool = False,
        name: str | None = None,
    ) -> None:
        remedy = "pass interdomain.tables.Additive.from_data(X)"
        instance("kernel", kernel, Additive, "an Additive kernel", remedy)
        instance("frequencies", frequencies, Mapping, "a dict with an entry for each effect")
        wrong = set(frequencies).symmetric_difference(kernel.effects)
        if wrong:
            raise ValueError(
                f"frequencies must have one entry for each effect of the kernel, found "
                f"{sorted(wrong)} in one of the two alone; pass "
                "{effect: 4 for effect in kernel.effects}, for example."
            )
        self.columns, self.effects = kernel.columns, kernel.effects
        of_effects = {e: self._checked(e, frequencies[e]) for e in self.effects}
        sizes = [len(of) * atom_size(kernel, e) for e, of in of_effects.items()]
        check_num_inducing("frequencies", 1 + sum(sizes), "features", allow_large=allow_large)
        blocks = [EffectFeatures([], np.zeros([1, 0], np.int64))]
        for effect, found in of_effects.items():
            blocks.append(EffectFeatures([self.columns[k] for k in effect], found))
        super().__init__(blocks, name=name)

    @classmethod
    def for_kernel(
        cls,
        kernel: Additive,
        num_inducing: int,
        *,
        allow_large: bool = False,
        name: str | None = None,
    ) -> AdditiveFeatures:
        """Make the features that carry most of the prior variance under the present kernel.

        Every effect gets at least its first waves.

        :param kernel: As for the constructor.
        :param num_inducing: The number M of features, at most, the constant included.
        :param allow_large: As for the constructor.
        :raises ValueError: If the kernel is not an ``Additive`` one, there are too many features,
            or too few for every effect to have some.
        """
        remedy = "pass interdomain.tables.Additive.from_data(X)"
        instance("kernel", kernel, Additive, "an Additive kernel", remedy)
        num_inducing = integer("num_inducing", num_inducing, at_least=1)
        check_num_inducing("num_inducing", num_inducing, "features", allow_large=allow_large)
        return cls(kernel, largest_orders(kernel, num_inducing), allow_large=allow_large, name=name)

    @property
    def frequencies(self) -> dict[Effect, IntArray]:
        """The numbers of periods in each numeric column, ``[J, n]``, for each effect."""
        pairs = zip(self.effects, self.of_effects[1:], strict=True)
        return {effect: block.frequencies.copy() for effect, block in pairs}

    @property
    def of_effects(self) -> tuple[EffectFeatures, ...]:
        """The block of the constant, then the block of each effect."""
        return cast("tuple[EffectFeatures, ...]", tuple(self.blocks))

    def is_subset_of(self, others: AdditiveFeatures) -> bool:
        """Whether they are of the same columns and effects, and some of the products of each."""
        if (self.columns, self.effects) != (others.columns, others.effects):
            return False
        return all(map(EffectFeatures.is_subset_of, self.of_effects, others.of_effects))

    def effects_of(self, kernel: Additive) -> tuple[Additive, Parts]:
        self.validate_kernel(kernel)
        pairs = zip([(), *kernel.effects], self.of_effects, strict=True)
        return kernel, [(effect, block.functions) for effect, block in pairs]

    def validate_kernel(self, kernel: Additive) -> None:
        """:raises ValueError: If the kernel has other columns or effects."""
        if kernel.columns != self.columns or kernel.effects != self.effects:
            raise ValueError(
                "kernel must have the columns and effects that the features were made for, found "
                f"effects {kernel.effects} of {kernel.num_columns} columns; build the features "
                "with AdditiveFeatures.for_kernel(kernel, num_inducing)."
            )

    def _checked(self, effect: Effect, frequencies: Any) -> IntArray:
        numeric = [k for k in effect if self.columns[k].num_levels is None]
        if not numeric:
            return np.zeros([1, 0], np.int64)
        if np.ndim(frequencies) == 0:
            highest = integer("frequencies", frequencies, at_least=1)
            axes = [np.arange(1, highest + 1)] * len(numeric)
            grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
            return np.reshape(grid, [-1, len(numeric)])
        found = check_frequencies(frequencies, len(numeric))
        if np.any(found < 1):
            raise ValueError(
                f"frequencies must be 1 or more in every column of effect {effect}, found 0; the "
                "constant of a column belongs to effects without it."
            )
        return found


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
