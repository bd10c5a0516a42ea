"""Sums of effects of a table's columns: main effects and interactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Matern52, SquaredExponential, Stationary
from gpflow.kernels.base import ActiveDims

from ..._arguments import instance, items, real_array, short
from .._columns import seen_columns
from .._diagonals import DiagonalTerm, diagonal_terms, whole_diagonal
from .._parameters import positive_parameter
from ..decomposed import DecomposedKernel
from ..periodic.spectral_density import MATERN_ORDERS
from .columns import Column
from .effects import checked_effects, effect_name
from .shapes import wave_variances
from .tables import checked_names, columns_of_table

Effect: TypeAlias = tuple[int, ...]


class Additive(DecomposedKernel):
    """A GP that is a sum of effects: a constant, main effects of single columns, interactions.

        f(x) = c + sum_i f_i(x_i) + sum_{i<j} f_ij(x_i, x_j) + ...

    The kernel of an effect is its variance times a product of kernels of its columns. These are
    stationary kernels summed over the images of a box (as :class:`~interdomain.kernels.Periodized`)
    without their constant, divided by what is left of their variance; of a column of categories,
    all levels are equally far from each other. So every effect integrates to zero along each of its
    columns, over the box, and effects of different sets of columns are orthogonal: what a main
    effect can say, no interaction says. (The functional analysis of variance of Durrande et al.
    2013, *ANOVA kernels and RKHS of zero mean functions for model-based sensitivity analysis*, with
    a kernel in closed form.)

    :class:`interdomain.inducing_variables.AdditiveFeatures` are products of sines and cosines of
    the columns: their covariances with f depend on no parameter, and Kuu is diagonal. One pass
    over the rows serves all variances, lengthscales and the noise.
    :func:`interdomain.diagnostics.effects` takes a fitted model apart, and
    :func:`interdomain.training.fit_additive` does all of it in one call, the choice of interactions
    included.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 3])
    >>> Y = np.sin(6 * X[:, :1]) + X[:, 1:2] * X[:, 2:]
    >>> kernel = idm.kernels.Additive.from_data(X, effects=["main", (1, 2)])
    >>> kernel.effects
    ((0,), (1,), (2,), (1, 2))
    >>> features = idm.inducing_variables.AdditiveFeatures.for_kernel(kernel, 100)
    >>> prior = idm.kernels.FiniteRank(kernel, features)
    >>> model = idm.models.StructuredSGPR((X, Y), prior, features, noise_variance=0.01)
    >>> list(model.feature_parameters)  # one pass serves all hyperparameters
    []

    :param columns: One :class:`~interdomain.kernels.NumericColumn` or
        :class:`~interdomain.kernels.CategoricalColumn` for each column of X that the kernel sees.
        :meth:`from_data` makes them.
    :param effects: Tuples of numbers or names of columns; ``"main"`` among them stands for all
        main effects (the default), ``"pairs"`` for all pairs of columns. The constant is always
        there, and effects of few columns come first.
    :param kernel_class: The class of the kernels of numeric columns: ``Matern12``, ``Matern32``,
        ``Matern52`` or ``SquaredExponential`` of gpflow.kernels.
    :param variances: The prior variance of each effect, one number, or ``[E]`` in the order of
        :attr:`effects`.
    :param constant_variance: That of the constant.
    :param lengthscales: In ranges of the column (see :class:`~interdomain.kernels.NumericColumn`),
        one number, or one for each entry of :attr:`lengthscale_columns`.
    :param separate_lengthscales: Whether a column has a lengthscale of its own in each effect, in
        place of one for all.
    :param active_dims: Columns of X to use; all by default.
    :raises ValueError: If ``columns`` are something else, an effect has a column twice or one that
        does not exist, or is there twice, or parameters are not positive or of another shape.
    """

    has_features_of_its_own = True

    def __init__(
        self,
        columns: Sequence[Column],
        effects: Sequence[Any] | str | None = None,
        *,
        kernel_class: type[Stationary] = Matern52,
        variances: TensorType = 1.0,
        constant_variance: TensorType = 1.0,
        lengthscales: TensorType = 0.5,
        separate_lengthscales: bool = False,
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        rule = "a list of NumericColumn and CategoricalColumn"
        self._columns = tuple(items("columns", columns, rule))
        if not self._columns:
            raise ValueError(f"columns must be {rule}, found none.")
        for column in self._columns:
            instance("columns", column, Column, rule, "or call Additive.from_data(X)")
        self._names = checked_names([column.label for column in self._columns])
        self._effects = checked_effects(effects, self._names)
        known = (*MATERN_ORDERS, SquaredExponential)
        if not (isinstance(kernel_class, type) and issubclass(kernel_class, known)):
            raise ValueError(
                "kernel_class must be Matern12, Matern32, Matern52 or SquaredExponential of "
                f"gpflow.kernels, found {short(kernel_class)}; pass the class itself, not a kernel "
                "made of it."
            )
        self._kernel_class = kernel_class
        self._lengthscale_places = self._places(separate_lengthscales)
        self._periods = [self._columns[column].period for _, column in self._lengthscale_places]
        self.constant_variance = positive_parameter(
            "constant_variance", constant_variance, remedy="pass one number"
        )
        count = len(self._effects)
        remedy = f"pass one number, or one for each of the {count} effects"
        self.variances = _vector("variances", variances, count, remedy)
        count = len(self.lengthscale_columns)
        remedy = f"pass one number, or one for each of the {count} in lengthscale_columns"
        self.lengthscales = _vector("lengthscales", lengthscales, count, remedy)

    @classmethod
    def from_data(
        cls,
        X: TensorType,
        effects: Sequence[Any] | str | None = None,
        *,
        names: Sequence[str] | None = None,
        categorical: Sequence[int | str] = (),
        quantiles: bool | None = None,
        margin: float = 0.5,
        kernel_class: type[Stationary] = Matern52,
        lengthscales: TensorType = 0.5,
        separate_lengthscales: bool = False,
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> Additive:
        """The kernel with the columns of a table; the effects share a variance of one.

        :param X: ``[N, D]``, with the columns of ``active_dims`` only, in any units: nothing has
            to be standardised.
        :param effects: As for the constructor.
        :param names: Of the columns, ``[D]``.
        :param categorical: Numbers or names of columns of categories; each has a function for every
            level.
        :param quantiles: Whether positions of numeric columns are quantiles in place of values, so
            that functions can change where the rows are. None for columns whose rows are not spread
            evenly over their range (:meth:`NumericColumn.from_data`).
        :param margin: As of :class:`~interdomain.kernels.NumericColumn`.
        :param kernel_class: As for the constructor.
        :param lengthscales: As for the constructor.
        :param separate_lengthscales: As for the constructor.
        :raises ValueError: If X is not finite, a column does not vary, a column of categories has
            nearly as many levels as rows, a name is there twice or a column is not there; with the
            column's name. Or as the constructor.
        """
        columns = columns_of_table(
            X, names=names, categorical=categorical, quantiles=quantiles, margin=margin
        )
        count = len(checked_effects(effects, checked_names([column.label for column in columns])))
        return cls(
            columns,
            effects,
            kernel_class=kernel_class,
            variances=1.0 / max(count, 1),
            lengthscales=lengthscales,
            separate_lengthscales=separate_lengthscales,
            active_dims=active_dims,
            name=name,
        )

    @property
    def columns(self) -> tuple[Column, ...]:
        """What each column that the kernel sees is made of."""
        return self._columns

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called; ``column 0``, ... where they have no name."""
        return self._names

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The columns of each effect, but for the constant, in the order of :attr:`variances`."""
        return self._effects

    @property
    def effect_names(self) -> tuple[str, ...]:
        """Such as ``age`` and ``age x cement``."""
        return tuple(effect_name(effect, self._names) for effect in self._effects)

    @property
    def kernel_class(self) -> type[Stationary]:
        """The class of the kernels of numeric columns."""
        return self._kernel_class

    @property
    def separate_lengthscales(self) -> bool:
        """Whether a column has a lengthscale of its own in each effect."""
        return any(effect is not None for effect, _ in self._lengthscale_places)

    @property
    def lengthscale_columns(self) -> tuple[tuple[Effect | None, int], ...]:
        """What each of :attr:`lengthscales` is of: an effect (None for all) and a column."""
        return tuple(self._lengthscale_places)

    @property
    def num_columns(self) -> int:
        """D, after ``active_dims``."""
        return len(self._columns)

    @property
    def kernels(self) -> list[Kernel]:
        """The constant, and each effect."""
        return [EffectKernel(self, effect) for effect in ((), *self._effects)]

    @property
    def effect_variances(self) -> tf.Tensor:
        """The prior variance of the constant, and of each effect, ``[1 + E]``."""
        return tf.concat([self.constant_variance[None], self.variances], axis=0)

    def place_of(self, effect: Effect) -> int:
        """Which of :attr:`effect_variances` is that of an effect; the constant has no columns."""
        return 1 + self._effects.index(effect) if effect else 0

    def variance_of(self, effect: Effect) -> tf.Tensor:
        """The prior variance of an effect; that of the constant for an effect of no columns."""
        return self.effect_variances[self.place_of(effect)]

    def lengthscale_place(self, effect: Effect, column: int) -> int | None:
        """Which of :attr:`lengthscales` a column of an effect has; None if it has categories."""
        places = self._lengthscale_places
        return places.get((effect, column), places.get((None, column)))

    @property
    def ratios(self) -> tf.Tensor:
        """The lengthscales, in periods of their boxes."""
        return self.lengthscales / tf.constant(self._periods, self.lengthscales.dtype)

    @check_shapes(
        "return: [P, J]",
    )
    def wave_variances(self, highest: int) -> tf.Tensor:
        """For each of :attr:`lengthscales` what the cosine, and the sine, of 1, ..., ``highest``
        periods carry of a variance of one."""
        return wave_variances(self._kernel_class, self.ratios, highest)

    @check_shapes(
        "return: []",
    )
    def total_variance(self) -> tf.Tensor:
        """The prior variance everywhere."""
        return self.constant_variance + tf.reduce_sum(self.variances)

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        pairs = _Pairs(self, self.seen(X), None if X2 is None else self.seen(X2))
        terms = [self.variance_of(effect) * pairs.product(effect) for effect in self._effects]
        return self.constant_variance + tf.add_n(terms)

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return tf.fill(tf.shape(self.seen(X))[:-1], self.total_variance())

    def seen(self, X: TensorType) -> tf.Tensor:
        """The columns of the table, ``[..., N, D]``, whether or not they have been selected.

        :raises ValueError: If they are more or fewer.
        """
        return seen_columns(self, X, self.num_columns, "table")

    def _places(self, separate: bool) -> dict[tuple[Effect | None, int], int]:
        """Where the lengthscale of an effect and a column is in the vector."""
        numeric = [
            (effect if separate else None, column)
            for effect in self._effects
            for column in effect
            if self._columns[column].num_levels is None
        ]
        if not separate:
            numeric = sorted(set(numeric), key=lambda place: place[1])
        return {place: number for number, place in enumerate(numeric)}


class EffectKernel(gpflow.kernels.Kernel):
    """One effect of a sum of effects, made by its ``kernels``.

    :param parent: The sum, whose parameters it uses.
    :param effect: The columns; none for the constant.
    """

    def __init__(self, parent: Additive, effect: Effect) -> None:
        label = "_".join(map(str, effect)) or "constant"
        super().__init__(active_dims=parent.active_dims, name=f"{parent.name}_{label}")
        self.parent = parent
        self._effect = effect

    @property
    def effect(self) -> Effect:
        """The columns."""
        return self._effect

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        seen = self.parent.seen
        pairs = _Pairs(self.parent, seen(X), None if X2 is None else seen(X2))
        return self.total_variance() * pairs.product(self._effect)

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return tf.fill(tf.shape(self.parent.seen(X))[:-1], self.total_variance())

    def total_variance(self) -> tf.Tensor:
        """The prior variance everywhere."""
        return self.parent.variance_of(self._effect)


@diagonal_terms.register(Additive)
@diagonal_terms.register(EffectKernel)
def diagonal_terms_additive(
    kernel: Additive | EffectKernel, num_columns: int
) -> list[DiagonalTerm]:
    """The variance, the same everywhere; unless a subclass computes something else."""
    if type(kernel) not in (Additive, EffectKernel):
        return whole_diagonal(kernel)
    return [(lambda X: tf.ones_like(X[:, 0]), kernel.total_variance)]


class _Pairs:
    """The kernels of columns at all pairs of rows, each computed once."""

    def __init__(self, kernel: Additive, X: tf.Tensor, X2: tf.Tensor | None) -> None:
        self._kernel, self._X, self._X2 = kernel, X, X2
        rows = tf.shape(X)[:-1]
        self._shape = tf.concat([rows, rows[-1:] if X2 is None else tf.shape(X2)[:-1]], axis=0)
        self._known: dict[tuple[int | None, int], tf.Tensor] = {}

    def product(self, effect: Effect) -> tf.Tensor:
        """Over the columns of an effect, in the shape of ``kernel.K``."""
        result = tf.ones(self._shape, self._X.dtype)
        for column in effect:
            result *= self._of_column(effect, column)
        return result

    def _of_column(self, effect: Effect, column: int) -> tf.Tensor:
        place = self._kernel.lengthscale_place(effect, column)
        if (place, column) not in self._known:
            part, kind = self._kernel.columns[column], self._kernel.kernel_class
            ratio = None if place is None else self._kernel.ratios[place]
            self._known[place, column] = part.covariances(*self._pairs(part, column), kind, ratio)
        return self._known[place, column]

    def _pairs(self, part: Column, column: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Coordinates of both, each in the shape of ``kernel.K``."""
        first = part.coordinates(self._X[..., column])
        if self._X2 is None:
            second, first = first[..., None, :], first[..., :, None]
        else:
            second = part.coordinates(self._X2[..., column])
            ones = tf.ones([tf.rank(second)], tf.int32)
            first = tf.reshape(first, tf.concat([tf.shape(first), ones], axis=0))
        return tf.broadcast_to(first, self._shape), tf.broadcast_to(second, self._shape)


def _vector(name: str, value: Any, size: int, remedy: str) -> gpflow.Parameter:
    """A positive parameter ``[size]``."""
    if not isinstance(value, (gpflow.Parameter, tf.Variable)):
        value = real_array(name, value, "positive", remedy)
        if value.ndim == 0:
            value = np.full(size, value)
    if tuple(value.shape) != (size,):
        raise ValueError(f"{name} must have {size} entries, found {tuple(value.shape)}; {remedy}.")
    if not size:  # a table of categories has no lengthscale
        return gpflow.Parameter(np.zeros(0), trainable=False)
    return positive_parameter(name, value, remedy=remedy, per_column=True)
