"""Sums of effects of a table's columns: main effects and interactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Matern52, Stationary
from gpflow.kernels.base import ActiveDims

from .._arguments import instance, items, short
from .._tracing import unconverted
from ..core.columns import of_columns, select_columns
from ..core.decomposed import DecomposedKernel
from ..core.diagonals import UniformVariance
from ..core.parameters import positive_parameter, positive_vector
from ..families.waves.periodic_images import wave_variances
from ..families.waves.spectral_density import KNOWN
from .columns import Column
from .frames import checked_effects, checked_names, columns_of_table, effect_name

Effect: TypeAlias = tuple[int, ...]


class Additive(UniformVariance, DecomposedKernel):
    """A GP that is a sum of effects: a constant, main effects of single columns, interactions.

        f(x) = c + sum_i f_i(x_i) + sum_{i<j} f_ij(x_i, x_j) + ...

    The kernel of an effect is its variance times a product of kernels, one for each of its columns.
    The kernel of a numeric column is a stationary kernel summed over the images of a box (as in
    :class:`~interdomain.kernels.Periodized`), without its constant, and divided by the variance
    that is left. For a column of categories, all levels are equally far from each other. So every
    effect integrates to zero along each of its columns, over the box, and effects of different sets
    of columns are orthogonal: an interaction cannot contain any part of a main effect. (The
    functional analysis of variance of Durrande et al. 2013, *ANOVA kernels and RKHS of zero mean
    functions for model-based sensitivity analysis*, with a kernel in closed form.)

    :class:`interdomain.tables.AdditiveFeatures` are products of sines and cosines of
    the columns: their covariances with f depend on no parameter, and Kuu is diagonal. One pass
    over the rows serves all variances, lengthscales and the noise.
    :func:`interdomain.tables.effects` splits a fitted model into its effects, and
    :func:`interdomain.tables.fit_additive` does all of this in one call, including the choice of
    interactions.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 3])
    >>> Y = np.sin(6 * X[:, :1]) + X[:, 1:2] * X[:, 2:]
    >>> kernel = idm.tables.Additive.from_data(X, effects=["main", (1, 2)])
    >>> kernel.effects
    ((0,), (1,), (2,), (1, 2))
    >>> features = idm.tables.AdditiveFeatures.for_kernel(kernel, 100)
    >>> prior = idm.kernels.FiniteRank(kernel, features)
    >>> model = idm.models.StructuredSGPR((X, Y), prior, features, noise_variance=0.01)
    >>> list(model.feature_parameters)  # one pass serves all hyperparameters
    []

    :param columns: One :class:`~interdomain.tables.NumericColumn` or
        :class:`~interdomain.tables.CategoricalColumn` for each column of X that the kernel sees.
        :meth:`from_data` makes them.
    :param effects: The effects, as tuples of numbers or names of columns. The entry ``"main"``
        stands for all main effects, ``"pairs"`` for all pairs of columns; the default is all main
        effects. The constant is always included, and effects of fewer columns come first.
    :param kernel_class: The class of the kernels of numeric columns: ``Matern12``, ``Matern32``,
        ``Matern52`` or ``SquaredExponential`` of gpflow.kernels.
    :param variances: The prior variance of each effect, one number, or ``[E]`` in the order of
        :attr:`effects`.
    :param constant_variance: The prior variance of the constant.
    :param lengthscales: The lengthscales, measured in ranges of the column (see
        :class:`~interdomain.tables.NumericColumn`): one number, or one for each entry of
        ``lengthscale_columns``.
    :param separate_lengthscales: Whether a column has a lengthscale of its own in each effect,
        instead of one that all effects share.
    :param active_dims: Columns of X to use; all by default.
    :ivar columns: The column objects, one for each column that the kernel sees.
    :ivar names: The names of the columns; ``column 0``, ... for those without a name.
    :ivar effects: The columns of each effect except the constant, in the order of ``variances``.
    :ivar effect_names: The names of the effects, such as ``age`` and ``age x cement``.
    :ivar kernel_class: As given.
    :ivar separate_lengthscales: As given.
    :ivar num_columns: The number D of columns, after ``active_dims``.
    :ivar lengthscale_columns: The effect (None if all effects share it) and the column of each of
        the ``lengthscales``.
    :raises ValueError: If ``columns`` holds anything else or two columns have the same name; there
        is no effect, one is given twice, has a column twice or has a column that does not exist;
        ``kernel_class`` is another class; or parameters are not positive or have another shape.
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
        self.columns = tuple(items("columns", columns, rule))
        if not self.columns:
            raise ValueError(f"columns must be {rule}, found none.")
        for column in self.columns:
            instance("columns", column, Column, rule, "or call Additive.from_data(X)")
        self.num_columns = self.input_dim = len(self.columns)
        self.names = checked_names([column.label for column in self.columns])
        self.effects = checked_effects(effects, self.names)
        self.effect_names = tuple(effect_name(effect, self.names) for effect in self.effects)
        if not (isinstance(kernel_class, type) and issubclass(kernel_class, KNOWN)):
            raise ValueError(
                "kernel_class must be Matern12, Matern32, Matern52 or SquaredExponential of "
                f"gpflow.kernels, found {short(kernel_class)}; pass the class itself, not a kernel "
                "made of it."
            )
        self.kernel_class = kernel_class
        self._lengthscale_places = self._places(separate_lengthscales)
        self.lengthscale_columns = tuple(self._lengthscale_places)
        self.separate_lengthscales = bool(separate_lengthscales)
        self._periods = [self.columns[column].period for _, column in self._lengthscale_places]
        self.constant_variance = positive_parameter(
            "constant_variance", constant_variance, remedy="pass one number"
        )
        count = len(self.effects)
        remedy = f"pass one number, or one for each of the {count} effects"
        self.variances = positive_vector("variances", variances, count, remedy)
        count = len(self.lengthscale_columns)
        remedy = f"pass one number, or one for each of the {count} in lengthscale_columns"
        self.lengthscales = positive_vector("lengthscales", lengthscales, count, remedy)

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
        **options: Any,
    ) -> Additive:
        """Make the kernel for a table. Its effects together have a prior variance of one.

        :param X: ``[N, D]``, with the columns of ``active_dims`` only, in any units: nothing has
            to be standardised.
        :param effects: As for the constructor.
        :param names: The names of the columns, ``[D]``; by default those of a data frame.
        :param categorical: Numbers or names of the columns that hold categories; each has a
            function for every level.
        :param quantiles: Whether numeric columns are mapped to quantiles instead of values, so that
            functions can vary most where most rows are. None, the default, does so for the columns
            whose rows are not spread evenly over their range (:meth:`NumericColumn.from_data`).
        :param margin: As for :class:`~interdomain.tables.NumericColumn`.
        :param options: ``kernel_class``, ``lengthscales``, ``separate_lengthscales``,
            ``active_dims`` and ``name``, as for the constructor.
        :raises ValueError: If X is not finite, a column does not vary, a column of categories has
            more than half as many levels as rows, two columns have the same name, or a column does
            not exist. The message names the column. Also as for the constructor.
        """
        columns = columns_of_table(
            X, names=names, categorical=categorical, quantiles=quantiles, margin=margin
        )
        count = len(checked_effects(effects, checked_names([column.label for column in columns])))
        return cls(columns, effects, variances=1.0 / max(count, 1), **options)

    @property
    def kernels(self) -> list[Kernel]:
        """The kernel of the constant, then the kernel of each effect."""
        return [EffectKernel(self, effect) for effect in ((), *self.effects)]

    @property
    def effect_variances(self) -> tf.Tensor:
        """The prior variance of the constant, and of each effect, ``[1 + E]``."""
        return tf.concat([self.constant_variance[None], self.variances], axis=0)

    def place_of(self, effect: Effect) -> int:
        """The position of an effect in :attr:`effect_variances`; ``()`` is the constant."""
        return 1 + self.effects.index(effect) if effect else 0

    def variance_of(self, effect: Effect) -> tf.Tensor:
        """The prior variance of an effect; ``()`` is the constant."""
        return self.effect_variances[self.place_of(effect)]

    def lengthscale_place(self, effect: Effect, column: int) -> int | None:
        """The position in :attr:`lengthscales` of a column of an effect; None for a column of
        categories."""
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
        """The variance that the cosine, and just as much the sine, of 1, ..., ``highest`` periods
        carries in a kernel of variance one, for each of :attr:`lengthscales`."""
        return wave_variances(self.kernel_class, self.ratios, highest)

    @check_shapes(
        "return: []",
    )
    def total_variance(self) -> tf.Tensor:
        """The prior variance of f, the same everywhere."""
        return self.constant_variance + tf.reduce_sum(self.variances)

    @inherit_check_shapes
    @unconverted
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        pairs = _Pairs(self, self.seen(X), None if X2 is None else self.seen(X2))
        terms = [self.variance_of(effect) * pairs.product(effect) for effect in self.effects]
        return self.constant_variance + tf.add_n(terms)

    def seen(self, X: TensorType) -> tf.Tensor:
        remedy = "select them with the kernel's active_dims"
        X = select_columns(self, X)
        return of_columns(X, self.num_columns, ", those of the table", remedy)

    def _places(self, separate: bool) -> dict[tuple[Effect | None, int], int]:
        """Where the lengthscale of an effect and a column is in the vector."""
        numeric = [
            (effect if separate else None, column)
            for effect in self.effects
            for column in effect
            if self.columns[column].num_levels is None
        ]
        if not separate:
            numeric = sorted(set(numeric), key=lambda place: place[1])
        return {place: number for number, place in enumerate(numeric)}


class EffectKernel(UniformVariance):
    """One effect of a sum of effects, made by its ``kernels``.

    :param parent: The sum, whose parameters it uses.
    :param effect: The columns; none for the constant.
    """

    def __init__(self, parent: Additive, effect: Effect) -> None:
        label = "_".join(map(str, effect)) or "constant"
        super().__init__(active_dims=parent.active_dims, name=f"{parent.name}_{label}")
        self.parent, self.effect = parent, effect
        self.input_dim = parent.input_dim

    @inherit_check_shapes
    @unconverted
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        pairs = _Pairs(self.parent, self.seen(X), None if X2 is None else self.seen(X2))
        return self.total_variance() * pairs.product(self.effect)

    def seen(self, X: TensorType) -> tf.Tensor:
        return self.parent.seen(X)

    def total_variance(self) -> tf.Tensor:
        return self.parent.variance_of(self.effect)


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
