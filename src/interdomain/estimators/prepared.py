"""Scaling of a table for models, and the lines of code that do the same in a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian, Likelihood

from .._arguments import Array, BoolArray, as_image_shape, finite_array, instance, short
from .._targets import check_targets, densities_of, number_of_latents, takes_missing
from ..tables import TableScaler
from . import outputs
from .places import is_on_the_globe

HELD_OUT = 5
"""One row in this many is held out."""

MOST_INDICATORS = 10
"""The largest number of levels that become indicators; columns of more levels are groups."""

_TARGETS: Mapping[Callable[..., Any], str] = {
    outputs.matrix: "Y_train",
    outputs.standardised: "Y_train, Y_mean, Y_std",
    outputs.labelled: "Y_train, classes",
}
"""The names of the values that each function of Y returns."""

_ROUNDING = 1e-9
"""The distance from the box up to which scaled rows count as inside."""

_STANDARDISED = "(X - X.mean(axis=0)) / X.std(axis=0)"


@dataclass(frozen=True)
class PreparedData:
    """A table, scaled for models.

    :ivar X: ``[N, D]``, standardised; pixels are between 0 and 1, and degrees remain degrees. The
        last columns may hold numbers of levels.
    :ivar Y: ``[N, P]``; standardised if ``units`` is not None.
    :ivar code: Lines of code that make X_train and Y_train from the X and Y that were passed.
    :ivar image_shape: The shape of the image in each row; None for a table.
    :ivar scaler: The scaler, which also scales further rows.
    :ivar targets: The function of :mod:`.outputs` that scaled Y.
    :ivar likelihood_code: The likelihood in a program; None if the user passes it.
    :ivar on_globe: Whether the numeric columns are exactly latitude and longitude in degrees.
    :ivar sentences: Remarks on the columns for the user.
    :ivar X_new: Rows at which the model is to predict, ``[n, D]`` on the scale of X; or None.
    :ivar units: The mean and the standard deviation of Y, ``[P]`` each; None if Y is not scaled.
    :ivar noise_weights: The noise weight of each row, ``[N]``; None for ones.
    :ivar box: The lowest and the highest value of each numeric column; None without a box.
    :ivar num_levels: The number of levels of each of the last columns of X.
    """

    X: Array
    Y: Array
    code: str
    image_shape: tuple[int, ...] | None
    scaler: TableScaler
    targets: Callable[[Any], Any]
    likelihood_code: str | None = None
    on_globe: bool = False
    sentences: tuple[str, ...] = ()
    X_new: Array | None = None
    units: tuple[Array, Array] | None = None
    noise_weights: Array | None = None
    box: list[list[float]] | None = None
    num_levels: tuple[int, ...] = ()

    @property
    def num_numeric(self) -> int:
        """The number of columns of X that hold no levels."""
        return self.X.shape[1] - len(self.num_levels)

    def restricted_to(self, columns: BoolArray, X: Array, Y: Array) -> PreparedData:
        """A copy with other rows X, Y, and with a part of the columns.

        :param columns: A mask of the columns of the copy, ``[D]``.
        :param X: The rows, with only these columns.
        """
        new = None if self.X_new is None else self.X_new[:, columns]
        box = self.box and np.array(self.box)[:, columns[: self.num_numeric]].tolist()
        return replace(self, X=X, Y=Y, X_new=new, box=box)

    def without_rows(self, margin: float | None = None) -> PreparedData:
        """A copy without rows, with the same scales and columns.

        :param margin: The margin of the box around the rows, in ranges of the rows; None for no
            box. If there are bounds, they are the box instead.
        """
        box = self.box
        if box is None and margin is not None:
            numbers = self.X[:, : self.num_numeric]
            low, high = numbers.min(axis=0), numbers.max(axis=0)
            box = [(low - margin * (high - low)).tolist(), (high + margin * (high - low)).tolist()]
        empty: Any = {"X": self.X[:0], "Y": self.Y[:0], "X_new": None, "noise_weights": None}
        return replace(self, **empty, box=box)

    def in_box(self, rows: Array) -> tuple[Array, BoolArray]:
        """Scaled rows, clipped to the box if there is one; and a mask of rows outside of it."""
        numbers = rows[:, : self.num_numeric]
        inside = numbers if self.box is None else np.clip(numbers, *np.array(self.box))
        beyond = np.any(np.abs(inside - numbers) > _ROUNDING, axis=1)
        return np.hstack([inside, rows[:, self.num_numeric :]]), beyond

    @property
    def shift(self) -> Array:
        """The mean of Y that is subtracted, ``[P]``."""
        return np.zeros(self.Y.shape[1]) if self.units is None else self.units[0]

    @property
    def scale(self) -> Array:
        """The divisor of Y, ``[P]``."""
        return np.ones(self.Y.shape[1]) if self.units is None else self.units[1]

    def further_rows(self, rows: Array, Y: Any, noise_variance: Any = None) -> tuple[Array, ...]:
        """Further training rows: X ``[n, D]``, Y ``[n, P]`` on the scale of the first rows, and
        noise weights ``[n]`` if ``noise_variance`` is passed.

        :param rows: X on the scale of the first rows.
        :param Y: The targets in their own units.
        :raises ValueError: For another number of outputs, or levels that are new.
        """
        targets = outputs.matrix(Y)
        if targets.shape[1] != self.Y.shape[1]:
            raise ValueError(
                f"y must have {self.Y.shape[1]} outputs, as in the first call, found "
                f"{targets.shape[1]}; pass all of them."
            )
        new = np.any(rows[:, self.num_numeric :] >= self.num_levels, axis=0)
        if np.any(new):
            names = np.array(self.scaler.names)[self.num_numeric :][new]
            raise ValueError(
                f"X must have levels of the first rows in columns {short(list(names))}, found new "
                "ones; fit again with rows of all levels."
            )
        targets = (targets - self.shift) / self.scale
        if noise_variance is None:
            return rows, targets
        return rows, targets, noise_weights(noise_variance, targets, self.units)

    @property
    def rows(self) -> tuple[Array, ...]:
        """X, Y and, if there are any, the noise weights."""
        weights = () if self.noise_weights is None else (self.noise_weights,)
        return (self.X, self.Y, *weights)


def prepare(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    image_shape: Sequence[int] | None = None,
    inputs: str | None = None,
    X_new: Any = None,
    *,
    targets: Callable[[Any], Any] | None = None,
    likelihood_code: str | None = None,
    categorical: Sequence[Any] = (),
    bounds: Mapping[Any, tuple[float, float]] | None = None,
    noise_variance: Any = None,
) -> PreparedData:
    """Scale X, and Y under Gaussian noise, for models. All other arguments and errors are those of
    :func:`recommend`.

    :param targets: The function of :mod:`.outputs` that scales Y; None for ``standardised`` under
        Gaussian noise, and ``matrix`` otherwise.
    :param likelihood_code: The likelihood in a program, if the user does not pass it.
    :param categorical: An argument of :class:`~interdomain.tables.TableScaler`, as is ``bounds``.
    :param noise_variance: The known noise variance of each row, ``[N]``; None if unknown.
    """
    if targets is not outputs.labelled:
        finite_array("Y", Y, (1, 2), "[N, P] or [N]", missing=takes_missing(likelihood))
    options: dict[str, Any] = {"categorical": list(categorical)} if len(categorical) else {}
    table = TableScaler(X, "none", most_indicators=MOST_INDICATORS, **options)
    given = table(X)
    if len(Y) != len(given) or not np.size(Y):
        raise ValueError(
            f"Y must be [N, P] with the {len(given)} rows of X, found shape {np.shape(Y)}."
        )
    if targets is None:
        targets = outputs.standardised if likelihood is None else outputs.matrix
        likelihood_code = "Gaussian(0.1)" if likelihood is None else None
    plain = outputs.labelled(Y)[0] if targets is outputs.labelled else outputs.matrix(Y)
    if likelihood is not None:
        number_of_latents(likelihood, plain.shape[1])
        check_targets(likelihood, plain)
    if not np.all(np.nanmin(plain, axis=0) < np.nanmax(plain, axis=0)):
        raise ValueError("Y: a column does not vary; pass the targets that are to be predicted.")
    shape, numeric = None, given.shape[1] - len(table.num_levels)
    if image_shape is not None:
        shape = as_image_shape(image_shape)
        if math.prod(shape) != given.shape[1]:
            raise ValueError(
                f"image_shape must have {given.shape[1]} pixels, the columns of X, found {shape}; "
                "pass (height, width) or (height, width, channels)."
            )
    names = table.names[:numeric]
    on_globe, sentences = is_on_the_globe(names, given[:, :numeric], inputs, is_table=shape is None)
    scale, what = "columns", "levels, means and deviations of these rows"
    if shape is not None:
        scale, what = "pixels", "the range of these pixels"
    elif on_globe:
        scale, what = "degrees", "latitude, then longitude"
    if table.num_levels:
        options["most_indicators"] = MOST_INDICATORS
    if bounds and not on_globe:
        options["bounds"] = dict(bounds)
    scaler = TableScaler(X, scale, **options)
    rows, left_out = scaler(X), scaler.left_out
    scaled, units, target_code = plain, None, f"{_TARGETS[targets]} = {targets.__name__}(Y)"
    if targets is outputs.standardised:
        scaled, *moments = outputs.standardised(Y)
        units = moments[0], moments[1]
    arguments = "".join(f", {name}={value!r}" for name, value in options.items())
    row_code = f'scaler = idm.tables.TableScaler(X, "{scale}"{arguments})  # {what}'
    if left_out:
        sentences += (f"Columns of X that do not vary are left out: {', '.join(left_out)}.",)
    parts = () if likelihood is None else likelihood.submodules
    functions = [type(part).__name__ for part in parts if isinstance(part, Function)]
    if functions and not (rows.shape == np.shape(X) and np.allclose(given, rows)):
        raise ValueError(
            f"likelihood: a part of it is a function of X ({functions[0]}), and models have "
            f"standardised X; pass a likelihood for {_STANDARDISED}, and this as X."
        )
    return PreparedData(
        rows,
        scaled,
        f"{row_code}\nX_train = scaler(X)\n{target_code}",
        shape,
        scaler,
        targets,
        likelihood_code,
        on_globe,
        sentences,
        None if X_new is None else _scaled_new_rows(scaler, X_new, shape),
        units,
        None if noise_variance is None else noise_weights(noise_variance, scaled, units),
        _box(rows[:, : rows.shape[1] - len(scaler.num_levels)]) if "bounds" in options else None,
        scaler.num_levels,
    )


def noise_weights(noise_variance: Any, Y: Array, units: tuple[Array, Array] | None) -> Array:
    """The noise weights ``[N]`` of rows with known noise variances.

    :param noise_variance: ``[N]``, in squared units of Y as the user passed it.
    :param Y: ``[N, P]``; P must be one.
    :raises ValueError: For variances that are not positive, and for several outputs.
    """
    variances = finite_array("noise_variance", noise_variance, (1,), "a vector [N]")
    if len(variances) != len(Y) or Y.shape[1] != 1 or not np.all(variances > 0):
        raise ValueError(
            f"noise_variance must be [N], positive, for the {len(Y)} rows of one output, found "
            f"{short(noise_variance)} for {Y.shape[1]} outputs; pass the variance of each row."
        )
    weights: Array = (1.0 if units is None else np.square(units[1])) / variances
    return weights


def _box(rows: Array) -> list[list[float]]:
    """The lowest and the highest value of each column, over rows and bounds (+-sqrt(3), scaled)."""
    ends = np.full([2, rows.shape[1]], 3**0.5) * [[-1.0], [1.0]]
    return [
        np.minimum(ends[0], rows.min(axis=0)).tolist(),
        np.maximum(ends[1], rows.max(axis=0)).tolist(),
    ]


def _scaled_new_rows(scaler: TableScaler, X_new: Any, shape: tuple[int, ...] | None) -> Array:
    """The scaled new rows; a ValueError for images, no rows, or other columns than in X."""
    if shape is not None:
        raise ValueError(
            "X_new must be None for images, whose distances say little, found rows; leave it out."
        )
    try:
        rows: Array = scaler(X_new)
    except ValueError as error:
        raise ValueError(f"X_new must be rows with the columns of X; found: {error}") from error
    if not len(rows):
        raise ValueError("X_new must have a row or more, found none; pass None for any rows.")
    return rows


def checked_likelihood(likelihood: Any) -> Likelihood | None:
    """The likelihood; None for a Gaussian with one trainable variance and no prior."""
    if likelihood is None:
        return None
    instance("likelihood", likelihood, Likelihood, "a GPflow likelihood", "pass one, or None")
    if type(likelihood) is Gaussian and densities_of(likelihood) is Gaussian:
        noise = likelihood.scale if likelihood.variance is None else likelihood.variance
        if isinstance(noise, Parameter) and noise.trainable and noise.prior is None:
            return None if int(tf.size(noise)) == 1 else likelihood
    return likelihood  # type: ignore[no-any-return]
