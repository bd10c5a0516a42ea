"""Intercepts of groups: a kernel of categories with thousands of levels, and its features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels.base import ActiveDims

from .._arguments import (
    Array,
    check_num_inducing,
    finite_array,
    instance,
    items,
    refusal,
    short,
)
from .._tracing import unconverted
from ..core.columns import kernel_method
from ..core.diagonals import UniformVariance
from ..core.functionals import LinearFunctional, Places, Value
from ..core.product_rule import check_categories, columns_seen
from ..inducing_variables import InterDomainInducingVariables
from ..linalg import Diagonal, StructuredOperator
from ..sums.groups import Groups
from .kernel import positive_parameter
from .reading import TableReader

_REMEDY = "make it with interdomain.tables.GroupIntercepts.from_data(values)"


class GroupIntercepts(UniformVariance):
    """Random intercepts: a function of one column of categories, with a number for each level.

        f(x) = a[level of x],    a[l] ~ N(0, variance) independently.

    So ``K(x, x')`` is the variance if two rows have the same level, and zero otherwise. Values that
    are no levels count as one further level, whose predictions are those of the prior.

    The features are :class:`GroupFeatures`, of which one is nonzero at a row. The sum of two such
    kernels has nested or crossed effects. :class:`interdomain.models.VecchiaSGPR` adds a local
    kernel of other columns, even with thousands of levels:

    >>> import gpflow, numpy as np, interdomain as idm
    >>> rng = np.random.default_rng(0)
    >>> shop = np.repeat(np.arange(40), 10)
    >>> X = np.column_stack([rng.uniform(size=[400, 2]), shop])
    >>> Y = np.sin(6 * X[:, :1]) + rng.normal(size=40)[shop, None]
    >>> kernel = idm.tables.GroupIntercepts.from_data(X[:, 2], active_dims=[2])
    >>> features = idm.tables.GroupFeatures(kernel)
    >>> prior = idm.kernels.FiniteRank(kernel, features)
    >>> local = gpflow.kernels.Matern32(lengthscales=[0.5, 0.5], active_dims=[0, 1])
    >>> model = idm.models.VecchiaSGPR(
    ...     (X, Y), prior, features, local_kernel=local, noise_variance=0.01
    ... )
    >>> model.predict_f(np.array([[0.5, 0.5, 3.0]]))[0].shape
    TensorShape([1, 1])

    The column holds whole numbers. :meth:`codes` turns text of a data frame into whole numbers.

    :param levels: The levels, two or more different whole numbers ``[L]``; stored in increasing
        order.
    :param variance: The prior variance of an intercept.
    :param level_names: The names of the levels, which :meth:`codes` reads.
    :param active_dims: The column of X; by default X has no other.
    :raises ValueError: If levels are not whole numbers, fewer than two, not distinct or too many.
    :ivar levels: The levels in increasing order.
    :ivar level_names: The names of the levels in this order, or None.
    """

    def __init__(
        self,
        levels: TensorType,
        *,
        variance: TensorType = 1.0,
        level_names: Sequence[Any] | None = None,
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        given = finite_array("levels", levels, (1,), "a vector [L] of two or more")
        remedy = "pass np.unique of the column, or call GroupIntercepts.from_data(column)"
        broken = given[given != np.round(given)]
        if len(broken):
            raise refusal("levels", "be whole numbers", short(broken), remedy)
        self.levels = np.sort(given)
        dtype = gpflow.default_float()
        size, different = len(given), len(np.unique(given.astype(dtype)))
        if not 2 <= different == size:
            rule = f"be two or more whole numbers, different in {np.dtype(dtype).name}"
            raise refusal("levels", rule, f"{different} different among {size}", remedy)
        check_num_inducing("levels", size + 1, "groups")
        self.levels.setflags(write=False)
        self.level_names: tuple[Any, ...] | None = None
        if level_names is not None:
            named = items("level_names", level_names, "a name for each level")
            if len(named) != size:
                raise ValueError(f"level_names must be {size}, found {short(named)}.")
            self.level_names = tuple(named[place] for place in np.argsort(given))
        self.input_dim = 1
        self.variance = positive_parameter("variance", variance, ())

    @classmethod
    def from_data(
        cls,
        values: Any,
        *,
        variance: TensorType = 1.0,
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> GroupIntercepts:
        """Make the kernel with the levels that occur in a column ``[N]`` of the data.

        :param values: Whole numbers; or text or categories, whose levels are numbered from 0 on, in
            increasing order: :meth:`codes` then turns the column into numbers.
        :raises ValueError: For the errors of the constructor, and for missing values.
        """
        options: dict[str, Any] = {"variance": variance, "active_dims": active_dims, "name": name}
        reader = TableReader.from_data(_Frame(values))
        if reader.levels[0] is None:
            return cls(np.unique(reader(_Frame(values))), **options)
        names = reader.levels[0]
        return cls(np.arange(len(names)), level_names=names, **options)

    def codes(self, values: Any) -> Array:
        """The levels of a column of names ``[N]`` as numbers for X, ``[N]``.

        :param values: Names of levels; unknown names become a number that is no level. For a kernel
            without names: whole numbers, which are returned unchanged.
        :raises ValueError: For missing values.
        """
        numbers: Array = TableReader(None, [self.level_names])(_Frame(values))[:, 0]
        if self.level_names is None:
            return numbers
        return np.append(self.levels, self.levels[-1] + 1)[numbers.astype(np.int64)]

    def indices(self, X: TensorType) -> tf.Tensor:
        """The index of each row's level in :attr:`levels`, ``[..., N]``; L for all other values.

        :param X: ``[..., N, D]`` with all columns.
        """
        column = self.seen(X)
        if column.shape[-1] not in (None, 1):
            raise refusal("X", "have one column", column.shape[-1], "select it with active_dims")
        column = tf.ensure_shape(column, [*column.shape[:-1], 1])[..., 0]
        levels, flat = tf.constant(self.levels, column.dtype), tf.reshape(column, [-1])
        places = tf.minimum(tf.searchsorted(levels, flat), len(self.levels) - 1)
        known = tf.gather(levels, places) == flat
        return tf.reshape(tf.where(known, places, len(self.levels)), tf.shape(column))

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        first = self.indices(X)
        if X2 is None:
            same = first[..., :, None] == first[..., None, :]
        else:
            second = self.indices(X2)
            ones = tf.ones([tf.rank(second)], tf.int32)
            same = tf.reshape(first, tf.concat([tf.shape(first), ones], axis=0)) == second
        return self.variance * tf.cast(same, self.variance.dtype)

    def total_variance(self) -> tf.Tensor:
        """The prior variance of an intercept."""
        return tf.convert_to_tensor(self.variance)


class GroupFeatures(InterDomainInducingVariables):
    """The indicators of the levels of :class:`GroupIntercepts`, and one for all other values.

    ``u_m = a[m] / variance``, so ``Kuf`` is one if a row has the level m, and zero otherwise. It
    **depends on no parameter**, so one pass over the rows is enough for all variances. Kuu is
    diagonal: one over the variance. The features represent the kernel exactly.

    Sums over rows are sparse: one feature is nonzero at a row, and at most m + 1 are nonzero at a
    row and its m neighbours.

    :param kernel: The kernel, whose levels the features have.
    :ivar levels: The levels of the kernel.
    :raises ValueError: If ``kernel`` is another kernel.
    """

    kernels = (GroupIntercepts,)

    def __init__(self, kernel: GroupIntercepts, *, name: str | None = None) -> None:
        instance("kernel", kernel, GroupIntercepts, "a GroupIntercepts kernel", _REMEDY)
        super().__init__(name=name)
        self.levels = kernel.levels

    @property
    def num_inducing(self) -> int:
        """The number of levels, plus one for all other values."""
        return len(self.levels) + 1

    @unconverted
    def Kuf(self, kernel: GroupIntercepts, X: TensorType) -> tf.Tensor:
        self.validate_kernel(kernel)
        return tf.one_hot(kernel.indices(X), self.num_inducing, axis=0, dtype=kernel.variance.dtype)

    def acted_Kuf(
        self, kernel: GroupIntercepts, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """The functional of a function that is constant along all numeric columns.

        :raises ValueError: If the functional acts along the column of levels.
        """
        columns = columns_seen(kernel, places.inputs)
        check_categories(functional, columns)
        seen = functional.seen_by(columns)
        return self.Kuf(kernel, places.inputs) if isinstance(seen, Value) else None

    def Kuu(self, kernel: GroupIntercepts, *, jitter: float = 0.0) -> StructuredOperator:
        """The diagonal of Kuu, without ``jitter``: a diagonal needs no factorisation."""
        self.validate_kernel(kernel)
        return Diagonal(tf.fill([self.num_inducing], 1 / kernel.variance))

    def structure(self, kernel: GroupIntercepts) -> Groups:
        """The structure of features of which one is nonzero in each row."""
        self.validate_kernel(kernel)
        return Groups([(self, kernel)], [kernel.indices])

    def explained_terms(self, kernel: GroupIntercepts) -> list[Any]:
        """The variance of the kernel, the same at all rows."""
        self.validate_kernel(kernel)
        return kernel.diagonal_terms()

    def is_subset_of(self, others: GroupFeatures) -> bool:
        """Whether ``others`` have the same levels."""
        return np.array_equal(self.levels, others.levels)

    def validate_kernel(self, kernel: GroupIntercepts) -> None:
        """Check that the kernel has the levels of the features."""
        if kernel.levels is not self.levels and not np.array_equal(kernel.levels, self.levels):
            raise ValueError(
                f"kernel must have the {len(self.levels)} levels that the features were made for, "
                f"found {short(kernel.levels)}; build the features with GroupFeatures(kernel)."
            )


class _Frame:
    """A table with a single column, for a TableReader."""

    def __init__(self, values: Any) -> None:
        self.columns = ["values"]
        if np.ndim(values) != 1:
            raise refusal("values", "be a vector [N]", f"shape {np.shape(values)}", "pass a column")
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values
