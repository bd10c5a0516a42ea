"""Columns of a table, with functions of one column that are orthonormal over it, and of mean zero.

The functions are numbered from 1 on; 0 is the constant. Products of functions of several columns
are the features of an interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from scipy.linalg import block_diag

from .._arguments import Array, finite_array, items, number, short, warn
from ..linalg.periodic import table, zero_mean_covariances

_MAX_LEVELS = 2_000
"""The largest number of levels. The functions of L levels are a dense matrix of order L."""

_UNEVEN = 0.1
"""The distance of sorted values from an even grid, in ranges of the column, above which knots are
quantiles; ``1 / sqrt(N)`` is added for chance. For evenly spread values, knots at quantiles would
only put kinks into smooth functions."""

_NUM_KNOTS = 33


class _Column:
    """The base class of numeric and categorical columns.

    :ivar label: The name of the column in reports and messages.
    :ivar num_levels: The number of functions of a column of categories, all of which are used. None
        for a numeric column, whose lengthscale decides how many functions matter.
    :ivar level_names: The names of the levels in a data frame, in the order of the levels; or None.
    :ivar period: The length of the box of a numeric column, in ranges of the data.
    :ivar level_variances: The prior variance of the function of each level in a kernel of variance
        one, ``[num_levels]``.
    """

    num_levels: int | None = None
    level_names: tuple[Any, ...] | None = None
    period = 1.0
    level_variances: Array = np.zeros(0)

    def __init__(self, label: str | None, *parts: Array) -> None:
        """Set the label, and the arrays that define the column, which become read-only."""
        if label is not None and not isinstance(label, str):
            raise ValueError(f"label must be text, found {short(label)}; pass str(label).")
        self.label = label
        for part in parts:
            part.setflags(write=False)
        self._parts = tuple(tuple(part) for part in parts)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)


def _varying(values: TensorType, label: str | None) -> tuple[str, Array]:
    """The name of values in messages; and the sorted values, checked to be finite and to vary."""
    what = "values" if label is None else f"values of {label!r}"
    ordered = np.sort(finite_array(what, values, (1,), "a vector [N]"))
    if not len(ordered) or ordered[0] == ordered[-1]:
        raise ValueError(f"{what} must vary, found one value; leave the column out.")
    return what, ordered


class NumericColumn(_Column):
    """A column of numbers, in which effects are smooth functions.

    The values are mapped to positions, so that the range of the data becomes ``[0, 1]``. Functions
    of the column are the waves of a box that is longer than this range by the margin, half of it on
    either side. Lengthscales are therefore in ranges of the column. If values are spread unevenly,
    knots at quantiles spread their positions over the box. Outside of the knots, positions are
    extrapolated by up to a quarter of the margin. Further away a function is constant, and values
    raise a warning (not in compiled functions).

    :param knots: Increasing values of the column ``[K]``, two or more. The first and the last are
        the range of the data.
    :param positions: The positions of the knots, increasing from 0 to 1, ``[K]``. Positions of
        values between knots are interpolated. By default positions are proportional to the values.
    :param margin: The margin of the box, in ranges of the data.
    :param label: The name of the column in reports and messages.
    :raises ValueError: If knots or positions are not increasing or do not fit together, or the
        margin is not positive.
    """

    def __init__(
        self,
        knots: TensorType,
        positions: TensorType | None = None,
        *,
        margin: float = 0.5,
        label: str | None = None,
    ) -> None:
        form = "a vector [K] of two or more"
        self.knots = finite_array("knots", knots, (1,), form)
        if len(self.knots) < 2 or np.any(np.diff(self.knots) <= 0):
            raise ValueError(
                f"knots must be two or more increasing numbers, found {short(self.knots)}; pass "
                "the ends of the column's range, or quantiles of it, each once."
            )
        if positions is None:
            positions = (self.knots - self.knots[0]) / (self.knots[-1] - self.knots[0])
        self.positions = finite_array("positions", positions, (1,), form)
        steps = np.diff(self.positions, prepend=0.0, append=1.0)
        if len(steps) != len(self.knots) + 1 or np.any(steps[1:-1] <= 0) or np.any(steps[[0, -1]]):
            raise ValueError(
                f"positions must increase from 0 to 1, one for each of the {len(self.knots)} "
                f"knots, found {short(self.positions)}; leave them out for a linear map."
            )
        self.margin = number("margin", margin, above=0)
        self.period = 1 + self.margin
        super().__init__(label, self.knots, self.positions, np.array([self.margin]))

    @classmethod
    def from_data(cls, values: TensorType, *, label: str | None = None) -> NumericColumn:
        """Make the column from its values in the data, ``[N]``.

        If values are not spread evenly over their range (heavy tails, clusters, a Gaussian), the
        knots are quantiles: functions can then vary most where most rows are.

        :raises ValueError: If values are not finite, or all the same.
        """
        _, ordered = _varying(values, label)
        first, last = ends = ordered[[0, -1]]
        even = np.linspace(first, last, len(ordered))
        spread = np.max(np.abs(ordered - even)) / (last - first)
        if spread <= _UNEVEN + 1 / np.sqrt(len(ordered)):
            return cls(ends, label=label)
        # Different quantiles, and the share of the rows below each.
        shares = np.linspace(0, 1, _NUM_KNOTS)
        knots, begin = np.unique(np.quantile(ordered, shares), return_index=True)
        end = np.append(begin[1:] - 1, _NUM_KNOTS - 1)
        positions = (shares[begin] + shares[end]) / 2  # the middle of a repeated value
        positions = (positions - positions[0]) / (positions[-1] - positions[0])
        return cls(knots, positions, label=label)

    def grid(self, count: int) -> Array:
        """Increasing values of the column over its range, ``[count]``, for plots."""
        return np.interp(np.linspace(0, 1, count), self.positions, self.knots)

    def positions_of(self, x: TensorType) -> tf.Tensor:
        """The positions of values, in the shape of x: 0 at the first knot, 1 at the last."""
        x = tf.convert_to_tensor(x, gpflow.default_float())
        knots, positions = (tf.constant(a, x.dtype) for a in (self.knots, self.positions))
        slopes = tf.constant(np.diff(self.positions) / np.diff(self.knots), x.dtype)
        if len(self.knots) == 2:
            place = slopes[0] * (x - knots[0])
        else:
            pieces = tf.searchsorted(knots[1:-1], tf.reshape(x, [-1]), side="right")
            pieces = tf.reshape(pieces, tf.shape(x))
            slope, start = tf.gather(slopes, pieces), tf.gather(positions, pieces)
            place = start + slope * (x - tf.gather(knots, pieces))
        return tf.clip_by_value(place, -self.margin / 4, 1 + self.margin / 4)

    def coordinates(self, x: tf.Tensor) -> tf.Tensor:
        """Positions in the box, as fractions of its period; functions take these coordinates."""
        if tf.executing_eagerly():
            self.warn_of(np.asarray(x))
        return (self.positions_of(x) + self.margin / 2) / self.period

    def warn_of(self, values: Array) -> bool:
        """Warn of values far outside of the range of the data. Return whether there are any."""
        first, last = self.knots[[0, -1]]
        beyond = np.maximum(first - values, values - last)
        far = beyond > self.margin / 4 * (last - first)
        if not np.any(far):
            return False
        warn(
            f"{self.label or 'a numeric column'}: {np.count_nonzero(far)} of {far.size} values are "
            f"far outside of the range of its data, from {first:.6g} to {last:.6g}, such as "
            f"{values.flat[np.argmax(beyond)]:.6g}; its effects are constant there, with bands "
            "that are too narrow. Train with such rows, or leave them out."
        )
        return True

    def functions(self, coordinates: tf.Tensor, highest: int) -> tf.Tensor:
        """The first ``highest`` functions, cosine and sine of 1, 2, ... periods, at coordinates
        ``[N]``, ``[highest, N]``."""
        return table(coordinates, np.arange(1, -(-highest // 2) + 1))[1 : highest + 1]

    def covariances(
        self, first: tf.Tensor, second: tf.Tensor, order: float, ratio: tf.Tensor | None
    ) -> tf.Tensor:
        """The kernel of variance one at pairs of coordinates of equal shape, for Matern's order nu.
        ``ratio`` is the lengthscale in periods."""
        assert ratio is not None
        return zero_mean_covariances(order, ratio, first - second)


class CategoricalColumn(_Column):
    """A column of categories, such as station numbers. All levels are equally far from each other.

    Functions of the column sum to zero over the levels. Any other value counts as a level without
    data, with predictions of the prior, and raises a warning (not in compiled functions).

    :param levels: The levels, two or more different numbers ``[L]``; stored in increasing order.
    :param label: The name of the column in reports and messages.
    :param level_names: The names of ``levels``, for reports, messages and data frames.
    :raises ValueError: If there are fewer than two levels, more than 2,000, or one is given twice.
    """

    def __init__(
        self,
        levels: TensorType,
        *,
        label: str | None = None,
        level_names: Sequence[Any] | None = None,
    ) -> None:
        given = finite_array("levels", levels, (1,), "a vector [L] of two or more")
        self.levels, dtype = np.sort(given), gpflow.default_float()
        size, different = len(given), len(np.unique(given.astype(dtype)))
        if not 2 <= different == size <= _MAX_LEVELS:
            raise ValueError(
                f"levels must be from 2 to {_MAX_LEVELS:,} numbers, different in "
                f"{np.dtype(dtype).name}, found {different} among {size}; pass each level once."
            )
        super().__init__(label, self.levels)
        self.num_levels = size
        if level_names is not None:
            named = items("level_names", level_names, "a name for each level")
            if len(named) != size:
                raise ValueError(f"level_names must be {size}, found {short(named)}.")
            self.level_names = tuple(named[place] for place in np.argsort(given))
        # Orthonormal contrasts over equally weighted levels, and a function of the unknown level.
        basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, :-1]]))[0]
        self._functions = block_diag(np.sqrt(size) * basis[:, 1:].T, 1.0)
        self.level_variances = np.append(np.full(size - 1, 1 / (size - 1)), 1.0)
        self._matrix = self._functions.T @ (self.level_variances[:, None] * self._functions)

    @classmethod
    def from_data(
        cls,
        values: TensorType,
        *,
        label: str | None = None,
        level_names: Sequence[Any] | None = None,
    ) -> CategoricalColumn:
        """Make the column with the levels that occur in values ``[N]`` of the data.

        :param level_names: The names of the levels, in increasing order of the levels.
        :raises ValueError: If values are not finite or all the same, or there are more than half as
            many levels as values, or more than 2,000.
        """
        what, ordered = _varying(values, label)
        levels = np.unique(ordered)
        if 2 * len(levels) > len(ordered) > 2:
            raise ValueError(
                f"{what} must be categories of several rows each, found {len(levels)} levels in "
                f"{len(ordered)} rows; pass it as a column of numbers, or merge levels."
            )
        return cls(levels, label=label, level_names=level_names)

    def grid(self, count: int) -> Array:
        """The levels, for plots; ``count`` has no effect."""
        return self.levels

    def coordinates(self, x: tf.Tensor) -> tf.Tensor:
        """The index of the level of each value; L for values that are not levels."""
        if tf.executing_eagerly():
            self.warn_of(np.asarray(x))
        levels, flat = tf.constant(self.levels, x.dtype), tf.reshape(x, [-1])
        places = tf.minimum(tf.searchsorted(levels, flat), len(self.levels) - 1)
        known = tf.gather(levels, places) == flat
        return tf.reshape(tf.where(known, places, len(self.levels)), tf.shape(x))

    def warn_of(self, values: Array) -> bool:
        """Warn of values that are not levels of the column. Return whether there are any."""
        unseen = np.unique(values[~np.isin(values, self.levels.astype(values.dtype))])
        if not len(unseen):
            return False
        found = "other levels than those of the data" if self.level_names else short(unseen)
        warn(
            f"{self.label or 'a column of categories'}: {found} are none of its {len(self.levels)} "
            "levels, and get the prior's mean and variance; pass levels that the column was made "
            "with, if this is a mistake."
        )
        return True

    def functions(self, coordinates: tf.Tensor, highest: int) -> tf.Tensor:
        """The first ``highest`` functions at indices of levels ``[N]``, ``[highest, N]``."""
        values = tf.constant(self._functions[:highest], gpflow.default_float())
        return tf.gather(values, coordinates, axis=1)

    def covariances(
        self, first: tf.Tensor, second: tf.Tensor, order: float, ratio: tf.Tensor | None
    ) -> tf.Tensor:
        """The kernel of variance one at pairs of indices; ``order`` and ``ratio`` are ignored."""
        entries = tf.constant(self._matrix.ravel(), gpflow.default_float())
        return tf.gather(entries, first * (len(self.levels) + 1) + second)


Column: TypeAlias = NumericColumn | CategoricalColumn
