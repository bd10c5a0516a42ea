"""Transformations of periodic inputs: translations on a torus, and shifts of the longitude."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from ...._arguments import Array, choice, refusal, short
from .base import IntArray, as_order
from .closed_form import ClosedFormTransform, as_dims, as_vector, constant, spread
from .euclidean import rotate


def translate(
    X: tf.Tensor, dims: Sequence[int], lower: float, period: Array, turns: Array
) -> tf.Tensor:
    """The images ``[K, N, D]`` of X ``[N, D]``: columns ``dims`` are shifted by fractions ``[K]``
    of their periods, and by whole periods into ``[lower, lower + period)``."""
    columns = X.shape[-1]
    moved = spread(np.array(1.0), dims, columns, 0.0)
    length = spread(period, dims, columns, 1.0)
    size = constant(length, X)
    shifted = X + constant(moved * length * turns[:, None, None], X)
    wrapped = tf.math.floormod(shifted - lower, size) + lower
    # For a tiny negative number, floormod rounds up to the period itself.
    wrapped = tf.where(wrapped >= lower + size, wrapped - size, wrapped)
    return tf.where(moved.astype(bool), wrapped, X)


def remainder(difference: Array, dims: Sequence[int], period: Array) -> Array:
    """The differences, reduced by whole periods to absolute values of at most half a period."""
    result = np.array(difference)
    result[..., list(dims)] -= period * np.round(result[..., list(dims)] / period)
    return result


class Translation(ClosedFormTransform):
    """The shift ``x_j -> (x_j + period_j / order) mod period_j`` of periodic columns, on a torus.

    A kernel that is periodic and stationary in the shifted columns is invariant to the shift (Sun
    et al. 2021, Definition 3.2). The zeroth power returns X unchanged; every other power returns
    values in ``[0, period_j)`` in the shifted columns.

    :param order: The order T, 2 or more.
    :param dims: The different columns that are shifted together, one int or several.
    :param period: The positive, finite period, a scalar or one number for each shifted column.
    :raises ValueError: If an argument is not as above.
    """

    shown = ("order", "dims", "period")

    def __init__(
        self, order: int, dims: int | Sequence[int], period: float | Sequence[float] | Array
    ) -> None:
        self.order = as_order(order)
        self.dims = as_dims(dims)
        self.period = as_vector("period", period, len(self.dims), "shifted column")
        if np.any(self.period <= 0.0):
            remedy = "pass the length after which the column repeats"
            raise refusal("period", "be positive", short(self.period), remedy)
        self.min_input_dim = max(self.dims) + 1

    def wrap(self, difference: Array) -> Array:
        return remainder(difference, self.dims, self.period)

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        return translate(X, self.dims, 0.0, self.period, exponents / self.order)


_DEGREES = np.array(360.0)


class LongitudeShift(ClosedFormTransform):
    """The rotation of the globe by ``360 / order`` degrees eastwards (Sun et al. 2021, eq. 23).

    :param order: The order T, 2 or more.
    :param coordinates: ``"degrees"`` for columns (longitude, latitude). The zeroth power returns X
        unchanged; every other power returns longitudes in [-180, 180). ``"euclidean"`` for columns
        (x, y, z) of points on the sphere or elsewhere, rotated about the z axis.
        :func:`interdomain.sphere.unit_vectors` computes (x, y, z) from (latitude, longitude).
    :raises ValueError: If an argument is not as above.
    """

    shown = ("order", "coordinates")

    def __init__(
        self, order: int, *, coordinates: Literal["degrees", "euclidean"] = "degrees"
    ) -> None:
        self.order = as_order(order)
        remedy = "pass 'degrees' for columns (longitude, latitude), 'euclidean' for (x, y, z)"
        self.coordinates = choice("coordinates", coordinates, ("degrees", "euclidean"), remedy)
        self.input_dim = self.min_input_dim = 2 if coordinates == "degrees" else 3

    def to_domain(self, normals: Array) -> Array:
        if self.coordinates == "euclidean":
            return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))
        longitude = np.mod(180.0 * normals[:, 0] + 180.0, 360.0) - 180.0
        latitude = 90.0 * np.tanh(normals[:, 1])
        return np.stack([longitude, latitude], axis=1)

    def wrap(self, difference: Array) -> Array:
        if self.coordinates == "euclidean":
            return difference
        return remainder(difference, (0,), _DEGREES)

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        if self.coordinates == "euclidean":
            return rotate(X, (0, 1), exponents, self.order)
        return translate(X, (0,), -180.0, _DEGREES, exponents / self.order)
