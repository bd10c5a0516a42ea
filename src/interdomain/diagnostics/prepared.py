"""Prepares a table for models, as :func:`recommend` does, and says how, in words and in code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gpflow.likelihoods import Bernoulli, Likelihood

from .._arguments import as_integers
from ..models.targets import check_targets, densities_of, number_of_latents, takes_missing
from ..sphere import unit_vectors
from ..sphere._typing import Array, IntArray

LEAST_ROWS = 20

_MOST_LEVELS = 20
"""For a column of text, only this number of its most frequent levels are kept."""

_MOST_MISSING = 0.2
"""If a larger share of a column is missing, the column is left out and not the rows."""

_DIRECTIONS = 3
"""Columns of a place on the globe."""

_MOST_SHOWN = 8
"""Numbers of columns in a sentence."""


@dataclass(frozen=True, eq=False)
class PreparedData:
    """
    A prepared table.

    :ivar X: ``[N, D]``, standardised; pixels are between 0 and 1.
    :ivar Y: ``[N, P]``; standardised if noise is Gaussian.
    :ivar found: what was found and what was done about it, in sentences.
    :ivar code: lines of code that turn the X and Y that were passed into these.
    :ivar globe: whether the first three columns are unit vectors.
    :ivar image_shape: the shape of the images that the rows are; None for a table.
    """

    X: Array
    Y: Array
    found: tuple[str, ...]
    code: tuple[str, ...] = field(repr=False)
    globe: bool = False
    image_shape: tuple[int, ...] | None = None

    @property
    def categorical(self) -> list[int]:
        """The columns with two values."""
        return [
            number
            for number, column in enumerate(self.X.T)
            if np.all((column == column.min()) | (column == column.max()))
        ]

    def varying_in(self, rows: IntArray) -> PreparedData:
        """The data without columns that are constant in the given rows, which additive models do
        not accept. Unit vectors and pixels are kept."""
        if self.image_shape is not None:
            return self
        keep = np.ptp(self.X[rows], axis=0) > 0
        keep[: _DIRECTIONS if self.globe else 0] = True
        return replace(self, X=self.X[:, keep])


class _Notes:
    """What is said, and the lines that do the same again."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.code: list[str] = []

    def add(self, sentence: str, *lines: str) -> None:
        self.found.append(sentence)
        self.code += lines


def prepare(
    X: Any,
    Y: Any,
    *,
    gaussian: bool,
    likelihood: Likelihood | None = None,
    globe: Sequence[int] | None = None,
    image_shape: Sequence[int] | None = None,
) -> PreparedData:
    """
    Remove rows and columns that no model accepts, and bring the others to suitable scales.

    :param gaussian: whether Y is standardised.
    :param likelihood: whose targets Y must be; None for any.
    :param globe: the columns of latitude and longitude, in degrees.
    :param image_shape: the shape of the images, if rows are images.
    :raises ValueError: for shapes that do not fit each other, Y that is not numeric, does not
        vary or is unknown to the likelihood, or fewer than 20 rows without missing values.
    """
    notes = _Notes()
    X, columns = _numbers(X, notes, globe)
    Y = _targets(Y, len(X), notes)
    if image_shape is not None:
        image_shape = _checked_image_shape(image_shape, X)
    place = None if globe is None else _checked_globe(globe, columns)
    if image_shape is None:
        degrees = _check_degrees(X, columns, place)
        if degrees is not None:
            notes.found.append(degrees)
        X, place = _without_empty_columns(X, notes, place)
    X, Y = _finite_rows(X, Y, notes, missing=takes_missing(likelihood))
    if likelihood is not None:
        number_of_latents(likelihood, Y.shape[1])
        check_targets(likelihood, Y)
    if any(len(np.unique(column[np.isfinite(column)])) < 2 for column in Y.T):
        raise ValueError("Y: a column does not vary; pass the targets that are to be predicted.")
    if image_shape is not None:
        X = _scaled_pixels(X, notes)
    else:
        X, place = _different_columns(X, notes, place)
        X = _standardised(X, notes, place)
    if gaussian:
        notes.code.append("Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)")
        Y = _by_deviations(Y)
    elif densities_of(likelihood) is Bernoulli and set(np.unique(Y)) == {-1.0, 1.0}:
        notes.add("Y is -1 and 1: made 0 and 1.", "Y = (Y + 1) / 2")
        Y = (Y + 1) / 2
    found, code = tuple(notes.found), tuple(notes.code)
    return PreparedData(X, Y, found, code, place is not None, image_shape)


def _numbers(X: Any, notes: _Notes, globe: Any) -> tuple[Array, list[int | None]]:
    """X as numbers, text as one column for each level; and which column each was, None for a
    level."""
    if hasattr(X, "to_numpy"):
        notes.code.append("X = X.to_numpy()")
        X = X.to_numpy()
    X = np.asarray(X)
    if X.ndim == 1:
        notes.code.append("X = X[:, None]")
        X = X[:, None]
    if X.ndim != 2 or X.size == 0:
        raise ValueError(f"X must be [N, D], found shape {X.shape}; pass one row for each target.")
    if X.dtype.kind in "biuf":
        X = X.astype(float)
        if notes.code or X.dtype.kind != "f":
            notes.code.append("X = X.astype(float)")
        return X, list(range(X.shape[1]))
    made: list[Array] = []
    origins: list[int | None] = []
    parts: list[str] = []
    for number, column in enumerate(X.T):
        try:
            made.append(column.astype(float)[:, None])
            parts.append(f"X[:, {number}].astype(float)")
            origins.append(number)
        except (TypeError, ValueError):
            text = np.array([str(entry) for entry in column])
            levels, counts = np.unique(text, return_counts=True)
            kept = levels[np.argsort(-counts, kind="stable")][:_MOST_LEVELS].tolist()
            made.append((text[:, None] == np.array(kept)).astype(float))
            parts.append(f"X[:, [{number}]].astype(str) == np.array({kept})")
            origins += [None] * len(kept)
            left = f", the most frequent of {len(levels)}" if len(levels) > len(kept) else ""
            notes.found.append(
                f"Column {number} is text: one column of zeros and ones for each of "
                f"{len(kept)} levels{left}."
            )
    notes.code += ["X = np.column_stack([", *(f"    {part}," for part in parts), "]).astype(float)"]
    return np.concatenate(made, axis=1), origins


def _targets(Y: Any, count: int, notes: _Notes) -> Array:
    if hasattr(Y, "to_numpy"):
        notes.code.append("Y = Y.to_numpy()")
        Y = Y.to_numpy()
    try:
        found: Array = np.asarray(Y).astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            "Y must be numbers, found text; pass classes as 0, 1, ... and their likelihood."
        ) from None
    notes.code.append("Y = Y.astype(float)" + ("[:, None]" if found.ndim == 1 else ""))
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) != count or found.shape[1] == 0:
        raise ValueError(f"Y must be [N, P] with the {count} rows of X, found shape {found.shape}.")
    return found


def _checked_image_shape(image_shape: Any, X: Array) -> tuple[int, ...]:
    shape = as_integers("image_shape", image_shape, "pass (height, width) or with channels")
    if len(shape) not in (2, 3) or math.prod(shape) != X.shape[1]:
        raise ValueError(
            f"image_shape must have {X.shape[1]} pixels, the columns of X, found {shape}; pass "
            "(height, width) or (height, width, channels)."
        )
    return shape


def _checked_globe(globe: Any, columns: list[int | None]) -> list[int]:
    numbers = as_integers("globe", globe, "pass the columns of latitude and longitude")
    if len(numbers) != 2 or len(set(numbers)) != 2 or not set(numbers) <= set(columns):
        raise ValueError(
            f"globe must be two columns of numbers among the {len(columns)} of X, found {numbers}; "
            "pass those of latitude and longitude, such as (0, 1)."
        )
    return [columns.index(number) for number in numbers]


def _chosen(
    X: Array, keep: Array, notes: _Notes, place: list[int] | None, why: str
) -> tuple[Array, list[int] | None]:
    """The columns to keep; what of ``place`` becomes of it."""
    chosen = np.flatnonzero(keep)
    if len(chosen) == X.shape[1]:
        return X, place
    if len(chosen) == 0:
        raise ValueError(f"X: all columns are {why}; pass columns that tell rows apart.")
    left = np.flatnonzero(~keep).tolist()
    shown = ", ".join(map(str, left[:_MOST_SHOWN])) + (", ..." if len(left) > _MOST_SHOWN else "")
    noun = "Column" if len(left) == 1 else "Columns"
    notes.add(
        f"{noun} {shown}: {why}, left out ({len(left)} of {X.shape[1]}).",
        f"X = X[:, {chosen.tolist()}]  # without columns that are {why}",
    )
    if place is not None:
        if not all(keep[one] for one in place):
            raise ValueError(f"globe: latitude or longitude is {why}; pass other columns.")
        place = [chosen.tolist().index(one) for one in place]
    return X[:, chosen], place


def _without_empty_columns(
    X: Array, notes: _Notes, place: list[int] | None
) -> tuple[Array, list[int] | None]:
    keep = np.mean(~np.isfinite(X), axis=0) <= _MOST_MISSING
    return _chosen(X, keep, notes, place, "often missing")


def _finite_rows(X: Array, Y: Array, notes: _Notes, *, missing: bool) -> tuple[Array, Array]:
    """
    :param missing: whether the likelihood leaves out values of Y that are missing.
    """
    kept = np.isfinite(X).all(axis=1) & (~np.isinf(Y) if missing else np.isfinite(Y)).all(axis=1)
    if not kept.all():
        of_y = "(~np.isinf(Y))" if missing else "np.isfinite(Y)"
        notes.add(
            f"{np.count_nonzero(~kept):,} of {len(X):,} rows have missing values: left out.",
            f"kept = np.isfinite(X).all(axis=1) & {of_y}.all(axis=1)",
            "X, Y = X[kept], Y[kept]",
        )
        X, Y = X[kept], Y[kept]
    if len(X) < LEAST_ROWS:
        raise ValueError(
            f"X: {LEAST_ROWS} rows without missing values are needed, found {len(X)}; with so few "
            "take gpflow.models.GPR, whose prior says more than rows held out."
        )
    return X, Y


def _scaled_pixels(X: Array, notes: _Notes) -> Array:
    if X.min() == X.max():
        raise ValueError("X: all pixels are the same; pass images that differ.")
    notes.code.append("X = (X - X.min()) / (X.max() - X.min())")
    scaled: Array = (X - X.min()) / (X.max() - X.min())
    return scaled


def _different_columns(
    X: Array, notes: _Notes, place: list[int] | None
) -> tuple[Array, list[int] | None]:
    """Without columns that are constant, or another but for sign, scale and shift."""
    mean, scale = X.mean(axis=0), X.std(axis=0)
    X, place = _chosen(
        X, scale > 1e-12 * np.maximum(np.abs(mean), 1e-300), notes, place, "constant"
    )
    unit = (X - X.mean(axis=0)) / (X.std(axis=0) * math.sqrt(len(X)))
    repeats = np.abs(np.triu(unit.T @ unit, 1)).max(axis=0) > 1 - 1e-12
    if place is not None:
        repeats[place] = False
    return _chosen(X, ~repeats, notes, place, "a repetition of another")


def _check_degrees(X: Array, columns: list[int | None], place: list[int] | None) -> str | None:
    """
    :returns: what to say if two columns look like latitude and longitude.
    :raises ValueError: if those that are said to be are none.
    """
    known = np.isfinite(X)
    low, high = (
        np.min(X, 0, where=known, initial=np.inf),
        np.max(X, 0, where=known, initial=-np.inf),
    )
    if place is not None:
        a, b = place
        if low[a] < -90 or high[a] > 90 or low[b] < -360 or high[b] > 360:
            raise ValueError(
                f"globe: latitudes from {low[a]:.4g} to {high[a]:.4g} and longitudes from "
                f"{low[b]:.4g} to {high[b]:.4g} are no degrees; pass (latitude, longitude), in "
                "this order."
            )
        return None
    for a in range(X.shape[1]):
        for b in (a + 1, a - 1):
            # Of a large part of the globe, and hardly of anything else.
            if 0 <= b < X.shape[1] and -90 <= low[a] < -20 < 20 < high[a] <= 90:
                if -180 <= low[b] and high[b] <= 360 and high[b] - low[b] > 180:
                    pair = f"{columns[a]}, {columns[b]}"
                    return (
                        f"Columns {columns[a]} and {columns[b]} could be latitude and longitude: "
                        f"pass globe=({pair}) if they are."
                    )
    return None


def _standardised(X: Array, notes: _Notes, place: list[int] | None) -> Array:
    if place is None:
        notes.code += ["centre, scale = X.mean(axis=0), X.std(axis=0)", "X = (X - centre) / scale"]
        return _by_deviations(X)
    others = [number for number in range(X.shape[1]) if number not in place]
    directions = unit_vectors(X[:, place]).numpy()
    if not others:
        notes.code.append(f"X = idm.sphere.unit_vectors(X[:, {place}]).numpy()")
        return np.asarray(directions)
    notes.code += [
        f"directions, X = idm.sphere.unit_vectors(X[:, {place}]).numpy(), X[:, {others}]",
        "centre, scale = X.mean(axis=0), X.std(axis=0)",
        "X = np.concatenate([directions, (X - centre) / scale], axis=1)",
    ]
    return np.concatenate([directions, _by_deviations(X[:, others])], axis=1)


def _by_deviations(values: Array) -> Array:
    found: Array = (values - values.mean(axis=0)) / values.std(axis=0)
    return found
