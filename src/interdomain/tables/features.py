"""Inducing variables of effects: products of sines, cosines and levels of a table's columns."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from .._arguments import IntArray, check_num_inducing, different_rows, instance, integer
from ..core.functionals import LinearFunctional, Places
from ..core.product_rule import check_categories, columns_seen
from ..inducing_variables import InterDomainInducingVariables
from ..linalg import Diagonal, StructuredOperator
from ..linalg.diagonal import least_eigenvalue
from .kernel import Additive, Effect
from .orders import atom_size, largest_orders

_RULE, _REMEDY = "an Additive kernel", "make it with interdomain.tables.Additive.from_data(X)"


class AdditiveFeatures(InterDomainInducingVariables):
    """Features of an :class:`~interdomain.tables.Additive` kernel: products of waves and levels.

    The functions of a numeric column are ``sqrt(2) cos(2 pi j t)`` and the sine, where t is the
    position in the box as a fraction of the period. The functions of a column of categories are
    contrasts of its levels. All functions are orthonormal, and so are their products over the
    columns of an effect. ``u_m = <f, phi_m>`` in the RKHS of the kernel gives ``Kuf = phi_m(x)``,
    which **depends on no parameter of the kernel**. So :class:`interdomain.models.StructuredSGPR`
    makes one pass over the rows for all parameters. Kuu is diagonal: one over the prior variance
    that a feature has.

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

    :param kernel: The kernel, whose columns and effects the features have.
    :param frequencies: A dict with an entry for each effect: the highest number of periods in every
        numeric column; or, for J waves in the n numeric columns of the effect, the numbers of
        periods ``[J, n]``, integers of 1 or more. All levels of categories are always used.
    :ivar columns: The column objects of the kernel.
    :ivar effects: The columns of each effect except the constant, in the order of the features.
    :ivar functions: For the constant and each effect of k columns, the numbers ``[m, k]`` of the
        functions of the columns whose products are the m features.
    :raises ValueError: If an effect is missing from ``frequencies`` or unknown, a frequency is not
        an integer of 1 or more, or there are too many features.
    """

    kernels = (Additive,)
    clipped_to = "the ranges of the columns of AdditiveFeatures"

    def __init__(
        self, kernel: Additive, frequencies: Mapping[Effect, Any], *, name: str | None = None
    ) -> None:
        instance("kernel", kernel, Additive, _RULE, _REMEDY)
        wrong = set(frequencies).symmetric_difference(kernel.effects)
        if wrong:
            raise ValueError(
                f"frequencies must have one entry for each effect of the kernel, found "
                f"{sorted(wrong)} in one of the two alone; pass "
                "{effect: 4 for effect in kernel.effects}, for example."
            )
        super().__init__(name=name)
        self.columns, self.effects = kernel.columns, kernel.effects
        checked = {effect: self._checked(effect, frequencies[effect]) for effect in self.effects}
        counts = (len(chosen) * atom_size(kernel, effect) for effect, chosen in checked.items())
        check_num_inducing("frequencies", 1 + sum(counts), "features")
        # All products of the sine and the cosine of each frequency, and of levels, ``[m, k]``.
        products = [np.zeros([1, 0], np.int64)]
        for effect, chosen in checked.items():
            rows: list[tuple[int, ...]] = []
            for frequency in chosen.tolist():
                periods, choices = iter(frequency), []
                for levels in (self.columns[k].num_levels for k in effect):
                    highest = levels or 2 * next(periods)
                    choices.append(range(1 if levels else highest - 1, highest + 1))
                rows += itertools.product(*choices)
            products.append(np.array(rows, np.int64).reshape(len(rows), len(effect)))
        self.functions = tuple(products)

    @classmethod
    def for_kernel(
        cls, kernel: Additive, num_inducing: int, *, name: str | None = None
    ) -> AdditiveFeatures:
        """Make the features of largest prior variance under the present kernel, which include the
        first waves of every effect.

        :param num_inducing: The largest number M of features, the constant included.
        :raises ValueError: If there are too many features, or too few for the effects.
        """
        instance("kernel", kernel, Additive, _RULE, _REMEDY)
        integer("num_inducing", num_inducing, at_least=1)
        check_num_inducing("num_inducing", num_inducing, "features")
        return cls(kernel, largest_orders(kernel, num_inducing), name=name)

    @property
    def num_inducing(self) -> int:
        """The number of features."""
        return sum(map(len, self.functions))

    def is_subset_of(self, others: AdditiveFeatures) -> bool:
        """Whether ``others`` have the same columns and effects, and all of these features."""
        if (self.columns, self.effects) != (others.columns, others.effects):
            return False
        pairs = zip(self.functions, others.functions, strict=True)
        return all({*map(tuple, a.tolist())} <= {*map(tuple, b.tolist())} for a, b in pairs)

    def Kuf(self, kernel: Additive, X: TensorType) -> tf.Tensor:
        """The features at rows, ``[M, N]``; each function of a column is computed once."""
        self.validate_kernel(kernel)
        X = kernel.seen(X)
        rows = tf.reshape(X, [-1, kernel.num_columns])
        column_values, first, start = [tf.ones_like(rows[:, 0])[None]], {}, 1
        for number, highest in self.highest_functions().items():
            column = kernel.columns[number]
            column_values.append(column.functions(column.coordinates(rows[:, number]), highest))
            first[number] = start - 1  # the place of its function 0, if it had one
            start += highest
        functions = tf.concat(column_values, axis=0)
        products = []
        for order, parts in itertools.groupby(self.by_effect(), key=lambda part: len(part[0])):
            numbers = [chosen + [first[k] for k in effect] for effect, chosen in parts]
            places = np.concatenate(numbers)
            # The constant is the function that is one everywhere.
            slots = places.T if order else np.zeros([1, 1], np.int64)
            factors = [tf.gather(functions, slot) for slot in slots]
            products.append(functools.reduce(operator.mul, factors))
        shape = tf.concat([[self.num_inducing], tf.shape(X)[:-1]], axis=0)
        return tf.reshape(tf.concat(products, axis=0), shape)

    def acted_Kuf(self, kernel: Additive, functional: LinearFunctional, places: Places) -> None:
        """None, because there is no closed form.

        :raises ValueError: If the functional acts along a column of categories.
        """
        seen = columns_seen(kernel, places.inputs)
        numbers = [k for k, column in enumerate(self.columns) if column.num_levels]
        check_categories(functional, seen[numbers])

    def Kuu(self, kernel: Additive, *, jitter: float = 0.0) -> StructuredOperator:
        """The diagonal of Kuu, without ``jitter``: a diagonal needs no factorisation."""
        return Diagonal(1 / self.prior_variances(kernel))

    def prior_variances(self, kernel: Additive) -> tf.Tensor:
        """The prior variance of f due to each feature, ``[M]``: one over the diagonal of Kuu. A
        variance that underflows gives a feature without effect, not NaN."""
        self.validate_kernel(kernel)
        factors, numbers = kernel.effect_variances, self.highest_functions()
        # One; the variances of effects, of waves for each lengthscale, and of levels.
        values, start, starts = [tf.ones([1], factors.dtype), factors], 1 + factors.shape[0], {}
        numeric = [k for k in numbers if kernel.columns[k].num_levels is None]
        highest = max(((numbers[k] + 1) // 2 for k in numeric), default=0)
        if highest:
            values.append(tf.reshape(kernel.wave_variances(highest), [-1]))
        levels = start + highest * len(kernel.lengthscale_columns)
        for k, column in enumerate(kernel.columns):
            if column.num_levels is not None:
                values.append(tf.constant(column.level_variances, factors.dtype))
                starts[k] = levels
                levels += column.num_levels
        rows = []
        for effect_number, (effect, functions) in enumerate(self.by_effect(), start=1):
            places = np.zeros([len(functions), 1 + max(map(len, self.effects))], np.int64)
            places[:, 0] = effect_number
            for slot, (k, chosen) in enumerate(zip(effect, functions.T, strict=True), start=1):
                place = kernel.lengthscale_place(effect, k)
                if place is None:
                    places[:, slot] = starts[k] + chosen - 1
                else:
                    places[:, slot] = start + place * highest + (chosen - 1) // 2
            rows.append(places)
        factor_of_each = tf.gather(tf.concat(values, axis=0), np.concatenate(rows))
        product = tf.reduce_prod(factor_of_each, axis=1)
        return tf.maximum(product, least_eigenvalue(product.dtype))

    def explained_variances(self, kernel: Additive) -> tf.Tensor:
        """The variance of the constant and of each effect that the features explain, ``[1 + E]``.
        It is the same at all rows."""
        # Only the known levels of a column of categories; the unknown level has as much variance.
        known = [
            np.all(chosen != [self.columns[k].num_levels or 0 for k in effect], axis=1)
            for effect, chosen in self.by_effect()
        ]
        numbers = np.repeat(np.arange(len(known)), list(map(np.count_nonzero, known)))
        variances = tf.boolean_mask(self.prior_variances(kernel), np.concatenate(known))
        return tf.math.segment_sum(variances, numbers)

    def explained_terms(self, kernel: Additive) -> list[Any]:
        """The variance that the features explain, the same at all rows."""
        total = functools.partial(self.explained_variances, kernel)
        return [(lambda X: tf.ones_like(X[..., 0]), lambda: tf.reduce_sum(total()))]

    def validate_kernel(self, kernel: Additive) -> None:
        """Check that the kernel has the columns and effects of the features."""
        if kernel.columns != self.columns or kernel.effects != self.effects:
            raise ValueError(
                "kernel must have the columns and effects that the features were made for, found "
                f"effects {kernel.effects} of {kernel.num_columns} columns; build the features "
                "with AdditiveFeatures.for_kernel(kernel, num_inducing)."
            )

    def by_effect(self) -> list[tuple[Effect, IntArray]]:
        """Pairs of the columns and of :attr:`functions`, for the constant and each effect."""
        return list(zip([(), *self.effects], self.functions, strict=True))

    def highest_functions(self) -> dict[int, int]:
        """The highest number of a function of each column that the features use."""
        highest: dict[int, int] = {}
        for effect, functions in self.by_effect():
            for column, chosen in zip(effect, functions.T, strict=True):
                highest[column] = max(highest.get(column, 0), int(np.max(chosen)))
        return dict(sorted(highest.items()))

    def _checked(self, effect: Effect, frequencies: Any) -> IntArray:
        numeric = [k for k in effect if self.columns[k].num_levels is None]
        if not numeric:
            return np.zeros([1, 0], np.int64)
        if np.ndim(frequencies) == 0:
            highest = integer("frequencies", frequencies, at_least=1)
            axes = [np.arange(1, highest + 1)] * len(numeric)
            grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
            return np.reshape(grid, [-1, len(numeric)])
        remedy = "pass whole numbers of periods, or the highest number alone"
        rule = f"a matrix [J, {len(numeric)}] of integers"
        matrix = different_rows("frequencies", frequencies, rule, len(numeric), remedy)
        if np.any(matrix < 1):
            raise ValueError(
                f"frequencies must be 1 or more in every column of effect {effect}, found 0; the "
                "constant of a column belongs to effects without it."
            )
        return matrix
