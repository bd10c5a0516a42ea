"""Scales a table for models, as :func:`recommend` does, and has the code that does the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gpflow.likelihoods import Likelihood

from .._arguments import as_integers, filled_matrix, finite_array
from .._targets import check_targets, number_of_latents, takes_missing
from ..sphere import unit_vectors
from ..sphere._typing import Array

LEAST_ROWS = 20

_STANDARDISED = "(X - X.mean(axis=0)) / X.std(axis=0)"


@dataclass(frozen=True, eq=False)
class PreparedData:
    """
    A table, scaled.

    :ivar X: ``[N, D]``, standardised; pixels are between 0 and 1, and places on the globe are unit
        vectors, in the first three columns.
    :ivar Y: ``[N, P]``; standardised if noise is Gaussian.
    :ivar code: lines of code that turn the X and Y that were passed into these.
    :ivar globe: whether the first three columns are unit vectors.
    :ivar image_shape: the shape of the images that the rows are; None for a table.
    """

    X: Array
    Y: Array
    code: tuple[str, ...] = field(repr=False)
    globe: bool = False
    image_shape: tuple[int, ...] | None = None

    @property
    def categorical(self) -> list[int]:
        """The columns with two values."""
        two = np.all((self.X == self.X.min(axis=0)) | (self.X == self.X.max(axis=0)), axis=0)
        return np.flatnonzero(two).tolist()  # type: ignore[no-any-return]


def prepare(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    *,
    globe: Sequence[int] | None = None,
    image_shape: Sequence[int] | None = None,
) -> PreparedData:
    """
    Bring X, and Y under Gaussian noise, to scales that suit the models.

    :param likelihood: whose targets Y must be; None for Gaussian noise.
    :param globe: the columns of latitude and longitude, in degrees.
    :param image_shape: the shape of the images, if rows are images.
    :raises ValueError: for X or Y that are not finite numbers, do not fit each other or do not vary
        in a column, Y that is unknown to the likelihood, or fewer than 20 rows.
    """
    X = filled_matrix("X", X, "a matrix [N, D]")
    Y = finite_array("Y", Y, (1, 2), "[N, P] or [N]", missing=takes_missing(likelihood))
    if len(Y) != len(X) or Y.size == 0:
        raise ValueError(f"Y must be [N, P] with the {len(X)} rows of X, found shape {Y.shape}.")
    Y = Y.reshape(len(X), -1)
    if len(X) < LEAST_ROWS:
        raise ValueError(
            f"X must have {LEAST_ROWS} rows or more, found {len(X)}; with so few take "
            "gpflow.models.GPR, whose prior says more than rows held out."
        )
    if likelihood is not None:
        number_of_latents(likelihood, Y.shape[1])
        check_targets(likelihood, Y)
    if not np.all(np.nanmin(Y, axis=0) < np.nanmax(Y, axis=0)):
        raise ValueError("Y: a column does not vary; pass the targets that are to be predicted.")
    constant = np.flatnonzero(X.std(axis=0) <= 1e-12 * np.abs(X.mean(axis=0)))
    if len(constant) and image_shape is None:
        raise ValueError(
            f"X: columns {constant.tolist()} do not vary; pass the others, which tell rows apart."
        )
    code = ["X, Y = np.asarray(X, float), np.asarray(Y, float).reshape(len(Y), -1)"]
    shape = None if image_shape is None else _checked_image_shape(image_shape, X)
    if shape is not None:
        X = (X - X.min()) / (X.max() - X.min())
        code.append("X = (X - X.min()) / (X.max() - X.min())")
    elif globe is not None:
        place = _checked_globe(globe, X.shape[1])
        others = [column for column in range(X.shape[1]) if column not in place]
        directions = unit_vectors(X[:, place]).numpy()
        X = np.hstack([directions, _standardised(X[:, others])])
        code += [
            f"directions, X = idm.sphere.unit_vectors(X[:, {place}]).numpy(), X[:, {others}]",
            f"X = np.hstack([directions, {_STANDARDISED}])",
        ]
    else:
        X = _standardised(X)
        code.append(f"X = {_STANDARDISED}")
    if likelihood is None:
        Y = _standardised(Y)
        code.append(f"Y = {_STANDARDISED.replace('X', 'Y')}")
    return PreparedData(X, Y, tuple(code), globe is not None, shape)


def _standardised(values: Array) -> Array:
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def _checked_image_shape(image_shape: Any, X: Array) -> tuple[int, ...]:
    shape = as_integers("image_shape", image_shape, "pass (height, width) or with channels")
    if len(shape) not in (2, 3) or math.prod(shape) != X.shape[1]:
        raise ValueError(
            f"image_shape must have {X.shape[1]} pixels, the columns of X, found {shape}; pass "
            "(height, width) or (height, width, channels)."
        )
    if X.min() == X.max():
        raise ValueError("X: all pixels are the same; pass images that differ.")
    return shape


def _checked_globe(globe: Any, count: int) -> list[int]:
    numbers = as_integers("globe", globe, "pass the columns of latitude and longitude")
    if len(numbers) != 2 or len(set(numbers)) != 2 or not set(numbers) <= set(range(count)):
        raise ValueError(
            f"globe must be two of the {count} columns of X, found {numbers}; pass those of "
            "latitude and longitude, such as (0, 1)."
        )
    return list(numbers)
