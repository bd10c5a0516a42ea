"""Sums of effects of a table's columns: main effects and interactions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential, Stationary
from gpflow.kernels.base import ActiveDims
from gpflow.utilities import positive

from .._arguments import Array, finite_array, instance, items, short
from ..core.columns import kernel_method
from ..core.diagonals import UniformVariance
from ..linalg.periodic import wave_variances
from .columns import Column
from .frames import checked_effects, checked_names, columns_of_table, effect_name, numbers_of_table

Effect: TypeAlias = tuple[int, ...]

_ORDERS = {Matern12: 0.5, Matern32: 1.5, Matern52: 2.5, SquaredExponential: math.inf}


class Additive(UniformVariance):
    """A GP that is a sum of effects: a constant, main effects of single columns, interactions.

        f(x) = c + sum_i f_i(x_i) + sum_{i<j} f_ij(x_i, x_j) + ...

    The kernel of an effect is its variance times a product of kernels, one for each of its columns.
    For a numeric column, a stationary kernel is periodized over a box (as in
    :class:`~interdomain.kernels.Periodized`). Its constant part is subtracted, and the result is
    scaled to variance one. For a column of categories, all levels are equally far from each other.
    So every effect has the mean zero along each of its columns, over the box or the levels. Effects
    of different sets of columns are orthogonal: an interaction contains no part of a main effect.
    (This is the functional analysis of variance of Durrande et al. 2013, *ANOVA kernels and RKHS of
    zero mean functions for model-based sensitivity analysis*, with a kernel in closed form.)

    The features are :class:`interdomain.tables.AdditiveFeatures`.
    :func:`interdomain.tables.effects` splits a fitted model into its effects.
    :func:`interdomain.tables.fit_additive` also chooses the interactions.

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
        :class:`~interdomain.tables.CategoricalColumn` for each column of X that the kernel uses.
        :meth:`from_data` makes them.
    :param effects: The effects, as tuples of numbers or names of columns. The entry ``"main"``
        stands for all main effects, ``"pairs"`` for all pairs of columns; the default is all main
        effects. The constant is always included, and effects of fewer columns come first.
    :param kernel_class: The class of the kernels of numeric columns: ``Matern12``, ``Matern32``,
        ``Matern52`` or ``SquaredExponential`` of gpflow.kernels.
    :param variances: The prior variance of each effect, one number, or ``[E]`` in the order of
        :attr:`effects`; 1 by default.
    :param constant_variance: The prior variance of the constant, 1 by default.
    :param lengthscales: The lengthscales, in ranges of the column (see
        :class:`~interdomain.tables.NumericColumn`): one number, 0.5 by default, or ``[P]`` in the
        order of :attr:`lengthscale_columns`.
    :param separate_lengthscales: Whether a column has its own lengthscale in each effect. By
        default all effects share the lengthscale of a column.
    :param active_dims: The columns of X to use; all by default.
    :ivar names: The names of the columns; ``column 0``, ... for those without a name.
    :ivar effects: The columns of each effect except the constant, in the order of ``variances``.
    :ivar effect_names: The names of the effects, such as ``age`` and ``age x cement``.
    :ivar num_columns: The number D of columns, after ``active_dims``.
    :ivar lengthscale_columns: The effect (None if all effects share it) and the column of each of
        the P ``lengthscales``.
    :raises ValueError: If two columns have the same name; if there is no effect, or an effect is
        given twice or has a wrong column; if ``kernel_class`` is another class; or if parameters
        are not positive or have another shape.
    """

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
        for column in self.columns:
            instance("columns", column, Column, rule, "or call Additive.from_data(X)")
        self.num_columns = self.input_dim = len(self.columns)
        self.names = checked_names([column.label for column in self.columns])
        self.effects = checked_effects(effects, self.names)
        self.effect_names = tuple(effect_name(effect, self.names) for effect in self.effects)
        if kernel_class not in _ORDERS:
            raise ValueError(
                "kernel_class must be Matern12, Matern32, Matern52 or SquaredExponential of "
                f"gpflow.kernels, found {short(kernel_class)}; pass the class itself, not a kernel "
                "made of it."
            )
        self.kernel_class = kernel_class
        numeric = [  # the effect and the column of each lengthscale
            (effect if separate_lengthscales else None, column)
            for effect in self.effects
            for column in effect
            if self.columns[column].num_levels is None
        ]
        if not separate_lengthscales:
            numeric = sorted(set(numeric), key=lambda place: place[1])
        self.lengthscale_columns = tuple(numeric)
        self._lengthscale_places = {place: number for number, place in enumerate(numeric)}
        self.separate_lengthscales = bool(separate_lengthscales)
        self._periods = [self.columns[column].period for _, column in numeric]
        self.constant_variance = positive_parameter("constant_variance", constant_variance, ())
        self.variances = positive_parameter("variances", variances, (len(self.effects),))
        self.lengthscales = positive_parameter("lengthscales", lengthscales, (len(numeric),))

    @classmethod
    def from_data(
        cls,
        X: TensorType,
        effects: Sequence[Any] | str | None = None,
        *,
        names: Sequence[str] | None = None,
        categorical: Sequence[int | str] = (),
        kernel_class: type[Stationary] = Matern52,
        lengthscales: TensorType = 0.5,
        separate_lengthscales: bool = False,
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> Additive:
        """Make the kernel for a table, with columns made by ``from_data``. The variances of effects
        add up to one. All other arguments are those of the constructor.

        :param X: ``[N, D]``, only the columns of ``active_dims``, in any units: nothing has to be
            standardised. In a data frame, columns of text or of pandas' category type hold
            categories, which :meth:`encode` turns into numbers.
        :param names: The names of the columns, ``[D]``; by default those of a data frame.
        :param categorical: Numbers or names of the columns that hold categories; each has a
            function for every level.
        :raises ValueError: For the errors of the constructor; and, naming the column, if a column
            is not finite, does not vary, or has more than half as many levels as rows.
        """
        kernel = cls(
            columns_of_table(X, names, categorical),
            effects,
            kernel_class=kernel_class,
            lengthscales=lengthscales,
            separate_lengthscales=separate_lengthscales,
            active_dims=active_dims,
            name=name,
        )
        kernel.variances.assign(kernel.variances / len(kernel.effects))
        return kernel

    def encode(self, X: Any) -> Array:
        """The rows of a table as numbers ``[N, D]``, for models. A category becomes the number of
        its level. The columns of a data frame may have any order.

        >>> import numpy as np, interdomain as idm
        >>> site = idm.tables.CategoricalColumn([0, 1], level_names=["north", "south"])
        >>> kernel = idm.tables.Additive([idm.tables.NumericColumn([0, 9]), site])
        >>> kernel.encode(np.array([[3.0, "south"]], dtype=object)).tolist()
        [[3.0, 1.0]]

        :param X: ``[N, D]``: a data frame with the columns of the kernel, or an array.
        :raises ValueError: For other columns, and for values that are not finite numbers.
        :warns UserWarning: For levels that the kernel's columns do not have.
        """
        return numbers_of_table(X, self.columns, self.names)

    def warn_of_rows(self, X: Array) -> bool:
        """Warn of rows ``[N, D]`` for which the table has no data: unknown levels, or numbers far
        outside of the range of a column. Return whether there are any."""
        rows = self.seen(X).numpy()
        warned = [column.warn_of(x) for column, x in zip(self.columns, rows.T, strict=True)]
        return any(warned)

    @property
    def effect_variances(self) -> tf.Tensor:
        """The prior variance of the constant, and of each effect, ``[1 + E]``."""
        return tf.concat([self.constant_variance[None], self.variances], axis=0)

    def lengthscale_place(self, effect: Effect, column: int) -> int | None:
        """The position in :attr:`lengthscales` of a column of an effect; None for categories."""
        places = self._lengthscale_places
        return places.get((effect, column), places.get((None, column)))

    @property
    def ratios(self) -> tf.Tensor:
        """The lengthscales, in periods of the boxes of their columns."""
        return self.lengthscales / tf.constant(self._periods, self.lengthscales.dtype)

    @check_shapes("return: [P, J]")
    def wave_variances(self, highest: int) -> tf.Tensor:
        """The prior variance of the cosine of 1, ..., ``highest`` periods in a kernel of variance
        one, for each of :attr:`lengthscales`. The sine has the same variance."""
        return wave_variances(_ORDERS[self.kernel_class], self.ratios, highest)

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        X, X2 = self.seen(X), None if X2 is None else self.seen(X2)
        known: dict[tuple[int | None, int], tf.Tensor] = {}
        total = self.constant_variance
        for effect, variance in zip(self.effects, tf.unstack(self.variances), strict=True):
            for column in effect:
                place = self.lengthscale_place(effect, column)
                if (place, column) not in known:
                    known[place, column] = self._column_covariance(column, place, X, X2)
                variance = variance * known[place, column]
            total = total + variance
        return total

    def _column_covariance(
        self, column: int, place: int | None, X: tf.Tensor, X2: tf.Tensor | None
    ) -> tf.Tensor:
        """The kernel of a column at all pairs of rows, with the lengthscale at index ``place``."""
        part = self.columns[column]
        first = part.coordinates(X[..., column])
        if X2 is None:
            first, second = first[..., :, None], first[..., None, :]
        else:
            second = part.coordinates(X2[..., column])
            ones = tf.ones([tf.rank(second)], tf.int32)
            first = tf.reshape(first, tf.concat([tf.shape(first), ones], axis=0))
        ratio = None if place is None else self.ratios[place]
        return part.covariances(first, second, _ORDERS[self.kernel_class], ratio)

    def total_variance(self) -> tf.Tensor:
        """The prior variance of f, the sum over the constant and all effects."""
        return tf.reduce_sum(self.effect_variances)

    def seen(self, X: TensorType) -> tf.Tensor:
        """The columns of X that belong to the table.

        :raises ValueError: If X has more or fewer columns.
        """
        X = super().seen(X)
        if X.shape[-1] not in (None, self.num_columns):
            raise ValueError(
                f"X must have {self.num_columns} columns, those of the table, found {X.shape[-1]}; "
                "select them with the kernel's active_dims."
            )
        return tf.ensure_shape(X, [*X.shape[:-1], self.num_columns])


def positive_parameter(name: str, value: Any, shape: tuple[int, ...]) -> gpflow.Parameter:
    """A positive parameter of this shape; one number sets all entries."""
    if not isinstance(value, (gpflow.Parameter, tf.Variable)):
        value = finite_array(name, value, (0, 1), "one number or a vector")
        value = np.full(shape, value) if value.ndim == 0 else value
        if np.any(value <= 0):
            raise ValueError(f"{name} must be positive, found {short(value)}.")
    if tuple(value.shape) != shape:
        raise ValueError(f"{name} must have shape {shape}, found {tuple(value.shape)}.")
    return gpflow.Parameter(value, transform=positive(), trainable=0 not in shape)
